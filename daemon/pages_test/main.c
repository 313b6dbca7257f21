/* rm-pages-test: may private memory travel apart from CRIU's images on this node? It tries, with a
 * small process and with the CRIU of the node, as that depends on how CRIU and the kernel do things
 * that neither promises. In namespaces of its own, and of what it makes nothing is left.
 *
 * usage: rm-pages-test CRIU [LIBRARY]     as root; CRIU: its path; LIBRARY: in place of the
 *                                         installed one
 * One line on stdout. Exit status 0: it may; 1: it may not, and the line says why; 2: wrong usage;
 * 3: it took too long to tell. */
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/pages_preload/preload.h"
#include "daemon/pages_test/both_ends.h"
#include "daemon/pages_test/process.h"

#define KDAT "/run/criu.kdat"

enum { LIMIT_MSEC = 8000, KDAT_MAX_BYTES = 1 << 20 };

/* Shared with the first process of the namespaces. */
struct outcome {
        bool done;
        const char *stage;
        struct rm_error error; /* code 0: all is well */
};

static int mount_own(void) {
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", OWN_DIR, "tmpfs", MS_NOSUID | MS_NODEV, NULL) < 0 ||
            mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
                return -errno;
        return 0;
}

/* CRIU connects to itself to find out what sockets can do. */
static int raise_loopback(void) {
        struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
        cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

static _Noreturn void be_first(const char *criu, const char *library, struct outcome *outcome) {
        cleanup_free char *kdat = NULL;
        struct both_ends ends = { .criu = criu, .library = library, .stage = &outcome->stage };
        int r;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) signal(SIGPIPE, SIG_IGN);
        if (read_file(KDAT, KDAT_MAX_BYTES, &kdat, &ends.kdat_bytes) == 0)
                ends.kdat = kdat;
        r = mount_own();
        if (r == 0)
                r = raise_loopback();
        if (r == 0)
                r = both_ends_try(&ends, &outcome->error);
        if (r < 0 && outcome->error.code == 0)
                (void) error_sys(&outcome->error, r, "%s", outcome->stage);
        outcome->done = true;
        _exit(0);
}

static int await_end(pid_t pid) {
        cleanup_close int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
        struct pollfd polled = { .fd = pidfd, .events = POLLIN };
        int r = poll(&polled, 1, LIMIT_MSEC);

        (void) kill(pid, SIGKILL); /* and with it all the others */
        (void) waitpid(pid, NULL, 0);
        return r > 0 ? 0 : -ETIMEDOUT;
}

static int try(const char *criu, const char *library, struct rm_error *error) {
        struct outcome *outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pid_t pid;
        int r;

        if (outcome == MAP_FAILED)
                return error_sys(error, -errno, "cannot map memory");
        if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET) < 0)
                return error_sys(error, -errno, "cannot make namespaces");
        outcome->stage = "namespaces";
        pid = fork();
        if (pid == 0)
                be_first(criu, library, outcome);
        if (pid < 0)
                return error_sys(error, -errno, "cannot start a process");
        r = await_end(pid);
        if (r < 0)
                return error_set(error, r, "%s: no end after %d s", outcome->stage, LIMIT_MSEC / 1000);
        if (!outcome->done)
                return error_set(error, -ECHILD, "%s: the test has been killed", outcome->stage);
        *error = outcome->error;
        return error->code;
}

int main(int argc, char **argv) {
        uint64_t begin = now_usec();
        struct rm_error error = { 0 };
        int r;

        if (argc == 2 && strcmp(argv[1], "--process") == 0)
                process_run();
        if (argc < 2 || argc > 3 || argv[1][0] == '-') {
                (void) fprintf(stderr, "usage: rm-pages-test CRIU [LIBRARY]\n");
                return 2;
        }
        r = try(argv[1], argc > 2 ? argv[2] : PAGES_LIBRARY, &error);
        if (r < 0) {
                error_clean(&error);
                (void) printf("%.400s\n", error_text(&error));
                return r == -ETIMEDOUT ? 3 : 1;
        }
        (void) printf("%d MiB dumped and restored in %" PRIu64 " ms\n", PROCESS_LAZY_BYTES >> 20, (now_usec() - begin) / 1000);
        return 0;
}
