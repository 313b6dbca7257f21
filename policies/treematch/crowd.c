#include "policies/treematch/crowd.h"

#include <string.h>

#include "policies/place/pack.h"

uint32_t crowd_groups(const struct rm_job *job) {
        return job_full_groups(job);
}

/* What each node has for the crowd: its cores less what everybody else has on it, and within the limit of the job if it is alone. */
static void count_room(const struct crowd *crowd, int64_t *room) {
        const struct rm_snapshot *snapshot = crowd->scene->snapshot;
        bool *in_crowd = pool_zalloc(crowd->scene->pool, snapshot->n_jobs, sizeof(*in_crowd));

        for (uint32_t i = 0; i < crowd->n_jobs; i++)
                in_crowd[crowd->job[i]] = true;
        for (uint32_t n = 0; n < snapshot->n_nodes; n++)
                room[n] = snapshot->nodes[n].cores;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                if (!scene_places(crowd->scene, j))
                        continue;
                for (uint32_t g = in_crowd[j] ? crowd_groups(job) : 0; g < job->n_groups; g++)
                        room[crowd->scene->plan->jobs[j].group_node[g]] -= job->groups[g].ranks;
        }
        for (uint32_t n = 0; n < snapshot->n_nodes; n++) {
                const struct rm_job *first = &snapshot->jobs[crowd->job[0]];
                int64_t limit = job_node_limit(first, n);

                if (first->node_limit && crowd_groups(first) < first->n_groups &&
                    crowd->scene->plan->jobs[crowd->job[0]].group_node[first->n_groups - 1] == (int32_t) n)
                        limit -= job_rest_ranks(first);
                if (room[n] > limit)
                        room[n] = limit;
                if (room[n] < 0)
                        room[n] = 0;
        }
}

/* Groups that fit on each leaf: cores that others have are the first ones of their node. */
static void share_room(struct crowd *crowd, const int64_t *node_room) {
        const struct places *places = crowd->places;
        const struct rm_snapshot *snapshot = crowd->scene->snapshot;

        for (uint32_t n = 0; n < snapshot->n_nodes; n++) {
                uint32_t vertex = places->node_vertex[n];
                int64_t room = node_room[n], taken = snapshot->nodes[n].cores - room;

                for (uint32_t x = places->tree.leaf_first[vertex]; x < places->tree.leaf_end[vertex]; x++) {
                        int64_t here = places->tree.room[places->tree.leaf[x]], lost = taken < here ? taken : here;

                        taken -= lost;
                        crowd->room[x] = (uint32_t) ((here - lost) / crowd->group_size);
                }
        }
}

/* The leaf of every group as the plan has it: the first of its node that is not full. */
static void start_leaves(struct crowd *crowd) {
        const struct scene *scene = crowd->scene;
        struct pool_mark mark = pool_mark(scene->pool);
        const struct tree *tree = &crowd->places->tree;
        uint32_t *used = pool_zalloc(scene->pool, tree->n_leaves, sizeof(*used)), at = 0;

        for (uint32_t i = 0; i < crowd->n_jobs; i++)
                for (uint32_t g = 0; g < crowd_groups(&scene->snapshot->jobs[crowd->job[i]]); g++) {
                        uint32_t vertex = crowd->places->node_vertex[scene->plan->jobs[crowd->job[i]].group_node[g]];
                        uint32_t x = tree->leaf_first[vertex];

                        /* Pinned ones may be more than there is room for. */
                        while (used[x] >= crowd->room[x] && x + 1 < tree->leaf_end[vertex])
                                x++;
                        used[x]++;
                        crowd->leaf[at++] = x;
                }
        pool_release(scene->pool, mark);
}

void crowd_take(const struct crowd *crowd) {
        const struct scene *scene = crowd->scene;
        uint32_t at = 0;

        for (uint32_t i = 0; i < crowd->n_jobs; i++) {
                uint32_t j = crowd->job[i], n = crowd_groups(&scene->snapshot->jobs[j]);

                for (uint32_t g = 0; g < n; g++)
                        scene->plan->jobs[j].group_node[g] = (int32_t) crowd->places->leaf[crowd->leaf[at + g]].node;
                if (crowd->places == &scene->cores) {
                        scene->rank_leaf[j] = pool_alloc(scene->pool, n, sizeof(**scene->rank_leaf));
                        memcpy(scene->rank_leaf[j], crowd->leaf + at, sizeof(**scene->rank_leaf) * n);
                }
                at += n;
        }
}

/* The graph of all groups without those that stay. */
static void make_graph(const struct crowd *crowd, struct graph *ret_graph) {
        const struct scene *scene = crowd->scene;
        uint32_t all = 0, n = 0, *movable, *number;
        struct graph graph;

        scene_graph(scene, crowd->job, crowd->n_jobs, &graph);
        if (graph.n == crowd->n_groups) {
                *ret_graph = graph;
                return;
        }
        movable = pool_alloc(scene->pool, graph.n, sizeof(*movable));
        number = pool_alloc(scene->pool, graph.n, sizeof(*number));
        memset(number, 0xff, sizeof(*number) * graph.n);
        for (uint32_t i = 0; i < crowd->n_jobs; i++) {
                const struct rm_job *job = &scene->snapshot->jobs[crowd->job[i]];

                for (uint32_t g = 0; g < crowd_groups(job); g++)
                        movable[n++] = all + g;
                all += job->n_groups;
        }
        graph_induce(scene->pool, &graph, movable, n, number, ret_graph);
}

uint32_t crowd_select(const struct scene *scene, uint32_t *jobs, uint32_t n_jobs) {
        const struct rm_job *first = &scene->snapshot->jobs[jobs[0]];
        uint32_t *others = pool_alloc(scene->pool, n_jobs, sizeof(*others)), n = 1, n_others = 0;

        for (uint32_t i = 1; i < n_jobs; i++) {
                const struct rm_job *job = &scene->snapshot->jobs[jobs[i]];

                if (first->node_limit || job->node_limit || job->group_size != first->group_size)
                        others[n_others++] = jobs[i];
                else
                        jobs[n++] = jobs[i];
        }
        memcpy(jobs + n, others, sizeof(*jobs) * n_others);
        return n;
}

void crowd_make(struct scene *scene, const uint32_t *jobs, uint32_t n_jobs, bool down_to_cores, struct crowd *ret_crowd) {
        struct crowd crowd = { .scene = scene,
                               .job = jobs,
                               .n_jobs = n_jobs,
                               .group_size = scene->snapshot->jobs[jobs[0]].group_size,
                               .places = down_to_cores ? &scene->cores : &scene->nodes };
        int64_t *node_room = pool_alloc(scene->pool, scene->snapshot->n_nodes, sizeof(*node_room));

        for (uint32_t i = 0; i < n_jobs; i++)
                crowd.n_groups += crowd_groups(&scene->snapshot->jobs[jobs[i]]);
        crowd.leaf = pool_alloc(scene->pool, crowd.n_groups, sizeof(*crowd.leaf));
        crowd.room = pool_zalloc(scene->pool, crowd.places->tree.n_leaves, sizeof(*crowd.room));
        count_room(&crowd, node_room);
        share_room(&crowd, node_room);
        start_leaves(&crowd);
        make_graph(&crowd, &crowd.graph);
        *ret_crowd = crowd;
}
