#include "policies/distrib/conclude.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "policies/distrib/component.h"
#include "policies/distrib/partition.h"

enum {
        PARTS = 4,           /* by such a part of what has been looked at, more is looked at the next time */
        SWEEPS = 4,
        QUICK = 200 * 1000,  /* steps */
        TRUST = 20,          /* times the steps of the last list: more cannot be told with certainty */
};

/* What is expected may be too much. */
static const double hope = 1.3;

struct conclude {
        const struct problem *problem;
        struct components *components;
        struct dual trial;
        uint64_t steps;
};

struct conclude *conclude_create(const struct problem *problem, bool *ret_none) {
        struct conclude *conclude;

        *ret_none = !components_apply(problem);
        if (*ret_none)
                return NULL;
        conclude = calloc(1, sizeof(*conclude));
        if (!conclude)
                return NULL;
        conclude->problem = problem;
        conclude->components = components_create(problem);
        if (!conclude->components) {
                conclude_destroy(conclude);
                return NULL;
        }
        return conclude;
}

void conclude_destroy(struct conclude *conclude) {
        if (!conclude)
                return;
        components_destroy(conclude->components);
        dual_finish(&conclude->trial);
        free(conclude);
}

uint64_t conclude_steps(const struct conclude *conclude) {
        return conclude->steps;
}

int conclude_at_once(struct conclude *conclude, const struct dual *dual, const struct conclude_task *task, uint32_t *ret_values,
                     int64_t *ret_cost) {
        struct partition_task partition = {
                .problem = conclude->problem, .deadline = task->deadline, .target = task->target, .max_steps = task->max_steps
        };
        struct partition_result result;
        int r = components_list(conclude->components, dual, task->deadline, task->max_steps, &conclude->steps);

        if (r < 1)
                return r;
        partition.components = components_all(conclude->components, &partition.n);
        partition.gap = components_gap(conclude->components);
        r = partition_find(&partition, &result);
        conclude->steps += result.steps;
        if (r < 1)
                return r;
        for (uint32_t i = 0; i < result.n; i++)
                components_fill(conclude->components, &partition.components[result.chosen[i]], ret_values);
        *ret_cost = result.n > 0 ? problem_judge(conclude->problem, ret_values) : PRICE_NEVER;
        return 1;
}

/* Only plans that cost `target` or less. */
static int conclude_some(struct conclude *conclude, const struct dual *dual, const struct conclude_task *task, uint32_t *ret_values,
                         int64_t *ret_cost) {
        *ret_cost = PRICE_NEVER;
        if (dual_copy(&conclude->trial, dual) < 0)
                return -ENOMEM;
        dual_set_target(&conclude->trial, task->target);
        for (int i = 0; i < SWEEPS && !dual_is_over(&conclude->trial); i++)
                (void) dual_sweep(&conclude->trial, task->work);
        return dual_is_over(&conclude->trial) ? 1 : conclude_at_once(conclude, &conclude->trial, task, ret_values, ret_cost);
}

/* How often the logarithm of steps grows again as it has last, up to the gap. */
static double times_grown(const struct conclude_progress *progress, int64_t gap) {
        double factor = (double) (gap - progress->gap) / (double) (progress->gap - progress->gap_before);
        double power = log((double) gap / (double) progress->gap) / log((double) progress->gap / (double) progress->gap_before);

        return (factor + power) / 2;
}

/* What it can be expected to take; 0: not known. Steps grow faster than a power of the gap, and slower than by a factor with every
 * unit of it: they are taken to lie in the middle. */
static double steps_to(const struct conclude_progress *progress, int64_t gap) {
        if (progress->too_large > 0 && gap >= progress->too_large)
                return CONCLUDE_NEVER;
        return progress->growth > 0 && gap > 0 ? (double) progress->steps * exp(progress->growth * times_grown(progress, gap)) : 0;
}

/* It has not been done within so many steps: it may take twice as many, or there is no room for it. */
static void note_failure(struct conclude_progress *progress, int64_t gap, uint64_t steps, bool full) {
        if (full)
                progress->too_large = gap;
        if (progress->growth > 0 && gap > progress->gap && 2 * steps > progress->steps)
                progress->growth = log(2 * (double) steps / (double) progress->steps) / times_grown(progress, gap);
}

double conclude_expected(const struct conclude_progress *progress, const struct dual *dual, int64_t target) {
        return steps_to(progress, dual_gap_to(dual, target));
}

static void note_steps(struct conclude_progress *progress, int64_t gap, uint64_t steps) {
        if (progress->steps > 0 && steps > progress->steps && gap > progress->gap && progress->gap > 0) {
                progress->growth = log((double) steps / (double) progress->steps);
                progress->gap_before = progress->gap;
        }
        progress->gap = gap;
        progress->steps = steps;
}

int64_t conclude_quick_gap(const struct conclude_progress *progress) {
        double gap = (double) progress->gap;

        if (progress->steps == 0)
                return 0;
        if (progress->growth > 0)
                gap += log((double) QUICK / (double) progress->steps) / progress->growth * (gap - (double) progress->gap_before);
        else if (progress->steps > QUICK)
                gap /= 2;
        return gap > 0 ? (int64_t) gap : 0;
}

/* What to look for next. */
static int64_t next_target(const struct conclude_progress *progress, const struct dual *dual, const struct conclude_task *task,
                           uint64_t left) {
        int64_t bound = dual_bound(dual), known = progress->settled > bound ? progress->settled : bound;
        int64_t from = progress->settled >= bound ? progress->settled - bound : task->target - bound;
        int64_t next = known + from / PARTS + 1;
        double whole = conclude_expected(progress, dual, task->target);

        return next >= task->target || (whole > 0 && whole < hope * (double) left) ? task->target : next;
}

int conclude_bit_by_bit(struct conclude *conclude, const struct dual *dual, const struct conclude_task *task,
                        struct conclude_progress *progress, uint32_t *ret_values, int64_t *ret_cost) {
        uint64_t first = conclude->steps;
        struct conclude_task part = *task;
        int r = 1;

        *ret_cost = PRICE_NEVER;
        while (r == 1 && progress->settled < task->target && *ret_cost >= PRICE_NEVER) {
                uint64_t before = conclude->steps;
                uint64_t left = before - first < task->max_steps ? task->max_steps - (before - first) : 0;
                double expected, whole;
                int64_t gap;

                if (left == 0 || deadline_left_usec(task->deadline) <= 0)
                        return 0;
                part.target = next_target(progress, dual, task, left);
                gap = dual_gap_to(dual, part.target);
                expected = steps_to(progress, gap);
                whole = conclude_expected(progress, dual, task->target);
                if (expected > hope * (double) left ||
                    (part.target < task->target && whole > 0 && whole < (double) task->wait_for &&
                     whole < TRUST * (double) progress->steps))
                        return 0;
                /* It would be a pity to stop just before the end. */
                part.max_steps = expected * 2 > (double) left ? (uint64_t) (expected * 2) : left;
                r = conclude_some(conclude, dual, &part, ret_values, ret_cost);
                if (r == 1 && *ret_cost >= PRICE_NEVER) {
                        progress->settled = part.target;
                        note_steps(progress, gap, conclude->steps - before);
                }
                if (r == 0)
                        note_failure(progress, gap, conclude->steps - before, components_full(conclude->components));
        }
        return r;
}
