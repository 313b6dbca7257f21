#include "bench/placement/busy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/util.h"
#include "daemon/sched/plan.h"
#include "placement/pack.h"

enum {
        GENERATIONS = 5,
        LEAVE_PERCENT = 30, /* jobs that end between two generations, and others come in their place */
        NEW_PERCENT = 10,   /* jobs of the last one that have not been placed yet */
        LOST_PERCENT = 5,   /* nodes of which a part is not available any more */
        FULL_PERCENT = 105, /* ranks of all jobs, of the cores there are: some wait */
        MOST_OF_MEAN = 4,   /* the largest job, of the mean */
        FREEZE_MOST = 30,   /* what a move costs: freezes of up to 3 s within ten minutes */
        MOVE_BASE = 3,
};

/* The nodes and jobs that stay from one generation to the next. */
struct busy {
        const struct instance *instance;
        struct dice *dice;
        uint32_t *cores;
        int64_t *penalty;
        uint32_t *ranks;
        int64_t *priority;
        int32_t **node; /* each job, each group; NULL: it waits */
        int64_t *move_cost;
        uint32_t group_size, mean_ranks;
};

static void draw_nodes(struct busy *busy) {
        static const uint32_t sizes[] = { 8, 16, 24, 32, 48, 64 };
        static const int64_t penalties[] = { 0, 0, 0, 2, 10 };
        uint32_t smallest = UINT32_MAX;
        uint64_t sum = 0;

        for (uint32_t s = 0; s < busy->instance->nodes; s++) {
                busy->cores[s] = sizes[dice_between(busy->dice, 0, ARRAY_SIZE(sizes) - 1)];
                busy->penalty[s] =
                        busy->instance->penalties ? penalties[dice_between(busy->dice, 0, ARRAY_SIZE(penalties) - 1)] : 0;
                smallest = busy->cores[s] < smallest ? busy->cores[s] : smallest;
                sum += busy->cores[s];
        }
        busy->group_size = smallest / 2; /* rmd's default */
        busy->mean_ranks = (uint32_t) (sum * FULL_PERCENT / 100 / busy->instance->jobs);
        busy->mean_ranks = busy->mean_ranks > 0 ? busy->mean_ranks : 1;
}

/* Half as large as the mean, as a rule; some much larger. */
static void draw_job(struct busy *busy, uint32_t j) {
        uint32_t size = dice_between(busy->dice, 1, MOST_OF_MEAN * busy->mean_ranks);

        free(busy->node[j]);
        busy->node[j] = NULL;
        busy->ranks[j] = dice_between(busy->dice, 1, size);
        busy->priority[j] = dice_between(busy->dice, 0, 1) ? 1 : dice_between(busy->dice, 1, 10);
        busy->move_cost[j] = MOVE_BASE + dice_between(busy->dice, 0, FREEZE_MOST);
}

static struct snapshot *make_snapshot(const struct busy *busy) {
        struct snapshot *snapshot = snapshot_create();
        char name[32];

        for (uint32_t s = 0; s < busy->instance->nodes; s++) {
                (void) snprintf(name, sizeof(name), "n%" PRIu32, s + 1);
                snapshot_add_node(snapshot, name, busy->cores[s])->penalty = busy->penalty[s];
        }
        for (uint32_t j = 0; j < busy->instance->jobs; j++) {
                struct rm_job *job;

                (void) snprintf(name, sizeof(name), "j%" PRIu32, j + 1);
                job = snapshot_add_job(snapshot, name, busy->ranks[j], busy->group_size);
                job->priority = busy->priority[j];
                for (uint32_t g = 0; busy->node[j] && g < job->n_groups; g++) {
                        struct rm_group *group = snapshot_group(snapshot, j, g);

                        group->node = busy->node[j][g];
                        group->move_cost = busy->move_cost[j];
                }
        }
        return snapshot;
}

/* Jobs that fit are put where the packing puts them; none that runs moves. */
static void place_jobs(struct busy *busy) {
        cleanup_snapshot struct snapshot *snapshot = make_snapshot(busy);
        const struct rm_snapshot *view = snapshot_view(snapshot);
        cleanup_plan struct rm_plan *plan = plan_create(view);

        snapshot_params(snapshot)->backfill = 1;
        if (pack_plan(view, plan, false) < 0)
                return;
        for (uint32_t j = 0; j < view->n_jobs; j++) {
                if (plan->jobs[j].decision != RM_PLACE || busy->node[j])
                        continue;
                busy->node[j] = xcalloc(view->jobs[j].n_groups, sizeof(int32_t));
                for (uint32_t g = 0; g < view->jobs[j].n_groups; g++)
                        busy->node[j][g] = plan->jobs[j].group_node[g];
        }
}

static void replace_jobs(struct busy *busy, uint32_t percent) {
        for (uint32_t j = 0; j < busy->instance->jobs; j++)
                if (dice_between(busy->dice, 1, 100) <= percent)
                        draw_job(busy, j);
}

/* Their owners want some nodes back, in part or whole. As many ranks wait as would not fit any
 * more. */
static void lose_cores(struct busy *busy) {
        uint64_t cores = 0, running = 0;

        for (uint32_t s = 0; s < busy->instance->nodes; s++) {
                if (dice_between(busy->dice, 1, 100) <= LOST_PERCENT)
                        busy->cores[s] = dice_between(busy->dice, 0, 1) ? busy->cores[s] / 2 : 0;
                cores += busy->cores[s] / busy->group_size * busy->group_size;
        }
        for (uint32_t j = 0; j < busy->instance->jobs; j++) {
                running += busy->node[j] ? (busy->ranks[j] + busy->group_size - 1) / busy->group_size * busy->group_size : 0;
                if (busy->node[j] && running > cores) {
                        free(busy->node[j]);
                        busy->node[j] = NULL;
                }
        }
}

struct snapshot *busy_create(const struct instance *instance, struct dice *dice) {
        struct busy busy = { .instance = instance,
                             .dice = dice,
                             .cores = xcalloc(instance->nodes + 1u, sizeof(*busy.cores)),
                             .penalty = xcalloc(instance->nodes + 1u, sizeof(*busy.penalty)),
                             .ranks = xcalloc(instance->jobs + 1u, sizeof(*busy.ranks)),
                             .priority = xcalloc(instance->jobs + 1u, sizeof(*busy.priority)),
                             .node = xcalloc(instance->jobs + 1u, sizeof(*busy.node)),
                             .move_cost = xcalloc(instance->jobs + 1u, sizeof(*busy.move_cost)) };
        struct snapshot *snapshot;

        draw_nodes(&busy);
        for (uint32_t i = 0; i < GENERATIONS; i++) {
                replace_jobs(&busy, i == 0 ? 100 : LEAVE_PERCENT);
                place_jobs(&busy);
        }
        replace_jobs(&busy, NEW_PERCENT);
        lose_cores(&busy);
        snapshot = make_snapshot(&busy);
        snapshot_params(snapshot)->backfill = 1;
        for (uint32_t j = 0; j < instance->jobs; j++)
                free(busy.node[j]);
        free(busy.cores);
        free(busy.penalty);
        free(busy.ranks);
        free(busy.priority);
        free(busy.node);
        free(busy.move_cost);
        return snapshot;
}
