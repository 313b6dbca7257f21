/* What jobs are launched with, kept beside the cluster's state: taken out of a job when it is submitted, brought to the nodes that launch it, and
 * dropped when it has ended. The leader has all of them, the node of the front end a second copy while the job waits. */
#ifndef RM_JOB_BODIES_H
#define RM_JOB_BODIES_H

#include <stdbool.h>

#include "common/error.h"
#include "daemon/cluster/cluster.h"
#include "daemon/context.h"

struct bodies;

int bodies_create(struct rmd *rmd, struct bodies **ret, struct rm_error *err);
void bodies_destroy(struct bodies *bodies); /* NULL ok */

/* At the leader: take out of a new job's spec what is long, and keep it. -EDQUOT, -ENOSPC, or another errno: the job is to be refused. */
int bodies_take(struct bodies *bodies, Rm__JobSpec *spec, struct rm_error *err);
/* The disk did not take the last one, and would not now. */
bool bodies_disk_full(const struct bodies *bodies);

/* The whole spec of a job that is to be launched here, the caller's; free with rm__job_spec__free_unpacked(). -EAGAIN: it is on its way, and
 * runner_wake() is called when it has come. -ENOENT: nobody has it any more. */
int bodies_get(struct bodies *bodies, const Rm__Job *job, Rm__JobSpec **ret, struct rm_error *err);

/* A command was applied, or refused. NULL: any may have been. */
void bodies_applied(struct bodies *bodies, const Rm__Command *command);
/* True if the message was one of ours. */
bool bodies_on_message(struct bodies *bodies, const char *node, const Rm__PeerMessage *message);
/* Drop what no job needs any more. From time to time. */
void bodies_clean(struct bodies *bodies);

#endif
