#include "tests/unit/policy/exhaustive.h"

#include <stdio.h>

#include "common/util.h"
#include "placement/cost.h"
#include "placement/pack.h"

/* ---- trying everything ---- */

struct search {
        const struct rm_snapshot *snapshot;
        const struct rm_plan *given; /* says who is placed */
        struct rm_plan *trial;
        int64_t *load;
        int64_t best; /* INT64_MAX: none found */
};

static uint32_t ranks_of(const struct search *search, uint32_t job, int32_t node, uint32_t groups) {
        uint32_t ranks = 0;

        for (uint32_t g = 0; g < groups; g++)
                if (search->trial->jobs[job].group_node[g] == node)
                        ranks += search->snapshot->jobs[job].groups[g].ranks;
        return ranks;
}

static void search_from(struct search *search, uint32_t j, uint32_t g) {
        const struct rm_job *job;
        int64_t cost;

        while (j < search->snapshot->n_jobs && search->given->jobs[j].decision != RM_PLACE)
                j++;
        if (j == search->snapshot->n_jobs) {
                assert_int_equal(cost_plan(search->snapshot, search->trial, &cost), 0);
                if (cost < search->best)
                        search->best = cost;
                return;
        }
        job = &search->snapshot->jobs[j];
        if (g == job->n_groups) {
                search_from(search, j + 1, 0);
                return;
        }
        search->trial->jobs[j].decision = RM_PLACE;
        for (uint32_t s = 0; s < search->snapshot->n_nodes; s++) {
                uint32_t ranks = job->groups[g].ranks;

                if (search->load[s] + ranks > search->snapshot->nodes[s].cores ||
                    ranks_of(search, j, (int32_t) s, g) + ranks > job_node_limit(job, s) ||
                    ((job->groups[g].flags & RM_GROUP_PINNED) && job->groups[g].node != (int32_t) s))
                        continue;
                search->load[s] += ranks;
                search->trial->jobs[j].group_node[g] = (int32_t) s;
                search_from(search, j, g + 1);
                search->load[s] -= ranks;
        }
}

int64_t exhaustive_least(const struct rm_snapshot *snapshot, const struct rm_plan *given) {
        cleanup_plan struct rm_plan *trial = plan_create(snapshot);
        cleanup_free int64_t *load = xcalloc(snapshot->n_nodes + 1u, sizeof(*load));
        struct search search = { .snapshot = snapshot, .given = given, .trial = trial, .load = load, .best = INT64_MAX };

        search_from(&search, 0, 0);
        return search.best;
}

/* ---- random instances ---- */

static void put_somewhere(struct snapshot *snapshot, struct dice *dice, const struct exhaustive_kind *kind, uint32_t j,
                          int64_t *space) {
        const struct rm_snapshot *view = snapshot_view(snapshot);

        for (uint32_t g = 0; g < view->jobs[j].n_groups; g++) {
                struct rm_group *group = snapshot_group(snapshot, j, g);

                group->node = (int32_t) dice_roll(dice, view->n_nodes);
                group->move_cost = dice_roll(dice, 30);
                if (kind->pins && dice_roll(dice, 4) == 0 && space[group->node] >= group->ranks &&
                    job_node_limit(&view->jobs[j], (uint32_t) group->node) == RM_NO_LIMIT) {
                        group->flags = RM_GROUP_PINNED;
                        space[group->node] -= group->ranks;
                }
        }
}

struct snapshot *exhaustive_instance(struct dice *dice, const struct exhaustive_kind *kind) {
        struct snapshot *snapshot = snapshot_create();
        uint32_t n_nodes = 1 + dice_roll(dice, 4), n_jobs = 1 + dice_roll(dice, 3), budget = 9;
        int64_t space[4];

        for (uint32_t s = 0; s < n_nodes; s++) {
                char name[16];

                (void) snprintf(name, sizeof(name), "n%u", s);
                space[s] = dice_roll(dice, 7);
                snapshot_add_node(snapshot, name, (uint32_t) space[s])->penalty = dice_roll(dice, 2) ? 1 + dice_roll(dice, 10) : 1;
        }
        for (uint32_t j = 0; j < n_jobs && budget > 0; j++) {
                uint32_t ranks = 1 + dice_roll(dice, 6);
                uint32_t size = kind->groups ? 1 + dice_roll(dice, 3) : 1;
                char name[16];

                size = size < ranks ? size : ranks;
                if ((ranks - 1) / size + 1 > budget)
                        ranks = budget * size;
                budget -= (ranks - 1) / size + 1;
                (void) snprintf(name, sizeof(name), "j%u", j);
                snapshot_add_job(snapshot, name, ranks, size)->priority = dice_roll(dice, 11);
                if (kind->limits && dice_roll(dice, 2))
                        snapshot_set_limit(snapshot, j, dice_roll(dice, n_nodes), dice_roll(dice, 8));
                if (kind->running && dice_roll(dice, 2))
                        put_somewhere(snapshot, dice, kind, j, space);
        }
        return snapshot;
}
