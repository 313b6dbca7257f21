#include "tests/unit/capsule/verify/holders.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"

void must(bool good) {
        if (!good)
                _exit(errno == EPROTONOSUPPORT || errno == EAFNOSUPPORT || errno == ENOPROTOOPT ? NOTHING_LIKE_THAT : 1);
}

static int reported = -1; /* where a holder says that it has what it holds */

void *stay(void *arg) {
        for (;;)
                (void) pause();
        return arg;
}

void *say_and_stay(void *arg) {
        (void) write_all(reported, "", 1);
        return stay(arg);
}

void limit(int resource, unsigned long soft) {
        struct rlimit limit;

        must(getrlimit(resource, &limit) == 0);
        limit.rlim_cur = soft;
        must(setrlimit(resource, &limit) == 0);
}

void connect_inet(int ret_ends[2]) {
        struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(name);

        ret_ends[0] = socket(AF_INET, SOCK_STREAM, 0);
        ret_ends[1] = socket(AF_INET, SOCK_STREAM, 0);
        must(bind(ret_ends[0], (struct sockaddr *) &name, size) == 0 && listen(ret_ends[0], 4) == 0 &&
             getsockname(ret_ends[0], (struct sockaddr *) &name, &size) == 0 &&
             connect(ret_ends[1], (struct sockaddr *) &name, size) == 0);
}

pid_t start_holder(void (*hold)(void)) {
        int ready[2];
        char byte;
        pid_t pid;

        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0) {
                reported = dup2(ready[1], STDERR_FILENO);
                (void) close_range(3, ~0U, 0);
                (void) setpgid(0, 0);
                hold();
                (void) say_and_stay(NULL);
        }
        (void) close(ready[1]);
        if (read(ready[0], &byte, 1) != 1)
                pid = -pid;
        (void) close(ready[0]);
        return pid;
}

void scan_holder(pid_t pid, enum blocker_kind expected, bool frozen, struct empty_messages *messages, struct blocker *ret) {
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct blocker_scope scope = { .proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                       .spec = &spec,
                                       .frozen = frozen,
                                       .budget = SIZE_MAX,
                                       .cpu_usec = 60000000,
                                       .empty_messages = messages };
        uint32_t groups[256];
        gid_t list[256];

        spec.uid = getuid();
        spec.gid = getgid();
        spec.groups = groups;
        spec.n_groups = (size_t) getgroups(ARRAY_SIZE(list), list);
        for (size_t i = 0; i < spec.n_groups; i++)
                groups[i] = list[i];
        for (int i = 0; i < 500; i++) {
                blockers_of_processes(&scope, &pid, 1, ret, NULL);
                if (ret->kind == expected)
                        break;
                (void) usleep(10000);
        }
        (void) close(scope.proc);
}

/* Returns whether the holder has ended since the kernel has nothing like that. */
static bool is_unknown(const struct holder *holder, pid_t pid) {
        int status;

        if (pid > 0)
                return false;
        assert_int_equal(waitpid(-pid, &status, 0), -pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != NOTHING_LIKE_THAT)
                fail_msg("%s: the holder ended with %#x", holder->name, (unsigned) status);
        print_message("%s: not on this kernel\n", holder->name);
        return true;
}

static void check_holder(const struct holder *holder, struct empty_messages *messages) {
        enum blocker_kind running = holder->only_frozen ? BLOCKER_NONE : holder->kind;
        pid_t pid = start_holder(holder->hold);
        struct blocker found, frozen;
        int status;

        if (is_unknown(holder, pid))
                return;
        scan_holder(pid, holder->kind, true, messages, &frozen);
        /* A second look sees the same. */
        if (frozen.kind == holder->kind)
                scan_holder(pid, holder->kind, true, messages, &frozen);
        scan_holder(pid, running, false, messages, &found);
        (void) kill(-pid, SIGKILL);
        (void) waitpid(pid, &status, 0);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
                fail_msg("%s: the holder ended with %#x", holder->name, (unsigned) status);
        if (frozen.kind != holder->kind || found.kind != running)
                fail_msg("%s: %d while frozen, %d while running, not %d", holder->name, (int) frozen.kind, (int) found.kind,
                         (int) holder->kind);
}

void check_holders(const struct holder *holders, size_t n) {
        static struct empty_messages messages;

        for (size_t i = 0; i < n; i++)
                check_holder(&holders[i], &messages);
}
