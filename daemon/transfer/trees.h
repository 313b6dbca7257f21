/* Directories of a capsule that travel with it. */
#ifndef RM_TRANSFER_TREES_H
#define RM_TRANSFER_TREES_H

#include "daemon/config/config.h"
#include "daemon/job/runner.h"
#include "proto/mover.pb-c.h"

/* The trees of files that travel beside CRIU's images, by roles that both ends know; the files of
 * the first TRANSFER_TREES_AHEAD also before the freeze: no other process has them open at the
 * destination. Free with transfer_trees_finish(). */
enum { TRANSFER_TREES_AHEAD = 2 };
struct transfer_trees {
        Rm__MoverTree trees[5];
        Rm__MoverTree *list[5];
        size_t n;
};
void transfer_trees_init(struct transfer_trees *ret, const struct config *config, const struct resident *resident);
/* Adds the copies of files that are written in place, which lie in `images_dir`. */
void transfer_trees_add_files(struct transfer_trees *trees, const char *images_dir);
void transfer_trees_finish(struct transfer_trees *trees);

#endif
