#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "launcher/rmctl/human.h"
#include "launcher/rmctl/table.h"

static const struct column columns[] = {
        { "NAME", false, true, 0 },
        { "CORES", true, false, 0 },
        { "AGE", true, false, 1 },
        { "NOTE", false, true, 0 },
};

static struct table *make(void) {
        struct table *t = table_create(columns, ARRAY_SIZE(columns));

        table_cell(t, "n1");
        table_printf(t, "%d", 16);
        table_cell(t, "3s");
        table_cell(t, NULL);
        table_colour(t, "a-long-name-of-a-node", COLOUR_RED);
        table_printf(t, "%d", 128);
        table_take(t, xstrdup("10m"));
        table_cell(t, "bad\033[31m\nnews");
        return t;
}

static void expect(size_t width, bool header, bool colours, const char *want) {
        struct table *t = make();
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        table_print(t, f, width, header, colours);
        (void) fclose(f);
        assert_string_equal(text, want);
        free(text);
        table_destroy(t);
}

static void tables_are_laid_out(void **state) {
        (void) state;
        expect(0, true, false,
               "NAME                   CORES  AGE  NOTE\n"
               "n1                        16   3s  -\n"
               "a-long-name-of-a-node    128  10m  bad?[31m news\n");
        expect(0, false, false,
               "n1                      16   3s  -\n"
               "a-long-name-of-a-node  128  10m  bad?[31m news\n");
        expect(0, false, true,
               "n1                      16   3s  -\n"
               "\033[31ma-long-name-of-a-node\033[0m  128  10m  bad?[31m news\n");
}

static void tables_fit_the_terminal(void **state) {
        (void) state;
        expect(45, true, false,
               "NAME                CORES  AGE  NOTE\n"
               "n1                     16   3s  -\n"
               "a-long-name-of-a-…    128  10m  bad?[31m news\n");
        /* A column goes before the others become unreadable. */
        expect(38, true, false,
               "NAME              CORES  NOTE\n"
               "n1                   16  -\n"
               "a-long-name-of-…    128  bad?[31m news\n");
        /* Too narrow for anything: no crash, and nothing under the least width. */
        expect(5, true, false,
               "NAME      CORES  NOTE\n"
               "n1           16  -\n"
               "a-long-…    128  bad?[31…\n");
}

static void expect_take(char *got, const char *want) {
        assert_string_equal(got, want);
        free(got);
}

static void figures_are_for_people(void **state) {
        (void) state;
        expect_take(human_ago(0, 5), "-");
        expect_take(human_ago(1000000, 1500000), "just now");
        expect_take(human_ago(1000000, 1000000 + UINT64_C(181000000)), "3m ago");
        expect_take(human_ago(1000000, 1000000 + UINT64_C(86400) * 3000000), "3d ago");
        expect_take(human_ago(9000000, 1), "just now");
        expect_take(human_duration(281337), "0.281 s");
        expect_take(human_duration(12000000), "12 s");
        expect_take(human_duration(185000000), "3m 05s");
        expect_take(human_duration(UINT64_C(3725000000)), "1h 02m");
        expect_take(human_elapsed(3900000), "3 s");
        expect_take(human_bytes(512), "512 B");
        expect_take(human_bytes(31457280), "30.0 MiB");
        expect_take(human_bytes(121457280), "116 MiB");
        expect_take(human_bytes(1048575), "1.0 MiB");
        expect_take(human_bytes(UINT64_MAX), "16.0 EiB");
}

static void cutting_counts_columns_not_bytes(void **state) {
        (void) state;
        assert_int_equal(human_width("größe"), 5);
        assert_int_equal(human_width("漢字"), 4);
        expect_take(human_cut("größe", 5), "größe");
        expect_take(human_cut("größere", 5), "größ…");
        expect_take(human_cut("漢字漢字", 4), "漢…");
        expect_take(human_cut("x", 0), "");
        expect_take(human_clean("\xff\xfe"
                                "ok"),
                    "??ok");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(tables_are_laid_out),
                cmocka_unit_test(tables_fit_the_terminal),
                cmocka_unit_test(figures_are_for_people),
                cmocka_unit_test(cutting_counts_columns_not_bytes),
        };

        if (!setlocale(LC_CTYPE, "C.UTF-8"))
                return 77; /* skipped: no such locale here */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
