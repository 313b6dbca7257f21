#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/client/forwarding.h"
#include "daemon/config/config.h"
#include "daemon/requests/requests.h"

static const struct request requests[] = {
        { RM__LOCAL_REQUEST__BODY_LIST_NODES, "list-nodes", ROLE_ANY, ROUTE_HERE, request_list_nodes },
        { RM__LOCAL_REQUEST__BODY_DRAIN_NODE, "drain-node", ROLE_ADMIN, ROUTE_LEADER, request_drain_node },
        { RM__LOCAL_REQUEST__BODY_RESUME_NODE, "resume-node", ROLE_ADMIN, ROUTE_LEADER, request_resume_node },
        { RM__LOCAL_REQUEST__BODY_LIST_JOBS, "list-jobs", ROLE_ANY, ROUTE_HERE, request_list_jobs },
        { RM__LOCAL_REQUEST__BODY_SUBMIT_JOB, "submit", ROLE_ANY, ROUTE_LEADER, request_submit_job },
        { RM__LOCAL_REQUEST__BODY_CANCEL_JOB, "cancel-job", ROLE_ANY, ROUTE_LEADER, request_cancel_job },
        { RM__LOCAL_REQUEST__BODY_SIGNAL_JOB, "signal-job", ROLE_ANY, ROUTE_HEAD, request_signal_job },
        { RM__LOCAL_REQUEST__BODY_ATTACH_JOB, "attach-job", ROLE_ANY, ROUTE_HERE, request_attach_job },
        { RM__LOCAL_REQUEST__BODY_JOB_INPUT, "job-input", ROLE_ANY, ROUTE_HERE, request_job_input },
        { RM__LOCAL_REQUEST__BODY_OUTPUT_ACK, "output-ack", ROLE_ANY, ROUTE_HERE, request_output_ack },
        { RM__LOCAL_REQUEST__BODY_MIGRATE_JOB, "migrate-job", ROLE_ANY, ROUTE_LEADER, request_migrate_job },
        { RM__LOCAL_REQUEST__BODY_LIST_MOVES, "list-moves", ROLE_ANY, ROUTE_HERE, request_list_moves },
        { RM__LOCAL_REQUEST__BODY_FOLLOW_EVENTS, "events", ROLE_ANY, ROUTE_HERE, request_follow_events },
        { RM__LOCAL_REQUEST__BODY_GET_STATUS, "status", ROLE_ANY, ROUTE_HERE, request_status },
        { RM__LOCAL_REQUEST__BODY_LIST_POLICIES, "list-policies", ROLE_ANY, ROUTE_HERE, request_list_policies },
        { RM__LOCAL_REQUEST__BODY_GET_SNAPSHOT, "snapshot", ROLE_ADMIN, ROUTE_LEADER, request_snapshot },
        { RM__LOCAL_REQUEST__BODY_GET_PLAN, "plan", ROLE_ADMIN, ROUTE_LEADER, request_plan },
};

/* NULL when there is no such request. */
static const struct request *request_find(Rm__LocalRequest__BodyCase body) {
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
                if (requests[i].body == body)
                        return &requests[i];
        return NULL;
}

/* ---- answered by another node: one request, one answer, which may be a document in several replies ---- */

struct carried {
        struct client *client;
        uint32_t request_id;
};

static void on_carried_reply(void *userdata, uint32_t channel, Rm__LocalReply *reply) {
        struct carried *carried = userdata;
        struct rmd *rmd = carried->client->rmd;

        if (reply)
                client_reply(carried->client, carried->request_id, reply);
        if (reply && reply->body_case == RM__LOCAL_REPLY__BODY_TEXT && reply->text->more)
                return;
        if (!reply)
                client_error(carried->client, carried->request_id, -EHOSTUNREACH,
                             "the node that was to answer was lost; look with rmctl list-nodes and try again");
        client_release(carried->client);
        free(carried);
        if (reply)
                forwarding_close(rmd->forwarding, channel);
}

static void carry(struct client *client, const Rm__LocalRequest *request, const char *node) {
        struct rmd *rmd = client->rmd;
        struct carried *carried = xcalloc(1, sizeof(*carried));
        uint32_t channel;
        int r;

        carried->client = client_hold(client);
        carried->request_id = request->id;
        channel = forwarding_open(rmd->forwarding, node, client, on_carried_reply, carried);
        r = forwarding_send(rmd->forwarding, channel, request);
        if (r == 0)
                return;
        forwarding_close(rmd->forwarding, channel);
        if (r == -EBUSY)
                client_error(client, request->id, r, "the send queue to node %s is full: try again later", node);
        else
                client_error(client, request->id, -EHOSTUNREACH, "node %s is not reachable", node);
        client_release(client);
        free(carried);
}

static uint64_t job_of(const Rm__LocalRequest *request) {
        return request->body_case == RM__LOCAL_REQUEST__BODY_SIGNAL_JOB ? request->signal_job->job : 0;
}

static const char *leader_of(struct client *client, uint32_t request_id, const char *verb) {
        struct cluster *cluster = client->rmd->cluster;
        const char *node = cluster_leader(cluster);

        if (!node)
                client_error(client, request_id, -EHOSTUNREACH,
                             "%s: no leader can be reached from %s now; running jobs go on, changes have to wait", verb,
                             cluster_self(cluster));
        return node;
}

/* Whose job it is comes first: of another user's nothing is told, not even that it is there. */
static const char *head_of(struct client *client, const Rm__LocalRequest *request, const char *verb) {
        const Rm__Job *job = request_own_job(client, request->id, verb, job_of(request));

        if (job && job->n_capsules == 0)
                client_error(client, request->id, -EAGAIN, "%s: job %" PRIu64 " does not run", verb, job->id);
        return job && job->n_capsules > 0 ? job->capsules[0]->node : NULL;
}

/* The node that answers; NULL when there is none (the client was told). */
static const char *destination(struct client *client, const Rm__LocalRequest *request, const struct request *entry) {
        switch (entry->route) {
        case ROUTE_LEADER:
                return leader_of(client, request->id, entry->name);
        case ROUTE_HEAD:
                return head_of(client, request, entry->name);
        default:
                return cluster_self(client->rmd->cluster);
        }
}

void request_dispatch(struct client *client, const Rm__LocalRequest *request) {
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
        node = destination(client, request, entry);
        if (!node)
                return;
        if (strcmp(node, self) == 0)
                entry->handle(client, request);
        else if (client->conn)
                carry(client, request, node);
        else
                client_error(client, request->id, -EAGAIN, "%s: the cluster is changing; try again", entry->name);
}

struct proposal {
        struct client *client;
        uint32_t request_id;
};

static void on_proposed(void *userdata, int code, const char *text, uint64_t index, uint64_t created) {
        struct proposal *proposal = userdata;

        if (code < 0)
                client_error(proposal->client, proposal->request_id, code, "%s", text && *text ? text : strerror(-code));
        else
                client_ok(proposal->client, proposal->request_id, created, NULL);
        client_release(proposal->client);
        free(proposal);
}

void request_propose(struct client *client, uint32_t request_id, const Rm__Command *command) {
        struct proposal *proposal = xcalloc(1, sizeof(*proposal));

        proposal->client = client_hold(client);
        proposal->request_id = request_id;
        cluster_propose(client->rmd->cluster, command, on_proposed, proposal);
}
