/* Files of the capsule's trees (its /tmp and /dev/shm), sent ahead while programs write them: in
 * the freeze they are only read, and what differs from what was sent is sent again. */
#ifndef RM_MOVER_FILES_H
#define RM_MOVER_FILES_H

#include <stdbool.h>

#include "daemon/image/tree.h"
#include "daemon/mover/hooks.h"

struct files;

/* Nothing is opened yet. `w` must outlive it. */
struct files *files_create(struct image_writer *w);
void files_destroy(struct files *f); /* NULL ok */

/* The directory `path` (symlinks in it are followed), whose files go ahead under `role`. */
void files_add_tree(struct files *f, const char *role, const char *path);

/* Is the file on one of these trees' file systems? */
bool files_saved_state(const struct files *f, dev_t dev);

/* Round after round, while a round finds much less that has changed than the one before. Sends the
 * first IMAGE_AHEAD_MAX files that are not small: whole, then blocks of IMAGE_BLOCK_BYTES whose
 * hash has changed. A file that cannot be read, or vanishes, is passed over: it is sent in the
 * freeze. Errors are those of writer and hooks. */
int files_rounds(struct files *f, const struct mover_hooks *hooks, struct rm_error *err);

/* Called when files do not change any more: the receiver forgets those that have been removed. Then
 * `options` gets the calls by which image_tree_write() sends only the differences from what went
 * ahead. */
int files_freeze(struct files *f, const struct mover_hooks *hooks, struct rm_error *err);
void files_options(struct files *f, struct image_tree_options *options);

#endif
