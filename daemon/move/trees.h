/* Directories of a capsule that travel with it. */
#ifndef RM_MOVE_TREES_H
#define RM_MOVE_TREES_H

#include "daemon/config/config.h"
#include "daemon/job/runner.h"
#include "proto/mover.pb-c.h"

/* What travels beside CRIU's images, by roles that both ends know; the files of the first MOVE_TREES_AHEAD also before the freeze: nobody else has them open
 * at the destination. Free with move_trees_finish(). */
enum { MOVE_TREES_AHEAD = 2 };
struct move_trees {
        Rm__MoverTree trees[5];
        Rm__MoverTree *list[5];
        size_t n;
};
void move_trees_init(struct move_trees *ret, const struct config *config, const struct resident *resident);
/* And copies of files that are written in place, in `images_dir`. */
void move_trees_add_files(struct move_trees *trees, const char *images_dir);
void move_trees_finish(struct move_trees *trees);

#endif
