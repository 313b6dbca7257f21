#include "daemon/leader/parked.h"

#include "common/util.h"
#include "daemon/leader/room.h"
#include "daemon/sched/malleable.h"

static bool may_use(const struct rm_snapshot *snapshot, const struct rm_job *view, uint32_t node) {
        return snapshot->nodes[node].cores > 0 && (!view->node_limit || view->node_limit[node] > 0);
}

/* Fewest ranks for each core, with these. */
static int32_t best_node(const struct rm_snapshot *snapshot, const struct rm_job *view, const struct room *rooms, uint32_t ranks,
                         int64_t memory) {
        int32_t best = RM_NO_NODE;

        for (uint32_t n = 0; n < snapshot->n_nodes; n++) {
                const struct room *room = &rooms[n];

                if (!may_use(snapshot, view, n) || (room->memory_free != RM_NO_MEMORY_LIMIT && memory > room->memory_free))
                        continue;
                if (best < 0 || room_is_better(room, &rooms[best], ranks))
                        best = (int32_t) n;
        }
        return best;
}

static int64_t promised(const Rm__Job *job, uint32_t ranks) {
        uint64_t bytes = job->spec->rank_memory_bytes;

        return ranks > 0 && bytes > INT64_MAX / ranks ? INT64_MAX : (int64_t) (bytes * ranks);
}

int32_t *parked_place(const struct rm_snapshot *snapshot, uint32_t index, const Rm__Job *job, const int32_t *group_node,
                      uint32_t n_groups) {
        const struct rm_job *view = &snapshot->jobs[index];
        cleanup_free struct room *rooms = n_groups > view->n_groups ? room_create_all(snapshot) : NULL;
        cleanup_free int32_t *nodes = xcalloc(n_groups + 1u, sizeof(*nodes));

        for (uint32_t g = 0; g < view->n_groups && g < n_groups; g++) {
                nodes[g] = group_node[g];
                if (rooms)
                        room_take(&rooms[group_node[g]], view->groups[g].ranks, view->groups[g].memory);
        }
        for (uint32_t g = view->n_groups; g < n_groups; g++) {
                uint32_t ranks = malleable_group_ranks(job->spec->ranks, view->group_size, g);

                nodes[g] = best_node(snapshot, view, rooms, ranks, promised(job, ranks));
                if (nodes[g] < 0)
                        return NULL;
                room_take(&rooms[nodes[g]], ranks, promised(job, ranks));
        }
        return take_ptr(nodes);
}

static bool is_up(const struct rm_snapshot *snapshot, int32_t node) {
        return node >= 0 && (uint32_t) node < snapshot->n_nodes && snapshot->nodes[node].state != RM_NODE_DOWN;
}

/* mpirun cannot leave a node that does not answer; nothing of the job is moved meanwhile. */
static bool may_move(const struct state_index *state, const struct rm_snapshot *snapshot, const Rm__Job *job) {
        return job->state == RM__JOB_STATE__JOB_RUNNING && !job->cancel &&
               is_up(snapshot, state_capsule_position(state, job, STATE_HEAD));
}

static void add_move(struct round_result *result, uint32_t job, int32_t group, int32_t from, int32_t to, enum round_cause cause,
                     const char *why, const char *node) {
        struct round_action *move = round_add_action(result);

        move->kind = ROUND_MOVE;
        move->job = job;
        move->group = group;
        move->from = from;
        move->to = to;
        move->cause = cause;
        (void) snprintf(move->reason, sizeof(move->reason), "%s '%.63s'", why, node);
}

void parked_move(const struct state_index *state, const struct rm_snapshot *snapshot, uint32_t index, const Rm__Job *job,
                 uint32_t group, int32_t to, struct round_result *result) {
        int32_t from = state_capsule_position(state, job, (int32_t) group);

        if (may_move(state, snapshot, job) && is_up(snapshot, from) && !state_capsule_move(state, job->id, (int32_t) group))
                add_move(result, index, (int32_t) group, from, to, ROUND_RETURN, "parked ranks have no free cores on node",
                         snapshot->nodes[from].name);
}

void parked_moves(const struct state_index *state, const struct rm_snapshot *snapshot, uint32_t index, const Rm__Job *job,
                  struct round_result *result) {
        const struct rm_job *view = &snapshot->jobs[index];
        cleanup_free struct room *rooms = NULL;

        if (!may_move(state, snapshot, job))
                return;
        for (size_t i = 0; i < job->n_capsules; i++) {
                const Rm__Capsule *capsule = job->capsules[i];
                int32_t from = state_capsule_position(state, job, capsule->index), to;

                if (!job_group_parked(job, capsule) || !is_up(snapshot, from) || may_use(snapshot, view, (uint32_t) from) ||
                    state_capsule_move(state, job->id, capsule->index))
                        continue;
                if (!rooms)
                        rooms = room_create_all(snapshot);
                to = best_node(snapshot, view, rooms, capsule->ranks, promised(job, capsule->ranks));
                if (to < 0)
                        continue;
                room_take(&rooms[to], capsule->ranks, promised(job, capsule->ranks));
                add_move(result, index, capsule->index, from, to, ROUND_NEEDED,
                         snapshot->nodes[from].cores == 0 ? "parked ranks leave node" : "the job's availability file excludes",
                         snapshot->nodes[from].name);
        }
}
