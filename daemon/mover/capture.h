/* The capture side of CRIU's image streaming (criu dump --stream): CRIU asks for its image files by
 * name over a Unix socket, and hands over the reading end of a pipe for each. */
#ifndef RM_MOVER_CAPTURE_H
#define RM_MOVER_CAPTURE_H

#include <sys/types.h>

#include "daemon/image/writer.h"
#include "daemon/mover/control.h"
#include "daemon/mover/kept_images.h"

struct capture;

/* Listens on DIR/streamer-capture.sock and accepts one connection, of root or of `criu_uid`. DIR
 * must lie below a directory that only root can enter. */
int capture_listen(const char *images_dir, uid_t criu_uid, struct capture **ret_capture, struct rm_error *err);
void capture_destroy(struct capture *c); /* NULL ok; removes the socket */
/* Copies go to `kept`, which stays the caller's and outlives the capture. */
void capture_keep(struct capture *c, struct kept_images *kept);

struct capture_figures {
        uint64_t read_bytes;
        uint64_t wait_usec; /* nothing to read: CRIU was busy otherwise */
};

struct capture_hooks {
        void *ctx;
        /* Called before a wait that may be long: the collected data should be sent. */
        int (*idle)(void *ctx, struct rm_error *err);
        /* The link with the other side: readable means trouble. */
        int link_fd;
        int (*link_readable)(void *ctx, struct rm_error *err);
        /* Called after each read. */
        void (*progress)(void *ctx, const char *name);
};

/* Pumps what can be had without waiting, while something else is sent. */
int capture_try(struct capture *c, struct control *control, struct image_writer *writer, const struct capture_hooks *hooks,
                struct capture_figures *figures, struct rm_error *err);

/* Pumps all images of one dump into the writer. Returns when rmd has said dump_done, CRIU has hung
 * up and every pipe is at its end. -EPROTO: dump_done without a whole dump. */
int capture_run(struct capture *c, struct control *control, struct image_writer *writer, const struct capture_hooks *hooks,
                struct capture_figures *figures, struct rm_error *err);

#endif
