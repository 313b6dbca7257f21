#include "daemon/capsule/init/base/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/capabilities.h"
#include "common/compare.h"
#include "common/error.h"
#include "common/util.h"

enum { CAPABILITIES_MAX = 64, END_MSEC = 1000 };
/* The limit on the size of a core: less than any core has. By core(5) this limit also keeps a core
 * from a program that takes cores. */
enum { NO_CORE_BYTES = 1 };

uint64_t identity_criu_capabilities(enum identity_work work) {
        uint64_t both = CAPABILITY(CAP_SYS_ADMIN) | CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_NET_ADMIN);

        return work == IDENTITY_RESTORE ? both | CAPABILITY(CAP_NET_RAW) : both;
}

static int set_capabilities(uint64_t capabilities) {
        int r = capabilities_keep(capabilities);

        if (r < 0)
                return r;
        for (unsigned c = 0; c < CAPABILITIES_MAX; c++)
                if ((capabilities & CAPABILITY(c)) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, c, 0, 0) < 0)
                        return -errno;
        return 0;
}

/* Both ways of acting as the owner begin with his groups. */
static int take_groups(const Capsule__Spec *spec, gid_t extra_group) {
        cleanup_free gid_t *groups = xcalloc(spec->n_groups + 1, sizeof(*groups));
        size_t n = spec->n_groups;

        for (size_t i = 0; i < n; i++)
                groups[i] = spec->groups[i];
        if (extra_group != IDENTITY_NO_GROUP)
                groups[n++] = extra_group;
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
                return -errno;
        return setgroups(n, groups) < 0 ? -errno : 0;
}

int identity_become(const Capsule__Spec *spec, uint64_t capabilities, gid_t extra_group) {
        int r = take_groups(spec, extra_group);

        if (r < 0)
                return r;
        if (capabilities != 0 && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
                return -errno;
        if (setresgid(spec->gid, spec->gid, spec->gid) < 0 || setresuid(spec->uid, spec->uid, spec->uid) < 0)
                return -errno;
        return capabilities != 0 && spec->uid != 0 ? set_capabilities(capabilities) : 0;
}

int identity_refuse_core(bool for_good) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_CORE, &limit) < 0)
                return -errno;
        limit.rlim_cur = limit.rlim_max < NO_CORE_BYTES ? limit.rlim_max : NO_CORE_BYTES;
        if (for_good)
                limit.rlim_max = limit.rlim_cur;
        return setrlimit(RLIMIT_CORE, &limit) < 0 ? -errno : 0;
}

/* The process opens files as the owner from now on, but its real and saved ids are still root's: so
 * the owner's other processes can neither stop nor end it. */
int identity_borrow(const Capsule__Spec *spec, uint64_t capabilities) {
        int r = take_groups(spec, IDENTITY_NO_GROUP);

        if (r < 0)
                return r;
        if (setresgid((gid_t) -1, spec->gid, (gid_t) -1) < 0 || setresuid((uid_t) -1, spec->uid, (uid_t) -1) < 0)
                return -errno;
        return spec->uid != 0 ? set_capabilities(capabilities) : 0;
}

int identity_look_as(const Capsule__Spec *spec) {
        uid_t uid = spec ? spec->uid : 0;
        int r = spec ? take_groups(spec, IDENTITY_NO_GROUP) : 0;

        if (r < 0)
                return r;
        (void) setfsgid(spec ? spec->gid : 0);
        (void) setfsuid(uid);
        return (uid_t) setfsuid((uid_t) -1) == uid ? 0 : -EPERM; /* the call itself does not tell */
}

int identity_child(const Capsule__Spec *spec, uint64_t capabilities, identity_child_fn fn, const void *arg, pid_t *ret_pid,
                   int *ret_fd) {
        int report[2], r;
        pid_t pid;

        if (pipe2(report, O_CLOEXEC) < 0)
                return -errno;
        pid = fork();
        if (pid == 0) {
                fn(spec ? identity_borrow(spec, capabilities) : 0, report[1], arg);
                _exit(0);
        }
        r = pid < 0 ? -errno : 0;
        (void) close(report[1]);
        if (r < 0) {
                (void) close(report[0]);
                return r;
        }
        *ret_pid = pid;
        *ret_fd = report[0];
        return 0;
}

int identity_await(int fd, uint64_t most_usec) {
        struct pollfd report = { .fd = fd, .events = POLLIN };
        uint64_t end_usec = now_usec() + most_usec;

        for (uint64_t now = now_usec(); now < end_usec; now = now_usec()) {
                int n = poll(&report, 1, (int) ((end_usec - now) / 1000) + 1);

                if (n > 0)
                        return 0;
                if (n < 0 && errno != EINTR)
                        return -errno;
        }
        return -ETIMEDOUT;
}

void identity_end(pid_t pid) {
        cleanup_close int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
        struct pollfd process = { .fd = pidfd, .events = POLLIN };

        (void) kill(pid, SIGKILL);
        if (pidfd >= 0)
                (void) poll(&process, 1, END_MSEC);
        (void) waitpid(pid, NULL, WNOHANG);
}

void identity_child_end(pid_t pid, int fd) {
        (void) close(fd);
        identity_end(pid);
}

int identity_ask(const Capsule__Spec *spec, uint64_t capabilities, identity_child_fn fn, const void *arg, uint64_t most_usec,
                 void *ret_answer, size_t answer_bytes) {
        pid_t pid;
        int fd, r = identity_child(spec, capabilities, fn, arg, &pid, &fd);

        if (r < 0)
                return r;
        r = identity_await(fd, most_usec);
        if (r == 0)
                r = read_all(fd, ret_answer, answer_bytes);
        identity_child_end(pid, fd);
        return r;
}

/* ---- what the kernel says ---- */

const char *identity_field(const char *status, const char *name) {
        size_t n = strlen(name);

        for (const char *line = status; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (strncmp(line, name, n) == 0 && line[n] == ':')
                        return line + n + 1;
        }
        return NULL;
}

static int read_ids(const char *status, const char *name, uint32_t ret[4]) {
        const char *text = identity_field(status, name);

        return text && sscanf(text, "%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32, &ret[0], &ret[1], &ret[2], &ret[3]) == 4
                       ? 0
                       : -EBADMSG;
}

static int read_mask(const char *status, const char *name, uint64_t *ret) {
        const char *text = identity_field(status, name);

        return text && sscanf(text, "%" SCNx64, ret) == 1 ? 0 : -EBADMSG;
}

static int read_number(const char *status, const char *name, uint32_t *ret) {
        const char *text = identity_field(status, name);

        return text && sscanf(text, "%" SCNu32, ret) == 1 ? 0 : -EBADMSG;
}

static int read_groups(const char *status, struct identity *identity) {
        const char *text = identity_field(status, "Groups");

        if (!text)
                return -EBADMSG;
        for (text += strspn(text, " \t"); *text && *text != '\n'; text += strspn(text, " \t")) {
                char *end = NULL;
                unsigned long group = strtoul(text, &end, 10);

                if (end == text)
                        return -EBADMSG;
                identity->groups = xgrow(identity->groups, identity->n_groups, sizeof(*identity->groups));
                identity->groups[identity->n_groups++] = (uint32_t) group;
                text = end;
        }
        return 0;
}

int identity_parse(const char *status, struct identity *ret) {
        struct identity identity = { 0 };

        if (read_ids(status, "Uid", identity.uids) < 0 || read_ids(status, "Gid", identity.gids) < 0 ||
            read_groups(status, &identity) < 0 || read_mask(status, "CapInh", &identity.inheritable) < 0 ||
            read_mask(status, "CapPrm", &identity.permitted) < 0 || read_mask(status, "CapEff", &identity.effective) < 0 ||
            read_mask(status, "CapBnd", &identity.bounding) < 0 || read_mask(status, "CapAmb", &identity.ambient) < 0 ||
            read_number(status, "NoNewPrivs", &identity.no_new_privs) < 0 ||
            read_number(status, "Seccomp", &identity.seccomp) < 0) {
                identity_finish(&identity);
                return -EBADMSG;
        }
        *ret = identity;
        return 0;
}

void identity_finish(struct identity *identity) {
        free(identity->groups);
        identity->groups = NULL;
        identity->n_groups = 0;
}

static bool groups_equal(const struct identity *identity, const Capsule__Spec *spec) {
        cleanup_free uint32_t *groups = NULL;

        if (identity->n_groups != spec->n_groups || spec->n_groups == 0)
                return identity->n_groups == spec->n_groups;
        groups = xcalloc(spec->n_groups, sizeof(*groups));
        memcpy(groups, spec->groups, spec->n_groups * sizeof(*groups));
        qsort(groups, spec->n_groups, sizeof(*groups), compare_u32);
        return memcmp(groups, identity->groups, spec->n_groups * sizeof(*groups)) == 0;
}

int identity_check(const struct identity *identity, const Capsule__Spec *spec, struct rm_error *error) {
        for (size_t i = 0; i < 4; i++)
                if (identity->uids[i] != spec->uid)
                        return error_set(error, -EPERM, "has user id %" PRIu32 ", not %" PRIu32, identity->uids[i], spec->uid);
        for (size_t i = 0; i < 4; i++)
                if (identity->gids[i] != spec->gid)
                        return error_set(error, -EPERM, "has group id %" PRIu32 ", not %" PRIu32, identity->gids[i], spec->gid);
        if (!groups_equal(identity, spec))
                return error_set(error, -EPERM, "has other groups than its owner");
        if (spec->uid != 0 && (identity->inheritable | identity->permitted | identity->effective | identity->ambient) != 0)
                return error_set(error, -EACCES, "has capabilities (permitted %" PRIx64 ")", identity->permitted);
        return 0;
}
