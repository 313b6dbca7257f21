/* Parts of ops.c: ops_capture.c has what is done to a capsule that is to be dumped, ops_restore.c
 * what makes one of an image. */
#ifndef RM_DAEMON_CAPSULE_INIT_OPS_INTERNAL_H
#define RM_DAEMON_CAPSULE_INIT_OPS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/capsule/init/core.h"
#include "daemon/capsule/init/criu/dump_needs.h"
#include "proto/capsule.pb-c.h"

struct init;
struct queued;
struct rm_error;

struct ops {
        struct init *init;
        struct queued *first;
        struct queued **last;
        struct ticket current; /* of the freeze, dump or restore that is going on */
        bool busy;
        unsigned free_pid;
        Capsule__SavedState *saved_state; /* what came with the capsule that is to be restored; NULL: nothing has */
        uint64_t freeze_deadline; /* UINT64_MAX: not freezing */
        bool scanned; /* since the payload was frozen, for blockers */
        struct dump_needs needs; /* found then */
        uint64_t link_deadline;   /* when the link of a cut capsule goes down; UINT64_MAX: not */
        int images_fd;
        bool back; /* what was restored is a checkpoint */
        char *mismatches; /* files that may not be what they were when the job was saved; NULL: nothing was rolled back */
};

/* Returns 0, or negative with the text; or STARTED when the answer comes later. */
enum { STARTED = 1 };
typedef int op_fn(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error);

op_fn ops_cut, ops_dump, ops_get_saved_state, ops_preload, ops_restore, ops_restore_prepare;

/* Operations that take their time begin and end so; meanwhile other requests wait. ops_start()
 * returns STARTED. */
int ops_start(struct ops *ops, struct ticket ticket);
void ops_done(struct ops *ops, int error, const char *text);
/* Sets the phase, and sends rmd the status. */
void ops_set_phase(struct init *init, Capsule__Phase phase);

/* Opens a path on the node; ops_open_images() keeps it in ops->images_fd. */
int ops_open_directory(const struct ops *ops, const char *path, int *ret_fd, struct rm_error *error);
int ops_open_images(struct ops *ops, const char *path, struct rm_error *error);
/* The dump or restore has ended so, which the status says from now on. */
void ops_close_images(struct ops *ops, int error, const char *text);

/* -EBUSY: a process that is held while it ends (ending.h) can be neither frozen nor dumped. */
int ops_refuse_while_ending(const struct ops *ops, struct rm_error *error);
/* Looks for blockers once in a freeze. */
int ops_scan_frozen(struct ops *ops, struct rm_error *error);
/* The link of a cut capsule goes down now, if it was to later. */
void ops_take_link_down(struct ops *ops);

#endif
