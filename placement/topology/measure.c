#include "placement/topology/measure.h"

#include "placement/topology/map_context.h"
#include "placement/topology/slots.h"
#include "placement/topology/within_node.h"

static bool any_without_core(const struct map_context *context) {
        for (uint32_t j = 0; j < context->snapshot->n_jobs; j++)
                for (uint32_t r = 0; context_places(context, j) && r < context->snapshot->jobs[j].ranks; r++)
                        if (context->plan->jobs[j].rank_core[r] == RM_NO_CORE)
                                return true;
        return false;
}

static uint64_t whole(double value) {
        return value < (double) INT64_MAX ? (uint64_t) value : INT64_MAX;
}

static bool measure(const struct rm_snapshot *snapshot, const struct rm_plan *plan, bool by_slot, struct measured *ret_measured) {
        struct plan_bytes bytes;
        struct pool pool;
        struct map_context context;
        bool known;

        pool_init(&pool);
        context_make(&pool, snapshot, NULL, (struct rm_plan *) plan, &context);
        known = context_has_traffic(&context);
        if (known && (by_slot || any_without_core(&context))) {
                context.plan = context_copy_plan(&context); /* so that it may be changed */
                known = !by_slot || slots_place(&context, true);
                within_node_assign(&context, NULL);
        }
        if (known) {
                context_measure(&context, (const struct rm_plan *const[]) { context.plan }, 1, &bytes);
                *ret_measured = (struct measured) { whole(bytes.hop_bytes), whole(bytes.inter_node_bytes) };
        }
        pool_finish(&pool);
        return known;
}

bool measure_plan(const struct rm_snapshot *snapshot, const struct rm_plan *plan, struct measured *ret_measured) {
        return measure(snapshot, plan, false, ret_measured);
}

bool measure_by_slot(const struct rm_snapshot *snapshot, const struct rm_plan *plan, struct measured *ret_measured) {
        return measure(snapshot, plan, true, ret_measured);
}
