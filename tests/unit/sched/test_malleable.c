/* Which jobs grow and shrink. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

#include "daemon/sched/malleable.h"

#define JOBS_MAX 8

static const struct malleable_waiting nobody;

static struct malleable_job malleable(uint32_t active, uint32_t least, uint32_t most) {
        return (struct malleable_job) { .active = active, .least = least, .most = most, .step = 1, .may_change = true };
}

static struct malleable_job fixed(uint32_t ranks) {
        return (struct malleable_job) { .active = ranks };
}

static void expect(const struct malleable_job *jobs, size_t n, const struct malleable_waiting *waiting, uint64_t cores,
                   const uint32_t *wanted) {
        uint32_t have[JOBS_MAX];

        malleable_decide(jobs, n, waiting, cores, have);
        for (size_t j = 0; j < n; j++)
                assert_int_equal(have[j], wanted[j]);
}

static void test_grows_into_idle_cores(void **state) {
        const struct malleable_job jobs[] = { malleable(4, 2, 16), fixed(4) };

        expect(jobs, 2, &nobody, 8, (uint32_t[]) { 0, 0 });
        expect(jobs, 2, &nobody, 10, (uint32_t[]) { 6, 0 });
        expect(jobs, 2, &nobody, 100, (uint32_t[]) { 16, 0 });
}

static void test_two_grow_alike(void **state) {
        const struct malleable_job jobs[] = { malleable(4, 2, 16), malleable(2, 2, 16) };

        expect(jobs, 2, &nobody, 16, (uint32_t[]) { 8, 8 });
        expect(jobs, 2, &nobody, 7, (uint32_t[]) { 0, 3 });
}

static void test_priority_grows_first(void **state) {
        struct malleable_job jobs[] = { malleable(4, 2, 16), malleable(4, 2, 8) };

        jobs[1].priority = 1;
        expect(jobs, 2, &nobody, 11, (uint32_t[]) { 0, 7 });
        expect(jobs, 2, &nobody, 14, (uint32_t[]) { 6, 8 });
}

static void test_goal_decides(void **state) {
        struct malleable_job jobs[] = { malleable(4, 2, 16), malleable(4, 2, 16), malleable(4, 2, 16) };

        jobs[0].goal = MALLEABLE_AHEAD;
        jobs[2].goal = MALLEABLE_BEHIND;
        expect(jobs, 3, &nobody, 16, (uint32_t[]) { 0, 0, 8 });
        expect(jobs, 3, &nobody, 100, (uint32_t[]) { 0, 16, 16 });
        expect(jobs, 3, &nobody, 11, (uint32_t[]) { 3, 0, 0 });
}

static void test_shrinks_rather_than_share(void **state) {
        struct malleable_job jobs[] = { malleable(8, 2, 16), fixed(4), malleable(6, 5, 16) };

        expect(jobs, 3, &nobody, 18, (uint32_t[]) { 0, 0, 0 });
        expect(jobs, 3, &nobody, 16, (uint32_t[]) { 6, 0, 0 });
        expect(jobs, 3, &nobody, 14, (uint32_t[]) { 5, 0, 5 });
        expect(jobs, 3, &nobody, 3, (uint32_t[]) { 2, 0, 5 }); /* the rest is to share cores */
        jobs[0].priority = 1;
        expect(jobs, 3, &nobody, 17, (uint32_t[]) { 0, 0, 5 });
}

static void test_shrinks_for_who_waits(void **state) {
        const struct malleable_waiting waiting = { 6, 0 }, many = { 9, 0 };
        struct malleable_job jobs[] = { malleable(8, 2, 16), malleable(8, 6, 16) };

        expect(jobs, 2, &waiting, 22, (uint32_t[]) { 0, 0 });
        expect(jobs, 2, &waiting, 20, (uint32_t[]) { 7, 7 });
        expect(jobs, 2, &waiting, 16, (uint32_t[]) { 4, 6 });
        expect(jobs, 2, &many, 16, (uint32_t[]) { 0, 0 }); /* it would not fit all the same */
        jobs[0].priority = 1;
        expect(jobs, 2, &waiting, 20, (uint32_t[]) { 0, 6 });
        expect(jobs, 2, &waiting, 18, (uint32_t[]) { 0, 0 });
}

static void test_nobody_grows_while_one_waits(void **state) {
        const struct malleable_waiting waiting = { 6, 0 };
        const struct malleable_job jobs[] = { malleable(4, 4, 16) };

        expect(jobs, 1, &waiting, 8, (uint32_t[]) { 0 });
        expect(jobs, 1, &waiting, 12, (uint32_t[]) { 0 });
}

/* Cores that come free later are not given away now, nor is one asked for twice. */
static void test_change_under_way(void **state) {
        const struct malleable_waiting waiting = { 4, 0 };
        struct malleable_job jobs[] = { malleable(8, 2, 16), malleable(4, 2, 16) };

        jobs[0].wanted = 4;
        expect(jobs, 2, &waiting, 12, (uint32_t[]) { 0, 0 });
        expect(jobs, 2, &nobody, 12, (uint32_t[]) { 0, 0 });
        expect(jobs, 2, &nobody, 14, (uint32_t[]) { 0, 6 });
        jobs[0].wanted = 12;
        expect(jobs, 2, &nobody, 18, (uint32_t[]) { 0, 6 });
        expect(jobs, 2, &nobody, 14, (uint32_t[]) { 0, 2 });
}

static void test_whole_groups(void **state) {
        struct malleable_job jobs[] = { malleable(6, 2, 15) };

        jobs[0].step = 4;
        expect(jobs, 1, &nobody, 7, (uint32_t[]) { 0 });
        expect(jobs, 1, &nobody, 8, (uint32_t[]) { 8 });
        expect(jobs, 1, &nobody, 13, (uint32_t[]) { 12 });
        expect(jobs, 1, &nobody, 20, (uint32_t[]) { 15 });
        expect(jobs, 1, &nobody, 5, (uint32_t[]) { 4 });
        expect(jobs, 1, &nobody, 3, (uint32_t[]) { 4 });
}

static void test_may_not_change(void **state) {
        struct malleable_job jobs[] = { malleable(6, 2, 15) };

        jobs[0].may_change = false;
        expect(jobs, 1, &nobody, 3, (uint32_t[]) { 0 });
        expect(jobs, 1, &nobody, 30, (uint32_t[]) { 0 });
}

static void make(struct malleable_job *jobs, size_t n, const uint32_t *wanted) {
        for (size_t j = 0; j < n; j++)
                if (wanted[j]) {
                        assert_in_range(wanted[j], jobs[j].least, jobs[j].most);
                        jobs[j].active = wanted[j];
                }
}

static uint64_t ranks_of(const struct malleable_job *jobs, size_t n) {
        uint64_t sum = 0;

        for (size_t j = 0; j < n; j++)
                sum += jobs[j].active;
        return sum;
}

/* Whatever there is: nothing out of bounds, no core twice, and it comes to rest: what a large group leaves over a small one may take. */
static void test_random(void **state) {
        unsigned seed = 1;

        for (int round = 0; round < 20000; round++) {
                struct malleable_job jobs[JOBS_MAX];
                struct malleable_waiting waiting = { rand_r(&seed) % 2 ? (uint32_t) rand_r(&seed) % 12 : 0, rand_r(&seed) % 2 };
                uint32_t wanted[JOBS_MAX];
                size_t n = (size_t) rand_r(&seed) % (JOBS_MAX + 1);
                uint64_t cores = (uint64_t) rand_r(&seed) % 60, before, after;

                for (size_t j = 0; j < n; j++) {
                        uint32_t least = 1 + (uint32_t) rand_r(&seed) % 6, active = least + (uint32_t) rand_r(&seed) % 6;

                        jobs[j] = malleable(active, least, active + (uint32_t) rand_r(&seed) % 6);
                        jobs[j].step = 1 + (uint32_t) rand_r(&seed) % 3;
                        jobs[j].priority = rand_r(&seed) % 2;
                        jobs[j].goal = (enum malleable_goal)(rand_r(&seed) % 3);
                }
                before = ranks_of(jobs, n);
                malleable_decide(jobs, n, &waiting, cores, wanted);
                make(jobs, n, wanted);
                after = ranks_of(jobs, n);
                if (after > before)
                        assert_true(after <= cores);
                if (waiting.ranks > 0)
                        assert_true(after <= before);
                for (int again = 0; again < 3; again++) {
                        malleable_decide(jobs, n, &waiting, cores, wanted);
                        make(jobs, n, wanted);
                }
                for (size_t j = 0; j < n; j++)
                        assert_int_equal(wanted[j], 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_grows_into_idle_cores),
                cmocka_unit_test(test_two_grow_alike),
                cmocka_unit_test(test_priority_grows_first),
                cmocka_unit_test(test_goal_decides),
                cmocka_unit_test(test_shrinks_rather_than_share),
                cmocka_unit_test(test_shrinks_for_who_waits),
                cmocka_unit_test(test_nobody_grows_while_one_waits),
                cmocka_unit_test(test_change_under_way),
                cmocka_unit_test(test_whole_groups),
                cmocka_unit_test(test_may_not_change),
                cmocka_unit_test(test_random),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
