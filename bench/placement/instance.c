#include "bench/placement/instance.h"

#include <inttypes.h>
#include <stdio.h>

#include "bench/placement/busy.h"
#include "common/util.h"

/* splitmix64 */
static uint64_t draw(struct dice *dice) {
        uint64_t z = dice->state += 0x9e3779b97f4a7c15u;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
}

uint32_t dice_between(struct dice *dice, uint32_t low, uint32_t high) {
        return low + (uint32_t) (((draw(dice) >> 32) * (high - low + 1)) >> 32);
}

/* Scale `ranks` so that they add up to `wanted`, each at least 1. */
static void scale_ranks(struct dice *dice, uint32_t *ranks, uint32_t n, uint64_t requested) {
        uint64_t sum = 0, now = 0;

        for (uint32_t j = 0; j < n; j++)
                sum += ranks[j];
        for (uint32_t j = 0; j < n; j++) {
                ranks[j] = (uint32_t) (ranks[j] * requested / sum);
                ranks[j] = ranks[j] > 0 ? ranks[j] : 1;
                now += ranks[j];
        }
        while (now < requested) {
                ranks[dice_between(dice, 0, n - 1)]++;
                now++;
        }
        for (uint32_t tries = 0; now > requested && tries < 100 * n; tries++) {
                uint32_t j = dice_between(dice, 0, n - 1);

                if (ranks[j] > 1) {
                        ranks[j]--;
                        now--;
                }
        }
}

/* `cores`: those that full groups can use. When hard, there is a place for each group of it,
 * smaller last ones too. */
static void draw_ranks(const struct instance *instance, struct dice *dice, uint64_t cores, uint32_t *ret_ranks) {
        uint64_t sum = 0, spare = (uint64_t) instance->jobs * (instance->group_size - 1);

        for (uint32_t j = 0; j < instance->jobs; j++)
                sum += ret_ranks[j] = dice_between(dice, 1, 64);
        if (instance->family == FAMILY_HARD)
                scale_ranks(dice, ret_ranks, instance->jobs,
                            (cores > spare ? cores - spare : 0) * dice_between(dice, 900, 1000) / 1000);
        if (instance->family == FAMILY_LIGHT && sum > cores / 2)
                scale_ranks(dice, ret_ranks, instance->jobs, cores / 2);
}

/* Put the groups of jobs, as long as whole jobs fit, node by node in a random order: scattered as
 * after a long day. A node has a place for every `group_size` cores, and no group takes more than
 * one. */
static void put_jobs(struct snapshot *snapshot, struct dice *dice, uint32_t group_size) {
        const struct rm_snapshot *view = snapshot_view(snapshot);
        cleanup_free uint32_t *space = xcalloc(view->n_nodes + 1u, sizeof(*space));
        uint64_t left = 0;

        for (uint32_t s = 0; s < view->n_nodes; s++)
                left += (space[s] = view->nodes[s].cores) / group_size;
        for (uint32_t j = 0; j < view->n_jobs && view->jobs[j].n_groups <= left; j++) {
                uint32_t price = dice_between(dice, 0, 30), s = dice_between(dice, 0, view->n_nodes - 1);

                left -= view->jobs[j].n_groups;
                for (uint32_t g = 0; g < view->jobs[j].n_groups; g++) {
                        struct rm_group *group = snapshot_group(snapshot, j, g);

                        if (dice_between(dice, 0, 3) == 0)
                                s = dice_between(dice, 0, view->n_nodes - 1);
                        while (space[s] < group->ranks)
                                s = (s + 1) % view->n_nodes;
                        space[s] -= group->ranks;
                        group->node = (int32_t) s;
                        group->move_cost = price;
                }
        }
}

struct snapshot *instance_create(const struct instance *instance) {
        struct dice dice = { instance->seed };
        struct snapshot *snapshot = instance->family == FAMILY_BUSY ? busy_create(instance, &dice) : snapshot_create();
        cleanup_free uint32_t *ranks = xcalloc(instance->jobs + 1u, sizeof(*ranks));
        uint64_t cores = 0;
        char name[32];

        if (instance->family == FAMILY_BUSY)
                return snapshot;
        for (uint32_t s = 0; s < instance->nodes; s++) {
                uint32_t n = dice_between(&dice, 1, 64);

                (void) snprintf(name, sizeof(name), "n%" PRIu32, s + 1);
                snapshot_add_node(snapshot, name, n)->penalty = instance->penalties ? dice_between(&dice, 1, 10) : 1;
                cores += n / instance->group_size * instance->group_size;
        }
        draw_ranks(instance, &dice, cores, ranks);
        for (uint32_t j = 0; j < instance->jobs; j++) {
                (void) snprintf(name, sizeof(name), "j%" PRIu32, j + 1);
                snapshot_add_job(snapshot, name, ranks[j], instance->group_size)->priority = dice_between(&dice, 1, 10);
        }
        if (instance->moving)
                put_jobs(snapshot, &dice, instance->group_size);
        return snapshot;
}

static void exchange(struct rm_node *a, struct rm_node *b) {
        uint32_t cores = a->cores;
        int64_t penalty = a->penalty;

        a->cores = b->cores;
        a->penalty = b->penalty;
        b->cores = cores;
        b->penalty = penalty;
}

void instance_change(const struct instance *instance, struct snapshot *snapshot, const struct rm_plan *plan) {
        const struct rm_snapshot *view = snapshot_view(snapshot);
        struct dice dice = { instance->seed + 1 };

        for (uint32_t j = 0; j < view->n_jobs; j++) {
                uint32_t price = dice_between(&dice, 0, 30);

                for (uint32_t g = 0; plan->jobs[j].decision == RM_PLACE && g < view->jobs[j].n_groups; g++) {
                        struct rm_group *group = snapshot_group(snapshot, j, g);

                        group->node = plan->jobs[j].group_node[g];
                        group->move_cost = price;
                }
        }
        for (uint32_t i = 0; i < view->n_nodes / 10; i++)
                exchange(snapshot_node(snapshot, dice_between(&dice, 0, view->n_nodes - 1)),
                         snapshot_node(snapshot, dice_between(&dice, 0, view->n_nodes - 1)));
}
