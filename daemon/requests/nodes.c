#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/requests/drain.h"
#include "daemon/requests/report_health.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/views.h"
#include "daemon/state/commands.h"

#define NAMES_MAX 100U /* that may be given even where there are fewer nodes: so many get the usual answer */

/* The names are the state's. */
static void fill_switches(const Rm__State *state, int32_t index, Rm__NodeView *view) {
        view->switch_ = xcalloc(STATE_SWITCH_DEPTH_MAX + 1u, sizeof(*view->switch_));
        while (index >= 0 && view->n_switch_ <= STATE_SWITCH_DEPTH_MAX) {
                const Rm__Switch *at = state->switches[index];

                view->switch_[view->n_switch_++] = at->name;
                index = (int32_t) at->above - 1;
        }
}

static Rm__NodeView *node_view(const struct client *client, const Rm__State *state, Rm__Node *node, int32_t switch_index) {
        Rm__NodeView *view = xcalloc(1, sizeof(*view));
        const char *leader = cluster_leader(client->rmd->cluster);

        rm__node_view__init(view);
        view->node = node;
        fill_switches(state, switch_index, view);
        view->state = (char *) state_node_word(cluster_index(client->rmd->cluster), node);
        view->usable_cores = node_usable_cores(node);
        view->condition = node_condition(node);
        view->ranks = state_node_ranks(cluster_index(client->rmd->cluster), node->name, &view->capsules);
        view->leader = leader && strcmp(leader, node->name) == 0;
        return view;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

/* `names`: sorted; none: all are. */
static bool wanted(char **names, size_t n, const char *name) {
        return n == 0 || bsearch(&name, names, n, sizeof(*names), compare_names) != NULL;
}

static bool refuse_unknown(struct client *client, uint32_t request_id, const char *verb, const Rm__State *state, char **names,
                           size_t n) {
        /* Some are named twice. */
        if (n > state->n_nodes + NAMES_MAX) {
                client_error(client, request_id, -E2BIG, "%s: %zu nodes named, and the cluster has %zu", verb, n, state->n_nodes);
                return true;
        }
        for (size_t i = 0; i < n; i++)
                if (!state_node(state, names[i])) {
                        cleanup_free char *known = state_known_nodes(state);

                        client_error(client, request_id, -ENOENT, "%s: no node '%s' (known: %s)", verb,
                                     name_valid(names[i]) ? names[i] : "?", known);
                        return true;
                }
        return false;
}

static void collect_nodes(struct client *client, const Rm__ListNodes *list, Rm__NodeList *nodes) {
        const Rm__State *state = cluster_state(client->rmd->cluster);
        cleanup_free int32_t *switches = state_node_switches(state);
        cleanup_free char **names = xcalloc(list->n_names + 1, sizeof(*names));
        size_t max_bytes = page_bytes(list->paged);
        size_t bytes = 0;

        if (list->n_names > 0)
                memcpy(names, list->names, sizeof(*names) * list->n_names);
        qsort(names, list->n_names, sizeof(*names), compare_names);
        for (size_t i = 0; i < state->n_nodes; i++) {
                if (strcmp(state->nodes[i]->name, list->after) <= 0 || !wanted(names, list->n_names, state->nodes[i]->name))
                        continue;
                if (bytes >= max_bytes) {
                        nodes->more = true;
                        return;
                }
                nodes->nodes[nodes->n_nodes] = node_view(client, state, state->nodes[i], switches[i]);
                bytes += protobuf_c_message_get_packed_size(&nodes->nodes[nodes->n_nodes++]->base);
        }
}

void request_list_nodes(struct client *client, const Rm__LocalRequest *request) {
        const Rm__State *state = cluster_state(client->rmd->cluster);
        const Rm__ListNodes *list = request->list_nodes;
        Rm__NodeList nodes = RM__NODE_LIST__INIT;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;

        if (refuse_unknown(client, request->id, "list-nodes", state, list->names, list->n_names))
                return;
        nodes.nodes = xcalloc(state->n_nodes, sizeof(Rm__NodeView *));
        collect_nodes(client, list, &nodes);
        reply.body_case = RM__LOCAL_REPLY__BODY_NODES;
        reply.nodes = &nodes;
        if (nodes.more && !list->paged)
                page_refuse(client, request->id, "list-nodes");
        else
                client_reply(client, request->id, &reply);
        for (size_t i = 0; i < nodes.n_nodes; i++) {
                free(nodes.nodes[i]->switch_);
                free(nodes.nodes[i]);
        }
        free(nodes.nodes);
}

/* Of a request that names nodes to do something with. */
static bool refuse_names(struct client *client, uint32_t request_id, const char *verb, char **names, size_t n) {
        if (n > 0)
                return refuse_unknown(client, request_id, verb, cluster_state(client->rmd->cluster), names, n);
        client_error(client, request_id, -EINVAL, "%s: name at least one node", verb);
        return true;
}

static Rm__Command *drain_one(struct command *c, const struct client *client, const Rm__LocalRequest *request, size_t i) {
        const Rm__DrainNode *in = request->drain_node;
        uint64_t deadline_usec = in->deadline_usec > 0 ? cluster_log_usec(client->rmd->cluster) + in->deadline_usec : 0;

        return command_node_drain(c, in->names[i], in->reason, client->user, deadline_usec, in->update);
}

void request_drain_node(struct client *client, const Rm__LocalRequest *request) {
        const Rm__DrainNode *in = request->drain_node;
        struct rm_error err = { 0 };

        if (drain_check(in, &err) < 0)
                client_error(client, request->id, err.code, "%s", error_text(&err));
        else if (!refuse_names(client, request->id, "drain-node", in->names, in->n_names))
                request_propose_all(client, request, in->n_names, drain_one);
}

static Rm__Command *resume_one(struct command *c, const struct client *client, const Rm__LocalRequest *request, size_t i) {
        return command_node_resume(c, request->resume_node->names[i], client->user);
}

void request_resume_node(struct client *client, const Rm__LocalRequest *request) {
        const Rm__ResumeNode *in = request->resume_node;

        if (!refuse_names(client, request->id, "resume-node", in->names, in->n_names))
                request_propose_all(client, request, in->n_names, resume_one);
}

static Rm__Command *remove_one(struct command *c, const struct client *client, const Rm__LocalRequest *request, size_t i) {
        return command_node_remove(c, request->remove_node->names[i], client->user, false);
}

void request_remove_node(struct client *client, const Rm__LocalRequest *request) {
        const Rm__RemoveNode *in = request->remove_node;

        if (!refuse_names(client, request->id, "remove-node", in->names, in->n_names))
                request_propose_all(client, request, in->n_names, remove_one);
}

static Rm__Command *confirm_one(struct command *c, const struct client *client, const Rm__LocalRequest *request, size_t i) {
        return command_node_fence(c, request->confirm_lost->names[i], 0, true, "", client->user);
}

void request_confirm_lost(struct client *client, const Rm__LocalRequest *request) {
        const Rm__ConfirmLost *in = request->confirm_lost;

        if (!refuse_names(client, request->id, "confirm-lost", in->names, in->n_names))
                request_propose_all(client, request, in->n_names, confirm_one);
}

static Rm__Command *report_one(struct command *c, const struct client *client, const Rm__LocalRequest *request, size_t i) {
        const Rm__ReportHealth *in = request->report_health;
        const char *source = in->source[0] ? in->source : REPORT_HEALTH_SOURCE;

        return command_node_condition(c, in->names[i], source, in->condition, in->reason, client->user);
}

void request_report_health(struct client *client, const Rm__LocalRequest *request) {
        const Rm__ReportHealth *in = request->report_health;
        struct rm_error err = { 0 };

        if (report_health_check(in, &err) < 0)
                client_error(client, request->id, err.code, "%s", error_text(&err));
        else if (!refuse_names(client, request->id, "report-health", in->names, in->n_names))
                request_propose_all(client, request, in->n_names, report_one);
}
