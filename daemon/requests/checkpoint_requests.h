/* What requests about checkpoints may say, wherever they come from. Pure. */
#ifndef RM_REQUESTS_CHECKPOINT_REQUESTS_H
#define RM_REQUESTS_CHECKPOINT_REQUESTS_H

#include "common/error.h"
#include "proto/state.pb-c.h"

struct client;

/* The job's checkpoint of that number. -ENOENT: there is none; the text names those that there are. */
int checkpoints_find(const Rm__Job *job, uint64_t number, const char *verb, const Rm__Checkpoint **ret, struct rm_error *err);

/* That the job can go on from it; `number` 0: from the newest that is done, or if it is held and has none, from the beginning. -ENOENT: there is none,
 * -EBUSY: it is not done. */
int checkpoints_check_restart(const Rm__Job *job, uint64_t number, struct rm_error *err);

/* That this client may have the checkpoints of the job as files. The memory of its programs is in them: -EPERM also for an administrator who is not root, and
 * on another node than its own. */
int checkpoints_check_owner(const struct client *client, const Rm__Job *job, struct rm_error *err);
/* That this client may give the key of such a file; "": none is given. Who has the key reads what is
 * in an image, and makes images that are restored: -EPERM for all but root of this node. -EINVAL: the
 * path is not absolute. */
int checkpoints_check_key(const struct client *client, const char *verb, const char *key_file, struct rm_error *err);

#endif
