/* An rm-mover process, seen from rmd: the pump of a move's data (see proto/mover.proto). */
#ifndef RM_TRANSFER_MOVER_H
#define RM_TRANSFER_MOVER_H

#include <stdbool.h>

#include "common/error.h"
#include "daemon/context.h"
#include "daemon/transfer/remover.h"
#include "proto/mover.pb-c.h"

#define MOVER_PROGRAM RM_LIBEXEC_DIR "/rm-mover"

struct mover;

struct mover_ops {
        void (*on_event)(void *userdata, const Rm__MoverEvent *event);
        /* The process has gone; after `failed` or its last word this is the normal end. */
        void (*on_gone)(void *userdata);
};

/* Starts the process in one of its roles ("send", "receive", "save", "load"), and gives it a copy
 * of its first command as soon as it is ready. It dies with rmd, but not while it carries pages
 * that a group waits for. 0 or negative errno. */
int mover_start(struct rmd *rmd, const char *role, const Rm__MoverCommand *first, const struct mover_ops *ops, void *userdata,
                struct mover **ret, struct rm_error *err);
/* Sends another command. -ENOTCONN: the process is not ready, or has gone; or another negative
 * errno. */
int mover_command(struct mover *mover, const Rm__MoverCommand *command);

/* MOVER_COMMAND(&body) is the command that has this body, which is borrowed; it lasts until the end
 * of the block, as compound literals do. Two kinds have bodies of one type: a MoverExchange is an
 * export, unless the caller says otherwise. */
#define MOVER_COMMAND(body_)                                                                                                       \
        ((Rm__MoverCommand) { .base = PROTOBUF_C_MESSAGE_INIT(&rm__mover_command__descriptor),                                     \
                              .body_case = MOVER_COMMAND_CASE(body_),                                                              \
                              .send = (void *) (body_) })

#define MOVER_COMMAND_CASE(body_)                                                                                                  \
        _Generic(*(body_),                                                                                                         \
                Rm__MoverExchange: RM__MOVER_COMMAND__BODY_EXPORT_CHECKPOINT,                                                      \
                Rm__MoverSend: RM__MOVER_COMMAND__BODY_SEND,                                                                       \
                Rm__MoverReceive: RM__MOVER_COMMAND__BODY_RECEIVE,                                                                 \
                Rm__MoverStart: RM__MOVER_COMMAND__BODY_START,                                                                     \
                Rm__MoverDumpDone: RM__MOVER_COMMAND__BODY_DUMP_DONE,                                                              \
                Rm__MoverAbort: RM__MOVER_COMMAND__BODY_ABORT,                                                                     \
                Rm__MoverPrecopy: RM__MOVER_COMMAND__BODY_PRECOPY,                                                                 \
                Rm__MoverSlow: RM__MOVER_COMMAND__BODY_SLOW,                                                                       \
                Rm__MoverExpedite: RM__MOVER_COMMAND__BODY_EXPEDITE,                                                               \
                Rm__MoverSave: RM__MOVER_COMMAND__BODY_SAVE,                                                                       \
                Rm__MoverRelease: RM__MOVER_COMMAND__BODY_RELEASE,                                                                 \
                Rm__MoverLoad: RM__MOVER_COMMAND__BODY_LOAD,                                                                       \
                Rm__MoverVerify: RM__MOVER_COMMAND__BODY_VERIFY,                                                                   \
                Rm__MoverProceed: RM__MOVER_COMMAND__BODY_PROCEED,                                                                 \
                Rm__MoverGoOn: RM__MOVER_COMMAND__BODY_GO_ON)

/* Ends the process, without callbacks, and does not wait until it has gone: the kernel may have to
 * lift the protection of much memory that it tracks. `dir` has another name at once, and is removed
 * when the process has gone, or at once if `mover` is NULL. */
void mover_stop(struct mover *mover, struct remover *remover, const char *dir);
/* Lets it go on. */
void mover_leave(struct mover *mover); /* NULL ok */

#endif
