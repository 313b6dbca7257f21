#include "daemon/mover/descriptors.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/capabilities.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/pages/passing.h"

struct descriptors {
        pid_t pid;
        int fd;
};

struct answer {
        int code; /* enum procs_direct or -errno */
        struct procs_budget budget;
        char path[PROCS_PATH_BYTES];
};

/* ---- the child ---- */

static int enter(const char *group_dir) {
        cleanup_free char *path = xasprintf("%s/cgroup.procs", group_dir);

        return *group_dir ? write_text(path, "0") : 0;
}

static void answer_one(int fd, int proc_fd, const struct procs_budget *budget, int prepared) {
        struct answer answer = { .code = prepared, .budget = *budget };

        if (prepared == 0)
                answer.code = procs_reads_direct(proc_fd, &answer.budget, answer.path);
        (void) passing_send(fd, &answer, sizeof(answer), -1);
}

/* Then it may only look at processes of others, and open what they have: all that a look takes. */
static int prepare(const char *group_dir) {
        int r = enter(group_dir);

        if (r < 0)
                log_warn("cannot enter %s: %s", group_dir, strerror(-r));
        return r < 0 ? r : capabilities_keep(CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_DAC_READ_SEARCH));
}

/* The child has no descriptor of rm-mover's but `fd`, which alone keeps it running. */
static _Noreturn void run(int fd, const char *group_dir) {
        struct procs_budget budget;
        int proc_fd, prepared;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (dup2(fd, STDERR_FILENO + 1) < 0 || close_range(STDERR_FILENO + 2, ~0U, 0) < 0)
                _exit(1);
        fd = STDERR_FILENO + 1;
        prepared = prepare(group_dir);
        (void) prctl(PR_SET_NAME, "rm-mover-look"); /* now it is what rmd-cluster(7) says of it */
        while (passing_receive(fd, &budget, sizeof(budget), &proc_fd) == 0) {
                answer_one(fd, proc_fd, &budget, prepared);
                cleanup_close_fd(&proc_fd);
        }
        _exit(0);
}

/* ---- rm-mover ---- */

int descriptors_start(const char *group_dir, struct descriptors **ret) {
        struct descriptors *d;
        int ends[2];
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return -errno;
        pid = fork();
        if (pid == 0)
                run(ends[1], group_dir);
        (void) close(ends[1]);
        if (pid < 0) {
                int r = -errno;

                (void) close(ends[0]);
                return r;
        }
        d = xcalloc(1, sizeof(*d));
        *d = (struct descriptors) { .pid = pid, .fd = ends[0] };
        *ret = d;
        return 0;
}

int descriptors_read_direct(const struct descriptors *d, int proc_fd, struct procs_budget *budget,
                            char ret_path[PROCS_PATH_BYTES]) {
        struct answer answer = { 0 };
        int none = -1;
        int r = passing_send(d->fd, budget, sizeof(*budget), proc_fd);

        if (r == 0)
                r = passing_receive(d->fd, &answer, sizeof(answer), &none);
        if (r < 0)
                return r == -ECONNRESET ? -EPIPE : r;
        *budget = answer.budget;
        memcpy(ret_path, answer.path, sizeof(answer.path));
        return answer.code;
}

void descriptors_end(struct descriptors *d) {
        if (!d)
                return;
        (void) close(d->fd);
        (void) kill(d->pid, SIGKILL);
        while (waitpid(d->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        free(d);
}
