/* Directories into a stream in memory, and out of it, for tests. */
#ifndef RM_TESTS_IMAGE_TREES_H
#define RM_TESTS_IMAGE_TREES_H

#include "daemon/image/tree.h"
#include "memory.h"

/* The directory `path` as the tree "tmp", with an end mark if nothing went wrong. `m` is set up,
 * and to be finished in either case. */
int trees_store(struct memory *m, const char *path, const struct image_tree_options *options, struct image_tree_figures *figures,
                struct rm_error *err);
/* The tree "tmp" of a stream into the directory `to`. */
int trees_place(struct memory *m, const char *to, struct rm_error *err);

#endif
