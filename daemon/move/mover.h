/* One rm-mover process, seen from rmd: the pump of a move's data (see proto/mover.proto). */
#ifndef RM_MOVE_MOVER_H
#define RM_MOVE_MOVER_H

#include <stdbool.h>

#include "common/error.h"
#include "daemon/context.h"
#include "daemon/move/remover.h"
#include "proto/mover.pb-c.h"

#define MOVER_PROGRAM RM_LIBEXEC_DIR "/rm-mover"

struct mover;

struct mover_ops {
        void (*on_event)(void *userdata, const Rm__MoverEvent *event);
        /* The process has gone; after `failed` or its last word this is the normal end. */
        void (*on_gone)(void *userdata);
};

/* Starts the process in one of its roles ("send", "receive", "save", "load"). It dies with rmd, but not while it carries pages that a group waits for. */
int mover_start(struct rmd *rmd, const char *role, const struct mover_ops *ops, void *userdata, struct mover **ret,
                struct rm_error *err);
int mover_command(struct mover *mover, const Rm__MoverCommand *command);
/* Ends the process, without callbacks, and does not wait until it has gone: the kernel may have to lift the protection of much memory that it
 * tracks. `dir` has another name at once, and is removed when the process has gone, or at once if `mover` is NULL. */
void mover_stop(struct mover *mover, struct remover *remover, const char *dir);
/* Lets it go on. */
void mover_leave(struct mover *mover); /* NULL ok */

#endif
