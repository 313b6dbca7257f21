/* A directory of a capsule's tmpfs into an image stream: files with their holes, directories,
 * symlinks, FIFOs, hard links. */
#ifndef RM_IMAGE_TREE_H
#define RM_IMAGE_TREE_H

#include <sys/stat.h>

#include "daemon/image/writer.h"

#define IMAGE_TREE_DEPTH_MAX 512U

struct image_tree_options {
        const char *const *exclude; /* relative paths left out with all below; NULL-terminated, NULL ok */
        /* Called now and then; nonzero stops the walk with this value. NULL ok. */
        int (*poll)(void *ctx, const char *path, struct rm_error *err);
        void *ctx;
        /* The number by which the contents of a regular file went ahead, 0: they did not; and what
         * writes to `slot` where they differ now. NULL ok. */
        uint32_t (*ahead_number)(void *ahead_ctx, const char *role, const struct stat *st);
        int (*ahead_contents)(void *ahead_ctx, uint32_t slot, int fd, const struct stat *st, struct rm_error *err);
        void *ahead_ctx;
};

struct image_tree_figures {
        uint64_t read_bytes;
        uint64_t sockets_skipped; /* bound Unix sockets: CRIU unlinks and binds them again */
};

/* Writes all that is below the open directory `fd` on the same file system. The tree must not
 * change meanwhile. Objects of other kinds (devices, sockets with an access control list) are an
 * error, -EOPNOTSUPP: the move would lose them. `figures` is added to. */
int image_tree_write(struct image_writer *w, const char *role, int fd, const struct image_tree_options *options,
                     struct image_tree_figures *figures, struct rm_error *err);

/* Writes a regular file, from `offset` on, as a spool object. The receiver keeps what it has below
 * `offset`. */
int image_spool_write(struct image_writer *w, const char *role, int fd, uint64_t offset, const struct image_tree_options *options,
                      struct image_tree_figures *figures, struct rm_error *err);

#endif
