/* A user who was another person, or in other groups, when his job was saved does not get that
 * identity again by a restart. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/state/owner.h"

static uint32_t saved[] = { 1000, 2000, 2001 };

static Rm__JobSpec spec_of(uint32_t uid, const char *user, uint32_t gid, size_t n_groups) {
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;

        spec.uid = uid;
        spec.user = (char *) user;
        spec.gid = gid;
        spec.groups = saved;
        spec.n_groups = n_groups;
        return spec;
}

static void expect(const Rm__JobSpec *spec, const char *name, const gid_t *groups, size_t n, const char *text) {
        struct rm_error err = { 0 };
        int r = owner_check(spec, &(struct owner_today) { name, groups, n }, &err);

        assert_int_equal(r, text ? -EPERM : 0);
        if (text)
                assert_string_equal(err.text, text);
}

static void test_groups(void **state) {
        static const gid_t all[] = { 2001, 1000, 2000, 3000 }, some[] = { 1000, 2001 };
        Rm__JobSpec spec = spec_of(1000, "alice", 1000, 3);

        (void) state;
        expect(&spec, "alice", all, 4, NULL); /* more than then, in any order */
        expect(&spec, "alice", some, 2, "it has the rights of groups that alice is not a member of any more (2000)");
        expect(&spec, "alice", some, 1, "it has the rights of groups that alice is not a member of any more (2000 2001)");
        expect(&spec, "alice", NULL, 0, "it has the rights of groups that alice is not a member of any more (1000 2000 2001)");
        /* The group of the process that submitted it, by newgrp(1) or a set-group-ID program, need
         * not be among the others. */
        spec.gid = 42;
        expect(&spec, "alice", all, 4, "it has the rights of groups that alice is not a member of any more (42)");
}

static void test_uid_is_given_to_another(void **state) {
        static const gid_t groups[] = { 1000 };
        Rm__JobSpec spec = spec_of(1000, "alice", 1000, 1);

        (void) state;
        expect(&spec, "bob", groups, 1, "it is of uid 1000, which was alice when it was submitted, and is bob today");
        expect(&spec, "1000", groups, 1,
               "it is of uid 1000, which was alice when it was submitted, and is 1000 today"); /* nobody's */
        spec.user = (char *) "1000"; /* nor was it then */
        expect(&spec, "1000", groups, 1, NULL);
}

static void test_root(void **state) {
        Rm__JobSpec spec = spec_of(0, "root", 0, 3);

        (void) state;
        expect(&spec, "toor", NULL, 0, NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_groups),
                cmocka_unit_test(test_uid_is_given_to_another),
                cmocka_unit_test(test_root),
        };

        return cmocka_run_group_tests_name("owner", tests, NULL, NULL);
}
