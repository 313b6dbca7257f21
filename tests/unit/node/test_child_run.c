/* Runs of programs that end, hang, crash, write too much and leave something behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "common/util.h"
#include "daemon/node/child_run.h"

#define MOST_BYTES 100000

struct fixture {
        struct event_base *base;
        uint64_t timeout_usec;
        bool ends_group;
        unsigned done, killed;
        int code;
        char text[RM_ERROR_TEXT_BYTES];
        char *output;
        size_t output_bytes;
};

static int set_up(void **state) {
        struct fixture *f = xcalloc(1, sizeof(*f));

        f->base = event_base_new();
        f->timeout_usec = 60000000;
        *state = f;
        return 0;
}

static int tear_down(void **state) {
        struct fixture *f = *state;

        event_base_free(f->base);
        free(f->output);
        free(f);
        return 0;
}

static void on_done(void *context, const struct child_end *end) {
        struct fixture *f = context;
        struct rm_error err = { 0 };

        f->done++;
        f->code = child_end_error(end, "sh", f->timeout_usec, &err);
        (void) snprintf(f->text, sizeof(f->text), "%s", err.text);
        free(f->output);
        f->output = xstrdup(end->output);
        f->output_bytes = end->output_bytes;
}

static void on_killed(void *context, const struct child_end *end) {
        struct fixture *f = context;

        assert_int_equal(f->done, 0);
        assert_true(end->overran || end->flooded);
        f->killed++;
}

static struct child_run *begin(struct fixture *f, const char *text) {
        char *const argv[] = { (char *) "sh", (char *) "-c", (char *) text, NULL };
        const struct child_run_spec spec = { .program = "/bin/sh",
                                             .argv = argv,
                                             .timeout_usec = f->timeout_usec,
                                             .output_most_bytes = MOST_BYTES,
                                             .ends_group = f->ends_group,
                                             .done = on_done,
                                             .on_killed = on_killed,
                                             .context = f };
        struct child_run *run = NULL;

        f->done = f->killed = 0;
        assert_int_equal(child_run_start(f->base, &spec, &run), 0);
        return run;
}

static void run(struct fixture *f, const char *text) {
        (void) begin(f, text);
        assert_true(event_base_dispatch(f->base) >= 0);
        assert_int_equal(f->done, 1);
}

/* More than a pipe holds, and exactly as much as it may. */
static void test_output_is_heard(void **state) {
        struct fixture *f = *state;

        run(f, "echo said; echo not this >&2");
        assert_int_equal(f->code, 0);
        assert_string_equal(f->output, "said\n");
        run(f, "head -c 100000 /dev/zero");
        assert_int_equal(f->code, 0);
        assert_int_equal(f->output_bytes, MOST_BYTES);
        assert_int_equal(f->killed, 0);
}

static void test_failure_is_told(void **state) {
        struct fixture *f = *state;

        run(f, "echo because; exit 1");
        assert_int_equal(f->code, -EPROTO);
        assert_string_equal(f->text, "because\n");
        run(f, "exit 1");
        assert_string_equal(f->text, "sh failed and did not say why");
        run(f, "kill -SEGV $$");
        assert_string_equal(f->text, "crashed (Segmentation fault)");
}

static void test_flood_is_stopped(void **state) {
        struct fixture *f = *state;

        run(f, "exec cat /dev/zero");
        assert_int_equal(f->code, -EFBIG);
        assert_int_equal(f->killed, 1);
        /* The child has ended by itself. */
        run(f, "head -c 100001 /dev/zero");
        assert_int_equal(f->code, -EFBIG);
}

static void test_hung_one_is_killed(void **state) {
        struct fixture *f = *state;

        f->timeout_usec = 300000;
        run(f, "trap '' TERM; sleep 60");
        assert_int_equal(f->code, -ETIME);
        assert_string_equal(f->text, "killed after 0.3 s");
        assert_int_equal(f->killed, 1);
}

/* A child that has closed its output is not waited for in a loop. */
static void test_closed_output_does_not_spin(void **state) {
        struct fixture *f = *state;
        uint64_t used;

        used = thread_nsec();
        run(f, "exec >&-; sleep 1");
        assert_int_equal(f->code, 0);
        assert_true(thread_nsec() - used < 500000000);
}

/* Whether it lives until the signal that it gets here, rather than the SIGKILL that ends its
 * group. */
static bool is_left(const struct fixture *f) {
        pid_t pid = (pid_t) atoi(f->output);
        int status = 0;

        assert_true(pid > 0);
        assert_int_equal(kill(pid, SIGTERM), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        return WTERMSIG(status) == SIGTERM;
}

static void test_group_is_ended_if_told_so(void **state) {
        struct fixture *f = *state;

        run(f, "sleep 60 & echo $!");
        assert_true(is_left(f));
        f->ends_group = true;
        run(f, "sleep 60 & echo $!");
        assert_int_equal(f->code, 0);
        assert_false(is_left(f));
}

static void test_abandoned_one_is_not_heard_of(void **state) {
        struct fixture *f = *state;

        child_run_abandon(begin(f, "sleep 60"));
        child_run_abandon(NULL);
        assert_true(event_base_dispatch(f->base) >= 0); /* ends when nothing is waited for any more */
        assert_int_equal(f->done + f->killed, 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(test_output_is_heard),
                T(test_failure_is_told),
                T(test_flood_is_stopped),
                T(test_hung_one_is_killed),
                T(test_closed_output_does_not_spin),
                T(test_group_is_ended_if_told_so),
                T(test_abandoned_one_is_not_heard_of),
        };

        (void) prctl(PR_SET_CHILD_SUBREAPER, 1);
        return cmocka_run_group_tests_name("child-run", tests, NULL, NULL);
}
