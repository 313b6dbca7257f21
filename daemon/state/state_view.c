#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/instruction_sets.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/state/state.h"

static int compare_node(const void *key, const void *node) {
        return strcmp(key, (*(Rm__Node *const *) node)->name);
}

static int compare_job(const void *key, const void *job) {
        uint64_t id = *(const uint64_t *) key, other = (*(Rm__Job *const *) job)->id;

        return (id > other) - (id < other);
}

static int compare_move(const void *key, const void *move) {
        uint64_t id = *(const uint64_t *) key, other = (*(Rm__Move *const *) move)->id;

        return (id > other) - (id < other);
}

Rm__Node *state_node(const Rm__State *state, const char *name) {
        Rm__Node **found = state->n_nodes ? bsearch(name, state->nodes, state->n_nodes, sizeof(*state->nodes), compare_node) : NULL;

        return found ? *found : NULL;
}

Rm__Job *state_job(const Rm__State *state, uint64_t id) {
        Rm__Job **found = state->n_jobs ? bsearch(&id, state->jobs, state->n_jobs, sizeof(*state->jobs), compare_job) : NULL;

        return found ? *found : NULL;
}

Rm__Move *state_move(const Rm__State *state, uint64_t id) {
        Rm__Move **found = state->n_moves ? bsearch(&id, state->moves, state->n_moves, sizeof(*state->moves), compare_move) : NULL;

        return found ? *found : NULL;
}

Rm__Capsule *job_capsule(const Rm__Job *job, int32_t index) {
        /* The head, -1, is the first. */
        return index >= STATE_HEAD && index + INT64_C(1) < (int64_t) job->n_capsules ? job->capsules[index + 1] : NULL;
}

uint32_t node_usable_cores(const Rm__Node *node) {
        if (node->health != RM__NODE_HEALTH__NODE_HEALTH_UP || node_to_be_left(node))
                return 0;
        if (node->available_set && node->available_cores < node->cores)
                return node->available_cores;
        return node->cores;
}

char *node_lacks(const Rm__Node *node, const Rm__Node *from) {
        return instruction_sets_lacking(node->instruction_sets, from->instruction_sets);
}

const Rm__NodeCondition *node_worst(const Rm__Node *node) {
        const Rm__NodeCondition *worst = NULL;

        for (size_t i = 0; i < node->n_conditions; i++)
                if (!worst || node->conditions[i]->condition > worst->condition)
                        worst = node->conditions[i];
        return worst;
}

Rm__Condition node_condition(const Rm__Node *node) {
        const Rm__NodeCondition *worst = node_worst(node);

        return worst ? worst->condition : RM__CONDITION__CONDITION_OK;
}

bool node_to_be_left(const Rm__Node *node) {
        return node->drain || node_condition(node) >= RM__CONDITION__CONDITION_FAILING;
}

uint64_t node_critical_usec(const Rm__Node *node) {
        uint64_t since_usec = 0;

        for (size_t i = 0; i < node->n_conditions; i++)
                if (node->conditions[i]->condition == RM__CONDITION__CONDITION_CRITICAL &&
                    (since_usec == 0 || node->conditions[i]->since_usec < since_usec))
                        since_usec = node->conditions[i]->since_usec;
        return since_usec;
}

const char *condition_name(Rm__Condition condition) {
        static const char *const words[] = { "ok", "warn", "failing", "critical" };

        return (size_t) condition < ARRAY_SIZE(words) ? words[condition] : "?";
}

bool job_ended(const Rm__Job *job) {
        return job->state >= RM__JOB_STATE__JOB_COMPLETED;
}

bool job_running(const Rm__Job *job) {
        return job->state > RM__JOB_STATE__JOB_PENDING && job->state < RM__JOB_STATE__JOB_COMPLETING &&
               job->state != RM__JOB_STATE__JOB_RECOVERING;
}

bool job_wants_restart(const Rm__JobSpec *spec) {
        return spec->on_node_loss == STATE_LOSS_RESTART || spec->on_node_loss == STATE_LOSS_FOLD;
}

uint32_t job_counted_attempts(const Rm__Job *job) {
        return job->attempt > job->free_attempts ? job->attempt - job->free_attempts : 0;
}

/* The owner wants the job restarted, and it has had fewer attempts than it may have. */
static bool is_restartable(const Rm__Job *job) {
        return !job->cancel && job_wants_restart(job->spec) && job_counted_attempts(job) <= job->spec->restarts;
}

bool job_may_restart(const Rm__Job *job) {
        return job_running(job) && is_restartable(job);
}

bool move_needs_source(const Rm__State *state, const Rm__Move *move) {
        const Rm__Job *job = state_job(state, move->job);
        const Rm__Capsule *capsule = job && job_running(job) ? job_capsule(job, move->capsule) : NULL;

        return move->state == RM__MOVE_STATE__MOVE_COMMITTED && move->later_bytes > 0 && move->fill_usec == 0 && capsule &&
               capsule->incarnation == move->incarnation;
}

bool job_end_may_be_loss(const Rm__Job *job, const Rm__Capsule *capsule) {
        bool by_itself = job->final_state == RM__JOB_STATE__JOB_COMPLETED || job->final_state == RM__JOB_STATE__JOB_FAILED;

        return job->state == RM__JOB_STATE__JOB_COMPLETING && by_itself && is_restartable(job) && capsule->index != STATE_HEAD &&
               capsule->state != RM__CAPSULE_STATE__CAPSULE_GONE;
}

const Rm__Node *job_fence_node(const Rm__State *state, const Rm__Job *job) {
        bool restarts = job_may_restart(job) || job->state == RM__JOB_STATE__JOB_RECOVERING;

        for (size_t k = 0; k < job->n_capsules; k++) {
                const Rm__Capsule *capsule = job->capsules[k];
                bool counts = restarts ? capsule->state != RM__CAPSULE_STATE__CAPSULE_GONE : job_end_may_be_loss(job, capsule);
                const Rm__Node *node = counts ? state_node(state, capsule->node) : NULL;

                if (node && node->fence[0])
                        return node;
        }
        return NULL;
}

const Rm__Node *job_lost_node(const Rm__State *state, const Rm__Job *job) {
        for (size_t k = 0; job_running(job) && k < job->n_capsules; k++) {
                const Rm__Capsule *capsule = job->capsules[k];
                const Rm__Node *node = state_node(state, capsule->node);

                if (node && node->health != RM__NODE_HEALTH__NODE_HEALTH_UP && capsule->state != RM__CAPSULE_STATE__CAPSULE_GONE)
                        return node;
        }
        return NULL;
}

char *job_wait_text(const Rm__Job *job, const char *why) {
        if (!job->restart_reason[0])
                return xstrdup(why);
        return xasprintf("attempt %u of %" PRIu64 " (%s)%s%s", job->attempt, job->spec->restarts + UINT64_C(1) + job->free_attempts,
                         job->restart_reason, why[0] ? ": " : "", why);
}

char *state_known_nodes(const Rm__State *state) {
        char *list = xstrdup("");

        for (size_t i = 0; i < state->n_nodes; i++)
                list = text_add_word(list, " ", state->nodes[i]->name);
        return list;
}

const char *capsule_state_name(int32_t index, char *buf) {
        if (index == STATE_HEAD)
                (void) snprintf(buf, 24, "head");
        else
                (void) snprintf(buf, 24, "group %" PRId32, index);
        return buf;
}

/* 0: it is about no job, or rmd itself wants it. */
static uint64_t requested_job(const Rm__Command *command) {
        switch (command->body_case) {
        case RM__COMMAND__BODY_JOB_CANCEL:
                return command->job_cancel->timeout ? 0 : command->job_cancel->job;
        case RM__COMMAND__BODY_JOB_RESIZE:
                return command->job_resize->by[0] ? command->job_resize->job : 0;
        case RM__COMMAND__BODY_JOB_RELEASE:
                return command->job_release->job;
        case RM__COMMAND__BODY_JOB_OUTPUT_DONE:
                return command->job_output_done->job;
        case RM__COMMAND__BODY_JOB_AVAILABILITY:
                return command->job_availability->job;
        case RM__COMMAND__BODY_JOB_RESIZE_REPORTED:
                return command->job_resize_reported->job;
        case RM__COMMAND__BODY_JOB_RANKS_REPORTED:
                return command->job_ranks_reported->job;
        case RM__COMMAND__BODY_JOB_OWN_STATE:
                return command->job_own_state->job;
        case RM__COMMAND__BODY_CAPSULE_BLOCKER:
                return command->capsule_blocker->job;
        case RM__COMMAND__BODY_MOVE_START:
                return command->move_start->cause == RM__MOVE_CAUSE__MOVE_CAUSE_ASKED ? command->move_start->job : 0;
        case RM__COMMAND__BODY_CHECKPOINT_START:
                return command->checkpoint_start->by[0] ? command->checkpoint_start->job : 0;
        case RM__COMMAND__BODY_CHECKPOINT_REMOVE:
                return command->checkpoint_remove->job;
        default:
                return 0;
        }
}

bool state_command_user(const Rm__State *state, const Rm__Command *command, uint32_t *ret_uid) {
        const Rm__JobSpec *spec = NULL;
        const Rm__Job *job;

        if (command->body_case == RM__COMMAND__BODY_JOB_SUBMIT)
                spec = command->job_submit->spec;
        else if (command->body_case == RM__COMMAND__BODY_CHECKPOINT_IMPORT && command->checkpoint_import->job)
                spec = command->checkpoint_import->job->spec;
        else if ((job = state_job(state, requested_job(command))))
                spec = job->spec;
        if (spec)
                *ret_uid = spec->uid;
        return spec != NULL;
}
