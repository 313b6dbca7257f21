#include "daemon/requests/limits.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/util.h"

/* linux/socket.h, from 6.5 on. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define PROC_MAX_BYTES 65536U /* status has a line of all groups */

static const struct {
        const char *name; /* as in /proc/PID/limits */
        uint32_t resource;
} names[LIMITS_MAX] = {
        { "Max cpu time", RLIMIT_CPU },
        { "Max file size", RLIMIT_FSIZE },
        { "Max data size", RLIMIT_DATA },
        { "Max stack size", RLIMIT_STACK },
        { "Max core file size", RLIMIT_CORE },
        { "Max resident set", RLIMIT_RSS },
        { "Max processes", RLIMIT_NPROC },
        { "Max open files", RLIMIT_NOFILE },
        { "Max locked memory", RLIMIT_MEMLOCK },
        { "Max address space", RLIMIT_AS },
        { "Max file locks", RLIMIT_LOCKS },
        { "Max pending signals", RLIMIT_SIGPENDING },
        { "Max msgqueue size", RLIMIT_MSGQUEUE },
        { "Max nice priority", RLIMIT_NICE },
        { "Max realtime priority", RLIMIT_RTPRIO },
        { "Max realtime timeout", RLIMIT_RTTIME },
};

/* "unlimited" or a number, and what follows it. */
static const char *parse_value(const char *text, uint64_t *ret_value) {
        char *end = NULL;

        text += strspn(text, " ");
        if (strncmp(text, "unlimited", 9) == 0) {
                *ret_value = RLIM_INFINITY;
                return text + 9;
        }
        *ret_value = strtoull(text, &end, 10);
        return end == text ? NULL : end;
}

/* False: not a line that is known, or not as it should be. */
static bool parse_line(const char *line, struct limits *limits) {
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                size_t n = strlen(names[i].name);
                uint64_t soft, hard;
                const char *rest;

                if (strncmp(line, names[i].name, n) != 0)
                        continue;
                rest = parse_value(line + n, &soft);
                if (!rest || !parse_value(rest, &hard))
                        return false;
                limits->items[limits->n].resource = names[i].resource;
                limits->items[limits->n].soft = soft;
                limits->items[limits->n].hard = hard;
                limits->n++;
                return true;
        }
        return false;
}

int limits_parse(const char *text, struct limits *ret) {
        struct limits limits = { 0 };

        for (const char *line = text; line && *line && limits.n < LIMITS_MAX; line = strchr(line, '\n')) {
                line += strspn(line, "\n");
                (void) parse_line(line, &limits);
        }
        if (limits.n == 0)
                return -EINVAL;
        *ret = limits;
        return 0;
}

bool limits_status_is(const char *text, uid_t uid) {
        const char *line = strstr(text, "\nUid:");
        unsigned ids[4];

        if (!line || sscanf(line, "\nUid: %u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) != 4)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
                if (ids[i] != uid)
                        return false;
        return true;
}

void limits_set(Rm__JobSpec *spec, const struct limits *limits) {
        for (size_t i = 0; i < spec->n_rlimits; i++)
                rm__rlimit__free_unpacked(spec->rlimits[i], NULL);
        free(spec->rlimits);
        spec->rlimits = xcalloc(limits->n, sizeof(Rm__Rlimit *));
        spec->n_rlimits = limits->n;
        for (size_t i = 0; i < limits->n; i++) {
                Rm__Rlimit *limit = spec->rlimits[i] = xcalloc(1, sizeof(*limit));

                rm__rlimit__init(limit);
                limit->resource = limits->items[i].resource;
                limit->soft = limits->items[i].soft;
                limit->hard = limits->items[i].hard;
        }
}

/* ---- the process at the other end ---- */

/* The process itself, not its number, which another one may have got since. Kernels before 6.5 only
 * know the number: what has it now is taken, and the ids tell at least that it is the same
 * user's. */
static int open_peer(int socket_fd, const struct ucred *peer) {
        int pidfd = -1;
        socklen_t size = sizeof(pidfd);

        if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0)
                return pidfd;
        if (errno != ENOPROTOOPT)
                return -errno;
        pidfd = (int) syscall(SYS_pidfd_open, peer->pid, 0);
        return pidfd < 0 ? -errno : pidfd;
}

/* The process has not ended, so its pid cannot have been reused. */
static bool is_alive(int pidfd) {
        struct pollfd p = { .fd = pidfd, .events = POLLIN };

        return poll(&p, 1, 0) == 0;
}

static int read_proc(pid_t pid, const char *name, char **ret_text) {
        cleanup_free char *path = xasprintf("/proc/%d/%s", (int) pid, name);

        return read_file(path, PROC_MAX_BYTES, ret_text, NULL);
}

int limits_of_peer(int socket_fd, const struct ucred *peer, struct limits **ret, struct rm_error *err) {
        cleanup_close int pidfd = open_peer(socket_fd, peer);
        cleanup_free struct limits *limits = xcalloc(1, sizeof(*limits));
        cleanup_free char *text = NULL;
        cleanup_free char *status = NULL;
        int r = pidfd < 0 ? -ESRCH : read_proc(peer->pid, "limits", &text);

        if (r == 0)
                r = limits_parse(text, limits);
        if (r == 0)
                r = read_proc(peer->pid, "status", &status);
        if (r < 0 || !is_alive(pidfd))
                return error_set(
                        err, -ESRCH,
                        "process %d, which connected, has ended: a job gets the resource limits of the process that submits it, "
                        "which must connect itself and stay",
                        (int) peer->pid);
        /* A process that executes a program with more rights may have raised its limits. */
        if (!limits_status_is(status, peer->uid))
                return error_set(
                        err, -EPERM,
                        "process %d, which connected, does not run as uid %u in every respect: its resource limits are not taken",
                        (int) peer->pid, (unsigned) peer->uid);
        *ret = take_ptr(limits);
        return 0;
}
