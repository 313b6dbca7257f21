/* The file with the switches while people edit it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/leader/switches_file.h"

struct fixture {
        char root[64];
        char *path;
        struct config config;
        struct switches_file *file;
};

static int set_up(void **state) {
        struct fixture *f = xcalloc(1, sizeof(*f));

        strcpy(f->root, "/tmp/test-switches-XXXXXX");
        if (!mkdtemp(f->root))
                return -1;
        f->path = xasprintf("%s/t.conf", f->root);
        f->config.topology = f->path;
        *state = f;
        return 0;
}

static int tear_down(void **state) {
        struct fixture *f = *state;

        switches_file_destroy(f->file);
        (void) remove_tree(f->root);
        free(f->path);
        free(f);
        return 0;
}

static void put(const struct fixture *f, const char *text) {
        assert_int_equal(write_file_atomic(f->path, text, strlen(text), 0644, false), 0);
}

/* Seen at one look, read at the next. */
static void becomes(struct fixture *f, size_t n_switches, const char *error) {
        assert_false(switches_file_scan(f->file));
        assert_true(switches_file_scan(f->file));
        assert_false(switches_file_scan(f->file));
        assert_int_equal(switches_file_list(f->file)->n, n_switches);
        if (!error)
                assert_null(switches_file_error(f->file));
        else if (!switches_file_error(f->file) || !strstr(switches_file_error(f->file), error))
                fail_msg("'%s' does not say '%s'", switches_file_error(f->file), error);
}

static void edits_are_taken_and_bad_ones_refused(void **state) {
        struct fixture *f = *state;

        put(f, "SwitchName=s1 Nodes=n1\n");
        f->file = switches_file_create(&f->config);
        assert_int_equal(switches_file_list(f->file)->n, 1);
        assert_null(switches_file_error(f->file));
        assert_false(switches_file_scan(f->file));
        put(f, "SwitchName=s1 Nodes=n1\nSwitchName=s2 Nodes=n2\n");
        becomes(f, 2, NULL);
        put(f, "SwitchName=s1 Nodes=n1\nSwitchName=s2 Nodes=n1\n");
        becomes(f, 2, "/t.conf:2: node 'n1' is below switch 's1' (line 1) already");
        put(f, "SwitchName=s3 Nodes=n1\n");
        becomes(f, 1, NULL);
        assert_string_equal(switches_file_list(f->file)->list[0].name, "s3");
        assert_int_equal(unlink(f->path), 0);
        becomes(f, 1, "[cluster] topology: cannot read");
        assert_int_equal(mkfifo(f->path, 0600), 0); /* which would be waited for */
        becomes(f, 1, "[cluster] topology: cannot read");
        assert_int_equal(unlink(f->path), 0);
        put(f, "SwitchName=s3 Nodes=n1\n"); /* as before */
        becomes(f, 1, NULL);
}

static void what_is_being_written_is_left_alone(void **state) {
        struct fixture *f = *state;

        put(f, "SwitchName=s1 Nodes=n1\n");
        f->file = switches_file_create(&f->config);
        for (int i = 0; i < 5; i++) {
                cleanup_free char *text = xasprintf("SwitchName=s%d Nodes=n1,n2%.*s", i, i, ",n3,n4");

                put(f, text);
                assert_false(switches_file_scan(f->file));
        }
        assert_string_equal(switches_file_list(f->file)->list[0].name, "s1");
}

static void no_file_is_named(void **state) {
        struct fixture *f = *state;

        f->config.topology = (char *) "";
        f->file = switches_file_create(&f->config);
        assert_false(switches_file_scan(f->file));
        assert_int_equal(switches_file_list(f->file)->n, 0);
        assert_null(switches_file_error(f->file));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(edits_are_taken_and_bad_ones_refused, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_is_being_written_is_left_alone, set_up, tear_down),
                cmocka_unit_test_setup_teardown(no_file_is_named, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
