/* How fast simulated jobs run: alone, folded, without cores, while they move, and after they were
 * killed. */
#include <string.h>

#include "common/util.h"
#include "launcher/sim/world.h"
#include "tests/unit/sched/sched_test.h"

#define SECOND 1000000

struct fixture {
        struct snapshot *cluster;
        struct swf_job jobs[2];
        struct swf swf;
        struct capacity_change changes[2];
        struct capacity capacity;
        struct world *world;
};

/* Two nodes with 4 cores; jobs of 4 ranks and 100 s, one second after the other. */
static void begin(struct fixture *f, size_t n_changes) {
        static const struct world_config config = { .rank_bytes = 1000000,
                                                    .bytes_per_usec = 1,
                                                    .freeze_usec = SECOND,
                                                    .malleable_share = 1,
                                                    .least_ratio = 0.5,
                                                    .most_ratio = 4 };

        f->cluster = test_snapshot("{'version':1,'nodes':[{'name':'a','cores':4,'penalty':0},{'name':'b','cores':4,'penalty':0}],"
                                   "'jobs':[]}");
        for (uint32_t j = 0; j < 2; j++)
                f->jobs[j] = (struct swf_job) {
                        .number = j + 1, .submit_usec = j * SECOND, .run_usec = 100 * SECOND, .limit_usec = 200 * SECOND, .ranks = 4
                };
        f->swf = (struct swf) { .jobs = f->jobs, .n_jobs = 2 };
        f->capacity = (struct capacity) { .changes = f->changes, .n_changes = n_changes };
        f->world = world_create(snapshot_view(f->cluster), &f->swf, &f->capacity, &config);
        world_advance(f->world, SECOND);
        assert_int_equal(f->world->n_waiting, 2);
}

static void end(struct fixture *f) {
        world_destroy(f->world);
        snapshot_destroy(f->cluster);
}

static void to_the_end(struct world *world) {
        while (world_next_usec(world) != WORLD_NEVER)
                world_advance(world, world_next_usec(world));
}

static const int32_t on_a[] = { 0, 0, 0, 0 }, on_b[] = { 1, 1, 1, 1 };

static void runs_at_full_speed(void **state) {
        struct fixture f = { 0 };

        (void) state;
        begin(&f, 0);
        world_start(f.world, 0, 2, on_a);
        world_start(f.world, 1, 2, on_b);
        assert_int_equal(f.world->n_waiting, 0);
        to_the_end(f.world);
        assert_int_equal(f.world->jobs[0].end_usec, 101 * SECOND);
        assert_int_equal(f.world->jobs[1].end_usec, 101 * SECOND);
        assert_int_equal(f.world->busy, 0);
        assert_int_equal(f.world->n_overloaded, 0);
        end(&f);
}

/* 8 ranks on 4 cores for all of their time: twice as long. */
static void folded_runs_slower(void **state) {
        struct fixture f = { 0 };

        (void) state;
        begin(&f, 0);
        world_start(f.world, 0, 2, on_a);
        world_start(f.world, 1, 2, on_a);
        assert_int_equal(f.world->n_overloaded, 1);
        to_the_end(f.world);
        assert_int_equal(f.world->jobs[0].end_usec, 201 * SECOND);
        assert_true(f.world->jobs[0].folded_usec == 200.0 * SECOND);
        end(&f);
}

/* The slowest node decides: half on a node that has gone stands still until it has moved, 2 s x 1
 * MB/s x 2 ranks + 1 s. */
static void moves_and_goes_on(void **state) {
        struct fixture f = { .changes = { { .time_usec = 11 * SECOND, .node = 0, .cores = 0 } } };
        static const int32_t both[] = { 0, 1 };

        (void) state;
        begin(&f, 1);
        world_start(f.world, 0, 2, both);
        world_advance(f.world, 21 * SECOND);
        assert_true(f.world->jobs[0].speed == 0);
        assert_int_equal(world_freeze_usec(f.world, &f.world->jobs[0], 0), 3 * SECOND);
        world_move(f.world, 0, 0, 1);
        assert_int_equal(f.world->n_moving, 1);
        to_the_end(f.world);
        assert_int_equal(f.world->jobs[0].groups ? 1 : 0, 0);
        assert_int_equal(f.world->jobs[0].end_usec, (1 + 100 + 10 + 3) * SECOND);
        assert_int_equal(f.world->jobs[0].moves, 1);
        assert_int_equal(f.world->moved_bytes, 2000000);
        end(&f);
}

static void killed_begins_again(void **state) {
        struct fixture f = { 0 };

        (void) state;
        begin(&f, 0);
        world_start(f.world, 0, 4, on_a);
        world_advance(f.world, 51 * SECOND);
        world_kill(f.world, 0);
        assert_int_equal(f.world->waiting[0], 0); /* before the younger one */
        assert_true(f.world->jobs[0].lost_usec == 50.0 * SECOND);
        world_start(f.world, 0, 4, on_a);
        to_the_end(f.world);
        assert_int_equal(f.world->jobs[0].end_usec, 151 * SECOND);
        assert_int_equal(f.world->jobs[0].first_start_usec, SECOND);
        assert_int_equal(f.world->n_waiting, 1);
        end(&f);
}

static void too_large_never_waits(void **state) {
        struct fixture f = { 0 };
        static const struct world_config config = { .bytes_per_usec = 1 };
        struct world *world;

        (void) state;
        begin(&f, 0);
        f.jobs[1].ranks = 9;
        world = world_create(snapshot_view(f.cluster), &f.swf, &f.capacity, &config);
        world_advance(world, SECOND);
        assert_int_equal(world->n_waiting, 1);
        assert_int_equal(world->jobs[1].state, SIM_TOO_LARGE);
        world_destroy(world);
        end(&f);
}

static void heap_orders(void **state) {
        struct heap heap = { 0 };
        struct dice dice = { 3 };
        int64_t last = -1;

        (void) state;
        for (uint32_t i = 0; i < 1000; i++)
                heap_add(&heap, &(struct heap_entry) { .time_usec = dice_roll(&dice, 300), .a = i });
        while (heap.n > 0) {
                struct heap_entry entry = heap_take(&heap);

                assert_true(entry.time_usec >= last);
                last = entry.time_usec;
        }
        heap_finish(&heap);
}

/* From the 1st to the 6th second it stands still (4 ranks of 1 MB at 1 MB/s, and 1 s); then 100 s
 * of work take half as long. */
static void grows_and_is_faster(void **state) {
        struct fixture f = { 0 };

        (void) state;
        begin(&f, 0);
        assert_int_equal(f.world->n_malleable, 2);
        assert_int_equal(f.world->jobs[0].least, 2);
        assert_int_equal(f.world->jobs[0].most, 8); /* as there are cores */
        world_start(f.world, 0, 2, on_a);
        world_resize(f.world, 0, 8, on_b);
        assert_int_equal(f.world->busy, 8);
        assert_true(f.world->jobs[0].speed == 0);
        to_the_end(f.world);
        assert_int_equal(f.world->jobs[0].end_usec, 56 * SECOND);
        assert_true(f.world->jobs[0].folded_usec == 5.0 * SECOND);
        assert_int_equal(f.world->jobs[0].resizes, 1);
        end(&f);
}

/* 50 s of the work on 4 ranks, 4 s (3 ranks, and 1 s) to change, and the rest on 1 rank; cores are
 * given back when that is done. */
static void shrinks_and_is_slower(void **state) {
        struct fixture f = { 0 };

        (void) state;
        begin(&f, 0);
        world_start(f.world, 0, 2, on_a);
        world_advance(f.world, 51 * SECOND);
        world_resize(f.world, 0, 1, NULL);
        world_advance(f.world, 54 * SECOND);
        assert_int_equal(f.world->busy, 4);
        world_advance(f.world, 55 * SECOND);
        assert_int_equal(f.world->busy, 1);
        assert_int_equal(f.world->jobs[0].n_groups, 1);
        to_the_end(f.world);
        assert_int_equal(f.world->jobs[0].end_usec, 255 * SECOND);
        assert_true(f.world->jobs[0].folded_usec == 4.0 * SECOND);
        assert_int_equal(f.world->busy, 0);
        end(&f);
}

/* Begun anew with the ranks of the trace; what was under way is over. */
static void killed_while_it_changes(void **state) {
        struct fixture f = { 0 };

        (void) state;
        begin(&f, 0);
        world_start(f.world, 0, 2, on_a);
        world_resize(f.world, 0, 8, on_b);
        world_advance(f.world, 2 * SECOND);
        world_kill(f.world, 0);
        assert_int_equal(f.world->busy, 0);
        world_start(f.world, 0, 2, on_a);
        assert_int_equal(f.world->busy, 4);
        to_the_end(f.world);
        assert_int_equal(f.world->jobs[0].end_usec, 102 * SECOND);
        end(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(grows_and_is_faster),
                cmocka_unit_test(shrinks_and_is_slower),
                cmocka_unit_test(killed_while_it_changes),
                cmocka_unit_test(runs_at_full_speed),
                cmocka_unit_test(folded_runs_slower),
                cmocka_unit_test(moves_and_goes_on),
                cmocka_unit_test(killed_begins_again),
                cmocka_unit_test(too_large_never_waits),
                cmocka_unit_test(heap_orders),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
