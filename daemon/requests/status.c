#include <stdlib.h>
#include <string.h>

#include "common/hostlist.h"
#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/job/bodies.h"
#include "daemon/job/limits.h"
#include "daemon/job/pages_test.h"
#include "daemon/leader/leader.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/service.h"
#include "daemon/sched/snapshot.h"
#include "daemon/sensor/sensors.h"
#include "daemon/state/feature_level.h"

/* Of a document that comes in several replies. */
#define TEXT_PART_BYTES (512U << 10)

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

/* The voters' list is the reply's, to be freed with free_voters(). Without a leader nobody looks after their health, so that more of them may
 * be lost than the state says. */
static void fill_voters(const Rm__State *state, Rm__Status *status) {
        uint32_t up = 0;

        status->voters = xcalloc(state->n_voters, sizeof(*status->voters));
        for (size_t i = 0; i < state->n_voters; i++) {
                const Rm__Node *node = state_node(state, state->voters[i]);
                Rm__VoterView *view = xcalloc(1, sizeof(*view));

                rm__voter_view__init(view);
                view->node = state->voters[i];
                view->up = node && node->health == RM__NODE_HEALTH__NODE_HEALTH_UP;
                up += view->up;
                status->voters[status->n_voters++] = view;
        }
        status->quorum = (uint32_t) state->n_voters / 2 + 1;
        status->may_lose = *status->leader && up > status->quorum ? up - status->quorum : 0;
}

static void free_voters(Rm__Status *status) {
        for (size_t i = 0; i < status->n_voters; i++)
                free(status->voters[i]);
        free(status->voters);
}

/* What an administrator may not expect; NULL: nothing. Without a leader the warning about that says what there is to be said. */
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
                                         condition_word((Rm__Condition) value), names);
                }
                hostlist_finish(&list);
        }
        return text;
}

static char *second_key_warning(const struct config *config) {
        return xasprintf(
                "a second key is accepted (%s), until [cluster] second_key_file is removed from rmd.conf and rmd started again",
                config->second_key_file);
}

static void fill_tracking(const struct rmd *rmd, Rm__Status *status) {
        const char *why = "";

        status->tracking = rmd->config->move_tracking && pages_test_passed(rmd->pages_test, &why);
        if (!rmd->config->move_tracking)
                why = "[move] tracking = no in rmd.conf";
        status->untracked = (char *) why;
}

/* The list is the reply's, to be freed with free_sensors(). */
static void fill_sensors(const struct sensors *sensors, Rm__Status *status) {
        size_t n = sensors_count(sensors);

        status->sensors = xcalloc(n, sizeof(*status->sensors));
        while (status->n_sensors < n) {
                struct sensor_view from = sensors_view(sensors, status->n_sensors);
                Rm__SensorView *view = xcalloc(1, sizeof(*view));

                rm__sensor_view__init(view);
                view->name = (char *) from.name;
                view->status = (char *) from.status;
                view->text = (char *) from.text;
                view->fault = (char *) from.fault;
                view->since_usec = from.since_usec;
                status->sensors[status->n_sensors++] = view;
        }
}

static void free_sensors(Rm__Status *status) {
        for (size_t i = 0; i < status->n_sensors; i++)
                free(status->sensors[i]);
        free(status->sensors);
}

static void fill_losses(const struct cluster *cluster, Rm__Status *status) {
        struct state_failures failures;

        state_failures(cluster_state(cluster), cluster_log_usec(cluster), &failures);
        status->losses = failures.losses;
        status->losses_foreseen = failures.foreseen;
        status->node_usec = failures.node_usec;
}

void request_status(struct client *client, const Rm__LocalRequest *request) {
        struct rmd *rmd = client->rmd;
        const Rm__State *state = cluster_state(rmd->cluster);
        const char *leader = cluster_leader(rmd->cluster);
        Rm__Status status = RM__STATUS__INIT;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        cleanup_free char *unknown = NULL;
        cleanup_free char *loose = NULL;
        cleanup_free char *refused = NULL;
        cleanup_free char *missing = limits_missing(rmd);
        cleanup_free char *second_key = NULL;
        cleanup_free char *few_voters = NULL;
        cleanup_free char *overdue = overdue_warning(cluster_index(rmd->cluster));
        cleanup_free char *conditions = conditions_warning(state);
        cleanup_free char *behind = feature_level_behind(state, STATE_LEVEL);
        char *warnings[13];

        status.cluster = rmd->config->cluster_name;
        status.node = rmd->config->node_name;
        status.leader = (char *) (leader ? leader : "");
        status.log_index = state->index;
        status.policy = rmd->config->policy;
        status.rmd_version = (char *) RM_VERSION;
        status.up_usec = now_usec() - rmd->start_usec;
        status.level = state->level;
        status.level_known = STATE_LEVEL;
        status.level_behind = behind ? behind : (char *) "";
        fill_tracking(rmd, &status);
        fill_sensors(rmd->sensors, &status);
        fill_losses(rmd->cluster, &status);
        status.availability = state->availability;
        status.warnings = warnings;
        count(cluster_index(rmd->cluster), &status);
        if (!leader)
                warnings[status.n_warnings++] = (char *) "no leader can be reached: running jobs go on, nothing can be changed";
        else if (!cluster_synced(rmd->cluster))
                warnings[status.n_warnings++] = (char *) "this node does not have the newest state yet";
        fill_voters(state, &status);
        few_voters = voters_warning(state, &status);
        if (few_voters)
                warnings[status.n_warnings++] = few_voters;
        if (overdue)
                warnings[status.n_warnings++] = overdue;
        if (conditions)
                warnings[status.n_warnings++] = conditions;
        if (cluster_disk_full(rmd->cluster))
                warnings[status.n_warnings++] =
                        (char *) "the disk with [cluster] state_dir is full: running jobs go on, nothing can be changed";
        else if (bodies_disk_full(rmd->bodies))
                warnings[status.n_warnings++] =
                        (char *) "the disk with [cluster] state_dir is full: running jobs go on, no new ones are taken";
        if (state->availability->error[0])
                warnings[status.n_warnings++] = state->availability->error;
        if (state->topology_error[0])
                warnings[status.n_warnings++] = refused = xasprintf("%s; the switches stay as they were", state->topology_error);
        state_topology_doubts(state, &unknown, &loose);
        if (unknown)
                warnings[status.n_warnings++] = unknown;
        if (loose)
                warnings[status.n_warnings++] = loose;
        if (state->scheduling_warning[0])
                warnings[status.n_warnings++] = state->scheduling_warning;
        if (rmd->config->second_key_file[0])
                warnings[status.n_warnings++] = second_key = second_key_warning(rmd->config);
        if (missing)
                warnings[status.n_warnings++] = missing;
        reply.body_case = RM__LOCAL_REPLY__BODY_STATUS;
        reply.status = &status;
        client_reply(client, request->id, &reply);
        free_voters(&status);
        free_sensors(&status);
}

static void reply_text(struct client *client, uint32_t request_id, char *text, bool more) {
        Rm__Text body = RM__TEXT__INIT;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;

        body.text = text;
        body.more = more;
        reply.body_case = RM__LOCAL_REPLY__BODY_TEXT;
        reply.text = &body;
        client_reply(client, request_id, &reply);
}

void request_reply_json(struct client *client, uint32_t request_id, const json_t *json, bool paged) {
        cleanup_free char *text = json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        char *at = text;

        if (!text) {
                client_error(client, request_id, -ENOMEM, "the answer cannot be written as JSON");
                return;
        }
        while (paged && strlen(at) > TEXT_PART_BYTES) {
                char after = at[TEXT_PART_BYTES];

                at[TEXT_PART_BYTES] = 0;
                reply_text(client, request_id, at, true);
                at += TEXT_PART_BYTES;
                *at = after;
        }
        reply_text(client, request_id, at, false);
}

void request_snapshot(struct client *client, const Rm__LocalRequest *request) {
        struct rm_error err = { 0 };
        struct leader_snapshot snapshot;
        json_t *json;

        if (leader_snapshot(client->rmd, &snapshot, &err) < 0) {
                client_error(client, request->id, err.code, "snapshot: %s", error_text(&err));
                return;
        }
        json = snapshot_to_json(snapshot_view(snapshot.policy));
        request_reply_json(client, request->id, json, request->get_snapshot->paged);
        json_decref(json);
        leader_snapshot_finish(&snapshot);
}

/* ---- answered by the policy host ---- */

struct asked {
        struct client *client;
        uint32_t request_id;
};

static void asked_free(struct asked *asked) {
        client_release(asked->client);
        free(asked);
}

static void on_listed(void *context, json_t *list, const struct rm_error *err) {
        struct asked *asked = context;
        size_t n = list ? json_array_size(list) : 0;
        Rm__PolicyView *views = xcalloc(n, sizeof(*views));
        Rm__PolicyList policies = RM__POLICY_LIST__INIT;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;

        policies.policies = xcalloc(n, sizeof(Rm__PolicyView *));
        for (size_t i = 0; i < n; i++) {
                json_t *entry = json_array_get(list, i);
                const char *name = json_string_value(json_object_get(entry, "name"));
                const char *description = json_string_value(json_object_get(entry, "description"));
                const char *error = json_string_value(json_object_get(entry, "error"));

                rm__policy_view__init(&views[i]);
                views[i].name = (char *) (name ? name : "?");
                views[i].description = (char *) (description ? description : "");
                views[i].error = (char *) (error ? error : "");
                views[i].is_default = name && strcmp(name, asked->client->rmd->config->policy) == 0;
                policies.policies[policies.n_policies++] = &views[i];
        }
        reply.body_case = RM__LOCAL_REPLY__BODY_POLICIES;
        reply.policies = &policies;
        if (list)
                client_reply(asked->client, asked->request_id, &reply);
        else
                client_error(asked->client, asked->request_id, err->code, "list-policies: %s", error_text(err));
        free(policies.policies);
        free(views);
        asked_free(asked);
}

void request_list_policies(struct client *client, const Rm__LocalRequest *request) {
        struct asked *asked = xcalloc(1, sizeof(*asked));
        struct rm_error err = { 0 };

        *asked = (struct asked) { .client = client_hold(client), .request_id = request->id };
        if (policy_host_list(service_policy_host(client->rmd->service), on_listed, asked, &err) < 0) {
                client_error(client, request->id, err.code ? err.code : -EBUSY, "list-policies: %s", error_text(&err));
                asked_free(asked);
        }
}
