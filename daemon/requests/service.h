/* The local socket: accepts clients, reads their requests, tells them of changes. */
#ifndef RM_REQUESTS_SERVICE_H
#define RM_REQUESTS_SERVICE_H

#include "common/error.h"
#include "daemon/client/client.h"
#include "daemon/context.h"
#include "daemon/sched/policy_host.h"

struct waiting;

int service_create(struct rmd *rmd, struct service **ret, struct rm_error *err);
void service_destroy(struct service *service);

/* The state changed: attached front ends and followers of events are told (soon, once for many changes). NULL ok. */
void service_wake(struct service *service);

/* For lists of policies: one at a time. */
struct policy_host *service_policy_host(struct service *service);

/* Requests that wait for a leader. */
struct waiting *service_waiting(struct service *service);

/* Carried requests (see client/forwarding.h). */
void service_carried_request(struct rmd *rmd, struct client *client, const Rm__LocalRequest *request);
void service_carried_gone(struct rmd *rmd, struct client *client);

#endif
