#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/cluster/state.h"

Rm__Node *state_node(const Rm__State *state, const char *name) {
        for (size_t i = 0; i < state->n_nodes; i++)
                if (strcmp(state->nodes[i]->name, name) == 0)
                        return state->nodes[i];
        return NULL;
}

Rm__Job *state_job(const Rm__State *state, uint64_t id) {
        for (size_t i = 0; i < state->n_jobs; i++)
                if (state->jobs[i]->id == id)
                        return state->jobs[i];
        return NULL;
}

Rm__Move *state_move(const Rm__State *state, uint64_t id) {
        for (size_t i = 0; i < state->n_moves; i++)
                if (state->moves[i]->id == id)
                        return state->moves[i];
        return NULL;
}

Rm__Capsule *job_capsule(const Rm__Job *job, int32_t index) {
        for (size_t i = 0; i < job->n_capsules; i++)
                if (job->capsules[i]->index == index)
                        return job->capsules[i];
        return NULL;
}

static bool move_under_way(const Rm__Move *move) {
        return move->state == RM__MOVE_STATE__MOVE_RUNNING || move->state == RM__MOVE_STATE__MOVE_COMMITTED;
}

Rm__Move *state_capsule_move(const Rm__State *state, uint64_t job, int32_t capsule) {
        for (size_t i = 0; i < state->n_moves; i++) {
                Rm__Move *move = state->moves[i];

                if (move->job == job && move->capsule == capsule && move_under_way(move))
                        return move;
        }
        return NULL;
}

uint32_t node_usable_cores(const Rm__Node *node) {
        if (node->health != RM__NODE_HEALTH__NODE_HEALTH_UP || node->drain)
                return 0;
        if (node->available_set && node->available_cores < node->cores)
                return node->available_cores;
        return node->cores;
}

bool job_ended(const Rm__Job *job) {
        return job->state >= RM__JOB_STATE__JOB_COMPLETED;
}

bool job_running(const Rm__Job *job) {
        return job->state > RM__JOB_STATE__JOB_PENDING && job->state < RM__JOB_STATE__JOB_COMPLETING;
}

uint32_t state_node_ranks(const Rm__State *state, const char *node, uint32_t *ret_capsules) {
        uint32_t ranks = 0;
        uint32_t capsules = 0;

        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                if (job_ended(job))
                        continue;
                for (size_t k = 0; k < job->n_capsules; k++) {
                        const Rm__Capsule *capsule = job->capsules[k];

                        if (capsule->state == RM__CAPSULE_STATE__CAPSULE_GONE || strcmp(capsule->node, node) != 0)
                                continue;
                        ranks += capsule->ranks;
                        capsules++;
                }
        }
        for (size_t i = 0; i < state->n_moves; i++) {
                const Rm__Move *move = state->moves[i];
                const Rm__Job *job = state_job(state, move->job);
                const Rm__Capsule *capsule = job ? job_capsule(job, move->capsule) : NULL;

                /* Before its commit a move holds room at both ends; after it, until the source is clean, too. */
                if (!capsule || !move_under_way(move))
                        continue;
                if (strcmp(move->state == RM__MOVE_STATE__MOVE_RUNNING ? move->to : move->from, node) != 0)
                        continue;
                if (move->state == RM__MOVE_STATE__MOVE_RUNNING)
                        ranks += capsule->ranks;
                capsules++;
        }
        if (ret_capsules)
                *ret_capsules = capsules;
        return ranks;
}

const char *state_node_word(const Rm__State *state, const Rm__Node *node) {
        uint32_t capsules = 0;
        uint32_t ranks = state_node_ranks(state, node->name, &capsules);

        if (node->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN)
                return "DOWN";
        if (node->health != RM__NODE_HEALTH__NODE_HEALTH_UP)
                return "UNKNOWN";
        if (node->drain)
                return capsules > 0 ? "DRAINING" : "DRAINED";
        if (ranks == 0)
                return "IDLE";
        return ranks >= node_usable_cores(node) ? "ALLOCATED" : "MIXED";
}

static bool job_folded(const Rm__State *state, const Rm__Job *job) {
        for (size_t i = 0; i < job->n_capsules; i++) {
                const Rm__Node *node = state_node(state, job->capsules[i]->node);

                if (job->capsules[i]->ranks > 0 && node && state_node_ranks(state, node->name, NULL) > node_usable_cores(node))
                        return true;
        }
        return false;
}

const char *state_job_word(const Rm__State *state, const Rm__Job *job) {
        static const char *const words[] = {
                "PENDING",    "STARTING",  "RUNNING", "MIGRATING", "FOLDED",  "CHECKPOINTING", "RECOVERING",
                "COMPLETING", "COMPLETED", "FAILED",  "CANCELLED", "TIMEOUT", "NODE_FAIL",
        };

        if (job->state == RM__JOB_STATE__JOB_RUNNING) {
                for (size_t i = 0; i < job->n_capsules; i++)
                        if (state_capsule_move(state, job->id, job->capsules[i]->index))
                                return "MIGRATING";
                if (job_folded(state, job))
                        return "FOLDED";
        }
        return (size_t) job->state < ARRAY_SIZE(words) ? words[job->state] : "?";
}

char *state_known_nodes(const Rm__State *state) {
        char *list = xstrdup("");

        for (size_t i = 0; i < state->n_nodes; i++) {
                char *longer = xasprintf("%s%s%s", list, i ? " " : "", state->nodes[i]->name);

                free(list);
                list = longer;
        }
        return list;
}

const char *capsule_word(int32_t index, char *buf) {
        if (index == STATE_HEAD)
                (void) snprintf(buf, 24, "head");
        else
                (void) snprintf(buf, 24, "group %" PRId32, index);
        return buf;
}
