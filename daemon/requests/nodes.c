#include "daemon/state/commands.h"
#include "daemon/requests/drain.h"
#include "daemon/requests/named_nodes.h"
#include "daemon/requests/report_health.h"
#include "daemon/requests/requests.h"

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
        else if (!named_nodes_refuse(client, request->id, "drain-node", in->names, in->n_names))
                request_propose_all(client, request, in->n_names, drain_one);
}

static Rm__Command *resume_one(struct command *c, const struct client *client, const Rm__LocalRequest *request, size_t i) {
        return command_node_resume(c, request->resume_node->names[i], client->user);
}

void request_resume_node(struct client *client, const Rm__LocalRequest *request) {
        const Rm__ResumeNode *in = request->resume_node;

        if (!named_nodes_refuse(client, request->id, "resume-node", in->names, in->n_names))
                request_propose_all(client, request, in->n_names, resume_one);
}

static Rm__Command *remove_one(struct command *c, const struct client *client, const Rm__LocalRequest *request, size_t i) {
        return command_node_remove(c, request->remove_node->names[i], client->user, false);
}

void request_remove_node(struct client *client, const Rm__LocalRequest *request) {
        const Rm__RemoveNode *in = request->remove_node;

        if (!named_nodes_refuse(client, request->id, "remove-node", in->names, in->n_names))
                request_propose_all(client, request, in->n_names, remove_one);
}

static Rm__Command *confirm_one(struct command *c, const struct client *client, const Rm__LocalRequest *request, size_t i) {
        return command_node_fence(c, request->confirm_lost->names[i], 0, true, "", client->user);
}

void request_confirm_lost(struct client *client, const Rm__LocalRequest *request) {
        const Rm__ConfirmLost *in = request->confirm_lost;

        if (!named_nodes_refuse(client, request->id, "confirm-lost", in->names, in->n_names))
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
        else if (!named_nodes_refuse(client, request->id, "report-health", in->names, in->n_names))
                request_propose_all(client, request, in->n_names, report_one);
}
