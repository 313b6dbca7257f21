#include "policies/treematch/inside.h"

#include <string.h>

#include "policies/treematch/map.h"

/* Everybody on one node. */
struct guest {
        uint32_t job, rank;
};

struct house {
        struct scene *scene;
        uint64_t *first;       /* each node: where its guests begin */
        struct guest *guest;
        uint32_t **local;      /* each job, each rank: its number on its node */
};

static void list_guests(struct house *house) {
        const struct rm_snapshot *snapshot = house->scene->snapshot;
        const struct rm_plan *plan = house->scene->plan;
        uint64_t *first = pool_zalloc(house->scene->pool, snapshot->n_nodes + 2u, sizeof(*first));

        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t g = 0; scene_places(house->scene, j) && g < snapshot->jobs[j].n_groups; g++)
                        first[plan->jobs[j].group_node[g] + 2] += snapshot->jobs[j].groups[g].ranks;
        for (uint32_t n = 0; n < snapshot->n_nodes; n++)
                first[n + 2] += first[n + 1];
        house->guest = pool_alloc(house->scene->pool, first[snapshot->n_nodes + 1], sizeof(*house->guest));
        house->local = pool_zalloc(house->scene->pool, snapshot->n_jobs, sizeof(*house->local));
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                if (!scene_places(house->scene, j))
                        continue;
                house->local[j] = pool_alloc(house->scene->pool, job->ranks, sizeof(**house->local));
                for (uint32_t r = 0; r < job->ranks; r++) {
                        uint64_t at = first[plan->jobs[j].group_node[r / job->group_size] + 1]++;

                        house->guest[at] = (struct guest) { j, r };
                }
        }
        for (uint32_t n = 0; n < snapshot->n_nodes; n++)
                for (uint64_t i = first[n]; i < first[n + 1]; i++)
                        house->local[house->guest[i].job][house->guest[i].rank] = (uint32_t) (i - first[n]);
        house->first = first;
}

/* The traffic between the guests of a node. */
static void guest_graph(const struct house *house, uint32_t node, struct graph *ret_graph) {
        const struct scene *scene = house->scene;
        const struct guest *guest = house->guest + house->first[node];
        uint32_t n = (uint32_t) (house->first[node + 1] - house->first[node]);
        uint64_t entries = 0, used = 0;

        for (uint32_t i = 0; i < n; i++) {
                const struct rm_traffic *traffic = &scene->snapshot->jobs[guest[i].job].traffic;

                if (job_has_traffic(&scene->snapshot->jobs[guest[i].job]))
                        entries += traffic->offset[guest[i].rank + 1] - traffic->offset[guest[i].rank];
        }
        graph_make(scene->pool, n, entries, ret_graph);
        for (uint32_t i = 0; i < n; i++) {
                const struct rm_job *job = &scene->snapshot->jobs[guest[i].job];
                const int32_t *group_node = scene->plan->jobs[guest[i].job].group_node;
                uint64_t e = job_has_traffic(job) ? job->traffic.offset[guest[i].rank] : 0;
                uint64_t end = job_has_traffic(job) ? job->traffic.offset[guest[i].rank + 1] : 0;

                for (; e < end; e++)
                        if (group_node[job->traffic.peer[e] / job->group_size] == (int32_t) node && job->traffic.bytes[e] > 0) {
                                ret_graph->to[used] = house->local[guest[i].job][job->traffic.peer[e]];
                                ret_graph->weight[used++] = scene_weight(scene, job->traffic.bytes[e]);
                        }
                ret_graph->first[i + 1] = used;
        }
}

/* The tree below a node, as a tree of its own. */
static void node_tree(const struct scene *scene, uint32_t node, struct tree *ret_tree) {
        const struct tree *whole = &scene->cores.tree;
        uint32_t top = scene->cores.node_vertex[node], n = whole->end[top] - top;
        uint32_t *parent = pool_alloc(scene->pool, n, sizeof(*parent));

        parent[0] = TREE_NONE;
        for (uint32_t v = 1; v < n; v++)
                parent[v] = whole->parent[top + v] - top;
        tree_make(scene->pool, n, parent, whole->room + top, ret_tree);
}

/* Leaves for the guests in the order of ranks: `leaf`, counted from the node's first. */
static void lodge_in_order(const struct scene *scene, uint32_t node, uint32_t n, uint32_t *leaf) {
        const struct places *places = &scene->cores;
        const struct place *place = &places->leaf[places->tree.leaf_first[places->node_vertex[node]]];

        for (uint32_t i = 0; i < n; i++)
                leaf[i] = i % place->wrap / place->count;
}

/* As chosen before, if that is so for all of them, and those who were not mapped together do not meet on a leaf. */
static bool lodge_as_chosen(const struct house *house, uint32_t node, uint32_t n, uint32_t *leaf) {
        const struct scene *scene = house->scene;
        const struct tree *tree = &scene->cores.tree;
        uint32_t vertex = scene->cores.node_vertex[node], first = tree->leaf_first[vertex];
        uint32_t *used = pool_zalloc(scene->pool, tree->leaf_end[vertex] - first, sizeof(*used));

        for (uint32_t i = 0; i < n; i++) {
                const struct guest *guest = &house->guest[house->first[node] + i];
                const uint32_t *chosen = scene->rank_leaf[guest->job];

                if (!chosen || chosen[guest->rank] == TREE_NONE)
                        return false;
                leaf[i] = chosen[guest->rank] - first;
                if (++used[leaf[i]] > tree->room[tree->leaf[first + leaf[i]]])
                        return false;
        }
        return true;
}

/* Cores of their leaves for the guests of a node. */
static void give_cores(const struct house *house, uint32_t node, const uint32_t *leaf) {
        const struct scene *scene = house->scene;
        const struct tree *tree = &scene->cores.tree;
        uint32_t vertex = scene->cores.node_vertex[node], first = tree->leaf_first[vertex];
        uint32_t *used = pool_zalloc(scene->pool, tree->leaf_end[vertex] - first, sizeof(*used));

        for (uint64_t i = house->first[node]; i < house->first[node + 1]; i++) {
                uint32_t x = leaf[i - house->first[node]];
                const struct place *place = &scene->cores.leaf[first + x];
                uint32_t nth = used[x]++, core = nth / place->count * place->wrap + place->first + nth % place->count;

                scene->plan->jobs[house->guest[i].job].rank_core[house->guest[i].rank] = (int32_t) core;
        }
}

static void lodge(struct house *house, uint32_t node, bool by_traffic) {
        struct scene *scene = house->scene;
        struct pool_mark mark = pool_mark(scene->pool);
        uint32_t n = (uint32_t) (house->first[node + 1] - house->first[node]), vertex = scene->cores.node_vertex[node];
        uint32_t *leaf = pool_alloc(scene->pool, n, sizeof(*leaf));

        if (n == 0 || n > scene->snapshot->nodes[node].cores)
                return;
        lodge_in_order(scene, node, n, leaf);
        if (by_traffic && scene->cores.tree.leaf_end[vertex] > scene->cores.tree.leaf_first[vertex] + 1 &&
            !lodge_as_chosen(house, node, n, leaf)) {
                struct graph graph;
                struct tree tree;

                lodge_in_order(scene, node, n, leaf);
                guest_graph(house, node, &graph);
                node_tree(scene, node, &tree);
                map_improve(scene->pool, &tree, &graph, &scene->limits, 0, leaf);
        }
        give_cores(house, node, leaf);
        pool_release(scene->pool, mark);
}

void inside_assign(struct scene *scene, bool by_traffic) {
        struct pool_mark mark = pool_mark(scene->pool);
        struct house house = { .scene = scene };

        list_guests(&house);
        for (uint32_t j = 0; j < scene->snapshot->n_jobs; j++)
                for (uint32_t r = 0; r < scene->snapshot->jobs[j].ranks; r++)
                        scene->plan->jobs[j].rank_core[r] = RM_NO_CORE;
        for (uint32_t n = 0; n < scene->snapshot->n_nodes; n++)
                lodge(&house, n, by_traffic);
        pool_release(scene->pool, mark);
}
