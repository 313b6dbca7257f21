/* Which capsules are fenced, and what is done about their leases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/job/fence.h"
#include "daemon/state/state.h"

static void test_applies(void **state) {
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;

        (void) state;
        assert_false(fence_applies(&spec)); /* abort */
        spec.on_node_loss = STATE_LOSS_RESTART;
        assert_true(fence_applies(&spec));
}

static void expect_mac(uint64_t epoch, uint8_t first, uint8_t second) {
        uint8_t mac[6];

        fence_mac(epoch, 0x0a320104, mac);
        assert_memory_equal(mac, ((uint8_t[]) { first, second, 10, 50, 1, 4 }), 6);
}

/* The address is a unicast one that no vendor gave. */
static void test_mac(void **state) {
        uint8_t seen[1 << 14] = { 0 };

        (void) state;
        expect_mac(0, 0x02, 0x72); /* as it was before there were epochs */
        expect_mac(1, 0x02, 0x73);
        expect_mac(0x100, 0x06, 0x72);
        expect_mac(0x3fff, 0xfe, 0x8d);
        expect_mac(0x4000, 0x02, 0x72);
        for (uint64_t epoch = 0; epoch < sizeof(seen); epoch++) {
                uint8_t mac[6];

                fence_mac(epoch, 1, mac);
                assert_int_equal(mac[0] & 3, 2);
                assert_int_equal(seen[mac[0] >> 2 << 8 | mac[1]]++, 0);
        }
}

static const struct fence_view good = { .synced = true, .belongs = true, .lease_usec = 5000000, .reported_usec = 4000000 };

static void expect(struct fence_view view, bool due) {
        assert_int_equal(fence_due(&view), due);
}

static void test_renewed(void **state) {
        struct fence_view view = good;

        (void) state;
        expect(view, true);
        view.reported_usec = 0;
        expect(view, true);
        view.lease_usec = UINT64_MAX;
        expect(view, true);
}

static void test_told_once(void **state) {
        struct fence_view view = good;

        (void) state;
        view.reported_usec = view.lease_usec;
        expect(view, false);
        view.reported_usec = view.lease_usec + 1;
        expect(view, false);
        view.reported_usec = UINT64_MAX; /* it kept the only log before */
        expect(view, true);
        view.lease_usec = view.reported_usec = 0; /* there never was one */
        expect(view, false);
}

/* The job may have been started again elsewhere. */
static void test_not_known(void **state) {
        struct fence_view view = good;

        (void) state;
        view.synced = false;
        expect(view, false);
        view = good;
        view.belongs = false;
        expect(view, false);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_applies), cmocka_unit_test(test_mac),
                                            cmocka_unit_test(test_renewed), cmocka_unit_test(test_told_once),
                                            cmocka_unit_test(test_not_known) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
