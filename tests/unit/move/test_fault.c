/* Named fault points: those of the environment hold for good, those of the file once each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/move/fault.h"

struct place {
        char dir[64];
        char *path;
};

static int set_up(void **state) {
        struct place *place = xcalloc(1, sizeof(*place));

        (void) snprintf(place->dir, sizeof(place->dir), "/tmp/test-fault.XXXXXX");
        assert_non_null(mkdtemp(place->dir));
        place->path = xasprintf("%s/faults", place->dir);
        (void) unsetenv("RM_FAULT");
        (void) unsetenv("RM_FAULT_FILE");
        *state = place;
        return 0;
}

static int tear_down(void **state) {
        struct place *place = *state;

        (void) remove_tree(place->dir);
        free(place->path);
        free(place);
        return 0;
}

static void write_faults(const struct place *place, const char *text) {
        assert_int_equal(write_file_atomic(place->path, text, strlen(text), 0600, false), 0);
}

/* RM_FAULT and RM_FAULT_FILE, NULL = not set. */
static struct fault *make(const char *fixed, const char *path) {
        (void) (fixed ? setenv("RM_FAULT", fixed, 1) : unsetenv("RM_FAULT"));
        (void) (path ? setenv("RM_FAULT_FILE", path, 1) : unsetenv("RM_FAULT_FILE"));
        return fault_create();
}

static int point(struct fault *fault, const char *role, const char *state) {
        struct rm_error err = { 0 };
        int r = fault_point(fault, role, state, &err);

        assert_int_equal(err.code, r);
        return r;
}

static void test_off(void **state) {
        struct fault *fault = make(NULL, NULL);

        assert_non_null(fault);
        assert_int_equal(point(fault, "source", "freeze"), 0);
        fault_destroy(fault);
        fault_destroy(NULL);
        fault = make("", NULL);
        assert_int_equal(point(fault, "source", "freeze"), 0);
        fault_destroy(fault);
}

static void test_environment_holds_for_good(void **state) {
        struct fault *fault = make("move.source.transfer:fail,move.destination.commit:fail", NULL);
        struct rm_error err = { 0 };

        for (int i = 0; i < 3; i++) {
                assert_int_equal(point(fault, "source", "transfer"), -EIO);
                assert_int_equal(point(fault, "destination", "commit"), -EIO);
                assert_int_equal(point(fault, "destination", "transfer"), 0);
                assert_int_equal(point(fault, "source", "commit"), 0);
                assert_int_equal(point(fault, "source", "freeze"), 0);
        }
        assert_int_equal(fault_point(fault, "source", "transfer", &err), -EIO);
        assert_non_null(strstr(error_text(&err), "move.source.transfer"));
        fault_destroy(fault);
}

/* Each word is one point, whole. */
static void test_words(void **state) {
        static const struct {
                const char *text;
                int code;
        } cases[] = {
                { "move.source.cut:fail", -EIO },
                { "move.source.freeze:fail move.source.cut:fail", -EIO },
                { "move.source.freeze:fail,\nmove.source.cut:fail\n", -EIO },
                { "move.source.cut", 0 },
                { "move.source.cutter:fail", 0 },
                { "remove.source.cut:fail", 0 },
                { "source.cut:fail", 0 },
                { "move.destination.cut:fail", 0 },
                /* One that only looks alike does not hide the right one. */
                { "move.source.cut,xmove.source.cut:fail,move.source.cut:fail", -EIO },
                { ",,, ,", 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fault *fault = make(cases[i].text, NULL);

                if (point(fault, "source", "cut") != cases[i].code)
                        fail_msg("'%s' should give %d", cases[i].text, cases[i].code);
                fault_destroy(fault);
        }
}

static void test_file_holds_once(void **state) {
        const struct place *place = *state;
        struct fault *fault = make(NULL, place->path);
        cleanup_free char *rest = NULL;

        assert_int_equal(point(fault, "source", "restore"), 0); /* no file yet */
        write_faults(place, "move.source.restore:fail\nmove.destination.open:fail\nmove.source.restore:fail\n");
        assert_int_equal(point(fault, "source", "cut"), 0);
        assert_int_equal(point(fault, "source", "restore"), -EIO);
        assert_int_equal(point(fault, "source", "restore"), -EIO); /* it stands there twice */
        assert_int_equal(point(fault, "source", "restore"), 0);
        assert_int_equal(point(fault, "destination", "open"), -EIO);
        assert_int_equal(point(fault, "destination", "open"), 0);
        assert_int_equal(read_file(place->path, 65536, &rest, NULL), 0);
        assert_int_equal(strspn(rest, " \n"), strlen(rest));
        /* It may be written anew at any time, and what was taken stays taken for the next daemon. */
        write_faults(place, "move.source.cut:fail");
        fault_destroy(fault);
        fault = make(NULL, place->path);
        assert_int_equal(point(fault, "source", "cut"), -EIO);
        fault_destroy(fault);
        fault = make(NULL, place->path);
        assert_int_equal(point(fault, "source", "cut"), 0);
        fault_destroy(fault);
}

/* As long as the line is there. */
static void test_hold(void **state) {
        const struct place *place = *state;
        struct fault *fault = make(NULL, place->path);

        write_faults(place, "move.source.cut:hold\nmove.source.freeze:fail\n");
        for (int i = 0; i < 3; i++)
                assert_int_equal(point(fault, "source", "cut"), -EAGAIN);
        assert_int_equal(point(fault, "source", "freeze"), -EIO);
        assert_int_equal(point(fault, "source", "cut"), -EAGAIN);
        write_faults(place, "");
        assert_int_equal(point(fault, "source", "cut"), 0);
        fault_destroy(fault);
}

static void test_environment_comes_first(void **state) {
        const struct place *place = *state;
        struct fault *fault = make("move.source.cut:fail", place->path);
        cleanup_free char *text = NULL;

        write_faults(place, "move.source.cut:fail\nmove.source.freeze:fail\n");
        assert_int_equal(point(fault, "source", "cut"), -EIO);
        assert_int_equal(read_file(place->path, 65536, &text, NULL), 0);
        assert_string_equal(text, "move.source.cut:fail\nmove.source.freeze:fail\n");
        assert_int_equal(point(fault, "source", "freeze"), -EIO);
        assert_int_equal(point(fault, "source", "freeze"), 0);
        fault_destroy(fault);
}

/* How a child that reaches the point ends, as of waitpid(2); it exits with 7 when it goes on. */
static int child_ends(struct fault *fault) {
        pid_t pid = fork();
        int status = 0;

        if (pid == 0) {
                (void) fault_point(fault, "source", "release", NULL);
                _exit(7);
        }
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

/* The daemon that comes after one that was killed by the file is not killed again. */
static void test_kill(void **state) {
        const struct place *place = *state;
        struct fault *fault = make(NULL, place->path);
        int status;

        write_faults(place, "move.source.release:kill\n");
        status = child_ends(fault);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        status = child_ends(fault);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        fault_destroy(fault);
        fault = make("move.source.release:kill", NULL);
        for (int i = 0; i < 2; i++) {
                status = child_ends(fault);
                assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
        fault_destroy(fault);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_off, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_environment_holds_for_good, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_words, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_file_holds_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_hold, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_environment_comes_first, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_kill, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
