#include "policies/treematch/scene.h"

#include <string.h>

enum { MOST_RESERVE_USEC = 50 * 1000 };

static uint64_t left_usec(const struct scene *scene) {
        return scene->run && scene->run->left_usec ? scene->run->left_usec(scene->run->context) : UINT64_MAX;
}

static bool is_over(void *context) {
        const struct scene *scene = context;

        return left_usec(scene) < scene->reserve_usec;
}

/* Of all pairs of a job, each twice. `silent` becomes true when there are some that have nothing to say. */
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

/* Twice the sum of all bytes, each times the longest way, is to stay far below 2^63: sums of sums of it are compared. */
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

void scene_make(struct pool *pool, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan,
                struct scene *ret_scene) {
        struct scene scene = { .pool = pool,
                               .snapshot = snapshot,
                               .plan = plan,
                               .run = run,
                               .rank_leaf = pool_zalloc(pool, snapshot->n_jobs, sizeof(*scene.rank_leaf)) };

        places_make(pool, snapshot, false, &scene.nodes);
        places_make(pool, snapshot, true, &scene.cores);
        scene.shift = find_shift(snapshot, scene.cores.tree.max_depth, &scene.silent);
        scene.reserve_usec = left_usec(&scene) / 4 < MOST_RESERVE_USEC ? left_usec(&scene) / 4 : MOST_RESERVE_USEC;
        *ret_scene = scene;
        ret_scene->limits = (struct limits) { is_over, ret_scene };
}

/* ---- who talks to whom ---- */

static void add_rows(const struct scene *scene, const struct rm_job *job, uint32_t first, struct graph *graph) {
        uint64_t used = graph->first[first];

        for (uint32_t r = 0; r < job->ranks; r++) {
                for (uint64_t e = job->traffic.offset[r]; job_has_traffic(job) && e < job->traffic.offset[r + 1]; e++) {
                        if (job->traffic.bytes[e] == 0)
                                continue;
                        graph->to[used] = first + job->traffic.peer[e];
                        graph->weight[used++] = scene_weight(scene, job->traffic.bytes[e]);
                }
                graph->first[first + r + 1] = used;
        }
}

/* Rows that need no change are not copied: of everybody with everybody there are many. */
static bool borrow_rows(const struct scene *scene, const struct rm_job *job, struct graph *ret_graph) {
        const struct rm_traffic *traffic = &job->traffic;
        uint32_t *size;

        if (job->group_size > 1 || scene->shift > 0 || scene->silent || !job_has_traffic(job))
                return false;
        size = pool_alloc(scene->pool, job->ranks, sizeof(*size));
        for (uint32_t r = 0; r < job->ranks; r++)
                size[r] = 1;
        /* Nobody writes to the rows of a graph that is to be mapped. */
        *ret_graph = (struct graph) { .n = job->ranks,
                                      .total = job->ranks,
                                      .first = (uint64_t *) traffic->offset,
                                      .to = (uint32_t *) traffic->peer,
                                      .weight = (int64_t *) traffic->bytes,
                                      .size = size };
        return true;
}

void scene_graph(const struct scene *scene, const uint32_t *jobs, uint32_t n_jobs, struct graph *ret_graph) {
        uint64_t entries = 0;
        uint32_t ranks = 0, groups = 0, *group;
        struct graph all;

        if (n_jobs == 1 && borrow_rows(scene, &scene->snapshot->jobs[jobs[0]], ret_graph))
                return;
        for (uint32_t i = 0; i < n_jobs; i++) {
                const struct rm_job *job = &scene->snapshot->jobs[jobs[i]];

                ranks += job->ranks;
                entries += job_has_traffic(job) ? job->traffic.offset[job->ranks] : 0;
        }
        graph_make(scene->pool, ranks, entries, &all);
        group = pool_alloc(scene->pool, ranks, sizeof(*group));
        ranks = 0;
        for (uint32_t i = 0; i < n_jobs; i++) {
                const struct rm_job *job = &scene->snapshot->jobs[jobs[i]];

                add_rows(scene, job, ranks, &all);
                for (uint32_t r = 0; r < job->ranks; r++)
                        group[ranks++] = groups + r / job->group_size;
                groups += job->n_groups;
        }
        if (groups == ranks) {
                *ret_graph = all;
                return;
        }
        graph_contract(scene->pool, &all, group, groups, ret_graph);
        for (uint32_t v = 0; v < groups; v++)
                ret_graph->size[v] = 1;
        ret_graph->total = groups;
}

/* ---- what it costs ---- */

static uint32_t leaf_of(const struct scene *scene, uint32_t node, int32_t core) {
        const struct places *places = &scene->cores;
        uint32_t first = places->tree.leaf_first[places->node_vertex[node]];
        const struct place *place = &places->leaf[first];

        return core < 0 ? first : first + (uint32_t) core % place->wrap / place->count;
}

/* Where the ranks of a job are. */
struct whereabouts {
        const struct rm_traffic *traffic;
        const uint32_t *leaf;
        const int32_t *node;
};

static inline void add_entry(const struct scene *scene, const struct whereabouts *at, uint32_t r, const uint32_t *distance,
                             uint64_t e, struct scene_bytes *sum) {
        uint32_t peer = at->traffic->peer[e];
        double bytes = (double) at->traffic->bytes[e];
        uint32_t hops = distance ? distance[at->leaf[peer]] + 2 : places_hops(&scene->cores, at->leaf[r], at->leaf[peer]);

        sum->hop_bytes += bytes * hops;
        sum->inter_node_bytes += at->node[r] != at->node[peer] ? bytes : 0;
}

/* Adds what rank r has to do with ranks above it. `distance`: from its leaf, NULL: not worked out. */
static void measure_rank(const struct scene *scene, const struct whereabouts *at, uint32_t r, const uint32_t *distance,
                         struct scene_bytes *sum) {
        uint64_t end = at->traffic->offset[r + 1], e = graph_first_from(at->traffic->peer, at->traffic->offset[r], end, r);
        struct scene_bytes even = { 0, 0 }, odd = { 0, 0 }; /* so that an addition need not wait for the one before */

        for (; e + 1 < end; e += 2) {
                add_entry(scene, at, r, distance, e, &even);
                add_entry(scene, at, r, distance, e + 1, &odd);
        }
        if (e < end)
                add_entry(scene, at, r, distance, e, &even);
        sum->hop_bytes += even.hop_bytes + odd.hop_bytes;
        sum->inter_node_bytes += even.inter_node_bytes + odd.inter_node_bytes;
}

struct scene_bytes scene_measure(const struct scene *scene) {
        const struct tree *tree = &scene->cores.tree;
        struct pool_mark mark = pool_mark(scene->pool);
        uint32_t *distance = pool_alloc(scene->pool, tree->n_leaves, sizeof(*distance));
        struct scene_bytes sum = { 0, 0 };

        for (uint32_t j = 0; j < scene->snapshot->n_jobs; j++) {
                const struct rm_job *job = &scene->snapshot->jobs[j];
                const struct rm_plan_job *planned = &scene->plan->jobs[j];
                uint32_t *leaf;
                int32_t *node;

                if (!scene_places(scene, j) || !job_has_traffic(job))
                        continue;
                leaf = pool_alloc(scene->pool, job->ranks, sizeof(*leaf));
                node = pool_alloc(scene->pool, job->ranks, sizeof(*node));
                for (uint32_t r = 0; r < job->ranks; r++) {
                        node[r] = planned->group_node[r / job->group_size];
                        leaf[r] = leaf_of(scene, (uint32_t) node[r], planned->rank_core[r]);
                }
                for (uint32_t r = 0; r < job->ranks; r++) {
                        const struct whereabouts at = { &job->traffic, leaf, node };
                        bool many = job->traffic.offset[r + 1] - job->traffic.offset[r] > tree->n_leaves / 8;

                        if (many)
                                tree_distances(tree, leaf[r], distance);
                        measure_rank(scene, &at, r, many ? distance : NULL, &sum);
                }
        }
        pool_release(scene->pool, mark);
        return sum;
}
