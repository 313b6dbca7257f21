/* What requests about checkpoints may say, wherever they come from. Pure. */
#ifndef RM_REQUESTS_CHECKPOINT_REQUESTS_H
#define RM_REQUESTS_CHECKPOINT_REQUESTS_H

#include "common/error.h"
#include "proto/state.pb-c.h"

/* -EAGAIN: the cluster has nodes that do not know checkpoints (or drills) yet, which came with this feature level. */
int checkpoints_check(const Rm__State *state, const char *verb, uint32_t level, struct rm_error *err);

/* The job's checkpoint of that number. -ENOENT: there is none; the text names those that there are. */
int checkpoints_find(const Rm__Job *job, uint64_t number, const char *verb, const Rm__Checkpoint **ret, struct rm_error *err);

/* That the job can go on from it; `number` 0: from the newest that is done, or if it is held and has none, from the beginning. -ENOENT: there is none,
 * -EBUSY: it is not done. */
int checkpoints_check_restart(const Rm__Job *job, uint64_t number, struct rm_error *err);

#endif
