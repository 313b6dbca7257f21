#include "daemon/leader/parked.h"

#include <inttypes.h>
#include <string.h>

#include "common/groups.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/leader/space.h"

static bool may_use(const struct rm_snapshot *snapshot, const struct rm_job *view, uint32_t node) {
        return snapshot->nodes[node].cores > 0 && (!view->node_limit || view->node_limit[node] > 0);
}

/* Limits that only keep others from coming, as where moves failed or processors lack something, do
 * not drive away what is there. */
static bool may_stay(const struct rm_snapshot *snapshot, const Rm__Job *job, int32_t node) {
        for (size_t i = 0; job->available_set && i < job->n_available; i++)
                if (job->available[i]->cores == 0 && strcmp(job->available[i]->node, snapshot->nodes[node].name) == 0)
                        return false;
        return snapshot->nodes[node].cores > 0;
}

/* A group that wants a node. */
struct wish {
        uint32_t ranks;
        int64_t memory;
        const Rm__Node *from; /* NULL: it is on none */
        bool must; /* also where there are as many capsules as may be */
};

static bool lacks(const Rm__Node *from, const Rm__Node *to) {
        cleanup_free char *text = from && to ? node_lacks(to, from) : NULL;

        return text != NULL;
}

/* Fewest ranks for each core, with these; RM_NO_NODE: none has room for a capsule, its memory, and
 * the instruction sets that it may use. */
static int32_t best_node(const Rm__State *state, const struct rm_snapshot *snapshot, const struct rm_job *view,
                         const struct space *spaces, const struct wish *wish) {
        int32_t best = RM_NO_NODE;

        for (uint32_t n = 0; n < snapshot->n_nodes; n++) {
                const struct space *space = &spaces[n];

                if (!may_use(snapshot, view, n) || (space->capsules_free == 0 && !wish->must) ||
                    (space->memory_free != RM_NO_MEMORY_LIMIT && wish->memory > space->memory_free) ||
                    lacks(wish->from, state_node(state, snapshot->nodes[n].name)))
                        continue;
                if (best < 0 || space_is_better(space, &spaces[best], wish->ranks))
                        best = (int32_t) n;
        }
        return best;
}

static int64_t promised(const Rm__Job *job, uint32_t ranks) {
        uint64_t bytes = job->spec->rank_memory_bytes;

        return ranks > 0 && bytes > INT64_MAX / ranks ? INT64_MAX : (int64_t) (bytes * ranks);
}

/* How many capsules each node may still have. */
static struct space *spaces_of(const struct state_index *state, const struct rm_snapshot *snapshot, uint32_t capsules_per_core) {
        struct space *spaces = space_create_all(snapshot);

        for (uint32_t n = 0; n < snapshot->n_nodes; n++)
                spaces[n].capsules_free = state_capsule_space(state, snapshot->nodes[n].name, capsules_per_core);
        return spaces;
}

int32_t *parked_place(const struct state_index *state, const struct rm_snapshot *snapshot, uint32_t index, const Rm__Job *job,
                      const struct parked_start *start) {
        const struct rm_job *view = &snapshot->jobs[index];
        bool parks = job_may_park(state_index_state(state), job->spec);
        cleanup_free struct space *spaces = parks ? spaces_of(state, snapshot, start->capsules_per_core) : NULL;
        cleanup_free int32_t *nodes = xcalloc(start->n_groups + 1u, sizeof(*nodes));

        if (parks)
                space_take(&spaces[start->head_node], 0, 0);
        for (uint32_t g = 0; g < view->n_groups && g < start->n_groups; g++) {
                nodes[g] = start->group_node[g];
                if (parks && spaces[nodes[g]].capsules_free == 0) /* it may be parked there tomorrow */
                        return NULL;
                if (parks)
                        space_take(&spaces[nodes[g]], view->groups[g].ranks, view->groups[g].memory);
        }
        for (uint32_t g = view->n_groups; g < start->n_groups; g++) {
                struct wish wish = { .ranks = groups_ranks(job->spec->ranks, start->group_size, g) };

                wish.memory = promised(job, wish.ranks);
                nodes[g] = best_node(state_index_state(state), snapshot, view, spaces, &wish);
                if (nodes[g] < 0)
                        return NULL;
                space_take(&spaces[nodes[g]], wish.ranks, wish.memory);
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
        (void) text_format(move->reason, sizeof(move->reason), "%s '%s'", why, node);
}

void parked_move(const struct state_index *state, const struct rm_snapshot *snapshot, uint32_t index, const Rm__Job *job,
                 uint32_t group, int32_t to, struct round_result *result) {
        int32_t from = state_capsule_position(state, job, (int32_t) group);

        if (may_move(state, snapshot, job) && is_up(snapshot, from) && !state_capsule_move(state, job->id, (int32_t) group))
                add_move(result, index, (int32_t) group, from, to, ROUND_RETURN, "parked ranks have no free cores on node",
                         snapshot->nodes[from].name);
}

/* The group has found no node. Without any that has cores, this is not for want of memory. */
static char *why_it_stays(const struct rm_snapshot *snapshot, const struct wish *wish, int32_t from, int32_t group) {
        bool any = false;

        for (uint32_t n = 0; n < snapshot->n_nodes; n++)
                any |= snapshot->nodes[n].cores > 0;
        if (!any)
                return xasprintf("stays on '%s': no node has usable cores", snapshot->nodes[from].name);
        if (wish->memory == 0)
                return xasprintf("stays on '%s': no node that the job may use can take the parked group %" PRId32,
                                 snapshot->nodes[from].name, group);
        return xasprintf("stays on '%s': no node that the job may use has the %" PRId64
                         " MB of memory free that moving the parked group %" PRId32 " needs",
                         snapshot->nodes[from].name, wish->memory / 1000000, group);
}

void parked_moves(const struct state_index *state, const struct rm_snapshot *snapshot, uint32_t index, const Rm__Job *job,
                  uint32_t capsules_per_core, struct round_result *result, struct parked_stay *ret_stay) {
        const Rm__State *all = state_index_state(state);
        const struct rm_job *view = &snapshot->jobs[index];
        cleanup_free struct space *spaces = NULL;

        *ret_stay = (struct parked_stay) { 0 };
        if (!may_move(state, snapshot, job))
                return;
        for (size_t i = 0; i < job->n_capsules; i++) {
                const Rm__Capsule *capsule = job->capsules[i];
                int32_t from = state_capsule_position(state, job, capsule->index), to;
                struct wish wish = { capsule->ranks, promised(job, capsule->ranks), state_node(all, capsule->node), false };

                if (!job_group_parked(job, capsule) || !is_up(snapshot, from) || may_stay(snapshot, job, from) ||
                    state_capsule_move(state, job->id, capsule->index))
                        continue;
                if (!spaces)
                        spaces = spaces_of(state, snapshot, capsules_per_core);
                to = best_node(all, snapshot, view, spaces, &wish);
                wish.must = snapshot->nodes[from].cores == 0; /* a limit does not keep a node from being emptied */
                if (to < 0 && wish.must)
                        to = best_node(all, snapshot, view, spaces, &wish);
                if (to < 0 && wish.must && !ret_stay->reason)
                        *ret_stay = (struct parked_stay) { why_it_stays(snapshot, &wish, from, capsule->index),
                                                           snapshot->nodes[from].name };
                if (to < 0)
                        continue;
                space_take(&spaces[to], wish.ranks, wish.memory);
                add_move(result, index, capsule->index, from, to, ROUND_NEEDED,
                         snapshot->nodes[from].cores == 0 ? "parked ranks leave node" : "the job's availability file excludes",
                         snapshot->nodes[from].name);
        }
}
