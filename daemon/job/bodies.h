/* The bodies of jobs (body.h) are kept beside the cluster's state: taken out of a job when it is
 * submitted, brought to the nodes that launch it, and dropped when it has ended. The leader has all
 * of them, the other voters and the node of the front end have copies while the job waits. */
#ifndef RM_JOB_BODIES_H
#define RM_JOB_BODIES_H

#include <stdbool.h>

#include "common/error.h"
#include "daemon/cluster/cluster.h"
#include "daemon/context.h"

struct bodies;

int bodies_create(struct rmd *rmd, struct bodies **ret, struct rm_error *err);
void bodies_destroy(struct bodies *bodies); /* NULL ok */

/* `err` with code 0: the job may go into the log. -EHOSTUNREACH: another node is to lead, and take
 * it. Otherwise (-EDQUOT, -ENOSPC, ...) it is to be refused. */
typedef void (*bodies_taken_fn)(void *userdata, const struct rm_error *err);
/* Takes out of a new job's spec what is long, at the leader, and keeps it safe. `done` is called
 * exactly once, now or from the loop. */
void bodies_take(struct bodies *bodies, Rm__JobSpec *spec, bodies_taken_fn done, void *userdata);
/* Keeps what is long of a job's spec at the node of the front end, for a while at first, before the
 * job goes to the leader; the leader may be lost before anybody else has it. Changes `spec` as
 * bodies_take() does. */
void bodies_offer(struct bodies *bodies, Rm__JobSpec *spec);
/* The disk did not take the last one, and would not now. */
bool bodies_disk_full(const struct bodies *bodies);

/* The whole spec of a job that is to be launched here, the caller's; free with
 * rm__job_spec__free_unpacked(). -EAGAIN: it is on its way, and runner_wake() is called when it has
 * come. -ENOENT: nobody has it any more. */
int bodies_get(struct bodies *bodies, const Rm__Job *job, Rm__JobSpec **ret, struct rm_error *err);

/* A command was applied, or refused. NULL: any may have been. */
void bodies_applied(struct bodies *bodies, const Rm__Command *command);
/* True if the message was one of ours. */
bool bodies_on_message(struct bodies *bodies, const char *node, const Rm__PeerMessage *message);
/* Drop what no job needs any more. From time to time. */
void bodies_clean(struct bodies *bodies);

#endif
