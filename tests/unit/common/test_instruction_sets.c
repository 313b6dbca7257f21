/* Lists of instruction sets: what is one, and what another processor lacks of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/instruction_sets.h"
#include "common/util.h"

static void expect_of(const char *flags, const char *machine, const char *requested) {
        cleanup_free char *sets = instruction_sets_of(flags, machine);

        assert_string_equal(sets, requested);
}

static void test_what_is_one(void **state) {
        (void) state;
        expect_of("fpu sse2 avx2 constant_tsc avx512f pti amx_tile sse2", "x86_64", "sse2 avx2 avx512f amx_tile");
        expect_of(" fpu  pti ", "x86_64", "");
        expect_of("", "x86_64", "");
        expect_of("fp asimd sve", "aarch64", "fp asimd sve");
}

static void expect_lacking(const char *have, const char *needed, const char *requested) {
        cleanup_free char *lacks = instruction_sets_lacking(have, needed);

        if (!requested)
                assert_null(lacks);
        else
                assert_string_equal(lacks, requested);
}

static void test_what_is_lacking(void **state) {
        (void) state;
        expect_lacking("sse2 avx2", "sse2 avx2 avx512f amx_tile", "avx512f amx_tile");
        expect_lacking("sse2 avx512f", "sse2 avx512fp16 avx", "avx512fp16 avx"); /* whole words only */
        expect_lacking("sse2 avx2 avx512f", "avx2 sse2", NULL);
        expect_lacking("sse2", "sse2", NULL);
        expect_lacking("", "sse2", NULL);
        expect_lacking("sse2", "", NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_one),
                cmocka_unit_test(test_what_is_lacking),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
