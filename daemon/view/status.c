#include "daemon/view/status.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/hostlist.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/state/feature_level.h"
#include "daemon/view/staying.h"

enum { JOBS_NAMED_MAX = 3 }; /* in a warning */

/* Each call of add_warning() in add_warnings() may add a warning. */
#define WARNINGS_MAX 16U

/* ---- numbers ---- */

static void count(const struct state_index *index, Rm__Status *status) {
        const Rm__State *state = state_index_state(index);
        size_t n;
        Rm__Move *const *moves = state_open_moves(index, &n);

        for (size_t i = 0; i < state->n_nodes; i++)
                status->nodes_up += state->nodes[i]->health == RM__NODE_HEALTH__NODE_HEALTH_UP;
        status->nodes = (uint32_t) state->n_nodes;
        status->jobs_pending = (uint32_t) state_jobs_in(index, RM__JOB_STATE__JOB_PENDING);
        for (int in = RM__JOB_STATE__JOB_STARTING; in < RM__JOB_STATE__JOB_COMPLETING; in++)
                status->jobs_running += (uint32_t) state_jobs_in(index, (Rm__JobState) in);
        for (size_t i = 0; i < n; i++)
                status->moves_running += moves[i]->state == RM__MOVE_STATE__MOVE_RUNNING;
}

/* Without a leader the health of voters is not checked, so that more of them may be lost than the
 * state says. */
static void fill_voters(const Rm__State *state, Rm__Status *status) {
        uint32_t up = 0;

        status->voters = xcalloc(state->n_voters, sizeof(*status->voters));
        for (size_t i = 0; i < state->n_voters; i++) {
                const Rm__Node *node = state_node(state, state->voters[i]);
                Rm__VoterView *view = xcalloc(1, sizeof(*view));

                rm__voter_view__init(view);
                message_set_string(&view->node, state->voters[i]);
                view->up = node && node->health == RM__NODE_HEALTH__NODE_HEALTH_UP;
                up += view->up;
                status->voters[status->n_voters++] = view;
        }
        status->quorum = (uint32_t) state->n_voters / 2 + 1;
        status->may_lose = *status->leader && up > status->quorum ? up - status->quorum : 0;
}

static void fill_losses(const Rm__State *state, uint64_t log_usec, Rm__Status *status) {
        struct state_failures failures;

        state_failures(state, log_usec, &failures);
        status->losses = failures.losses;
        status->losses_foreseen = failures.foreseen;
        status->node_usec = failures.node_usec;
}

static void fill_level(const Rm__State *state, Rm__Status *status) {
        cleanup_free char *behind = feature_level_behind(state, STATE_LEVEL);

        status->level = state->level;
        status->level_known = STATE_LEVEL;
        message_set_string(&status->level_behind, behind);
}

/* ---- warnings ---- */

/* Takes over a malloc'ed text; NULL: there is nothing to warn of. */
static void add_warning(Rm__Status *status, char *text) {
        if (text)
                status->warnings[status->n_warnings++] = text;
}

static char *copy_unless_empty(const char *text) {
        return text && *text ? xstrdup(text) : NULL;
}

static char *leader_warning(const Rm__Status *status, const struct view_own *own) {
        if (!*status->leader)
                return xasprintf("no leader can be reached: running jobs go on, nothing can be changed%s%s",
                                 own->join_failures ? "; " : "", own->join_failures ? own->join_failures : "");
        return own->synced ? NULL : xstrdup("this node does not have the newest state yet");
}

/* A node that leads a cluster of its own looks well. */
static char *refusal_warning(const Rm__Status *status, const struct view_own *own) {
        if (!*status->leader || !own->join_failures)
                return NULL;
        return xasprintf("this node does not join those that its configuration names: %s", own->join_failures);
}

/* A warning that an administrator may not expect; NULL: none. Without a leader, the warning about
 * that suffices. */
static char *voters_warning(const Rm__State *state, const Rm__Status *status) {
        if (!*status->leader)
                return NULL;
        if (status->n_voters == 1 && state->n_nodes == 2)
                return xasprintf("two nodes: without %s nothing can be changed, and its disk has the only log; a third node would "
                                 "keep it too",
                                 state->voters[0]);
        if (status->n_voters == 2)
                return xasprintf("the cluster can lose neither of its two voters %s and %s: then nothing can be changed",
                                 state->voters[0], state->voters[1]);
        if (status->n_voters > 1 && status->may_lose == 0)
                return xstrdup("no other voter may be lost: then nothing can be changed");
        return NULL;
}

/* NULL: every drained node was empty in time, or still has some. */
static char *overdue_warning(const struct state_index *index) {
        const Rm__State *state = state_index_state(index);
        struct hostlist list = { 0 };
        uint32_t ranks = 0, capsules = 0;
        cleanup_free char *names = NULL;

        for (size_t i = 0; i < state->n_nodes; i++) {
                uint32_t here = 0, ranks_here = state_node_ranks(index, state->nodes[i]->name, &here);

                if (!state->nodes[i]->drain_overdue || here == 0)
                        continue;
                hostlist_add(&list, state->nodes[i]->name);
                ranks += ranks_here;
                capsules += here;
        }
        if (list.n_names > 0)
                names = hostlist_compress(list.names, list.n_names);
        hostlist_finish(&list);
        return names ? xasprintf("the deadline for %s to be empty has passed: %u ranks in %u capsules are left; draining goes on",
                                 names, ranks, capsules)
                     : NULL;
}

/* "critical: n2; failing: n[3-4]"; NULL: all nodes are well. */
static char *conditions_warning(const Rm__State *state) {
        char *text = NULL;

        for (int value = RM__CONDITION__CONDITION_CRITICAL; value > RM__CONDITION__CONDITION_OK; value--) {
                struct hostlist list = { 0 };
                cleanup_free char *before = NULL;
                cleanup_free char *names = NULL;

                for (size_t i = 0; i < state->n_nodes; i++)
                        if ((int) node_condition(state->nodes[i]) == value)
                                hostlist_add(&list, state->nodes[i]->name);
                if (list.n_names > 0) {
                        names = hostlist_compress(list.names, list.n_names);
                        before = text;
                        text = xasprintf("%s%s%s: %s", before ? before : "", before ? "; " : "",
                                         condition_name((Rm__Condition) value), names);
                }
                hostlist_finish(&list);
        }
        return text;
}

/* A job that is saved less often than its owner expects; NULL: the latest checkpoint of each one
 * that runs was made, or is the first. */
static char *checkpoints_warning(const Rm__State *state, const struct view_reader *reader) {
        cleanup_free char *names = NULL;
        size_t n = 0;

        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];
                bool told = view_may(reader, job->spec->uid);
                cleanup_free char *one = NULL;

                if (!job->checkpoint_error[0] || !job_running(job) || n++ >= JOBS_NAMED_MAX)
                        continue;
                one = xasprintf("job %" PRIu64 "%s%s", job->id, told ? ": " : "", told ? job->checkpoint_error : "");
                names = text_add_word(take_ptr(names), "; ", one);
        }
        if (n == 0)
                return NULL;
        return xasprintf("the latest checkpoint of %zu %s has failed: %s%s", n, n == 1 ? "job" : "jobs", names,
                         n > JOBS_NAMED_MAX ? "; ..." : "");
}

static char *disk_warning(const struct view_own *own) {
        if (own->log_disk_full)
                return xstrdup("the disk with [cluster] state_dir is full: running jobs go on, nothing can be changed");
        return own->bodies_disk_full
                       ? xstrdup("the disk with [cluster] state_dir is full: running jobs go on, no new ones are taken")
                       : NULL;
}

static char *web_warning(const struct view_own *own) {
        if (!own->web_unserved)
                return NULL;
        return xasprintf(
                "rmd of %s could not listen at %s for its page and metrics: 'journalctl -u rmd' says why; restart rmd when it can",
                own->node, own->web_unserved);
}

static char *second_key_warning(const char *file) {
        if (!*file)
                return NULL;
        return xasprintf(
                "a second key is accepted (%s), until [cluster] second_key_file is removed from rmd.conf and rmd started again",
                file);
}

static void add_warnings(const struct view_source *source, const struct view_reader *reader, const struct view_own *own,
                         Rm__Status *status) {
        const Rm__State *state = state_index_state(source->index);
        char *unknown = NULL, *loose = NULL;

        status->warnings = xcalloc(WARNINGS_MAX, sizeof(*status->warnings));
        add_warning(status, leader_warning(status, own));
        add_warning(status, refusal_warning(status, own));
        add_warning(status, voters_warning(state, status));
        add_warning(status, overdue_warning(source->index));
        add_warning(status, conditions_warning(state));
        add_warning(status, view_staying_warning(source, reader));
        add_warning(status, checkpoints_warning(state, reader));
        add_warning(status, disk_warning(own));
        add_warning(status, copy_unless_empty(state->availability ? state->availability->error : NULL));
        if (state->topology_error[0])
                add_warning(status, xasprintf("%s; the switches stay as they were", state->topology_error));
        state_topology_mismatches(state, &unknown, &loose);
        add_warning(status, unknown);
        add_warning(status, loose);
        add_warning(status, copy_unless_empty(state->scheduling_warning));
        add_warning(status, second_key_warning(own->second_key_file));
        add_warning(status, copy_unless_empty(own->limits_missing));
        add_warning(status, web_warning(own));
}

/* ---- the whole ---- */

static void fill_own(const struct view_own *own, Rm__Status *status) {
        message_set_string(&status->cluster, own->cluster);
        message_set_string(&status->node, own->node);
        message_set_string(&status->policy, own->policy);
        message_set_string(&status->rmd_version, own->version);
        status->up_usec = own->up_usec;
        status->tracking = own->tracking;
        message_set_string(&status->untracked, own->untracked);
        status->sensors = xcalloc(own->n_sensors, sizeof(*status->sensors));
        while (status->n_sensors < own->n_sensors) {
                status->sensors[status->n_sensors] = (Rm__SensorView *) message_copy(&own->sensors[status->n_sensors]->base);
                status->n_sensors++;
        }
}

Rm__Status *view_status(const struct view_source *source, const struct view_reader *reader, const struct view_own *own) {
        const Rm__State *state = state_index_state(source->index);
        Rm__Status *status = xcalloc(1, sizeof(*status));

        rm__status__init(status);
        fill_own(own, status);
        message_set_string(&status->leader, source->leader);
        status->log_index = state->index;
        if (state->availability)
                status->availability = (Rm__AvailabilityStatus *) message_copy(&state->availability->base);
        fill_level(state, status);
        fill_losses(state, own->log_usec, status);
        count(source->index, status);
        fill_voters(state, status);
        add_warnings(source, reader, own, status);
        return status;
}
