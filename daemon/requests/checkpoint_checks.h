/* Checks that several requests about checkpoints share. */
#ifndef RM_REQUESTS_CHECKPOINT_CHECKS_H
#define RM_REQUESTS_CHECKPOINT_CHECKS_H

#include "common/error.h"
#include "daemon/client/client.h"

/* The job's checkpoint of that number. -ENOENT: there is none; the text names those that there are.
 * Pure. */
int checkpoint_find(const Rm__Job *job, uint64_t number, const char *verb, const Rm__Checkpoint **ret, struct rm_error *err);
/* True: all of it is wherever it is to be, so that a job can go on from it. Pure. */
bool checkpoint_is_done(const Rm__Checkpoint *checkpoint);

/* True: the error is one, and the client was told. */
bool checkpoint_refused(struct client *client, uint32_t request_id, const struct rm_error *err);

#endif
