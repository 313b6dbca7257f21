#include "daemon/mover/slow.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"

/* The kernel wants at least 1 ms in a period, which is 1 s at most. */
#define QUOTA_LEAST_USEC 1000U
#define PERIOD_LEAST_USEC 100000U
#define PERIOD_MOST_USEC 1000000U
#define SECOND_USEC 1000000U

struct slow {
        int fd; /* of the file that limits */
        int period_fd; /* in v1 the period is in another file; -1: v2 */
        unsigned cores;
};

static int write_limit(int fd, const char *text) {
        return pwrite(fd, text, strlen(text), 0) < 0 ? -errno : 0;
}

static int open_in(const char *dir, const char *name) {
        cleanup_free char *path = xasprintf("%s/%s", dir, name);

        return open(path, O_WRONLY | O_CLOEXEC);
}

int slow_open(const char *group_dir, unsigned cores, struct slow **ret) {
        cleanup_close int fd = open_in(group_dir, "cpu.max");
        cleanup_close int period_fd = -1;

        if (fd < 0 && errno == ENOENT) {
                fd = open_in(group_dir, "cpu.cfs_quota_us");
                period_fd = fd < 0 ? -1 : open_in(group_dir, "cpu.cfs_period_us");
                if (period_fd < 0)
                        return -errno;
        }
        if (fd < 0)
                return -errno;
        *ret = xcalloc(1, sizeof(**ret));
        **ret = (struct slow) { .fd = take_fd(&fd), .period_fd = take_fd(&period_fd), .cores = cores > 0 ? cores : 1 };
        return 0;
}

int slow_set(struct slow *slow, unsigned usec_per_sec) {
        uint64_t sum = (uint64_t) usec_per_sec * slow->cores;
        uint64_t period = sum > 0 ? (uint64_t) SECOND_USEC * QUOTA_LEAST_USEC / sum : PERIOD_MOST_USEC;
        uint64_t quota;
        cleanup_free char *text = NULL;
        cleanup_free char *period_text = NULL;
        int r = 0;

        period = period < PERIOD_LEAST_USEC ? PERIOD_LEAST_USEC : period > PERIOD_MOST_USEC ? PERIOD_MOST_USEC : period;
        quota = sum * period / SECOND_USEC;
        quota = quota < QUOTA_LEAST_USEC ? QUOTA_LEAST_USEC : quota;
        period_text = xasprintf("%" PRIu64, period);
        text = xasprintf("%" PRIu64 "%s%s", quota, slow->period_fd < 0 ? " " : "", slow->period_fd < 0 ? period_text : "");
        if (slow->period_fd >= 0)
                r = write_limit(slow->period_fd, period_text);
        return r < 0 ? r : write_limit(slow->fd, text);
}

void slow_end(struct slow *slow) {
        int r;

        if (!slow)
                return;
        r = write_limit(slow->fd, slow->period_fd < 0 ? "max" : "-1");
        if (r < 0)
                log_error("the limit of processor time cannot be taken off: %s", strerror(-r));
        (void) close(slow->fd);
        cleanup_close_fd(&slow->period_fd);
        free(slow);
}
