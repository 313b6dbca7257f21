/* The pace holds in each second, whatever is sent when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/mover/pace.h"

static void no_limit(void **state) {
        struct pace pace = { 0 };

        (void) state;
        assert_int_equal(pace_wait_usec(&pace, 1 << 20, 1), 0);
        assert_int_equal(pace_wait_usec(&pace, 1 << 30, 2), 0);
}

/* A sender that sends whenever it may, in steps of any size, comes to the rate. */
static void the_rate_is_kept(void **state) {
        static const uint64_t steps[] = { 1, 4096, 1 << 20, 50 << 20 };

        (void) state;
        for (int i = 0; i < 4; i++) {
                struct pace pace = { .bytes_per_sec = 10 << 20 };
                uint64_t now = 5000000, begin = now, sent = 0;

                for (int k = 0; k < 1000; k++) {
                        sent += steps[i];
                        now += pace_wait_usec(&pace, sent, now);
                }
                assert_in_range(now - begin + PACE_BURST_USEC, sent * 1000000 / pace.bytes_per_sec * 9 / 10,
                                sent * 1000000 / pace.bytes_per_sec + PACE_BURST_USEC);
        }
}

/* A pause gives no right to a burst that is longer than PACE_BURST_USEC. */
static void pauses_are_not_saved_up(void **state) {
        struct pace pace = { .bytes_per_sec = 1000 };

        (void) state;
        assert_int_equal(pace_wait_usec(&pace, 1000, 10000000), 1000000 - PACE_BURST_USEC);
        assert_int_equal(pace_wait_usec(&pace, 2000, 99000000), 1000000 - PACE_BURST_USEC);
        assert_int_equal(pace_wait_usec(&pace, 2000, 99500000), 500000 - PACE_BURST_USEC);
        assert_int_equal(pace_wait_usec(&pace, 2000, 100000000), 0);
        assert_int_equal(pace_wait_usec(&pace, UINT64_C(1) << 50, 200000000),
                         ((UINT64_C(1) << 50) - 2000) * 1000 - PACE_BURST_USEC);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_limit),
                cmocka_unit_test(the_rate_is_kept),
                cmocka_unit_test(pauses_are_not_saved_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
