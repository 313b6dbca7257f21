/* Ranks that get a signal, and time to end, while their daemon does not hear that they have ended:
 * real processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/init/core.h"
#include "daemon/capsule/init/ranks/ending.h"
#include "daemon/capsule/init/ranks/park.h"

enum { RANKS = 3, LONG_USEC = 20000000, RANK_USEC = 60000000 };

static unsigned replies;
static struct ticket replied;

static void note_reply(struct core *core, struct ticket ticket, int error, const char *text) {
        assert_int_equal(error, 0);
        replies++;
        replied = ticket;
}

static void send_status(struct core *core) {
}

static const struct core_ops ops = { .reply = note_reply, .send_status = send_status };

void park_stir(struct park *park) {
}

/* The function of a rank; it writes a byte to `ready` once it does its work. */
typedef void (*rank_fn)(int ready);

struct group {
        struct core core;
        struct ending *ending;
        pid_t daemon;
        int ends; /* the status, as of waitpid(2), of each rank that the daemon has seen end */
        uint64_t order_usec; /* when the last order was about to be given */
};

static void on_signal(int signo) {
}

/* Signals that are blocked are taken only while it waits: one that came before would be lost. */
static void by_default(int ready) {
        const struct timespec wait = { .tv_sec = RANK_USEC / 1000000 };
        sigset_t none;

        (void) sigemptyset(&none);
        (void) write(ready, "", 1);
        (void) ppoll(NULL, 0, &wait, &none);
}

static void ignores(int ready) {
        (void) signal(SIGTERM, SIG_IGN);
        by_default(ready);
}

/* As a program that saves. */
static void catches(int ready) {
        sigset_t blocked;

        (void) sigemptyset(&blocked);
        (void) sigaddset(&blocked, SIGTERM);
        (void) sigprocmask(SIG_BLOCK, &blocked, NULL);
        (void) signal(SIGTERM, on_signal);
        by_default(ready);
        usleep(300000);
        _exit(7);
}

/* A shell that has started the program. */
static void has_child(int ready) {
        if (fork() == 0)
                catches(ready);
        usleep(RANK_USEC);
}

static void stops(int ready) {
        (void) write(ready, "", 1);
        (void) raise(SIGSTOP);
        usleep(RANK_USEC);
}

static _Noreturn void be_daemon(rank_fn rank, int ready, int ends) {
        int status;

        (void) prctl(PR_SET_NAME, "prted");
        for (unsigned i = 0; i < RANKS; i++)
                if (fork() == 0) {
                        (void) setpgid(0, 0);
                        (void) prctl(PR_SET_NAME, "rank");
                        rank(ready);
                        _exit(0);
                }
        while (wait(&status) > 0)
                (void) write(ends, &status, sizeof(status));
        _exit(0);
}

static void begin(struct group *group, rank_fn rank) {
        int ready[2], ends[2];
        char byte;

        *group = (struct group) { 0 };
        replies = 0;
        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        group->daemon = fork();
        if (group->daemon == 0)
                be_daemon(rank, ready[1], ends[1]);
        for (unsigned i = 0; i < RANKS; i++)
                assert_int_equal(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        close(ready[1]);
        close(ends[1]);
        group->ends = ends[0];
        group->core = (struct core) { .ops = &ops };
        group->ending = ending_create(&group->core, NULL);
}

/* Looks at ended children as PID 1 does. */
static void scan(struct group *group) {
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
                if (!ending_reaped(group->ending, pid, status))
                        assert_int_equal(pid, group->daemon);
        if (ending_deadline(group->ending) <= now_usec())
                ending_timeout(group->ending);
        usleep(1000);
}

static void order(struct group *group, int signo, uint64_t wait_usec, uint64_t seq) {
        Capsule__EndRanks end = CAPSULE__END_RANKS__INIT;

        group->order_usec = now_usec();
        end.signo = signo;
        end.wait_usec = wait_usec;
        ending_order(group->ending, &end, (struct ticket) { .seq = seq });
        assert_int_equal(ending_signal(group->ending), signo);
}

/* Returns the time from the last order to its reply. On a busy machine the order itself takes a
 * part of it. */
static uint64_t until_replied(struct group *group) {
        while (replies == 0 && now_usec() - group->order_usec < LONG_USEC)
                scan(group);
        assert_int_equal(replies, 1);
        return now_usec() - group->order_usec;
}

static unsigned ended(const struct group *group) {
        unsigned n = 0;
        int status;

        while (read(group->ends, &status, sizeof(status)) == (ssize_t) sizeof(status))
                n++;
        return n;
}

/* The daemon has seen none end; then, as when it has ended, they are killed and let go, and it sees
 * all. */
static void end(struct group *group) {
        unsigned n = 0;
        char *children = xasprintf("/proc/%d/task/%d/children", (int) group->daemon, (int) group->daemon), *text = NULL;

        assert_int_equal(ended(group), 0);
        assert_int_equal(read_file(children, 4096, &text, NULL), 0);
        for (char *at = text; *at && *at != '\n';)
                (void) kill(-(pid_t) strtol(at, &at, 10), SIGKILL), at += *at == ' ';
        free(text);
        free(children);
        for (uint64_t begun = now_usec(); n < RANKS && now_usec() - begun < LONG_USEC; n += ended(group)) {
                ending_let_go(group->ending);
                scan(group);
        }
        assert_int_equal(n, RANKS);
        (void) waitpid(group->daemon, NULL, 0); /* unless look() has seen it */
        (void) close(group->ends);
        ending_destroy(group->ending);
}

static void test_end_at_once(void **state) {
        struct group group;

        begin(&group, by_default);
        order(&group, SIGTERM, LONG_USEC, 1);
        assert_true(until_replied(&group) < LONG_USEC / 2);
        assert_int_equal(replied.seq, 1);
        end(&group);
}

static void test_save(void **state) {
        struct group group;

        begin(&group, catches);
        order(&group, SIGTERM, LONG_USEC, 1);
        assert_true(until_replied(&group) >= 290000);
        end(&group);
}

/* The shell ends at once. */
static void test_save_below_shell(void **state) {
        struct group group;

        begin(&group, has_child);
        order(&group, SIGTERM, LONG_USEC, 1);
        assert_true(until_replied(&group) >= 290000);
        end(&group);
}

static void test_stopped(void **state) {
        struct group group;

        begin(&group, stops);
        order(&group, SIGTERM, LONG_USEC, 1);
        assert_true(until_replied(&group) < LONG_USEC / 2);
        end(&group);
}

static void test_time_is_over(void **state) {
        struct group group;

        begin(&group, ignores);
        order(&group, SIGTERM, 400000, 1);
        assert_true(until_replied(&group) >= 390000);
        assert_int_equal(ended(&group), 0);
        /* Asked again, the answer is the same. */
        replies = 0;
        order(&group, SIGTERM, LONG_USEC, 2);
        (void) until_replied(&group);
        assert_int_equal(replied.seq, 2);
        end(&group);
}

/* The first one is not answered any more. */
static void test_other_signal(void **state) {
        struct group group;

        begin(&group, ignores);
        order(&group, SIGTERM, LONG_USEC, 1);
        scan(&group);
        order(&group, SIGUSR1, LONG_USEC, 2);
        assert_true(until_replied(&group) < LONG_USEC / 2);
        assert_int_equal(replied.seq, 2);
        end(&group);
}

static void test_no_ranks(void **state) {
        struct core core = { .ops = &ops };
        struct group group = { .ending = ending_create(&core, NULL) };

        replies = 0;
        order(&group, SIGTERM, LONG_USEC, 1);
        assert_int_equal(replies, 1);
        assert_true(ending_deadline(group.ending) == UINT64_MAX);
        ending_destroy(group.ending);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_end_at_once), cmocka_unit_test(test_save),         cmocka_unit_test(test_save_below_shell),
                cmocka_unit_test(test_stopped),     cmocka_unit_test(test_time_is_over), cmocka_unit_test(test_other_signal),
                cmocka_unit_test(test_no_ranks),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
