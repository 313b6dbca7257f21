#include "daemon/state/state_session.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/state/state.h"
#include "daemon/state/state_internal.h"

/* The position of the first session of this node, or where it would be. */
static size_t first_of(const Rm__State *state, const char *node) {
        size_t low = 0, high = state->n_sessions;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(state->sessions[middle]->node, node) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool is_of(const Rm__State *state, size_t i, const char *node) {
        return i < state->n_sessions && strcmp(state->sessions[i]->node, node) == 0;
}

Rm__Session *state_session(const Rm__State *state, const char *node, uint64_t instance) {
        for (size_t i = first_of(state, node); is_of(state, i, node); i++)
                if (state->sessions[i]->instance == instance)
                        return state->sessions[i];
        return NULL;
}

const Rm__SessionResult *session_result(const Rm__Session *session, uint64_t sequence) {
        for (size_t i = session->n_results; i > 0; i--)
                if (session->results[i - 1]->sequence == sequence)
                        return session->results[i - 1];
        return NULL;
}

/* ---- sessions begin and end ---- */

static void session_remove(Rm__State *state, size_t i) {
        rm__session__free_unpacked(state->sessions[i], NULL);
        REPEATED_REMOVE(state->sessions, state->n_sessions, i);
}

/* Removes the sessions of nodes that have left, and the oldest ones of this node. */
static void make_space(Rm__State *state, const char *node) {
        size_t i = 0, n = 0;

        while (i < state->n_sessions)
                if (strcmp(state->sessions[i]->node, node) != 0 && !state_node(state, state->sessions[i]->node))
                        session_remove(state, i);
                else
                        i++;
        i = first_of(state, node);
        while (is_of(state, i + n, node))
                n++;
        for (; n >= STATE_SESSIONS_PER_NODE; n--)
                session_remove(state, i);
}

static Rm__Session *session_open(Rm__State *state, const Rm__Origin *origin) {
        Rm__Session *session = xcalloc(1, sizeof(*session));
        size_t i;

        make_space(state, origin->node);
        i = first_of(state, origin->node);
        while (is_of(state, i, origin->node))
                i++;
        rm__session__init(session);
        message_set_string(&session->node, origin->node);
        session->instance = origin->instance;
        REPEATED_INSERT(state->sessions, state->n_sessions, i, session);
        return session;
}

/* ---- one command ---- */

static void repeat_result(struct apply *a, const Rm__Session *session) {
        const Rm__Origin *origin = a->command->origin;
        const Rm__SessionResult *before = session_result(session, origin->sequence);

        a->result->repeated = true;
        if (!before) {
                apply_refuse(a, -ESTALE, "it comes too late: what node '%s' proposed after it has been applied", origin->node);
                return;
        }
        a->result->created = before->created;
        if (before->code < 0)
                apply_refuse(a, before->code, "%s", before->text);
}

bool session_admits(struct apply *a) {
        const Rm__Origin *origin = a->command->origin;
        const Rm__Session *session = state_session(a->state, origin->node, origin->instance);

        if (!origin->node[0] || origin->sequence == 0)
                apply_refuse(a, -EINVAL, "the command does not say whose it is");
        else if (session && origin->sequence <= session->sequence)
                repeat_result(a, session);
        else if (!session && !origin->opens)
                apply_refuse(a, -ESTALE, "node '%s' has been away for long, and what it proposed before is not known any more",
                             origin->node);
        else if (origin->after > (session ? session->sequence : 0))
                apply_refuse(a, -EILSEQ, "what node '%s' proposed before it has not been applied yet", origin->node);
        else
                return true;
        return false;
}

static void results_trim(Rm__Session *session, uint64_t answered) {
        size_t n = 0;

        while (n < session->n_results &&
               (session->results[n]->sequence <= answered || session->n_results - n >= STATE_RESULTS_KEPT))
                rm__session_result__free_unpacked(session->results[n++], NULL);
        session->n_results -= n;
        if (n > 0)
                memmove(session->results, session->results + n, session->n_results * sizeof(session->results[0]));
}

void session_record(struct apply *a) {
        const Rm__Origin *origin = a->command->origin;
        Rm__Session *session = state_session(a->state, origin->node, origin->instance);
        Rm__SessionResult *result = xcalloc(1, sizeof(*result));

        if (!session)
                session = session_open(a->state, origin);
        assert(origin->sequence > session->sequence); /* each command is done once, in the order of its node */
        rm__session_result__init(result);
        result->sequence = session->sequence = origin->sequence;
        result->code = a->result->error.code;
        message_set_string(&result->text, result->code < 0 ? error_text(&a->result->error) : NULL);
        result->created = a->result->created;
        result->index = a->state->index;
        results_trim(session, origin->answered);
        REPEATED_PUSH(session->results, session->n_results, result);
}
