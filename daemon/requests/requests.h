/* The requests of local clients: one table, and for each a function in a file named after its
 * verb. */
#ifndef RM_REQUESTS_REQUESTS_H
#define RM_REQUESTS_REQUESTS_H

#include <jansson.h>

#include "daemon/client/client.h"
#include "daemon/cluster/cluster.h"
#include "daemon/requests/answer.h"
#include "daemon/requests/waiting.h"
#include "daemon/state/commands.h"
#include "proto/local.pb-c.h"

/* The node that answers a request. */
enum route {
        ROUTE_HERE,    /* any node knows */
        ROUTE_PROPOSE, /* any node whose state is current can propose it */
        ROUTE_LEADER,  /* only the leader can */
        ROUTE_LEADER_NOW, /* likewise, and the client can do without */
        ROUTE_HEAD,    /* the node of the job's head */
        ROUTE_NODE,    /* the node that the request names */
};

enum role {
        ROLE_ANY,   /* any user who can open the socket; the function checks the owner */
        ROLE_ADMIN,
};

struct request {
        Rm__LocalRequest__BodyCase body;
        const char *name; /* as in messages */
        enum role role;
        enum route route;
        void (*handle)(struct client *client, const Rm__LocalRequest *request);
};

/* Check role and route and answer, here or through the node that can. For local and carried
 * clients. If there is no leader, or it is lost before it has answered, a local client's request
 * waits for the next one, where that does no harm, as `patience` says (waiting.h). */
void request_dispatch(struct client *client, const Rm__LocalRequest *request, struct patience patience);

/* Have the node that leads answer, as if the request had come there. False: that is this node, it
 * is not known, or the request was carried here; nothing is done. */
bool request_forward_to_leader(struct client *client, const Rm__LocalRequest *request);

/* changes.c */
/* Propose, and answer with Ok (id = what was created) or the error. What would change nothing, or
 * is refused, is not proposed: the leader answers. */
void request_propose(struct client *client, const Rm__LocalRequest *request, const Rm__Command *command);
/* The same of `n` > 0 commands, answered once, with the first error. `make` fills `c` in with the
 * i-th, and returns its command. */
typedef Rm__Command *(*request_command_fn)(struct command *c, const struct client *client, const Rm__LocalRequest *request,
                                           size_t i);
void request_propose_all(struct client *client, const Rm__LocalRequest *request, size_t n, request_command_fn make);
/* As cluster_propose(); on the leader the callback comes at once where the command is not
 * proposed. */
void request_change(struct client *client, const Rm__Command *command, cluster_propose_fn callback, void *userdata);

/* The callback of a request that proposes a command, with a struct request_answer, which it
 * ends. */
void request_answer_proposed(void *userdata, int code, const char *text, uint64_t index, uint64_t created);

/* Answer with a document; `paged`: the client takes it in several replies. */
void request_reply_json(struct client *client, uint32_t request_id, const json_t *json, bool paged);

void request_list_nodes(struct client *client, const Rm__LocalRequest *request);
void request_drain_node(struct client *client, const Rm__LocalRequest *request);
void request_resume_node(struct client *client, const Rm__LocalRequest *request);
void request_remove_node(struct client *client, const Rm__LocalRequest *request);
void request_confirm_lost(struct client *client, const Rm__LocalRequest *request);
void request_report_health(struct client *client, const Rm__LocalRequest *request);
void request_list_jobs(struct client *client, const Rm__LocalRequest *request);
/* False: the client was told that the log's feature level is too low for this submission. Also
 * asked at the node of the front end, when another one answers: its rmd may be older, and would
 * take the job without the fields that it does not know. */
bool request_submission_known(struct client *client, const Rm__LocalRequest *request);
/* At the node of the front end, of a submission that is answered elsewhere. */
void request_keep_submission(struct client *client, const Rm__LocalRequest *request);
void request_submit_job(struct client *client, const Rm__LocalRequest *request);
void request_cancel_job(struct client *client, const Rm__LocalRequest *request);
void request_signal_job(struct client *client, const Rm__LocalRequest *request);
void request_attach_job(struct client *client, const Rm__LocalRequest *request);
void request_job_input(struct client *client, const Rm__LocalRequest *request);
void request_output_ack(struct client *client, const Rm__LocalRequest *request);
void request_migrate_job(struct client *client, const Rm__LocalRequest *request);
void request_resize_job(struct client *client, const Rm__LocalRequest *request);
void request_drill_job(struct client *client, const Rm__LocalRequest *request);
void request_checkpoint_job(struct client *client, const Rm__LocalRequest *request);
void request_restart_job(struct client *client, const Rm__LocalRequest *request);
void request_verify_checkpoint(struct client *client, const Rm__LocalRequest *request);
void request_remove_checkpoint(struct client *client, const Rm__LocalRequest *request);
void request_export_checkpoint(struct client *client, const Rm__LocalRequest *request);
void request_import_checkpoint(struct client *client, const Rm__LocalRequest *request);
void request_list_moves(struct client *client, const Rm__LocalRequest *request);
void request_follow_events(struct client *client, const Rm__LocalRequest *request);
void request_status(struct client *client, const Rm__LocalRequest *request);
void request_list_policies(struct client *client, const Rm__LocalRequest *request);
void request_snapshot(struct client *client, const Rm__LocalRequest *request);
void request_use(struct client *client, const Rm__LocalRequest *request);
void request_plan(struct client *client, const Rm__LocalRequest *request);
void request_web(struct client *client, const Rm__LocalRequest *request);
/* The places of [web] listen where rmd could not listen, with spaces; NULL: there are none. The
 * caller frees it. */
char *web_unserved(const struct rmd *rmd);
void request_node_facts(struct client *client, const Rm__LocalRequest *request);
/* Facts of any node, before a local client gets them: whether the cluster's key is the same there,
 * and nothing more of it. */
void request_hide_key(const struct rmd *rmd, Rm__NodeFacts *facts);

/* events.c */
struct event_ring *events_create(void);
void events_destroy(struct event_ring *ring);
void events_add(struct event_ring *ring, const struct state_result *result);
/* Send what has come since, if the client follows. */
void events_publish(struct client *client);
/* The client has read the events that were sent: there may be more. */
void events_drained(struct client *client);

#endif
