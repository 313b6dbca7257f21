/*
 * rm-plugin-host for policies, as seen by the daemon: runs a policy in a child process,
 * asynchronously, and kills it when its time is over. One run at a time for each host object. Uses
 * pidfds, so SIGCHLD may be handled elsewhere, unless that handler reaps all children.
 */
#ifndef RM_SCHED_POLICY_HOST_H
#define RM_SCHED_POLICY_HOST_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/sched/plan.h"

struct policy_host;

struct policy_host_config {
        const char *program;   /* NULL: rm-plugin-host where it is installed */
        const char *directory; /* of the policies; NULL: where they are installed */
        uint64_t memory_bytes; /* limit on address space, 0: none */
};

/* Strings are copied. */
struct policy_host *policy_host_create(struct event_base *base, const struct policy_host_config *config);
/* Kills what runs; its callback is not called. NULL ok. */
void policy_host_destroy(struct policy_host *host);

/* Either `answer` or `err` is NULL. `answer` may be taken over by copying it and setting
 * answer->plan to NULL; else it is freed after the call. `err` says which policy, and whether it
 * crashed, took too long or answered nonsense, with what it printed. The host is free again: the
 * callback may start the next run or destroy the host. */
typedef void (*policy_host_done)(void *context, struct plan_answer *answer, const struct rm_error *err);

/* A policy that is a model (NAME.mod) is read again for each run. `snapshot` must stay until the
 * callback. The answer has passed plan_validate(). budget_usec: what the policy may use; the
 * process is killed a little later. 0; -EBUSY; or why no process could be made (nothing is called
 * then). */
int policy_host_run(struct policy_host *host, const char *policy, const struct rm_snapshot *snapshot, uint64_t budget_usec,
                    policy_host_done done, void *context, struct rm_error *err);
/* The same with the last text of a model that has answered. -ENOENT: there is none, or it is what
 * is in the folder now. */
bool policy_host_has_older(const struct policy_host *host, const char *policy);
int policy_host_run_older(struct policy_host *host, const char *policy, const struct rm_snapshot *snapshot, uint64_t budget_usec,
                          policy_host_done done, void *context, struct rm_error *err);

/* The policies there are: an array of {"name", "description"} or {"name", "error"}; borrowed
 * (json_incref() to keep). NULL with `err`. */
typedef void (*policy_host_listed)(void *context, json_t *list, const struct rm_error *err);
int policy_host_list(struct policy_host *host, policy_host_listed listed, void *context, struct rm_error *err);

/* Kill what runs; its callback is not called. */
void policy_host_cancel(struct policy_host *host);

#endif
