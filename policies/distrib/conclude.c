#include "policies/distrib/conclude.h"

#include <errno.h>
#include <stdlib.h>

#include "policies/distrib/component.h"
#include "policies/distrib/partition.h"

enum {
        PARTS = 4,           /* by such a part of what has been looked at, more is looked at the next time */
        SWEEPS = 4,
        QUICK = 200 * 1000,  /* steps */
};

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

int conclude_bit_by_bit(struct conclude *conclude, const struct dual *dual, const struct conclude_task *task, int64_t *settled,
                        int64_t *ret_quick_gap, uint32_t *ret_values, int64_t *ret_cost) {
        int64_t bound = dual_bound(dual), next = *settled >= bound ? *settled : bound;
        uint64_t first = conclude->steps;
        struct conclude_task part = *task;
        int r = 1;

        *ret_quick_gap = 0;
        *ret_cost = PRICE_NEVER;
        while (r == 1 && *settled < task->target && *ret_cost >= PRICE_NEVER) {
                uint64_t before = conclude->steps;

                if (before - first >= task->max_steps || deadline_left_usec(task->deadline) <= 0)
                        return 0;
                next += *settled >= bound || next > bound ? (next - bound) / PARTS + 1 : (task->target - bound) / PARTS + 1;
                part.target = next < task->target ? next : task->target;
                part.max_steps = task->max_steps - (before - first);
                r = conclude_some(conclude, dual, &part, ret_values, ret_cost);
                if (r == 1 && *ret_cost >= PRICE_NEVER)
                        *settled = part.target;
                if (r == 1 && conclude->steps - before < QUICK && !dual_is_over(&conclude->trial))
                        *ret_quick_gap = conclude->trial.target - conclude->trial.base - conclude->trial.sum;
        }
        return r;
}
