#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/hostlist.h"
#include "common/util.h"

static char *join(const struct hostlist *list) {
        char *text = xstrdup("");

        for (size_t i = 0; i < list->n_names; i++) {
                char *longer = xasprintf("%s%s%s", text, i ? " " : "", list->names[i]);

                free(text);
                text = longer;
        }
        return text;
}

static void lists_expand_and_compress(void **state) {
        static const struct {
                const char *text;
                const char *names;
                const char *compressed;
        } examples[] = {
                { "n1", "n1", "n1" },
                { "n1,n2", "n1 n2", "n[1-2]" },
                { "n[1-4,7]", "n1 n2 n3 n4 n7", "n[1-4,7]" },
                { "n[8-11]", "n8 n9 n10 n11", "n[8-11]" },
                { "n[08-11]", "n08 n09 n10 n11", "n[08-11]" },
                { "n[1-2],login,n3", "n1 n2 login n3", "login,n[1-3]" },
                { "n3,n1,n2,n1", "n3 n1 n2", "n[1-3]" },
                { "r[1-2]-ib", "r1-ib r2-ib", "r[1-2]-ib" },
                { "a1b[1-2]", "a1b1 a1b2", "a1b[1-2]" },
                { "n[5]", "n5", "n5" },
                { "n[1,3,5]", "n1 n3 n5", "n[1,3,5]" },
                { "n9,n09", "n9 n09", "n9,n09" },
                { "m1,n1", "m1 n1", "m1,n1" },
                { "alpha,beta", "alpha beta", "alpha,beta" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
                struct hostlist list = { 0 };
                struct rm_error err = { 0 };

                if (hostlist_expand(&list, examples[i].text, &err) < 0)
                        fail_msg("%s: %s", examples[i].text, err.text);
                cleanup_free char *names = join(&list);
                cleanup_free char *compressed = hostlist_compress(list.names, list.n_names);
                assert_string_equal(names, examples[i].names);
                assert_string_equal(compressed, examples[i].compressed);
                hostlist_finish(&list);
        }
}

static void what_is_compressed_expands_to_the_same(void **state) {
        struct hostlist list = { 0 };
        struct hostlist again = { 0 };
        struct rm_error err = { 0 };
        cleanup_free char *text = NULL;

        (void) state;
        for (int i = 0; i < 300; i += 1 + i % 3) {
                cleanup_free char *name = xasprintf(i % 5 ? "n%d" : "rack%03d-node", i);

                hostlist_add(&list, name);
        }
        text = hostlist_compress(list.names, list.n_names);
        assert_int_equal(hostlist_expand(&again, text, &err), 0);
        assert_int_equal(again.n_names, list.n_names);
        for (size_t i = 0; i < list.n_names; i++)
                hostlist_add(&again, list.names[i]);
        assert_int_equal(again.n_names, list.n_names);
        hostlist_finish(&list);
        hostlist_finish(&again);
}

static void nonsense_is_refused(void **state) {
        static const char *const examples[] = {
                "",         ",",    "n1,",    "n[",     "n]",      "n[]", "n[1", "n1]", "n[1-]",         "n[-1]",
                "n[3-1]",   "n[a]", "n[1,]",  "n[1;2]", "n[1][2]", "n/1", "-n1", "n 1", "n[1-99999999]", "n[99999999999]",
                "[1-2]x y", "n\n",  "n[[1]]", "]n["
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
                struct hostlist list = { 0 };
                struct rm_error err = { 0 };

                hostlist_add(&list, "before");
                if (hostlist_expand(&list, examples[i], &err) != -EINVAL)
                        fail_msg("'%s' was taken", examples[i]);
                assert_true(err.text[0] != 0);
                assert_int_equal(list.n_names, 1);
                hostlist_finish(&list);
        }
}

/* A few bytes can stand for very many names; the same ones again and again are many too. */
static void lists_are_limited(void **state) {
        struct hostlist list = { 0 };
        struct rm_error err = { 0 };
        char *text = xstrdup("n[1-65536]");

        (void) state;
        assert_int_equal(hostlist_expand(&list, text, &err), 0);
        assert_int_equal(list.n_names, HOSTLIST_MAX_NAMES);
        hostlist_finish(&list);
        for (int i = 0; i < 12; i++) {
                char *longer = xasprintf("%s,%s", text, text);

                free(text);
                text = longer;
        }
        assert_int_equal(hostlist_expand(&list, text, &err), -EINVAL);
        assert_non_null(strstr(err.text, "...' is not a host list: it has too many names"));
        assert_int_equal(list.n_names, 0);
        free(text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_expand_and_compress),
                cmocka_unit_test(what_is_compressed_expands_to_the_same),
                cmocka_unit_test(nonsense_is_refused),
                cmocka_unit_test(lists_are_limited),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
