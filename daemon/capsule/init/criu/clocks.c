#include "daemon/capsule/init/criu/clocks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/openat.h"
#include "common/util.h"
#include "proto/criu.pb-c.h"

#define NSEC_PER_SEC INT64_C(1000000000)
#define IMAGE_PREFIX "timens-"

/* Two magic numbers and the size of the one message. */
enum { HEADER_BYTES = 12, IMAGE_MAX_BYTES = 256 };

/* The offsets by which the clocks of a time namespace are ahead of the machine's. */
struct offsets {
        int64_t monotonic_nsec;
        int64_t boottime_nsec;
};

/* Two lines: "monotonic SEC NSEC" and "boottime SEC NSEC", with NSEC never negative. */
static int read_offsets(const char *path, struct offsets *ret) {
        cleanup_file FILE *f = fopen(path, "re");
        int64_t sec[2], nsec[2];

        if (!f)
                return -errno;
        if (fscanf(f, "monotonic %" SCNd64 " %" SCNd64 " boottime %" SCNd64 " %" SCNd64, &sec[0], &nsec[0], &sec[1], &nsec[1]) != 4)
                return -EBADMSG;
        ret->monotonic_nsec = sec[0] * NSEC_PER_SEC + nsec[0];
        ret->boottime_nsec = sec[1] * NSEC_PER_SEC + nsec[1];
        return 0;
}

static int read_entry(int fd, struct clocks *ret) {
        uint8_t data[IMAGE_MAX_BYTES];
        ssize_t n = read(fd, data, sizeof(data));
        Criu__TimensEntry *entry;
        uint32_t size;

        if (n < HEADER_BYTES)
                return n < 0 ? -errno : -ENOENT;
        memcpy(&size, data + HEADER_BYTES - sizeof(size), sizeof(size));
        if (size > (size_t) n - HEADER_BYTES)
                return -EBADMSG;
        entry = criu__timens_entry__unpack(NULL, size, data + HEADER_BYTES);
        if (!entry)
                return -EBADMSG;
        ret->monotonic_nsec = (int64_t) entry->monotonic->tv_sec * NSEC_PER_SEC + (int64_t) entry->monotonic->tv_nsec;
        ret->boottime_nsec = (int64_t) entry->boottime->tv_sec * NSEC_PER_SEC + (int64_t) entry->boottime->tv_nsec;
        criu__timens_entry__free_unpacked(entry, NULL);
        return 0;
}

/* The number in its name is CRIU's own. */
int clocks_read_image(int images_fd, struct clocks *ret) {
        cleanup_dir DIR *dir = opendir_at(images_fd, ".");
        const char *name;
        int r = -ENOENT;

        while (r == -ENOENT && (name = next_name(dir)))
                if (strncmp(name, IMAGE_PREFIX, strlen(IMAGE_PREFIX)) == 0) {
                        cleanup_close int image = openat(images_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

                        r = image < 0 ? -errno : read_entry(image, ret);
                }
        return r;
}

static int64_t read_clock(clockid_t id) {
        struct timespec now = { 0 };

        (void) clock_gettime(id, &now);
        return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

static int64_t floor_sec(int64_t nsec) {
        return nsec / NSEC_PER_SEC - (nsec % NSEC_PER_SEC < 0);
}

int clocks_unshare(const struct clocks *clocks) {
        cleanup_free char *text = NULL;
        struct offsets own = { 0 };
        int64_t monotonic, boottime;
        int r = read_offsets("/proc/self/timens_offsets", &own);

        if (r < 0)
                return r;
        if (unshare(CLONE_NEWTIME) < 0)
                return -errno;
        monotonic = clocks->monotonic_nsec - (read_clock(CLOCK_MONOTONIC) - own.monotonic_nsec);
        boottime = clocks->boottime_nsec - (read_clock(CLOCK_BOOTTIME) - own.boottime_nsec);
        text = xasprintf("monotonic %" PRId64 " %" PRId64 "\nboottime %" PRId64 " %" PRId64 "\n", floor_sec(monotonic),
                         monotonic - floor_sec(monotonic) * NSEC_PER_SEC, floor_sec(boottime),
                         boottime - floor_sec(boottime) * NSEC_PER_SEC);
        return write_text("/proc/self/timens_offsets", text);
}
