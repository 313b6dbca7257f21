#include "daemon/job/pages_test.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"
#include "common/log.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/util.h"

#define PROGRAM RM_LIBEXEC_DIR "/rm-pages-test"
#define TEST_USEC (30U * 1000000U) /* it ends by itself in 20 s */
/* A busy machine says nothing about its kernel, so that the test is made again, less and less
 * often. */
#define AGAIN_FIRST_USEC (10U * 1000000U)
#define AGAIN_MOST_USEC (600U * 1000000U)
enum { EXIT_LATE = 3 };

struct pages_test {
        struct event_base *base;
        char *criu_path;
        pid_t pid;
        int pidfd, answer; /* -1: it does not run */
        struct event *exit_event;
        struct event *timer; /* ends a test, or begins the next one */
        uint64_t again_usec;
        bool known; /* a test has ended */
        bool passed;
        char text[512]; /* why it has not; "": it has */
};

static void finish(struct pages_test *test, bool passed, const char *text) {
        test->known = true;
        test->passed = passed;
        (void) text_format(test->text, sizeof(test->text), "%s", passed ? "" : text);
        test->text[strcspn(test->text, "\n")] = '\0';
        if (passed)
                log_info("moves can track the memory of groups: %.*s", (int) strcspn(text, "\n"), text);
        else
                log_warn("moves read the memory of groups again in the freeze, since its pages cannot be tracked here: %s",
                         test->text);
}

static void let_go(struct pages_test *test) {
        if (test->exit_event)
                event_free(take_ptr(test->exit_event));
        (void) evtimer_del(test->timer);
        if (test->pidfd >= 0)
                (void) close(take_fd(&test->pidfd));
        if (test->answer >= 0)
                (void) close(take_fd(&test->answer));
}

static void on_exit_event(evutil_socket_t fd, short what, void *arg) {
        struct pages_test *test = arg;
        char text[512];
        siginfo_t info = { 0 };
        ssize_t n = read(test->answer, text, sizeof(text) - 1);
        bool exited;

        text[n > 0 ? n : 0] = '\0';
        exited = waitid(P_PIDFD, (id_t) test->pidfd, &info, WEXITED) == 0 && info.si_code == CLD_EXITED;
        if (exited && info.si_status == 0)
                finish(test, true, text);
        else if (exited)
                finish(test, false, text[0] ? text : "rm-pages-test failed and did not say why");
        else
                finish(test, false, "rm-pages-test was killed, or took too long");
        let_go(test);
        if (exited && info.si_status != EXIT_LATE)
                return;
        timer_arm(test->timer, test->again_usec);
        test->again_usec = test->again_usec < AGAIN_MOST_USEC / 2 ? 2 * test->again_usec : AGAIN_MOST_USEC;
}

static int start(struct pages_test *test) {
        char *const argv[] = { (char *) "rm-pages-test", test->criu_path, NULL };
        char *const environment[] = { (char *) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *) "LC_ALL=C.UTF-8", NULL };
        struct child_spec child = { .program = PROGRAM, .argv = argv, .environment = environment, .streams = { -1, -1, -1 } };
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;
        test->answer = fds[0];
        child.streams[STDOUT_FILENO] = fds[1];
        r = child_start(&child, &test->pid, &test->pidfd);
        (void) close(fds[1]);
        return r;
}

static void begin(struct pages_test *test) {
        int r = start(test);

        if (r < 0) {
                cleanup_free char *text = xasprintf("cannot start " PROGRAM ": %s", strerror(-r));

                finish(test, false, text);
                let_go(test);
                return;
        }
        test->exit_event = event_new(test->base, test->pidfd, EV_READ, on_exit_event, test);
        if (!test->exit_event || event_add(test->exit_event, NULL) < 0)
                abort(); /* no memory, as in xcalloc() */
        timer_arm(test->timer, TEST_USEC);
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
        struct pages_test *test = arg;

        if (test->pidfd >= 0)
                (void) pidfd_send_signal(test->pidfd, SIGKILL, NULL, 0);
        else
                begin(test);
}

struct pages_test *pages_test_start(struct event_base *base, const char *criu_path) {
        struct pages_test *test = xcalloc(1, sizeof(*test));

        *test = (struct pages_test) { .base = base,
                                      .criu_path = xstrdup(criu_path),
                                      .pidfd = -1,
                                      .answer = -1,
                                      .again_usec = AGAIN_FIRST_USEC,
                                      .text = "the test of it that rmd makes at its start still runs" };
        test->timer = evtimer_new(base, on_timer, test);
        if (!test->timer)
                abort();
        begin(test);
        return test;
}

void pages_test_destroy(struct pages_test *test) {
        if (!test)
                return;
        if (test->pidfd >= 0)
                (void) pidfd_send_signal(test->pidfd, SIGKILL, NULL, 0);
        let_go(test);
        event_free(test->timer);
        free(test->criu_path);
        free(test);
}

bool pages_test_runs(const struct pages_test *test) {
        return test && !test->known;
}

bool pages_test_passed(const struct pages_test *test, const char **ret_why) {
        if (!test || !test->passed)
                *ret_why = test ? test->text : "[move] tracking = no";
        return test && test->passed;
}
