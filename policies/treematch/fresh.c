#include "policies/treematch/fresh.h"

#include <string.h>

#include "policies/place/cost.h"
#include "policies/place/pack.h"

enum { WORK_EACH = 8000, MOST_WORK = 600 * 1000 }; /* for another attempt: some 10 ms */

/* Jobs that are mapped together. */
struct crowd {
        struct scene *scene;
        uint32_t *job, n_jobs;
        uint32_t group_size;
        const struct places *places; /* down to cores when groups are single ranks */
        uint32_t *room;              /* each leaf: groups that may be on it */
        uint32_t *leaf;              /* each group, job after job */
        uint32_t n_groups;
};

/* The smaller last group of a job stays where it is when room is so scarce that a whole one does not fit there. */
static uint32_t n_movable(const struct rm_job *job) {
        return job_full_groups(job);
}

/* What each node has for the crowd: its cores less what everybody else has on it, and within the limit of the job if it is alone. */
static void count_room(const struct crowd *crowd, int64_t *room) {
        const struct rm_snapshot *snapshot = crowd->scene->snapshot;
        bool *in_crowd = arena_zalloc(crowd->scene->arena, snapshot->n_jobs, sizeof(*in_crowd));

        for (uint32_t i = 0; i < crowd->n_jobs; i++)
                in_crowd[crowd->job[i]] = true;
        for (uint32_t n = 0; n < snapshot->n_nodes; n++)
                room[n] = snapshot->nodes[n].cores;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                if (!scene_places(crowd->scene, j))
                        continue;
                for (uint32_t g = in_crowd[j] ? n_movable(job) : 0; g < job->n_groups; g++)
                        room[crowd->scene->plan->jobs[j].group_node[g]] -= job->groups[g].ranks;
        }
        for (uint32_t n = 0; n < snapshot->n_nodes; n++) {
                const struct rm_job *first = &snapshot->jobs[crowd->job[0]];
                int64_t limit = job_node_limit(first, n);

                if (first->node_limit && n_movable(first) < first->n_groups &&
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
        struct arena_mark mark = arena_mark(scene->arena);
        const struct tree *tree = &crowd->places->tree;
        uint32_t *used = arena_zalloc(scene->arena, tree->n_leaves, sizeof(*used)), at = 0;

        for (uint32_t i = 0; i < crowd->n_jobs; i++)
                for (uint32_t g = 0; g < n_movable(&scene->snapshot->jobs[crowd->job[i]]); g++) {
                        uint32_t vertex = crowd->places->node_vertex[scene->plan->jobs[crowd->job[i]].group_node[g]];
                        uint32_t x = tree->leaf_first[vertex];

                        while (used[x] == crowd->room[x])
                                x++;
                        used[x]++;
                        crowd->leaf[at++] = x;
                }
        arena_release(scene->arena, mark);
}

static void take_leaves(const struct crowd *crowd) {
        const struct scene *scene = crowd->scene;
        uint32_t at = 0;

        for (uint32_t i = 0; i < crowd->n_jobs; i++) {
                uint32_t j = crowd->job[i], n = n_movable(&scene->snapshot->jobs[j]);

                for (uint32_t g = 0; g < n; g++)
                        scene->plan->jobs[j].group_node[g] = (int32_t) crowd->places->leaf[crowd->leaf[at + g]].node;
                if (crowd->group_size == 1) {
                        scene->rank_leaf[j] = arena_alloc(scene->arena, n, sizeof(**scene->rank_leaf));
                        memcpy(scene->rank_leaf[j], crowd->leaf + at, sizeof(**scene->rank_leaf) * n);
                }
                at += n;
        }
}

/* The graph of all groups without those that stay. */
static void crowd_graph(const struct crowd *crowd, struct graph *ret_graph) {
        const struct scene *scene = crowd->scene;
        uint32_t all = 0, n = 0, *movable, *number;
        struct graph graph;

        scene_graph(scene, crowd->job, crowd->n_jobs, &graph);
        if (graph.n == crowd->n_groups) {
                *ret_graph = graph;
                return;
        }
        movable = arena_alloc(scene->arena, graph.n, sizeof(*movable));
        number = arena_alloc(scene->arena, graph.n, sizeof(*number));
        memset(number, 0xff, sizeof(*number) * graph.n);
        for (uint32_t i = 0; i < crowd->n_jobs; i++) {
                const struct rm_job *job = &scene->snapshot->jobs[crowd->job[i]];

                for (uint32_t g = 0; g < n_movable(job); g++)
                        movable[n++] = all + g;
                all += job->n_groups;
        }
        graph_induce(scene->arena, &graph, movable, n, number, ret_graph);
}

static void map_crowd(struct scene *scene, uint32_t *jobs, uint32_t n_jobs) {
        uint32_t group_size = scene->snapshot->jobs[jobs[0]].group_size;
        struct crowd crowd = { .scene = scene,
                               .job = jobs,
                               .n_jobs = n_jobs,
                               .group_size = group_size,
                               .places = group_size == 1 ? &scene->cores : &scene->nodes };
        int64_t *node_room = arena_alloc(scene->arena, scene->snapshot->n_nodes, sizeof(*node_room));
        struct map_limits limits = scene->limits;
        struct graph graph;
        struct tree tree;

        for (uint32_t i = 0; i < n_jobs; i++)
                crowd.n_groups += n_movable(&scene->snapshot->jobs[jobs[i]]);
        crowd.leaf = arena_alloc(scene->arena, crowd.n_groups, sizeof(*crowd.leaf));
        crowd.room = arena_zalloc(scene->arena, crowd.places->tree.n_leaves, sizeof(*crowd.room));
        count_room(&crowd, node_room);
        share_room(&crowd, node_room);
        start_leaves(&crowd);
        tree_with_room(scene->arena, &crowd.places->tree, crowd.room, &tree);
        crowd_graph(&crowd, &graph);
        limits.work = graph.n * WORK_EACH < MOST_WORK ? graph.n * WORK_EACH : MOST_WORK;
        map_improve(scene->arena, &tree, &graph, &limits, crowd.leaf);
        take_leaves(&crowd);
}

void fresh_place(struct scene *scene) {
        uint32_t n = scene->snapshot->n_jobs, n_crowd;
        uint32_t *crowd = arena_alloc(scene->arena, n, sizeof(*crowd));
        bool *done = arena_zalloc(scene->arena, n, sizeof(*done));

        for (uint32_t j = 0; j < n; j++) {
                const struct rm_job *job = &scene->snapshot->jobs[j];

                done[j] = !scene_places(scene, j) || job_runs(job) || !job_has_traffic(job);
        }
        for (uint32_t j = 0; j < n; j++) {
                const struct rm_job *job = &scene->snapshot->jobs[j];

                if (done[j])
                        continue;
                n_crowd = 0;
                for (uint32_t i = j; i < n; i++) {
                        const struct rm_job *other = &scene->snapshot->jobs[i];

                        if (i != j && (done[i] || job->node_limit || other->node_limit || other->group_size != job->group_size))
                                continue;
                        crowd[n_crowd++] = i;
                        done[i] = true;
                }
                map_crowd(scene, crowd, n_crowd);
        }
}
