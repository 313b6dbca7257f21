/* Files go back with a job: before its processes are restored from a checkpoint, after which they had gone on, what they have written since is taken back as far as that
 * can be done without a copy. */
#ifndef RM_DAEMON_CAPSULE_INIT_ROLLBACK_H
#define RM_DAEMON_CAPSULE_INIT_ROLLBACK_H

#include "proto/capsule.pb-c.h"

struct rm_error;

/* Of the files that had a path when the processes of `inventory` were saved. One that was open for writing is cut back to its size of then, by a child with the owner's
 * rights; one of others must have that size. -ESTALE: a file is gone, shorter than it was, or another; the text names it. `ret_doubts`: names of files, a space between them, that
 * may differ from what they were, since they are written in place, and were written to since; "" if there are none; malloc'ed. */
int rollback_files(const Capsule__Inventory *inventory, const Capsule__Spec *spec, char **ret_doubts, struct rm_error *error);

#endif
