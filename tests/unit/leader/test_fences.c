/* Runs of a fence plugin, and how long one waits for the next. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "common/util.h"
#include "daemon/leader/fence_host.h"
#include "daemon/leader/fences.h"

struct fixture {
        struct event_base *base;
        char dir[64];
        char *program, *trace;
        struct fence_order order;
        bool done;
        int code;
        char text[RM_ERROR_TEXT_BYTES];
};

static int set_up(void **state) {
        struct fixture *f = xcalloc(1, sizeof(*f));

        f->base = event_base_new();
        (void) strcpy(f->dir, "/tmp/rmd-fences-XXXXXX");
        assert_non_null(mkdtemp(f->dir));
        f->program = xasprintf("%s/fence", f->dir);
        f->trace = xasprintf("%s/trace", f->dir);
        f->order = (struct fence_order) { .host_program = getenv("TEST_FENCE_HOST"),
                                          .directory = getenv("TEST_PLUGIN_DIR"),
                                          .plugin = "program",
                                          .program = f->program,
                                          .cluster = "testers",
                                          .node = "n7",
                                          .address = "10.0.0.7",
                                          .try_number = 3,
                                          .timeout_usec = 20000000 };
        *state = f;
        return 0;
}

static int tear_down(void **state) {
        struct fixture *f = *state;

        (void) unlink(f->program);
        (void) unlink(f->trace);
        assert_int_equal(rmdir(f->dir), 0);
        event_base_free(f->base);
        free(f->program);
        free(f->trace);
        free(f);
        return 0;
}

static void on_done(void *context, const struct rm_error *error) {
        struct fixture *f = context;

        assert_false(f->done);
        f->done = true;
        f->code = error ? error->code : 0;
        (void) snprintf(f->text, sizeof(f->text), "%s", error ? error_text(error) : "");
        (void) event_base_loopbreak(f->base);
}

static void write_program(const struct fixture *f, const char *body) {
        cleanup_free char *text = xasprintf("#!/bin/sh\n%s\n", body);

        assert_int_equal(write_file_atomic(f->program, text, strlen(text), 0755, false), 0);
}

static struct fence_host *begin(struct fixture *f) {
        struct fence_host *host = NULL;
        struct rm_error err = { 0 };

        f->done = false;
        if (fence_host_start(f->base, &f->order, on_done, f, &host, &err) < 0)
                fail_msg("%s", err.text);
        return host;
}

static void run(struct fixture *f) {
        (void) begin(f);
        assert_int_equal(event_base_dispatch(f->base), 0);
        assert_true(f->done);
}

static void fails(struct fixture *f, const char *why) {
        run(f);
        assert_true(f->code < 0);
        if (!strstr(f->text, why))
                fail_msg("'%s' does not tell '%s'", f->text, why);
}

static char *traced(const struct fixture *f) {
        char *text = NULL;
        size_t size;

        assert_int_equal(read_file(f->trace, 4096, &text, &size), 0);
        return text;
}

/* The process in the trace comes to its end. This process is told of that, for its parent is gone,
 * or its parent was told as its own last act. */
static void ends(const struct fixture *f) {
        cleanup_free char *text = traced(f);
        pid_t pid = (pid_t) atoi(text);
        bool ended = false;

        assert_true(pid > 0);
        for (int i = 0; !ended && i < 500; i++) {
                ended = waitpid(pid, NULL, WNOHANG) == pid || (kill(pid, 0) < 0 && errno == ESRCH);
                if (!ended)
                        (void) usleep(20000);
        }
        assert_true(ended);
}

/* The fence succeeds also when a process that it has started has its output still open. */
static void test_succeeds(void **state) {
        struct fixture *f = *state;
        cleanup_free char *body =
                xasprintf("sleep 60 & echo $! $# $1 $RM_FENCE_NODE $RM_FENCE_ADDRESS $RM_FENCE_CLUSTER $RM_FENCE_TRY >%s; "
                          "echo it is off",
                          f->trace);
        cleanup_free char *text = NULL;
        char *arguments;
        pid_t left;

        write_program(f, body);
        run(f);
        assert_string_equal(f->text, "");
        assert_int_equal(f->code, 0);
        text = traced(f);
        left = (pid_t) strtol(text, &arguments, 10);
        assert_int_equal(kill(left, SIGKILL), 0);
        ends(f);
        assert_string_equal(arguments, " 1 n7 n7 10.0.0.7 testers 3\n");
}

static void test_log_succeeds(void **state) {
        struct fixture *f = *state;

        f->order.plugin = "log";
        run(f);
        assert_int_equal(f->code, 0);
}

static void test_failure_says_why(void **state) {
        struct fixture *f = *state;

        write_program(f, "echo first; echo 'no route to the controller' >&2; exit 3");
        fails(f, "/fence: exit status 3: no route to the controller");
        write_program(f, "kill -KILL $$");
        fails(f, "/fence: killed by signal 9");
        assert_int_equal(chmod(f->program, 0644), 0);
        fails(f, "cannot be run: Permission denied");
        assert_int_equal(chmod(f->program, 0777), 0);
        fails(f, "not a file of root's that nobody else can write");
        assert_int_equal(chmod(f->program, 0755), 0);
        assert_int_equal(chmod(f->dir, 0777), 0);
        fails(f, "is not a directory of root's that nobody else can write");
        assert_int_equal(chmod(f->dir, 0700), 0);
        assert_int_equal(unlink(f->program), 0);
        fails(f, "No such file");
        f->order.program = "fence";
        fails(f, "not an absolute path");
        f->order.plugin = "none-such";
        fails(f, "none-such.so: No such file");
        f->order.plugin = "../program";
        fails(f, "no name of a plugin");
        /* A policy. */
        f->order.directory = getenv("TEST_POLICY_DIR");
        f->order.plugin = "greedy";
        fails(f, "is not a fence");
}

static bool has_traced(const struct fixture *f) {
        struct stat st;

        return stat(f->trace, &st) == 0 && st.st_size > 0;
}

static void is_killed_after(struct fixture *f, uint64_t seconds) {
        cleanup_free char *why = xasprintf("killed after %u.0 s", (unsigned) seconds);
        uint64_t begun = now_usec();

        f->order.timeout_usec = seconds * 1000000;
        fails(f, why);
        assert_int_equal(f->code, -ETIME);
        assert_in_range(now_usec() - begun, f->order.timeout_usec, f->order.timeout_usec + 17000000);
}

/* The program, and what it has started, are killed with it. On a busy machine its time may be over
 * before it has started that. */
static void test_hung_one_is_killed(void **state) {
        struct fixture *f = *state;
        cleanup_free char *body = xasprintf("sleep 60 & echo $! >%s; trap '' TERM; sleep 60", f->trace);

        write_program(f, body);
        for (uint64_t seconds = 3; seconds <= 24 && !has_traced(f); seconds *= 2)
                is_killed_after(f, seconds);
        ends(f);
}

static void test_abandoned_one_is_not_heard_of(void **state) {
        struct fixture *f = *state;
        cleanup_free char *body = xasprintf("echo $$ >%s; sleep 60", f->trace);
        struct fence_host *host;

        write_program(f, body);
        host = begin(f);
        for (int i = 0; !has_traced(f) && i < 500; i++)
                (void) usleep(20000);
        fence_host_abandon(host);
        fence_host_abandon(NULL);
        (void) event_base_dispatch(f->base); /* ends when nothing is waited for any more */
        assert_false(f->done);
        ends(f);
}

static void test_pause(void **state) {
        (void) state;
        assert_int_equal(fences_pause_usec(1000, 1), 1000);
        assert_int_equal(fences_pause_usec(1000, 2), 2000);
        assert_int_equal(fences_pause_usec(1000, 4), 8000);
        assert_int_equal(fences_pause_usec(1000, 5), 16000);
        assert_int_equal(fences_pause_usec(1000, 500), 16000);
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(test_succeeds),
                T(test_log_succeeds),
                T(test_failure_says_why),
                T(test_hung_one_is_killed),
                T(test_abandoned_one_is_not_heard_of),
                cmocka_unit_test(test_pause),
        };

        (void) prctl(PR_SET_CHILD_SUBREAPER, 1);
        return cmocka_run_group_tests_name("fences", tests, NULL, NULL);
}
