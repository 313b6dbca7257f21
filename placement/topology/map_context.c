#include "placement/topology/map_context.h"

#include <string.h>

enum { MOST_RESERVE_USEC = 50 * 1000 };

static uint64_t left_usec(const struct map_context *context) {
        return context->run && context->run->left_usec ? context->run->left_usec(context->run->context) : UINT64_MAX;
}

static bool is_over(void *data) {
        const struct map_context *context = data;

        return left_usec(context) < context->reserve_usec;
}

/* Sums the bytes of all pairs of a job, each twice. `silent` becomes true when some pairs send
 * nothing. */
static double sum_bytes(const struct rm_job *job, bool *silent) {
        const uint64_t *bytes = job->traffic.bytes;
        uint64_t e = 0, end = job_has_traffic(job) ? job->traffic.offset[job->ranks] : 0;
        double even = 0, odd = 0; /* so that an addition need not wait for the one before */
        bool none = false;

        for (; e + 1 < end; e += 2) {
                even += (double) bytes[e];
                odd += (double) bytes[e + 1];
                none |= bytes[e] == 0 || bytes[e + 1] == 0;
        }
        if (e < end) {
                even += (double) bytes[e];
                none |= bytes[e] == 0;
        }
        *silent |= none;
        return even + odd;
}

/* Twice the sum of all bytes, each times the longest way, is to stay far below 2^63: sums of sums
 * of it are compared. */
static uint32_t find_shift(const struct rm_snapshot *snapshot, uint32_t depth, bool *silent) {
        double most = 0;
        uint32_t shift = 0;

        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                most += sum_bytes(&snapshot->jobs[j], silent);
        most *= 2 * ((double) depth + 1);
        for (; most > (double) (1ull << 48); most /= 2)
                shift++;
        return shift;
}

void context_make(struct pool *pool, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan,
                  struct map_context *ret_context) {
        struct map_context context = { .pool = pool,
                                       .snapshot = snapshot,
                                       .plan = plan,
                                       .run = run,
                                       .rank_leaf = pool_zalloc(pool, snapshot->n_jobs, sizeof(*context.rank_leaf)) };

        places_make(pool, snapshot, false, &context.nodes);
        places_make(pool, snapshot, true, &context.cores);
        context.shift = find_shift(snapshot, context.cores.tree.max_depth, &context.silent);
        context.reserve_usec = left_usec(&context) / 4 < MOST_RESERVE_USEC ? left_usec(&context) / 4 : MOST_RESERVE_USEC;
        *ret_context = context;
        ret_context->limits = (struct limits) { is_over, ret_context };
}

/* ---- traffic ---- */

bool context_has_traffic(const struct map_context *context) {
        for (uint32_t j = 0; j < context->snapshot->n_jobs; j++)
                if (context_places(context, j) && job_has_traffic(&context->snapshot->jobs[j]))
                        return true;
        return false;
}

static void add_rows(const struct map_context *context, const struct rm_job *job, uint32_t first, struct graph *graph) {
        uint64_t used = graph->first[first];

        for (uint32_t r = 0; r < job->ranks; r++) {
                for (uint64_t e = job->traffic.offset[r]; job_has_traffic(job) && e < job->traffic.offset[r + 1]; e++) {
                        if (job->traffic.bytes[e] == 0)
                                continue;
                        graph->to[used] = first + job->traffic.peer[e];
                        graph->weight[used++] = context_weight(context, job->traffic.bytes[e]);
                }
                graph->first[first + r + 1] = used;
        }
}

/* Rows that need no change are not copied: traffic of all ranks with all others has many. */
static bool borrow_rows(const struct map_context *context, const struct rm_job *job, struct graph *ret_graph) {
        const struct rm_traffic *traffic = &job->traffic;
        uint32_t *size;

        if (job->group_size > 1 || context->shift > 0 || context->silent || !job_has_traffic(job))
                return false;
        size = pool_alloc(context->pool, job->ranks, sizeof(*size));
        for (uint32_t r = 0; r < job->ranks; r++)
                size[r] = 1;
        /* The rows of a graph that is to be mapped are never written to. */
        *ret_graph = (struct graph) { .n = job->ranks,
                                      .total = job->ranks,
                                      .first = (uint64_t *) traffic->offset,
                                      .to = (uint32_t *) traffic->peer,
                                      .weight = (int64_t *) traffic->bytes,
                                      .size = size };
        return true;
}

void context_graph(const struct map_context *context, const uint32_t *jobs, uint32_t n_jobs, struct graph *ret_graph) {
        uint64_t entries = 0;
        uint32_t ranks = 0, groups = 0, *group;
        struct graph all;

        if (n_jobs == 1 && borrow_rows(context, &context->snapshot->jobs[jobs[0]], ret_graph))
                return;
        for (uint32_t i = 0; i < n_jobs; i++) {
                const struct rm_job *job = &context->snapshot->jobs[jobs[i]];

                ranks += job->ranks;
                entries += job_has_traffic(job) ? job->traffic.offset[job->ranks] : 0;
        }
        graph_make(context->pool, ranks, entries, &all);
        group = pool_alloc(context->pool, ranks, sizeof(*group));
        ranks = 0;
        for (uint32_t i = 0; i < n_jobs; i++) {
                const struct rm_job *job = &context->snapshot->jobs[jobs[i]];

                add_rows(context, job, ranks, &all);
                for (uint32_t r = 0; r < job->ranks; r++)
                        group[ranks++] = groups + r / job->group_size;
                groups += job->n_groups;
        }
        if (groups == ranks) {
                *ret_graph = all;
                return;
        }
        graph_contract(context->pool, &all, group, groups, ret_graph);
        for (uint32_t v = 0; v < groups; v++)
                ret_graph->size[v] = 1;
        ret_graph->total = groups;
}

/* ---- what it costs ---- */

static uint32_t leaf_of(const struct map_context *context, uint32_t node, int32_t core) {
        const struct places *places = &context->cores;
        uint32_t first = places->tree.leaf_first[places->node_vertex[node]];
        const struct place *place = &places->leaf[first];

        return core < 0 ? first : first + (uint32_t) core % place->wrap / place->count;
}

/* Where a plan has the ranks of a job. */
struct whereabouts {
        const struct rm_traffic *traffic;
        uint32_t *leaf;
        int32_t *node;
};

/* The distances from leaves to all others, worked out when asked for. */
struct distances {
        const struct map_context *context;
        uint32_t **from; /* each leaf; NULL: not yet */
};

static const uint32_t *distances_from(const struct distances *distances, uint32_t leaf) {
        const struct tree *tree = &distances->context->cores.tree;

        if (!distances->from[leaf]) {
                distances->from[leaf] = pool_alloc(distances->context->pool, tree->n_leaves, sizeof(**distances->from));
                tree_distances(tree, leaf, distances->from[leaf]);
        }
        return distances->from[leaf];
}

static struct whereabouts find_ranks(const struct map_context *context, const struct rm_plan *plan, uint32_t j) {
        const struct rm_job *job = &context->snapshot->jobs[j];
        struct whereabouts at = {
                .traffic = &job->traffic,
                .leaf = pool_alloc(context->pool, job->ranks, sizeof(*at.leaf)),
                .node = pool_alloc(context->pool, job->ranks, sizeof(*at.node)),
        };

        for (uint32_t r = 0; r < job->ranks; r++) {
                at.node[r] = plan->jobs[j].group_node[r / job->group_size];
                at.leaf[r] = leaf_of(context, (uint32_t) at.node[r], plan->jobs[j].rank_core[r]);
        }
        return at;
}

/* Adds what rank r has to do with ranks above it. */
static void measure_short(const struct map_context *context, const struct whereabouts *at, uint32_t r, struct plan_bytes *sum) {
        uint64_t end = at->traffic->offset[r + 1];

        for (uint64_t e = graph_first_from(at->traffic->peer, at->traffic->offset[r], end, r); e < end; e++) {
                uint32_t peer = at->traffic->peer[e];
                double bytes = (double) at->traffic->bytes[e];

                sum->hop_bytes += bytes * places_hops(&context->cores, at->leaf[r], at->leaf[peer]);
                sum->inter_node_bytes += at->node[r] != at->node[peer] ? bytes : 0;
        }
}

/* The same as above for a long row; `distance`: from its leaf. */
static void measure_long(const struct map_context *context, const struct whereabouts *at, uint32_t r, const uint32_t *distance,
                         struct plan_bytes *sum) {
        const uint32_t *peer = at->traffic->peer, *leaf = at->leaf;
        const uint64_t *bytes = at->traffic->bytes;
        const int32_t *node = at->node;
        uint64_t end = at->traffic->offset[r + 1], hop_bytes = 0, inter_node_bytes = 0;
        int32_t here = node[r];

        if (context->shift > 0) {
                measure_short(context, at, r, sum);
                return;
        }
        for (uint64_t e = graph_first_from(peer, at->traffic->offset[r], end, r); e < end; e++) {
                hop_bytes += bytes[e] * (distance[leaf[peer[e]]] + 2); /* the sum of all of them fits */
                inter_node_bytes += bytes[e] * (node[peer[e]] != here);
        }
        sum->hop_bytes += (double) hop_bytes;
        sum->inter_node_bytes += (double) inter_node_bytes;
}

void context_measure(const struct map_context *context, const struct rm_plan *const *plans, uint32_t n_plans,
                     struct plan_bytes *ret_bytes) {
        const struct tree *tree = &context->cores.tree;
        struct pool_mark mark = pool_mark(context->pool);
        struct whereabouts *at = pool_alloc(context->pool, n_plans, sizeof(*at));
        struct distances distances = { context, pool_zalloc(context->pool, tree->n_leaves, sizeof(*distances.from)) };

        for (uint32_t i = 0; i < n_plans; i++)
                ret_bytes[i] = (struct plan_bytes) { 0, 0 };
        for (uint32_t j = 0; j < context->snapshot->n_jobs; j++) {
                const struct rm_job *job = &context->snapshot->jobs[j];
                const uint64_t *offset = job->traffic.offset;

                if (!context_places(context, j) || !job_has_traffic(job))
                        continue;
                for (uint32_t i = 0; i < n_plans; i++)
                        at[i] = find_ranks(context, plans[i], j);
                for (uint32_t r = 0; r < job->ranks; r++) {
                        bool many = offset[r + 1] - offset[r] > tree->n_leaves / 8;

                        for (uint32_t i = 0; i < n_plans; i++) /* a row is read once, and looked at again where it is near */
                                if (many)
                                        measure_long(context, &at[i], r, distances_from(&distances, at[i].leaf[r]), &ret_bytes[i]);
                                else
                                        measure_short(context, &at[i], r, &ret_bytes[i]);
                }
        }
        pool_release(context->pool, mark);
}

static void copy_places(const struct rm_snapshot *snapshot, const struct rm_plan *from, const struct rm_plan *to) {
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                memcpy(to->jobs[j].group_node, from->jobs[j].group_node, sizeof(int32_t) * snapshot->jobs[j].n_groups);
                memcpy(to->jobs[j].rank_core, from->jobs[j].rank_core, sizeof(int32_t) * snapshot->jobs[j].ranks);
        }
}

struct rm_plan *context_copy_plan(const struct map_context *context) {
        struct rm_plan *copy = pool_alloc(context->pool, 1, sizeof(*copy));

        *copy = *context->plan;
        copy->jobs = pool_alloc(context->pool, copy->n_jobs, sizeof(*copy->jobs));
        for (uint32_t j = 0; j < copy->n_jobs; j++) {
                copy->jobs[j] = context->plan->jobs[j];
                copy->jobs[j].group_node = pool_alloc(context->pool, context->snapshot->jobs[j].n_groups, sizeof(int32_t));
                copy->jobs[j].rank_core = pool_alloc(context->pool, context->snapshot->jobs[j].ranks, sizeof(int32_t));
        }
        copy_places(context->snapshot, context->plan, copy);
        return copy;
}

void context_go_back(const struct map_context *context, const struct rm_plan *copy) {
        copy_places(context->snapshot, copy, context->plan);
}
