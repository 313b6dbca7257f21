/* The local socket: accepts clients, reads their requests, tells them of changes. */
#ifndef RM_REQUESTS_SERVICE_H
#define RM_REQUESTS_SERVICE_H

#include "common/error.h"
#include "daemon/client/client.h"
#include "daemon/context.h"
#include "daemon/sched/policy_host.h"
#include "daemon/state/state.h"

struct users;
struct waiting;

int service_create(struct rmd *rmd, struct service **ret, struct rm_error *err);
void service_destroy(struct service *service);

/* The state changed: attached front ends and followers of events are told (soon, once for many
 * changes). NULL ok. */
void service_wake(struct service *service);

/* An entry of the log was applied: counted for the user who caused it, and its events written into
 * this daemon's log. NULL ok. */
void service_applied(struct service *service, const Rm__Command *command, const struct state_result *result);

/* The host that lists policies: one request at a time. */
struct policy_host *service_policy_host(struct service *service);

/* The users of the data base. */
struct users *service_users(struct service *service);

/* Requests that wait for a leader, or for what service_users() says. */
struct waiting *service_waiting(struct service *service);

/* Carried requests (see client/forwarding.h). */
void service_forwarded_request(struct rmd *rmd, struct client *client, const Rm__LocalRequest *request);
void service_forwarded_gone(struct rmd *rmd, struct client *client);

#endif
