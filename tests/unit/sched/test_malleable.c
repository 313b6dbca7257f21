/* Which jobs grow and shrink. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "common/util.h"
#include "daemon/sched/fold.h"
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
                   const uint32_t *requested) {
        struct malleable_node node = { (int64_t) cores, RM_NO_MEMORY_LIMIT };
        const struct malleable_question question = {
                .jobs = jobs, .n_jobs = n, .waiting = *waiting, .nodes = &node, .n_nodes = 1, .cores = cores
        };
        struct malleable_answer answer;

        for (size_t j = 0; j < n; j++)
                node.free_cores -= jobs[j].active;
        malleable_decide(&question, &answer);
        for (size_t j = 0; j < n; j++)
                assert_int_equal(answer.requested[j], requested[j]);
        assert_int_equal(answer.n_moves, 0);
        malleable_answer_finish(&answer);
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

        jobs[0].requested = 4;
        expect(jobs, 2, &waiting, 12, (uint32_t[]) { 0, 0 });
        expect(jobs, 2, &nobody, 12, (uint32_t[]) { 0, 0 });
        expect(jobs, 2, &nobody, 14, (uint32_t[]) { 0, 6 });
        jobs[0].requested = 12;
        expect(jobs, 2, &nobody, 18, (uint32_t[]) { 0, 6 });
        expect(jobs, 2, &nobody, 14, (uint32_t[]) { 0, 2 });
}

static void test_whole_groups(void **state) {
        struct malleable_job jobs[] = { malleable(6, 2, 15) };

        jobs[0].step = 4;
        expect(jobs, 1, &nobody, 6, (uint32_t[]) { 0 });
        expect(jobs, 1, &nobody, 7, (uint32_t[]) { 0 }); /* two ranks of its second group wait */
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

static void make(struct malleable_job *jobs, size_t n, const uint32_t *requested) {
        for (size_t j = 0; j < n; j++)
                if (requested[j]) {
                        assert_in_range(requested[j], jobs[j].least, jobs[j].most);
                        jobs[j].active = requested[j];
                }
}

static uint64_t ranks_of(const struct malleable_job *jobs, size_t n) {
        uint64_t sum = 0;

        for (size_t j = 0; j < n; j++)
                sum += jobs[j].active;
        return sum;
}

static uint64_t ask_one_node(const struct malleable_job *jobs, size_t n, const struct malleable_waiting *waiting, uint64_t cores,
                             uint32_t *ret_requested) {
        struct malleable_node node = { (int64_t) cores, RM_NO_MEMORY_LIMIT };
        const struct malleable_question question = {
                .jobs = jobs, .n_jobs = n, .waiting = *waiting, .nodes = &node, .n_nodes = 1, .cores = cores
        };
        struct malleable_answer answer;
        uint64_t ranks = ranks_of(jobs, n);

        node.free_cores -= (int64_t) ranks;
        malleable_decide(&question, &answer);
        for (size_t j = 0; j < n; j++)
                ret_requested[j] = answer.requested[j];
        malleable_answer_finish(&answer);
        return ranks;
}

/* The invariants of random cases: no value out of bounds, no core twice, and an end: a small group
 * may take the cores that a large one leaves over. */
static void test_random(void **state) {
        unsigned seed = 1;

        for (int round = 0; round < 20000; round++) {
                struct malleable_job jobs[JOBS_MAX];
                struct malleable_waiting waiting = { rand_r(&seed) % 2 ? (uint32_t) rand_r(&seed) % 12 : 0, rand_r(&seed) % 2 };
                uint32_t requested[JOBS_MAX];
                size_t n = (size_t) rand_r(&seed) % (JOBS_MAX + 1);
                uint64_t cores = (uint64_t) rand_r(&seed) % 60, before, after;

                for (size_t j = 0; j < n; j++) {
                        uint32_t least = 1 + (uint32_t) rand_r(&seed) % 6, active = least + (uint32_t) rand_r(&seed) % 6;

                        jobs[j] = malleable(active, least, active + (uint32_t) rand_r(&seed) % 6);
                        jobs[j].step = 1 + (uint32_t) rand_r(&seed) % 3;
                        jobs[j].priority = rand_r(&seed) % 2;
                        jobs[j].goal = (enum malleable_goal)(rand_r(&seed) % 3);
                }
                before = ask_one_node(jobs, n, &waiting, cores, requested);
                make(jobs, n, requested);
                after = ranks_of(jobs, n);
                if (after > before)
                        assert_true(after <= cores);
                if (waiting.ranks > 0)
                        assert_true(after <= before);
                for (int again = 0; again < 3; again++) {
                        (void) ask_one_node(jobs, n, &waiting, cores, requested);
                        make(jobs, n, requested);
                }
                for (size_t j = 0; j < n; j++)
                        assert_int_equal(requested[j], 0);
        }
}

/* ---- node by node ---- */

#define NODES_MAX 4
#define GROUPS_MAX 16

struct outcome {
        uint32_t requested;
        size_t n_moves;
        struct malleable_move moves[GROUPS_MAX];
};

/* The decision about the first job. */
static struct outcome decide(const struct malleable_question *question) {
        struct malleable_answer answer;
        struct outcome outcome;

        malleable_decide(question, &answer);
        outcome = (struct outcome) { .requested = answer.requested[0], .n_moves = answer.n_moves };
        assert_true(answer.n_moves <= GROUPS_MAX);
        for (size_t i = 0; i < answer.n_moves; i++)
                outcome.moves[i] = answer.moves[i];
        malleable_answer_finish(&answer);
        return outcome;
}

/* The outcome on nodes with so many free cores. */
static struct outcome on_nodes(const struct malleable_job *job, const struct malleable_node *nodes, size_t n_nodes) {
        struct malleable_question question = { .jobs = job, .n_jobs = 1, .nodes = nodes, .n_nodes = n_nodes };

        question.cores = job->active;
        for (size_t n = 0; n < n_nodes; n++)
                question.cores += (uint64_t) nodes[n].free_cores;
        return decide(&question);
}

static void expect_move(const struct outcome *outcome, size_t i, uint32_t group, int32_t node) {
        assert_true(i < outcome->n_moves);
        assert_int_equal(outcome->moves[i].group, group);
        assert_int_equal(outcome->moves[i].node, node);
}

/* 2 of 12 ranks, in groups of 2, one after the other on 3 nodes. */
static struct malleable_job in_groups(void) {
        static const int32_t where[] = { 0, 1, 2, 0, 1, 2 };
        struct malleable_job job = malleable(2, 2, 12);

        job.step = 2;
        job.group_node = where;
        return job;
}

#define FREE(cores) { (cores), RM_NO_MEMORY_LIMIT }

static void test_scattered_cores_stay_idle(void **state) {
        const struct malleable_node ones[] = { FREE(1), FREE(1), FREE(1) }, threes[] = { FREE(1), FREE(3), FREE(3) };
        struct malleable_job job = in_groups();
        struct outcome outcome = on_nodes(&job, ones, 3);

        assert_int_equal(outcome.requested, 0);
        assert_int_equal(outcome.n_moves, 0);
        outcome = on_nodes(&job, threes, 3);
        assert_int_equal(outcome.requested, 6);
        assert_int_equal(outcome.n_moves, 0);
        job.group_node = NULL;
        assert_int_equal(on_nodes(&job, threes, 3).requested, 6);
}

/* A group of which some ranks compute grows where it is, or not at all. */
static void test_groups_of_both_kinds_stay(void **state) {
        const struct malleable_node elsewhere[] = { FREE(4), FREE(0), FREE(0) }, here[] = { FREE(0), FREE(1), FREE(2) };
        static const uint32_t limit[] = { 9, 1, 9 };
        struct malleable_job job = in_groups();
        struct outcome outcome;

        job.active = 3;
        outcome = on_nodes(&job, elsewhere, 3);
        assert_int_equal(outcome.requested, 0);
        assert_int_equal(outcome.n_moves, 0);
        outcome = on_nodes(&job, here, 3);
        assert_int_equal(outcome.requested, 6);
        assert_int_equal(outcome.n_moves, 0);
        job.node_limit = limit;
        assert_int_equal(on_nodes(&job, here, 3).requested, 0);
        job.node_limit = NULL;
        job.requested = 4; /* has been asked for, and takes the core before others can */
        job.may_stay = true;
        assert_int_equal(on_nodes(&job, elsewhere, 3).requested, 3);
        assert_int_equal(on_nodes(&job, here, 3).requested, 0);
}

/* Groups move while they are parked; those that are in their place can be used meanwhile. */
static void test_groups_move_to_cores_first(void **state) {
        const struct malleable_node elsewhere[] = { FREE(4), FREE(2), FREE(0) };
        static const int32_t moved[] = { 0, 1, 0, 0, 1, 2 };
        struct malleable_job job = in_groups();
        struct outcome outcome = on_nodes(&job, elsewhere, 3);

        assert_int_equal(outcome.requested, 4);
        assert_int_equal(outcome.n_moves, 1);
        expect_move(&outcome, 0, 2, 0);
        job.group_node = moved;
        job.first_moving = 3;
        outcome = on_nodes(&job, elsewhere, 3);
        assert_int_equal(outcome.requested, 4);
        assert_int_equal(outcome.n_moves, 0);
        job.first_moving = 0;
        assert_int_equal(on_nodes(&job, elsewhere, 3).requested, 8);
}

static void test_groups_move_where_memory_is(void **state) {
        const struct malleable_node poor[] = { { 8, 999 }, FREE(1), FREE(0) }, enough[] = { { 8, 1000 }, FREE(1), FREE(0) };
        struct malleable_job job = in_groups();
        struct outcome outcome;

        job.rank_memory_bytes = 500;
        outcome = on_nodes(&job, poor, 3);
        assert_int_equal(outcome.requested, 0);
        assert_int_equal(outcome.n_moves, 0);
        outcome = on_nodes(&job, enough, 3);
        assert_int_equal(outcome.requested, 0);
        assert_int_equal(outcome.n_moves, 1); /* then there is none left */
        expect_move(&outcome, 0, 1, 0);
}

static void test_limits_of_the_job_hold(void **state) {
        const uint32_t limit[] = { 4, RM_NO_LIMIT, 0 };
        const struct malleable_node nodes[] = { FREE(8), FREE(3), FREE(8) };
        struct malleable_job job = in_groups();
        struct outcome outcome;

        job.node_limit = limit;
        outcome = on_nodes(&job, nodes, 3);
        assert_int_equal(outcome.requested, 4); /* group 1 on the second node */
        assert_int_equal(outcome.n_moves, 1); /* and group 2 on the first, where 2 of 4 are; no other has a place then */
        expect_move(&outcome, 0, 2, 0);
}

static void test_cores_of_a_growth_are_taken(void **state) {
        const struct malleable_node nodes[] = { FREE(2), FREE(3), FREE(3) };
        struct malleable_job jobs[] = { malleable(1, 1, 8), in_groups() };
        const struct malleable_question question = { .jobs = jobs, .n_jobs = 2, .nodes = nodes, .n_nodes = 3, .cores = 11 };

        jobs[1].requested = 6; /* its groups 1 and 2 come to the second and third node */
        assert_int_equal(decide(&question).requested, 5);
}

static void test_growth_without_cores_is_taken_back(void **state) {
        const struct malleable_node nodes[] = { FREE(1), FREE(1), FREE(1) };
        struct malleable_job jobs[] = { in_groups(), fixed(3) };
        struct malleable_question question = { .jobs = jobs, .n_jobs = 2, .nodes = nodes, .n_nodes = 3, .cores = 8 };

        jobs[0].requested = 4;
        assert_int_equal(decide(&question).requested, 0);
        jobs[0].may_stay = true;
        assert_int_equal(decide(&question).requested, 2); /* there are 3 cores, but not 2 on any node */
        question.cores = 6;
        assert_int_equal(decide(&question).requested, 2);
}

static void test_growth_is_taken_back_for_who_waits(void **state) {
        const struct malleable_node nodes[] = { FREE(4), FREE(4), FREE(4) };
        struct malleable_job jobs[] = { in_groups() };
        struct malleable_question question = { .jobs = jobs, .n_jobs = 1, .nodes = nodes, .n_nodes = 3, .cores = 14 };

        jobs[0].requested = 4;
        jobs[0].may_stay = true;
        question.waiting.ranks = 10;
        assert_int_equal(decide(&question).requested, 0); /* there is room for both */
        question.waiting.ranks = 12;
        assert_int_equal(decide(&question).requested, 2);
        jobs[0].priority = 1;
        assert_int_equal(decide(&question).requested, 0);
        jobs[0].priority = 0;
        question.waiting.ranks = 13;
        assert_int_equal(decide(&question).requested, 0); /* it would not fit all the same */
}

static void test_nobody_grows_where_ranks_share_cores(void **state) {
        const struct malleable_node nodes[] = { FREE(-1), FREE(4), FREE(4) };
        struct malleable_job job = in_groups();

        assert_int_equal(on_nodes(&job, nodes, 3).requested, 0);
}

/* ---- and what a round makes of it ---- */

/* Jobs with groups parked anywhere, on nodes with random cores. */
struct scene {
        uint32_t cores[NODES_MAX];
        struct malleable_node nodes[NODES_MAX];
        struct malleable_job jobs[JOBS_MAX];
        int32_t group_node[JOBS_MAX][GROUPS_MAX];
        uint32_t limit[JOBS_MAX][NODES_MAX];
        size_t n_jobs;
        unsigned seed;
};

static uint32_t roll(struct scene *s, uint32_t n) {
        return (uint32_t) rand_r(&s->seed) % n;
}

static void add_job(struct scene *s, size_t j) {
        uint32_t step = 1 + roll(s, 4), groups = 1 + roll(s, 4), most = step * groups - roll(s, step);
        struct malleable_job *job = &s->jobs[j];

        *job = malleable(1 + roll(s, most), 1, most);
        job->step = step;
        job->priority = roll(s, 2);
        job->group_node = s->group_node[j];
        for (uint32_t g = 0; g < groups; g++)
                s->group_node[j][g] = (int32_t) roll(s, NODES_MAX);
        if (roll(s, 3) > 0)
                return;
        job->node_limit = s->limit[j];
        for (uint32_t n = 0; n < NODES_MAX; n++)
                s->limit[j][n] = roll(s, 3) ? RM_NO_LIMIT : 1 + roll(s, 8);
}

static uint32_t ranks_of_group(const struct malleable_job *job, uint32_t g) {
        uint32_t left = job->active - g * job->step;

        return left < job->step ? left : job->step;
}

static uint32_t n_groups(const struct malleable_job *job) {
        return (job->active - 1) / job->step + 1;
}

static void draw(struct scene *s) {
        for (uint32_t n = 0; n < NODES_MAX; n++) {
                s->cores[n] = 1 + roll(s, 12);
                s->nodes[n] = (struct malleable_node) { s->cores[n], RM_NO_MEMORY_LIMIT };
        }
        s->n_jobs = 1 + roll(s, 3);
        for (size_t j = 0; j < s->n_jobs; j++) {
                add_job(s, j);
                for (uint32_t g = 0; g < n_groups(&s->jobs[j]); g++)
                        s->nodes[s->group_node[j][g]].free_cores -= ranks_of_group(&s->jobs[j], g);
        }
}

/* Ranks of the job that are there. */
static uint32_t ranks_there(const struct scene *s, size_t j, uint32_t node) {
        uint32_t ranks = 0;

        for (uint32_t g = 0; g < n_groups(&s->jobs[j]); g++)
                if (s->group_node[j][g] == (int32_t) node)
                        ranks += ranks_of_group(&s->jobs[j], g);
        return ranks;
}

/* Ranks share cores now, or are above a limit. */
static bool is_crowded(const struct scene *s) {
        for (uint32_t n = 0; n < NODES_MAX; n++) {
                if (s->nodes[n].free_cores < 0)
                        return true;
                for (size_t j = 0; j < s->n_jobs; j++)
                        if (s->jobs[j].node_limit && ranks_there(s, j, n) > s->jobs[j].node_limit[n])
                                return true;
        }
        return false;
}

/* Ranks that share cores, or are above a limit, in the placement that a round finds for what
 * runs. */
static bool is_folded(const struct scene *s) {
        struct snapshot *snapshot = snapshot_create();
        struct rm_error err = { 0 };
        struct fold *fold;
        bool folded = false;

        for (uint32_t n = 0; n < NODES_MAX; n++) {
                char name[8];

                (void) snprintf(name, sizeof(name), "n%u", n);
                (void) snapshot_add_node(snapshot, name, s->cores[n]);
        }
        for (uint32_t j = 0; j < s->n_jobs; j++) {
                const struct malleable_job *job = &s->jobs[j];
                char name[8];

                (void) snprintf(name, sizeof(name), "%u", j);
                (void) snapshot_add_job(snapshot, name, job->active, job->step);
                for (uint32_t g = 0; g < n_groups(job); g++)
                        snapshot_group(snapshot, j, g)->node = s->group_node[j][g];
                for (uint32_t n = 0; job->node_limit && n < NODES_MAX; n++)
                        snapshot_set_limit(snapshot, j, n, job->node_limit[n]);
        }
        assert_int_equal(fold_create(snapshot, NULL, &fold, &err), 0);
        for (uint32_t n = 0; n < NODES_MAX; n++)
                folded |= snapshot_view(fold->snapshot)->nodes[n].cores > s->cores[n];
        for (uint32_t j = 0; j < s->n_jobs; j++)
                for (uint32_t n = 0; s->jobs[j].node_limit && n < NODES_MAX; n++)
                        folded |= snapshot_view(fold->snapshot)->jobs[j].node_limit[n] > s->jobs[j].node_limit[n];
        fold_destroy(fold);
        return folded;
}

/* Where each job runs on cores of its own, so it does when it has grown. */
static void test_who_grows_shares_no_core(void **state) {
        struct scene s = { .seed = 1 };
        unsigned grown = 0;

        for (int round = 0; round < 20000; round++) {
                struct malleable_question question = { .jobs = s.jobs, .nodes = s.nodes, .n_nodes = NODES_MAX };
                struct malleable_answer answer;
                bool grows = false;

                draw(&s);
                if (is_crowded(&s))
                        continue;
                question.n_jobs = s.n_jobs;
                for (uint32_t n = 0; n < NODES_MAX; n++)
                        question.cores += s.cores[n];
                malleable_decide(&question, &answer);
                for (size_t j = 0; j < s.n_jobs; j++)
                        grows |= answer.requested[j] > s.jobs[j].active;
                make(s.jobs, s.n_jobs, answer.requested);
                malleable_answer_finish(&answer);
                grown += grows;
                if (grows)
                        assert_false(is_folded(&s));
        }
        assert_true(grown > 1000);
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
                cmocka_unit_test(test_scattered_cores_stay_idle),
                cmocka_unit_test(test_groups_of_both_kinds_stay),
                cmocka_unit_test(test_groups_move_to_cores_first),
                cmocka_unit_test(test_groups_move_where_memory_is),
                cmocka_unit_test(test_limits_of_the_job_hold),
                cmocka_unit_test(test_cores_of_a_growth_are_taken),
                cmocka_unit_test(test_growth_without_cores_is_taken_back),
                cmocka_unit_test(test_growth_is_taken_back_for_who_waits),
                cmocka_unit_test(test_nobody_grows_where_ranks_share_cores),
                cmocka_unit_test(test_who_grows_shares_no_core),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
