/* The check of export-checkpoint: which users may have a checkpoint as a file. */
#ifndef RM_REQUESTS_EXPORT_CHECKPOINT_H
#define RM_REQUESTS_EXPORT_CHECKPOINT_H

#include "common/error.h"
#include "daemon/client/client.h"

/* Checks that this client may have the checkpoints of the job as files. The memory of its programs
 * is in them: -EPERM also for an administrator who is not root, and on another node than its
 * own. */
int export_checkpoint_check_owner(const struct client *client, const Rm__Job *job, struct rm_error *err);

#endif
