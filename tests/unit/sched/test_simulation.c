/*
 * Many random rounds on a cluster that exists only here: nodes shrink, drain, fail and return,
 * files are edited, jobs come and go, moves take their time. Whatever happens, once it stops
 * happening the cluster must come to rest, in the state of the last edit.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "daemon/sched/fold.h"
#include "daemon/sched/round.h"
#include "placement/cost.h"
#include "placement/pack.h"
#include "tests/unit/repeat.h"
#include "tests/unit/sched/sched_test.h"

enum { NODES = 5, JOBS = 7, GROUPS = 12 };

struct sim_group {
        int32_t node, moving_to;
        uint32_t rounds_left;
        int64_t move_cost;
};

struct sim_job {
        bool there, running;
        uint32_t ranks, group_size, n_groups, age;
        int64_t priority;
        struct sim_group groups[GROUPS], head;
        bool limited;
        uint32_t limits[NODES];
        struct steps steps;
};

struct sim_node {
        uint32_t cores, state;
        int64_t penalty;
};

struct sim {
        struct dice dice;
        struct sim_node nodes[NODES];
        struct sim_job jobs[JOBS];
        uint32_t job_at[JOBS]; /* of the jobs in the snapshot */
        bool limits, groups;
        bool traffic; /* jobs have some, and policies a budget of moves for it */
        bool steps;   /* programs of jobs count them, and have goals */
        uint32_t moves, starts, folds;
        /* NULL: plans are drawn at random */
        const struct test_policy *policy;
};

/* ---- the world ---- */

/* Each rank has two partners that are not beside it. */
static void describe_traffic(struct snapshot *snapshot, uint32_t job, const struct sim_job *own) {
        json_t *triples = json_array();
        struct rm_error err = { 0 };

        for (uint32_t r = 0; r < own->ranks; r++)
                for (uint32_t step = 3; step < (own->ranks > 2 ? 6U : 4U); step += 2)
                        if ((r + step) % own->ranks != r)
                                json_array_append_new(triples, json_pack("[iii]", (int) r, (int) ((r + step) % own->ranks),
                                                                         (int) (1 + r * step % 7 * 10)));
        if (snapshot_read_traffic(snapshot, job, triples, "jobs", &err) < 0)
                fail_msg("%s", error_text(&err));
        json_decref(triples);
}

static struct snapshot *describe(struct sim *sim, struct round_job *jobs, int32_t (*moving)[GROUPS]) {
        static const uint64_t move_usec[GROUPS] = { 1000000, 1000000, 1000000 }; /* of others it is not known */
        struct snapshot *snapshot = snapshot_create();
        uint32_t n = 0;

        snapshot_params(snapshot)->move_budget = sim->traffic ? 4 : 0;
        for (uint32_t s = 0; s < NODES; s++) {
                char name[16];
                struct rm_node *node;

                (void) snprintf(name, sizeof(name), "n%u", s);
                node = snapshot_add_node(snapshot, name, sim->nodes[s].cores);
                node->penalty = sim->nodes[s].penalty;
                node->state = sim->nodes[s].state;
        }
        for (uint32_t j = 0; j < JOBS; j++) {
                const struct sim_job *own = &sim->jobs[j];
                char name[16];
                struct rm_job *job;

                if (!own->there)
                        continue;
                (void) snprintf(name, sizeof(name), "j%u", j);
                job = snapshot_add_job(snapshot, name, own->ranks, own->group_size);
                job->priority = own->priority;
                job->age = own->age;
                jobs[n] = (struct round_job) { .head_node = own->running ? own->head.node : RM_NO_NODE,
                                               .head_moving_to = own->running ? own->head.moving_to : RM_NO_NODE,
                                               .group_moving_to = moving[n],
                                               .group_move_usec = sim->steps ? move_usec : NULL,
                                               .steps = own->steps };
                for (uint32_t g = 0; g < own->n_groups; g++) {
                        snapshot_group(snapshot, n, g)->node = own->running ? own->groups[g].node : RM_NO_NODE;
                        snapshot_group(snapshot, n, g)->move_cost = own->groups[g].move_cost;
                        moving[n][g] = own->running ? own->groups[g].moving_to : RM_NO_NODE;
                }
                for (uint32_t s = 0; own->limited && s < NODES; s++)
                        snapshot_set_limit(snapshot, n, s, own->limits[s]);
                if (sim->traffic && own->ranks > 1)
                        describe_traffic(snapshot, n, own);
                sim->job_at[n++] = j;
        }
        return snapshot;
}

static uint32_t usable(const struct sim *sim, uint32_t node) {
        return sim->nodes[node].state >= RM_NODE_DRAINING ? 0 : sim->nodes[node].cores;
}

/* The steps of some jobs are unknown, some lose nothing by sharing, some more than in
 * proportion. */
static struct steps any_steps(struct dice *dice) {
        return (struct steps) {
                .own_rate = dice_roll(dice, 4) ? 100 : 0,
                .shared_rate = 30 * dice_roll(dice, 4),
                .shared_by = 1.5 + dice_roll(dice, 3) / 2.0,
                .left = 100 * dice_roll(dice, 20),
                .goal_min = 20 * dice_roll(dice, 8),
        };
}

static void submit(struct sim *sim, uint32_t j) {
        struct sim_job *job = &sim->jobs[j];

        *job = (struct sim_job) {
                .there = true, .ranks = 1 + dice_roll(&sim->dice, GROUPS), .group_size = 1, .priority = dice_roll(&sim->dice, 6)
        };
        if (sim->groups)
                job->group_size = 1 + dice_roll(&sim->dice, 4);
        if (job->group_size > job->ranks)
                job->group_size = job->ranks;
        job->n_groups = (job->ranks - 1) / job->group_size + 1;
        for (uint32_t g = 0; g < job->n_groups; g++)
                job->groups[g] =
                        (struct sim_group) { .node = RM_NO_NODE, .moving_to = RM_NO_NODE, .move_cost = dice_roll(&sim->dice, 40) };
        job->head = (struct sim_group) { .node = RM_NO_NODE, .moving_to = RM_NO_NODE };
        if (sim->steps)
                job->steps = any_steps(&sim->dice);
}

static void disturb(struct sim *sim) {
        struct sim_node *node = &sim->nodes[dice_roll(&sim->dice, NODES)];
        struct sim_job *job = &sim->jobs[dice_roll(&sim->dice, JOBS)];

        switch (dice_roll(&sim->dice, 7)) {
        case 0:
                node->cores = dice_roll(&sim->dice, 3) ? dice_roll(&sim->dice, 9) : 0;
                break;
        case 1:
                node->state = node->state == RM_NODE_DRAINING ? RM_NODE_IDLE : RM_NODE_DRAINING;
                break;
        case 2:
                if (job->there && job->running && dice_roll(&sim->dice, 2))
                        job->there = false;
                break;
        case 3:
                job->limited = sim->limits && dice_roll(&sim->dice, 3);
                for (uint32_t s = 0; s < NODES; s++)
                        job->limits[s] = dice_roll(&sim->dice, 3) ? dice_roll(&sim->dice, 6) : 0;
                break;
        case 4:
                node->state = node->state == RM_NODE_DOWN ? RM_NODE_IDLE : dice_roll(&sim->dice, 3) ? node->state : RM_NODE_DOWN;
                break;
        case 5:
                node->penalty = dice_roll(&sim->dice, 4);
                break;
        default:
                if (!job->there)
                        submit(sim, (uint32_t) (job - sim->jobs));
        }
}

static bool advance(struct sim *sim, struct sim_group *group) {
        if (group->moving_to < 0)
                return false;
        if (group->rounds_left-- > 0)
                return true;
        if (dice_roll(&sim->dice, 8) > 0) /* else the move has failed */
                group->node = group->moving_to;
        group->moving_to = RM_NO_NODE;
        return false;
}

/* True: something still moves. */
static bool pass_time(struct sim *sim) {
        bool moving = false;

        for (uint32_t j = 0; j < JOBS; j++) {
                struct sim_job *job = &sim->jobs[j];

                if (!job->there || !job->running)
                        continue;
                moving |= advance(sim, &job->head);
                for (uint32_t g = 0; g < job->n_groups; g++)
                        moving |= advance(sim, &job->groups[g]);
        }
        return moving;
}

/* ---- policies ---- */

/* The free cores of each node, at most those that are left where running groups are now. */
static void take_current(const struct rm_snapshot *snapshot, int64_t *space) {
        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                int64_t now = snapshot->nodes[s].cores;

                for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                        for (uint32_t g = 0; g < snapshot->jobs[j].n_groups; g++)
                                if (snapshot->jobs[j].groups[g].node == (int32_t) s)
                                        now -= snapshot->jobs[j].groups[g].ranks;
                space[s] = now < space[s] ? now : space[s];
        }
}

/* Any valid plan that moves nothing to make room for a start: such moves are taken to pay, so a
 * policy that changes its mind about them every time would never come to rest. Running groups go to
 * random nodes with room, and waiting jobs where they are not in the way. False: the luck was
 * bad. */
static bool draw_plan(struct dice *dice, const struct rm_snapshot *snapshot, struct rm_plan *plan) {
        int64_t space[NODES];

        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                space[s] = snapshot->nodes[s].cores;
        for (uint32_t i = 0; i < 2 * snapshot->n_jobs; i++) {
                uint32_t j = i % snapshot->n_jobs;
                const struct rm_job *job = &snapshot->jobs[j];

                if (i == snapshot->n_jobs)
                        take_current(snapshot, space);
                if (job_runs(job) != (i < snapshot->n_jobs))
                        continue;
                plan->jobs[j].decision = job_runs(job) || dice_roll(dice, 2) ? RM_PLACE : RM_WAIT;
                for (uint32_t g = 0; plan->jobs[j].decision == RM_PLACE && g < job->n_groups; g++) {
                        uint32_t s = dice_roll(dice, snapshot->n_nodes), tries = 0;

                        if (job->groups[g].flags & RM_GROUP_PINNED)
                                s = (uint32_t) job->groups[g].node;
                        else
                                while (space[s] < job->groups[g].ranks && tries++ < 20)
                                        s = dice_roll(dice, snapshot->n_nodes);
                        space[s] -= job->groups[g].ranks;
                        plan->jobs[j].group_node[g] = (int32_t) s;
                }
        }
        return plan_validate(snapshot, plan, NULL) == 0;
}

static void ask(struct sim *sim, struct round *round, uint32_t pass) {
        const struct rm_snapshot *asked = round_prepare(round, pass);
        cleanup_plan struct rm_plan *plan = NULL;
        struct rm_error err = { 0 };
        int r;

        if (!sim->policy) {
                for (int i = 0; i < 10; i++) {
                        plan_destroy(take_ptr(plan));
                        plan = plan_create(asked);
                        if (draw_plan(&sim->dice, asked, plan)) {
                                assert_int_equal(round_accept(round, pass, "luck", plan, &err), 0);
                                return;
                        }
                }
                round_skip(round, pass, "no luck");
                return;
        }
        r = test_policy_place(sim->policy, asked, &plan);
        if (r < 0)
                round_skip(round, pass, "no room");
        else if (round_accept(round, pass, "policy", plan, &err) < 0)
                fail_msg("%s", error_text(&err));
}

/* ---- one round, and what must always hold ---- */

static uint32_t held_cores(const struct sim *sim, int32_t node) {
        uint32_t held = 0;

        for (uint32_t j = 0; j < JOBS; j++)
                for (uint32_t g = 0; sim->jobs[j].there && sim->jobs[j].running && g < sim->jobs[j].n_groups; g++) {
                        const struct sim_job *job = &sim->jobs[j];
                        uint32_t ranks = job->ranks - g * job->group_size < job->group_size ? job->ranks - g * job->group_size
                                                                                            : job->group_size;

                        if (job->groups[g].node == node || job->groups[g].moving_to == node)
                                held += ranks;
                }
        return held;
}

static void carry_out(struct sim *sim, const struct round_action *action) {
        struct sim_job *job = &sim->jobs[sim->job_at[action->job]];

        assert_true(action->reason[0] || action->kind == ROUND_START);
        if (action->kind == ROUND_START) {
                assert_false(job->running);
                job->running = true;
                job->age = 0;
                job->head.node = action->head_node;
                assert_true(action->head_node >= 0 && usable(sim, (uint32_t) action->head_node) > 0);
                for (uint32_t g = 0; g < job->n_groups; g++) {
                        job->groups[g].node = action->group_node[g];
                        assert_true(!job->limited || job->limits[action->group_node[g]] > 0);
                }
                for (uint32_t g = 0; g < job->n_groups; g++)
                        assert_true(held_cores(sim, action->group_node[g]) <= usable(sim, (uint32_t) action->group_node[g]));
                sim->starts++;
        } else {
                struct sim_group *group = action->group == ROUND_HEAD ? &job->head : &job->groups[action->group];

                assert_true(job->running);
                assert_int_equal(group->moving_to, RM_NO_NODE); /* never two moves of one capsule */
                assert_int_equal(group->node, action->from);
                assert_int_not_equal(action->from, action->to);
                assert_true(usable(sim, (uint32_t) action->to) > 0);
                assert_int_not_equal(sim->nodes[action->from].state, RM_NODE_DOWN);
                group->moving_to = action->to;
                group->rounds_left = dice_roll(&sim->dice, 3);
                sim->moves++;
        }
}

/* Returns how many actions there were. */
static size_t one_round(struct sim *sim, bool all) {
        struct round_job jobs[JOBS];
        int32_t moving[JOBS][GROUPS];
        cleanup_snapshot struct snapshot *snapshot = describe(sim, jobs, moving);
        struct round_result *result;
        struct rm_error err = { 0 };
        struct round *round;
        size_t n;

        if (round_create(snapshot_view(snapshot), jobs, &round, &err) < 0)
                fail_msg("%s", error_text(&err));
        for (uint32_t pass = 0; pass < round_passes(round); pass++)
                ask(sim, round, pass);
        round_finish(round, &result);
        n = result->n_actions;
        for (size_t i = 0; i < n; i++)
                if (all || dice_roll(&sim->dice,
                                     3)) /* the leader need not do all at once; starts come last and need no move of this round */
                        carry_out(sim, &result->actions[i]);
        for (uint32_t i = 0; i < result->n_jobs; i++) {
                struct sim_job *job = &sim->jobs[sim->job_at[i]];

                assert_int_equal(result->jobs[i].waits && !job->running, result->jobs[i].waits);
                if (result->jobs[i].waits)
                        assert_true(result->jobs[i].reason[0] != '\0');
                job->age += result->jobs[i].lost;
                sim->folds += result->jobs[i].folded;
        }
        round_result_destroy(result);
        round_destroy(round);
        return n;
}

/* ---- at rest ---- */

static bool has_space(const struct sim *sim, const struct sim_job *job) {
        uint32_t total = 0;

        for (uint32_t s = 0; s < NODES; s++)
                total += job->limited && job->limits[s] < usable(sim, s) ? job->limits[s] : usable(sim, s);
        return total > 0;
}

static void check_rest(const struct sim *sim, uint64_t seed) {
        uint32_t total = 0, ranks = 0, unreachable = 0;
        bool limited = false, grouped = false;

        for (uint32_t s = 0; s < NODES; s++)
                total += usable(sim, s);
        for (uint32_t j = 0; j < JOBS; j++) {
                const struct sim_job *job = &sim->jobs[j];

                if (!job->there || !job->running)
                        continue;
                ranks += job->ranks;
                limited |= job->limited;
                grouped |= job->group_size > 1;
                for (uint32_t g = 0; total > 0 && g < job->n_groups; g++) {
                        if (sim->nodes[job->groups[g].node].state == RM_NODE_DOWN) {
                                unreachable++; /* its node is to come back, or its job to be given up */
                                continue;
                        }
                        if (usable(sim, (uint32_t) job->groups[g].node) == 0)
                                fail_msg("seed %" PRIu64 ": a group is still on n%d", seed, job->groups[g].node);
                        if (job->limited && has_space(sim, job) && job->limits[job->groups[g].node] == 0)
                                fail_msg("seed %" PRIu64 ": a group is still on n%d, which its job may not use", seed,
                                         job->groups[g].node);
                }
                if (total > 0 && usable(sim, (uint32_t) job->head.node) == 0 && sim->nodes[job->head.node].state != RM_NODE_DOWN)
                        fail_msg("seed %" PRIu64 ": a head is still on n%d", seed, job->head.node);
        }
        for (uint32_t s = 0; s < NODES && total > 0 && !limited && !grouped && !unreachable && !sim->steps; s++) {
                uint32_t held = held_cores(sim, (int32_t) s);
                uint32_t most = ranks > total ? fold_max_procs(usable(sim, s), ranks, total) : usable(sim, s);

                if (held > most)
                        fail_msg("seed %" PRIu64 ": n%u has %u ranks, %u are allowed", seed, s, held, most);
        }
}

static void come_to_rest(struct sim *sim, uint64_t seed) {
        uint32_t quiet = 0, rounds, moves = sim->moves;

        for (rounds = 0; quiet < 8; rounds++) {
                bool moving = pass_time(sim);

                if (rounds > 400)
                        fail_msg("seed %" PRIu64 ": no rest after %u rounds and %u moves", seed, rounds, sim->moves - moves);
                quiet = one_round(sim, true) == 0 && !moving ? quiet + 1 : 0;
        }
        check_rest(sim, seed);
}

static void simulate_with(const char *policy_name, bool groups, bool limits, bool traffic, bool steps, uint64_t first_seed,
                          unsigned most) {
        int runs = (int) repetitions(most);
        struct test_policy policy;
        uint32_t moves = 0, starts = 0, folds = 0;

        if (policy_name)
                test_policy_load(&policy, policy_name);
        for (uint64_t seed = first_seed; seed < first_seed + (uint64_t) runs; seed++) {
                struct sim sim = { .dice = { seed },
                                   .groups = groups,
                                   .limits = limits,
                                   .traffic = traffic,
                                   .steps = steps,
                                   .policy = policy_name ? &policy : NULL };

                for (uint32_t s = 0; s < NODES; s++)
                        sim.nodes[s] =
                                (struct sim_node) { .cores = 1 + dice_roll(&sim.dice, 8), .penalty = dice_roll(&sim.dice, 4) };
                for (int episode = 0; episode < 4; episode++) {
                        for (int i = 0; i < 25; i++) {
                                disturb(&sim);
                                (void) pass_time(&sim);
                                if (dice_roll(&sim.dice, 2))
                                        (void) one_round(&sim, false);
                        }
                        come_to_rest(&sim, seed);
                }
                moves += sim.moves;
                starts += sim.starts;
                folds += sim.folds;
        }
        print_message("%d clusters: %u moves, %u starts, folded in %u job rounds, at rest every time\n", runs, moves, starts,
                      folds);
        assert_true(moves > (uint32_t) runs && starts > (uint32_t) runs && folds > 0);
        if (policy_name)
                test_policy_unload(&policy);
}

static void simulate(const char *policy_name, bool groups, bool limits, bool traffic, uint64_t first_seed, unsigned most) {
        simulate_with(policy_name, groups, limits, traffic, false, first_seed, most);
}

/* Two places do not take turns because of the steps that programs count. */
static void steps_come_to_rest(void **state) {
        (void) state;
        simulate_with("greedy", false, false, false, true, 6000, 150);
        simulate_with("greedy", true, true, false, true, 7000, 150);
        simulate_with(NULL, true, true, false, true, 8000, 100);
}

static void greedy_comes_to_rest(void **state) {
        (void) state;
        simulate("greedy", false, false, false, 1000, 150);
        simulate("greedy", true, true, false, 2000, 150);
}

static void distrib_comes_to_rest(void **state) {
        (void) state;
        simulate("distrib", false, false, false, 3000, 20);
        simulate("distrib", true, true, false, 4000, 20);
        simulate("distrib", false, false, true, 9000, 20);
}

static void treematch_comes_to_rest(void **state) {
        (void) state;
        simulate("treematch", false, false, true, 7000, 50);
        simulate("treematch", true, true, true, 8000, 50);
}

/* Hysteresis must hold whatever a policy says, as long as its plans are valid. */
static void random_plans_come_to_rest(void **state) {
        (void) state;
        simulate(NULL, false, false, false, 5000, 150);
        simulate(NULL, true, true, false, 6000, 150);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(greedy_comes_to_rest),      cmocka_unit_test(steps_come_to_rest),
                cmocka_unit_test(distrib_comes_to_rest),     cmocka_unit_test(treematch_comes_to_rest),
                cmocka_unit_test(random_plans_come_to_rest),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
