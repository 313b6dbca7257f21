/* The roles of rm-mover in a move and for checkpoints, and what it removes for rmd. All roles hear
 * their setup from rmd first, report to rmd, and return 0 when all went well, or a negative errno
 * that rmd has been told of. */
#ifndef RM_MOVER_MOVER_H
#define RM_MOVER_MOVER_H

#include "daemon/mover/control.h"

#define MOVER_TIMEOUT_MSEC 10000U
#define MOVER_ACCEPT_TIMEOUT_MSEC 60000U
#define MOVER_TOKEN_MIN_BYTES 16U
#define MOVER_TOKEN_MAX_BYTES 64U

int mover_send(struct control *control);
int mover_receive(struct control *control);
/* Checkpoints of a group into a store of this node, and one of them to a mover that receives it
 * (daemon/store/store.h). */
int mover_save(struct control *control);
int mover_load(struct control *control);
/* Is every checkpoint in a store of this node as it was written? Those that are not go. */
int mover_verify(struct control *control);

/* A checkpoint of a job as one file, to its owner's program; and from it, into a directory of its
 * own. */
int mover_export(struct control *control);
int mover_import(struct control *control);

/* Removes a directory and what is in it. 0, or a negative errno that was logged. */
int mover_remove(const char *dir);
/* Takes all mounts off a directory. What they held is freed by a process that goes on after the
 * return. 0, also when there is none, or a negative errno that was logged. */
int mover_unmount(const char *dir);

#endif
