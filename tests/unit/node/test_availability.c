/* The text of availability files: what is taken, what is refused and with which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/node/availability.h"

static const char *const cluster[] = { "a.x", "a.y", "b", "c.example.org", "n1", "n10", "n2", "n3" };

static const char *name_at(const void *names, size_t i) {
        return ((const char *const *) names)[i];
}

static const char *find(void *userdata, const char *host) {
        int64_t i = availability_match(host, name_at, cluster, ARRAY_SIZE(cluster));

        return i < 0 ? NULL : cluster[i];
}

static int parse(const char *text, size_t bytes, struct availability *ret, struct rm_error *err) {
        cleanup_free char *exact = xcalloc(1, bytes); /* so that ASan sees a byte read too many */

        memcpy(exact, text, bytes);
        return availability_parse("/f", exact, bytes, find, NULL, ret, err);
}

/* "n1=4 n2=0" */
static char *show(const struct availability *availability) {
        char *all = xstrdup("");

        for (size_t i = 0; i < availability->n_entries; i++) {
                char *longer =
                        xasprintf("%s%s%s=%u", all, i ? " " : "", availability->entries[i].host, availability->entries[i].cores);

                free(all);
                all = longer;
        }
        return all;
}

static void test_good(void **state) {
        static const struct {
                const char *text;
                const char *expected;
                bool open_end;
                bool blank;
        } cases[] = {
                { "n1:4\n", "n1=4", false, false },
                { "n1:4\nn2:0\n", "n1=4 n2=0", false, false },
                { "n2:4\nn1:1\n", "n2=4 n1=1", false, false },
                { "# all\n\nn1:4 # four\n   \t\nn2:0#none\n", "n1=4 n2=0", false, false },
                { "n1:4\r\n\r\nn2:1 # x\r\n", "n1=4 n2=1", false, false },
                { " \tn1 :\t 4 \n", "n1=4", false, false },
                { "n1:4", "n1=4", true, false },
                { "n1:4\nn2:3", "n1=4 n2=3", true, false },
                { "n1:4\r", "n1=4", true, false },
                { "n1:0004\n", "n1=4", false, false },
                { "n1:1000000\n", "n1=1000000", false, false },
                { "", "", false, true },
                { "\n", "", false, true },
                { " \r\n\t\n", "", false, true },
                { "  ", "", true, true },
                { "#", "", true, false },
                { "# n1:3\n", "", false, false },
                { "# \xc3\xa9t\xc3\xa9 \xff\n", "", false, false },
                { "##:#:#\n", "", false, false },
                { "n1.example.org:3\n", "n1=3", false, false },
                { "c:3\n", "c.example.org=3", false, false },
                { "c.example.org:3\n", "c.example.org=3", false, false },
                { "a.x:1\na.y:2\n", "a.x=1 a.y=2", false, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct availability availability;
                struct rm_error err = { 0 };
                cleanup_free char *shown = NULL;

                if (parse(cases[i].text, strlen(cases[i].text), &availability, &err) < 0)
                        fail_msg("'%s': %s", cases[i].text, err.text);
                shown = show(&availability);
                assert_string_equal(shown, cases[i].expected);
                assert_int_equal(availability.open_end, cases[i].open_end);
                assert_int_equal(availability.blank, cases[i].blank);
                availability_finish(&availability);
        }
}

#define TEXT(t) t, sizeof(t) - 1

static void test_bad(void **state) {
        static const struct {
                const char *text;
                size_t bytes;
                const char *message;
        } cases[] = {
                { TEXT("n1\n"), "/f:1: expected hostname:numCores, found 'n1'" },
                { TEXT("n1:1\nn2"), "/f:2: expected hostname:numCores, found 'n2'" },
                { TEXT("n1:1\nn2:"), "/f:2: cores of 'n2' are '': expected a number from 0 to 1000000" },
                { TEXT("n1:-1\n"), "/f:1: cores of 'n1' are '-1': expected a number from 0 to 1000000" },
                { TEXT("n1:+1\n"), "/f:1: cores of 'n1' are '+1': expected a number from 0 to 1000000" },
                { TEXT("n1:2x\n"), "/f:1: cores of 'n1' are '2x': expected a number from 0 to 1000000" },
                { TEXT("n1:0x2\n"), "/f:1: cores of 'n1' are '0x2': expected a number from 0 to 1000000" },
                { TEXT("n1:1 2\n"), "/f:1: cores of 'n1' are '1 2': expected a number from 0 to 1000000" },
                { TEXT("n1:1.5\n"), "/f:1: cores of 'n1' are '1.5': expected a number from 0 to 1000000" },
                { TEXT("n1:1000001\n"), "/f:1: cores of 'n1' are '1000001': expected a number from 0 to 1000000" },
                { TEXT("n1:99999999999999999999\n"),
                  "/f:1: cores of 'n1' are '99999999999999999999': expected a number from 0 to 1000000" },
                { TEXT("n1:4294967297\n"), "/f:1: cores of 'n1' are '4294967297': expected a number from 0 to 1000000" },
                { TEXT("n1:18446744073709551617\n"),
                  "/f:1: cores of 'n1' are '18446744073709551617': expected a number from 0 to 1000000" },
                { TEXT("n1:1:2\n"), "/f:1: cores of 'n1' are '1:2': expected a number from 0 to 1000000" },
                { TEXT(":4\n"), "/f:1: '' is not a host name" },
                { TEXT("-n1:4\n"), "/f:1: '-n1' is not a host name" },
                { TEXT("n 1:4\n"), "/f:1: 'n 1' is not a host name" },
                { TEXT("n1/../x:4\n"), "/f:1: 'n1/../x' is not a host name" },
                { TEXT("n\xc3\xa9:4\n"), "/f:1: 'n?"
                                         "?' is not a host name" },
                { TEXT("\n\n# x\nn9:1\n"), "/f:4: no node 'n9' in this cluster" },
                { TEXT("N1:1\n"), "/f:1: no node 'N1' in this cluster" },
                { TEXT("a:1\n"), "/f:1: no node 'a' in this cluster" },
                { TEXT("n1x:1\n"), "/f:1: no node 'n1x' in this cluster" },
                { TEXT("c.example.com:1\n"), "/f:1: no node 'c.example.com' in this cluster" },
                { TEXT("n1:1\nn2:1\nn1:3\n"), "/f:3: node 'n1' is already in line 1" },
                { TEXT("n1:1\nn1:1\n"), "/f:2: node 'n1' is already in line 1" },
                { TEXT("n1:1\nn1.example.org:1\n"), "/f:2: node 'n1' is already in line 1" },
                { TEXT("n1:1\nn2:1\n\nn2:1\nn1:1\nn1:2\n"), "/f:4: node 'n2' is already in line 2" },
                { TEXT("n1:1\nn1:1\nwhat\n"), "/f:2: node 'n1' is already in line 1" },
                { TEXT("what\nn1:1\nn1:1\n"), "/f:1: expected hostname:numCores, found 'what'" },
                { TEXT("\001\002\377 what\n"), "/f:1: byte 0x01 is not allowed in a text file" },
                { TEXT("n1:1\nn2:\0001\n"), "/f:2: byte 0x00 is not allowed in a text file" },
                { TEXT("\0\0\0\0"), "/f:1: byte 0x00 is not allowed in a text file" },
                { TEXT("n1:1 # \x1b[31m\n"), "/f:1: byte 0x1b is not allowed in a text file" },
                { TEXT("n1:1\rn2:1\n"), "/f:1: byte 0x0d is not allowed in a text file" },
                { TEXT("n1:1\r\r\n"), "/f:1: byte 0x0d is not allowed in a text file" },
                { TEXT("\xff\xfen\0001\0"), "/f:1: byte 0x00 is not allowed in a text file" },
                { TEXT("\x7f"
                       "ELF\n"),
                  "/f:1: byte 0x7f is not allowed in a text file" },
                { TEXT("0123456789012345678901234567890123456789too long to show\n"),
                  "/f:1: expected hostname:numCores, found '0123456789012345678901234567890123456789'" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct availability availability = { .n_entries = 77 };
                struct rm_error err = { 0 };

                if (parse(cases[i].text, cases[i].bytes, &availability, &err) == 0)
                        fail_msg("'%s' was taken", cases[i].text);
                assert_string_equal(err.text, cases[i].message);
                assert_int_equal(err.code, -EINVAL);
                assert_int_equal(availability.n_entries, 77);
                assert_int_equal(parse(cases[i].text, cases[i].bytes, &availability, NULL), -EINVAL);
        }
}

static void test_long_lines(void **state) {
        static const struct {
                size_t bytes;
                char fill;
                int code;
        } cases[] = {
                { 4096, '#', 0 },       { 4097, '#', -EINVAL },   { 4096, ' ', 0 },         { 4097, ' ', -EINVAL },
                { 4096, 'a', -EINVAL }, { 100000, 'a', -EINVAL }, { 100000, ':', -EINVAL }, { 1000, '9', -EINVAL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                cleanup_free char *text = xcalloc(1, cases[i].bytes);
                struct availability availability;
                struct rm_error err = { 0 };

                memset(text, cases[i].fill, cases[i].bytes);
                assert_int_equal(parse(text, cases[i].bytes, &availability, &err), cases[i].code);
                if (cases[i].code == 0)
                        availability_finish(&availability);
        }
}

static void test_large(void **state) {
        size_t bytes = AVAILABILITY_MAX_BYTES;
        cleanup_free char *text = xcalloc(1, bytes + 16);
        struct availability availability;
        struct rm_error err = { 0 };
        uint64_t begun = now_usec();
        size_t used = 0;
        unsigned n = 0;

        for (; used + 16 < bytes; n++)
                used += (size_t) sprintf(text + used, "h%u:%u\n", n, n % 7);
        assert_int_equal(availability_parse("/f", text, used, NULL, NULL, &availability, &err), 0);
        assert_int_equal(availability.n_entries, n);
        availability_finish(&availability);
        used += (size_t) sprintf(text + used, "h0:1\n");
        assert_int_equal(availability_parse("/f", text, used, NULL, NULL, &availability, &err), -EINVAL);
        assert_non_null(strstr(err.text, "node 'h0' is already in line 1"));
        assert_true(now_usec() - begun < 5000000);
        memset(text, '\n', bytes + 1);
        assert_int_equal(availability_parse("/f", text, bytes, NULL, NULL, &availability, &err), 0);
        assert_true(availability.blank);
        assert_int_equal(availability_parse("/f", text, bytes + 1, NULL, NULL, &availability, &err), -EINVAL);
        assert_string_equal(err.text, "/f: the file is larger than 1048576 bytes");
        assert_int_equal(availability_parse("/f", NULL, 0, NULL, NULL, &availability, &err), 0);
}

/* Every beginning of a good file is taken as a whole or refused; it never crashes. */
static void test_cut_anywhere(void **state) {
        static const char text[] = "# c\r\nn1:4\nn2 : 12 # x\n\nn10:3\n";

        for (size_t n = 0; n < sizeof(text); n++) {
                struct availability availability;
                struct rm_error err = { 0 };

                if (parse(text, n, &availability, &err) == 0)
                        availability_finish(&availability);
                else
                        assert_memory_equal(err.text, "/f:", 3);
        }
}

static void test_equal(void **state) {
        static const char *const texts[] = { "", "n1:1\n", "n1:2\n", "n2:1\n", "n1:1\nn2:1\n" };
        struct availability all[ARRAY_SIZE(texts)];

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                assert_int_equal(parse(texts[i], strlen(texts[i]), &all[i], NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                for (size_t k = 0; k < ARRAY_SIZE(texts); k++)
                        assert_int_equal(availability_equal(&all[i], &all[k]), i == k);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                availability_finish(&all[i]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_good),  cmocka_unit_test(test_bad),          cmocka_unit_test(test_long_lines),
                cmocka_unit_test(test_large), cmocka_unit_test(test_cut_anywhere), cmocka_unit_test(test_equal),
        };

        return cmocka_run_group_tests_name("availability", tests, NULL, NULL);
}
