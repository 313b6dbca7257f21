#include "daemon/view/staying.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"

enum {
        OF_NODE_MAX = 8, /* are told of a node */
        NAMED_MAX = 3,   /* in a warning */
};

static bool is_to_be_empty(const Rm__Node *node) {
        return node && node_to_be_left(node);
}

/* NULL: some node has all that programs may use on this one, or none may be used at all. */
static char *lacking(const Rm__State *state, const Rm__Node *from) {
        cleanup_free char *first = NULL;

        for (size_t i = 0; i < state->n_nodes; i++) {
                const Rm__Node *to = state->nodes[i];
                cleanup_free char *lacks = NULL;

                if (node_usable_cores(to) == 0)
                        continue;
                lacks = node_lacks(to, from);
                if (!lacks)
                        return NULL;
                if (!first)
                        first = xasprintf("no node that may be used has the instruction sets of %s: %s lacks %s", from->name,
                                          to->name, lacks);
        }
        return take_ptr(first);
}

/* malloc'ed; NULL: nothing is known to keep it. What PID 1 sees now says more than what a move has
 * found, and that may be over once the group has changed. What the leader has found is told of all
 * groups of the job that are there. */
static char *reason_of(const Rm__State *state, const Rm__Job *job, const Rm__Capsule *capsule) {
        const Rm__Node *node = state_node(state, capsule->node);
        char *lacks;

        if (capsule->blocker[0])
                return xstrdup(capsule->blocker);
        if (capsule->refusal && capsule->refusal->times > 0)
                return xstrdup(capsule->refusal->text);
        if (!is_to_be_empty(node))
                return NULL;
        lacks = lacking(state, node);
        if (lacks || strcmp(job->stays_on, capsule->node) != 0 || job->cancel || job->state != RM__JOB_STATE__JOB_RUNNING)
                return lacks;
        return xstrdup(job->reason);
}

static bool is_over(const Rm__Job *job) {
        return job->state >= RM__JOB_STATE__JOB_COMPLETING;
}

static int by_name(const void *name, const void *view) {
        return strcmp(name, (*(Rm__NodeView *const *) view)->node->name);
}

static void fill_one(const Rm__State *state, const Rm__Job *job, const Rm__Capsule *capsule, const Rm__NodeList *nodes) {
        cleanup_free char *reason = reason_of(state, job, capsule);
        Rm__NodeView **found =
                reason ? bsearch(capsule->node, nodes->nodes, nodes->n_nodes, sizeof(Rm__NodeView *), by_name) : NULL;
        char word[24];

        if (!found || (*found)->n_staying >= OF_NODE_MAX)
                return;
        if (!(*found)->staying)
                (*found)->staying = xcalloc(OF_NODE_MAX, sizeof(char *));
        (*found)->staying[(*found)->n_staying++] =
                xasprintf("%s of job %" PRIu64 ": %s", capsule_state_name(capsule->index, word), job->id, reason);
}

void view_staying_fill(const struct view_source *source, const struct view_reader *reader, const Rm__NodeList *nodes) {
        const Rm__State *state = state_index_state(source->index);

        for (size_t i = 0; i < state->n_jobs && nodes->n_nodes > 0; i++) {
                const Rm__Job *job = state->jobs[i];

                for (size_t k = 0; k < job->n_capsules && !is_over(job) && view_may(reader, job->spec->uid); k++)
                        fill_one(state, job, job->capsules[k], nodes);
        }
}

void view_staying_finish(Rm__NodeView *view) {
        free_all(view->staying, view->n_staying);
}

/* The capsule is to leave its node, or was to, and the blocker is still there. */
static bool is_to_move(const Rm__State *state, const Rm__Job *job, const Rm__Capsule *capsule) {
        const Rm__Refusal *refusal = capsule->refusal;
        cleanup_free char *reason = NULL;

        if (refusal && refusal->times > 0 && refusal->failure != RM__MOVE_FAILURE__MOVE_FAILURE_PASSING)
                return true;
        if (!is_to_be_empty(state_node(state, capsule->node)))
                return false;
        reason = reason_of(state, job, capsule);
        return reason != NULL;
}

static void name_one(char **text, const Rm__State *state, const struct view_reader *reader, const Rm__Job *job,
                     const Rm__Capsule *capsule) {
        cleanup_free char *reason = view_may(reader, job->spec->uid) ? reason_of(state, job, capsule) : NULL;
        char word[24];
        cleanup_free char *one = xasprintf("%s of job %" PRIu64 " on %s%s%s", capsule_state_name(capsule->index, word), job->id,
                                           capsule->node, reason ? ": " : "", reason ? reason : "");

        *text = text_add_word(*text, "; ", one);
}

char *view_staying_warning(const struct view_source *source, const struct view_reader *reader) {
        const Rm__State *state = state_index_state(source->index);
        cleanup_free char *names = NULL;
        size_t n = 0;

        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                for (size_t k = 0; k < job->n_capsules && !is_over(job); k++)
                        if (is_to_move(state, job, job->capsules[k]) && n++ < NAMED_MAX)
                                name_one(&names, state, reader, job, job->capsules[k]);
        }
        if (n == 0)
                return NULL;
        return xasprintf("%zu %s could not be moved ('rmctl show-job' says why and when it is tried again): %s%s", n,
                         n == 1 ? "group" : "groups", names, n > NAMED_MAX ? "; ..." : "");
}
