#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "common/version.h"
#include "daemon/client/forwarding.h"
#include "daemon/config/config.h"
#include "daemon/requests/own_job.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/service.h"
#include "daemon/requests/waiting.h"

static const struct request requests[] = {
        { RM__LOCAL_REQUEST__BODY_LIST_NODES, "list-nodes", ROLE_ANY, ROUTE_HERE, request_list_nodes },
        { RM__LOCAL_REQUEST__BODY_DRAIN_NODE, "drain-node", ROLE_ADMIN, ROUTE_PROPOSE, request_drain_node },
        { RM__LOCAL_REQUEST__BODY_RESUME_NODE, "resume-node", ROLE_ADMIN, ROUTE_PROPOSE, request_resume_node },
        { RM__LOCAL_REQUEST__BODY_REMOVE_NODE, "remove-node", ROLE_ADMIN, ROUTE_PROPOSE, request_remove_node },
        { RM__LOCAL_REQUEST__BODY_CONFIRM_LOST, "confirm-lost", ROLE_ADMIN, ROUTE_PROPOSE, request_confirm_lost },
        { RM__LOCAL_REQUEST__BODY_REPORT_HEALTH, "report-health", ROLE_ADMIN, ROUTE_PROPOSE, request_report_health },
        { RM__LOCAL_REQUEST__BODY_LIST_JOBS, "list-jobs", ROLE_ANY, ROUTE_HERE, request_list_jobs },
        { RM__LOCAL_REQUEST__BODY_SUBMIT_JOB, "submit", ROLE_ANY, ROUTE_LEADER, request_submit_job },
        { RM__LOCAL_REQUEST__BODY_CANCEL_JOB, "cancel-job", ROLE_ANY, ROUTE_PROPOSE, request_cancel_job },
        { RM__LOCAL_REQUEST__BODY_SIGNAL_JOB, "signal-job", ROLE_ANY, ROUTE_HEAD, request_signal_job },
        { RM__LOCAL_REQUEST__BODY_ATTACH_JOB, "attach-job", ROLE_ANY, ROUTE_HERE, request_attach_job },
        { RM__LOCAL_REQUEST__BODY_JOB_INPUT, "job-input", ROLE_ANY, ROUTE_HERE, request_job_input },
        { RM__LOCAL_REQUEST__BODY_OUTPUT_ACK, "output-ack", ROLE_ANY, ROUTE_HERE, request_output_ack },
        { RM__LOCAL_REQUEST__BODY_MIGRATE_JOB, "migrate-job", ROLE_ANY, ROUTE_PROPOSE, request_migrate_job },
        { RM__LOCAL_REQUEST__BODY_RESIZE_JOB, "resize-job", ROLE_ANY, ROUTE_PROPOSE, request_resize_job },
        { RM__LOCAL_REQUEST__BODY_CHECKPOINT_JOB, "checkpoint-job", ROLE_ANY, ROUTE_LEADER, request_checkpoint_job },
        { RM__LOCAL_REQUEST__BODY_DRILL_JOB, "drill", ROLE_ANY, ROUTE_LEADER, request_drill_job },
        { RM__LOCAL_REQUEST__BODY_RESTART_JOB, "restart-job", ROLE_ANY, ROUTE_PROPOSE, request_restart_job },
        { RM__LOCAL_REQUEST__BODY_REMOVE_CHECKPOINT, "remove-checkpoint", ROLE_ANY, ROUTE_PROPOSE, request_remove_checkpoint },
        { RM__LOCAL_REQUEST__BODY_VERIFY_CHECKPOINT, "verify-checkpoint", ROLE_ANY, ROUTE_NODE, request_verify_checkpoint },
        { RM__LOCAL_REQUEST__BODY_EXPORT_CHECKPOINT, "export-checkpoint", ROLE_ANY, ROUTE_HERE, request_export_checkpoint },
        { RM__LOCAL_REQUEST__BODY_IMPORT_CHECKPOINT, "import-checkpoint", ROLE_ANY, ROUTE_HERE, request_import_checkpoint },
        { RM__LOCAL_REQUEST__BODY_LIST_MOVES, "list-moves", ROLE_ANY, ROUTE_HERE, request_list_moves },
        { RM__LOCAL_REQUEST__BODY_FOLLOW_EVENTS, "events", ROLE_ANY, ROUTE_HERE, request_follow_events },
        { RM__LOCAL_REQUEST__BODY_GET_STATUS, "status", ROLE_ANY, ROUTE_HERE, request_status },
        { RM__LOCAL_REQUEST__BODY_LIST_POLICIES, "list-policies", ROLE_ANY, ROUTE_HERE, request_list_policies },
        { RM__LOCAL_REQUEST__BODY_GET_USE, "use", ROLE_ANY, ROUTE_LEADER_NOW, request_use },
        { RM__LOCAL_REQUEST__BODY_GET_SNAPSHOT, "snapshot", ROLE_ADMIN, ROUTE_LEADER, request_snapshot },
        { RM__LOCAL_REQUEST__BODY_GET_PLAN, "plan", ROLE_ADMIN, ROUTE_LEADER, request_plan },
        { RM__LOCAL_REQUEST__BODY_GET_NODE_FACTS, "doctor", ROLE_ANY, ROUTE_NODE, request_node_facts },
        { RM__LOCAL_REQUEST__BODY_GET_WEB, "web", ROLE_ANY, ROUTE_HERE, request_web },
};

/* NULL when there is no such request. */
static const struct request *request_find(Rm__LocalRequest__BodyCase body) {
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
                if (requests[i].body == body)
                        return &requests[i];
        return NULL;
}

/* ---- answered by another node: one request, one answer, which may be a document in several
 * replies ---- */

struct carried {
        struct client *client;
        uint32_t request_id;
        Rm__LocalRequest *request; /* to be sent again when there is no answer; NULL: it is not */
        struct patience patience;
};

static void forwarded_free(struct carried *carried) {
        client_release(carried->client);
        if (carried->request)
                rm__local_request__free_unpacked(carried->request, NULL);
        free(carried);
}

/* Does it no harm when two leaders answer it? By its token a submission is found again, the others
 * only read. */
static bool repeatable(const Rm__LocalRequest *request) {
        switch (request->body_case) {
        case RM__LOCAL_REQUEST__BODY_SUBMIT_JOB:
                return request->submit_job->spec && request->submit_job->spec->token[0];
        case RM__LOCAL_REQUEST__BODY_GET_SNAPSHOT:
        case RM__LOCAL_REQUEST__BODY_GET_PLAN:
                return true;
        default:
                return false;
        }
}

/* There was no leader. NULL: one was lost. A part of a document may have come before that: the rest
 * would be another's. */
static bool ask_again(const struct carried *carried, const Rm__LocalReply *reply) {
        struct patience again = carried->patience;
        bool no_leader = !reply || (reply->body_case == RM__LOCAL_REPLY__BODY_ERROR && reply->error->code == EHOSTUNREACH);

        if (!no_leader || !carried->request || waiting_over(carried->patience))
                return false;
        again.unanswered = again.unanswered || carried->request->body_case == RM__LOCAL_REQUEST__BODY_SUBMIT_JOB;
        waiting_add(service_waiting(carried->client->rmd->service), carried->client, carried->request, again);
        return true;
}

static void on_forwarded_reply(void *userdata, uint32_t channel, Rm__LocalReply *reply) {
        struct carried *carried = userdata;
        struct rmd *rmd = carried->client->rmd;
        bool again = ask_again(carried, reply);

        if (reply && reply->body_case == RM__LOCAL_REPLY__BODY_NODE_FACTS)
                request_hide_key(rmd, reply->node_facts);
        if (reply && !again)
                client_reply(carried->client, carried->request_id, reply);
        if (reply && reply->body_case == RM__LOCAL_REPLY__BODY_TEXT && reply->text->more) {
                if (carried->request)
                        rm__local_request__free_unpacked(take_ptr(carried->request), NULL);
                return;
        }
        if (!reply && !again)
                client_error(carried->client, carried->request_id, -EHOSTUNREACH,
                             "the node that was to answer was lost; look with rmctl list-nodes and try again");
        forwarded_free(carried);
        if (reply)
                forwarding_close(rmd->forwarding, channel);
}

static void saved_state(struct client *client, const Rm__LocalRequest *request, const char *node, struct patience patience) {
        struct rmd *rmd = client->rmd;
        struct carried *carried;
        uint32_t channel;
        int r;

        if (request->body_case == RM__LOCAL_REQUEST__BODY_SUBMIT_JOB && !request_submission_known(client, request))
                return;
        carried = xcalloc(1, sizeof(*carried));
        carried->client = client_hold(client);
        carried->request_id = request->id;
        carried->request = repeatable(request) ? (Rm__LocalRequest *) message_copy(&request->base) : NULL;
        carried->patience = patience;
        if (request->body_case == RM__LOCAL_REQUEST__BODY_SUBMIT_JOB)
                request_keep_submission(client, request);
        channel = forwarding_open(rmd->forwarding, node, client, on_forwarded_reply, carried);
        r = forwarding_send(rmd->forwarding, channel, request);
        if (r == 0)
                return;
        forwarding_close(rmd->forwarding, channel);
        if (r == -EBUSY)
                client_error(client, request->id, r, "the send queue to node %s is full: try again later", node);
        else if (!ask_again(carried, NULL))
                client_error(client, request->id, -EHOSTUNREACH, "node %s is not reachable", node);
        forwarded_free(carried);
}

static uint64_t job_of(const Rm__LocalRequest *request) {
        return request->body_case == RM__LOCAL_REQUEST__BODY_SIGNAL_JOB ? request->signal_job->job : 0;
}

static void refuse_without_leader(struct client *client, uint32_t request_id, const char *verb, struct patience patience) {
        if (patience.unanswered) {
                client_error(
                        client, request_id, -EHOSTUNREACH,
                        "%s: the leader was lost before it answered, and no other can be reached from %s; it may be done or not",
                        verb, cluster_self(client->rmd->cluster));
                return;
        }
        client_error(client, request_id, -EHOSTUNREACH,
                     "%s: no leader can be reached from %s now; running jobs go on, changes have to wait", verb,
                     cluster_self(client->rmd->cluster));
}

/* A carried one waits at its client's node. */
static void wait_for_leader(struct client *client, const Rm__LocalRequest *request, const char *verb, struct patience patience) {
        if (client->conn && !waiting_over(patience))
                waiting_add(service_waiting(client->rmd->service), client, request, patience);
        else
                refuse_without_leader(client, request->id, verb, patience);
}

/* The owner is checked first: a user is told nothing of another user's job, not even that it
 * exists. */
static const char *head_of(struct client *client, const Rm__LocalRequest *request, const char *verb) {
        const Rm__Job *job = own_job_find(client, request->id, verb, job_of(request));

        if (job && job->n_capsules == 0)
                client_error(client, request->id, -EAGAIN, "%s: job %" PRIu64 " does not run", verb, job->id);
        return job && job->n_capsules > 0 ? job->capsules[0]->node : NULL;
}

static const char *node_of(const Rm__LocalRequest *request) {
        switch (request->body_case) {
        case RM__LOCAL_REQUEST__BODY_GET_NODE_FACTS:
                return request->get_node_facts->node;
        case RM__LOCAL_REQUEST__BODY_VERIFY_CHECKPOINT:
                return request->verify_checkpoint->node;
        default:
                return "";
        }
}

/* The name of the node as the state has it: a client may call a node anything. */
static const char *named_node(struct client *client, const Rm__LocalRequest *request, const char *verb) {
        const char *name = node_of(request);
        const char *self = cluster_self(client->rmd->cluster);
        const Rm__Node *node =
                state_node(cluster_state(client->rmd->cluster), strcmp(name, STATE_STORED_SHARED) == 0 ? self : name);

        if (!node)
                client_error(client, request->id, -ENOENT, "%s: no such node (known: see 'rmctl list-nodes')", verb);
        return node ? node->name : NULL;
}

/* For requests of the leader, and for those that look at the state before they propose. */
static const char *leader_or_self(const struct client *client, enum route route) {
        const struct cluster *cluster = client->rmd->cluster;

        if (route == ROUTE_LEADER)
                return cluster_leader(cluster);
        return cluster_synced(cluster) ? cluster_self(cluster) : NULL;
}

/* The node that answers; NULL when there is none (the client was told, or waits). */
static const char *destination(struct client *client, const Rm__LocalRequest *request, const struct request *entry,
                               struct patience patience) {
        const char *node;

        switch (entry->route) {
        case ROUTE_LEADER:
        case ROUTE_PROPOSE:
                node = leader_or_self(client, entry->route);
                if (!node)
                        wait_for_leader(client, request, entry->name, patience);
                return node;
        case ROUTE_LEADER_NOW:
                node = cluster_leader(client->rmd->cluster);
                if (!node)
                        refuse_without_leader(client, request->id, entry->name, patience);
                return node;
        case ROUTE_HEAD:
                return head_of(client, request, entry->name);
        case ROUTE_NODE:
                return named_node(client, request, entry->name);
        default:
                return cluster_self(client->rmd->cluster);
        }
}

void request_dispatch(struct client *client, const Rm__LocalRequest *request, struct patience patience) {
        const struct request *entry = request_find(request->body_case);
        const char *self = cluster_self(client->rmd->cluster);
        const char *node;

        if (!entry) {
                client_error(client, request->id, -ENOSYS, "this rmd (" RM_VERSION ") does not know that request");
                return;
        }
        if (entry->role == ROLE_ADMIN && !client->admin) {
                client_error(client, request->id, -EPERM, "%s: only root and members of group %s may do that", entry->name,
                             client->rmd->config->admin_group);
                return;
        }
        node = destination(client, request, entry, patience);
        if (!node)
                return;
        if (strcmp(node, self) == 0)
                entry->handle(client, request);
        else if (client_is_local(client))
                saved_state(client, request, node, patience);
        else if (entry->route == ROUTE_LEADER || entry->route == ROUTE_LEADER_NOW)
                refuse_without_leader(client, request->id, entry->name, patience);
        else
                client_error(client, request->id, -EAGAIN, "%s: the cluster is changing; try again", entry->name);
}

bool request_forward_to_leader(struct client *client, const Rm__LocalRequest *request) {
        const char *leader = cluster_leader(client->rmd->cluster);

        if (!client->conn || !leader || strcmp(leader, cluster_self(client->rmd->cluster)) == 0)
                return false;
        saved_state(client, request, leader, waiting_begin());
        return true;
}
