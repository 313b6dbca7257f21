/* Named fault points: those of the environment hold for good, those of the file once each. */
#include <errno.h>
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

#include "common/fault.h"
#include "common/util.h"

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
static void set(const char *fixed, const char *path) {
        (void) (fixed ? setenv("RM_FAULT", fixed, 1) : unsetenv("RM_FAULT"));
        (void) (path ? setenv("RM_FAULT_FILE", path, 1) : unsetenv("RM_FAULT_FILE"));
}

static int point(const char *name) {
        struct rm_error err = { 0 };
        int r = fault_point(name, &err);

        assert_int_equal(err.code, r);
        return r;
}

static void test_off(void **state) {
        (void) state;
        set(NULL, NULL);
        assert_int_equal(point("move.source.freeze"), 0);
        set("", NULL);
        assert_int_equal(point("move.source.freeze"), 0);
}

static void test_environment_holds_for_good(void **state) {
        struct rm_error err = { 0 };

        (void) state;
        set("move.source.transfer:fail,move.destination.commit:fail", NULL);
        for (int i = 0; i < 3; i++) {
                assert_int_equal(point("move.source.transfer"), -EIO);
                assert_int_equal(point("move.destination.commit"), -EIO);
                assert_int_equal(point("move.destination.transfer"), 0);
                assert_int_equal(point("move.source.commit"), 0);
                assert_int_equal(point("move.source.freeze"), 0);
        }
        assert_int_equal(fault_point("move.source.transfer", &err), -EIO);
        assert_non_null(strstr(error_text(&err), "move.source.transfer"));
}

/* Each word is one point, or the part of its name before a dot. */
static void test_words(void **state) {
        static const struct {
                const char *text;
                int code;
        } cases[] = {
                { "move.source.cut:fail", -EIO },
                { "move.source.freeze:fail move.source.cut:fail", -EIO },
                { "move.source.freeze:fail,\nmove.source.cut:fail\n", -EIO },
                { "move.source:fail", -EIO },
                { "move.source.cut:hang", -EINPROGRESS },
                { "move.source.cut", 0 },
                { "move.sour:fail", 0 },
                { "move.source.cutter:fail", 0 },
                { "remove.source.cut:fail", 0 },
                { "source.cut:fail", 0 },
                { "move.destination.cut:fail", 0 },
                /* A name that only looks alike does not hide the right one. */
                { "move.source.cut,xmove.source.cut:fail,move.source.cut:fail", -EIO },
                { ",,, ,", 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                set(cases[i].text, NULL);
                if (point("move.source.cut") != cases[i].code)
                        fail_msg("'%s' should give %d", cases[i].text, cases[i].code);
        }
}

static void test_file_holds_once(void **state) {
        const struct place *place = *state;
        cleanup_free char *rest = NULL;

        set(NULL, place->path);
        assert_int_equal(point("move.source.restore"), 0); /* no file yet */
        write_faults(place, "move.source.restore:fail\nmove.destination.open:fail\nmove.source.restore:fail\n");
        assert_int_equal(point("move.source.cut"), 0);
        assert_int_equal(point("move.source.restore"), -EIO);
        assert_int_equal(point("move.source.restore"), -EIO); /* it stands there twice */
        assert_int_equal(point("move.source.restore"), 0);
        assert_int_equal(point("move.destination.open"), -EIO);
        assert_int_equal(point("move.destination.open"), 0);
        assert_int_equal(read_file(place->path, 65536, &rest, NULL), 0);
        assert_int_equal(strspn(rest, " \n"), strlen(rest));
        /* The file may be written again at any time, and a fault that was taken stays taken for the
         * next daemon. */
        write_faults(place, "move.source.cut:fail");
        set(NULL, place->path);
        assert_int_equal(point("move.source.cut"), -EIO);
        set(NULL, place->path);
        assert_int_equal(point("move.source.cut"), 0);
}

/* The point is held as long as the line is there. */
static void test_hold(void **state) {
        const struct place *place = *state;
        cleanup_free char *text = NULL;

        set(NULL, place->path);
        write_faults(place, "move.source.cut:hold\nmove.source.freeze:fail\n");
        for (int i = 0; i < 3; i++)
                assert_int_equal(point("move.source.cut"), -EAGAIN);
        assert_int_equal(point("move.source.freeze"), -EIO);
        assert_int_equal(point("move.source.cut"), -EAGAIN);
        assert_int_equal(read_file(place->path, 65536, &text, NULL), 0);
        assert_non_null(strstr(text, "move.source.cut:held\n"));
        write_faults(place, "");
        assert_int_equal(point("move.source.cut"), 0);
}

static void test_environment_comes_first(void **state) {
        const struct place *place = *state;
        cleanup_free char *text = NULL;

        set("move.source.cut:fail", place->path);
        write_faults(place, "move.source.cut:fail\nmove.source.freeze:fail\n");
        assert_int_equal(point("move.source.cut"), -EIO);
        assert_int_equal(read_file(place->path, 65536, &text, NULL), 0);
        assert_string_equal(text, "move.source.cut:fail\nmove.source.freeze:fail\n");
        assert_int_equal(point("move.source.freeze"), -EIO);
        assert_int_equal(point("move.source.freeze"), 0);
}

/* How a child that reaches the point ends, as of waitpid(2); it exits with 7 when it goes on. */
static int child_ends(void) {
        pid_t pid = fork();
        int status = 0;

        if (pid == 0) {
                (void) fault_point("move.source.release", NULL);
                _exit(7);
        }
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

/* The daemon that comes after one that was killed by the file is not killed again. */
static void test_kill(void **state) {
        const struct place *place = *state;
        int status;

        set(NULL, place->path);
        write_faults(place, "move.source.release:kill\n");
        status = child_ends();
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        status = child_ends();
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        set("move.source.release:kill", NULL);
        for (int i = 0; i < 2; i++) {
                status = child_ends();
                assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
}

/* A process that may block goes on once a test has taken the line away, and never after `hang`. */
static void test_waiting(void **state) {
        const struct place *place = *state;
        cleanup_free char *text = NULL;
        struct rm_error err = { 0 };
        int status;
        pid_t pid;

        set("move.source:fail", place->path);
        assert_int_equal(fault_wait("move.source.cut", &err), -EIO);
        assert_int_equal(err.code, -EIO);
        set(NULL, place->path);
        write_faults(place, "move.source.cut:hold\n");
        pid = fork();
        if (pid == 0)
                _exit(fault_wait("move.source.cut", NULL) == 0 ? 7 : 1);
        /* The child has written it, and writes no more. */
        while (read_file(place->path, 65536, &text, NULL) < 0 || !strstr(text, ":held"))
                free(take_ptr(text));
        assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
        write_faults(place, "move.source.release:hang\n");
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        pid = fork();
        if (pid == 0)
                _exit(fault_wait("move.source.release", NULL) == 0 ? 7 : 1);
        (void) usleep(20000);
        assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
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
                cmocka_unit_test_setup_teardown(test_waiting, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
