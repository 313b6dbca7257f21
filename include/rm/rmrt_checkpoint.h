/* librmrt-checkpoint: portable checkpoints, which a program makes of its arrays. They can be
 * restored on another number of ranks, by another MPI, and by processors of the other byte order.
 * Nothing of rmd is needed for it.
 *
 * The library knows no MPI, since each MPI has its own ABI and one library is to serve them all.
 * What it needs of one is in `struct rmrt_ranks`. Programs in C include rm/rmrt_mpi.h instead,
 * which fills that in and is compiled by their own mpicc. Link with -lrmrt-checkpoint (pkg-config
 * rmrt-checkpoint).
 *
 * All calls of a process are made by one thread at a time. Errors are negative errno values; the
 * library prints nothing, rmrt_checkpoint_error() has the text. */
#ifndef RM_RMRT_CHECKPOINT_H
#define RM_RMRT_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How an array lies on the ranks. */
enum rmrt_distribution {
        RMRT_REPLICATED, /* all have the same, of which that of rank 0 is saved */
        RMRT_BLOCK, /* each has the elements that follow those of the rank before it, as many as it likes */
        RMRT_PRIVATE, /* each has its own, of no use to another; restored on the same number of ranks only */
};

/* The kinds of elements that arrays are made of. */
enum rmrt_kind {
        RMRT_BYTES, /* no number: never converted */
        RMRT_INTEGER,
        RMRT_UNSIGNED,
        RMRT_FLOAT, /* IEEE 754, up to 8 bytes */
        RMRT_LONG_DOUBLE, /* of this processor: restored in the same byte order only */
        RMRT_LOGICAL,
};

struct rmrt_type {
        enum rmrt_kind kind;
        uint32_t unit_bytes; /* of one number: 1, 2, 4, 8, 16 */
        uint32_t units; /* numbers in an element: 2 for a complex one */
};

/* The ranks that save and restore, and how they speak. The functions return 0 or a negative errno,
 * on all ranks alike. */
struct rmrt_ranks {
        int rank, size;
        void *ctx;
        /* `data` of rank `root` comes to all. */
        int (*broadcast)(void *ctx, void *data, size_t bytes, int root);
        /* `mine` of each comes to all, in the order of ranks. */
        int (*gather)(void *ctx, const void *mine, void *all, size_t bytes);
};

/* The results of rmrt_restore_by(). */
enum rmrt_restored {
        RMRT_RESTORED_NOTHING, /* there is no checkpoint: begin */
        RMRT_RESTORED_ALL,
        RMRT_RESTORED_SHARED, /* all but the private arrays, which stay as they are: another number of ranks had them */
};

/* `count` elements from `ptr` on, on this rank, will be saved and restored as `name` (1..200
 * printable characters). The memory stays the program's, which registers it again when its address
 * or its count changes. -EINVAL; -ENOTSUP: no such type. */
int rmrt_register_typed(const char *name, void *ptr, size_t count, const struct rmrt_type *type,
                        enum rmrt_distribution distribution);

/* The array of this name is no longer saved. -ENOENT: there is none. */
int rmrt_unregister(const char *name);

/* Sets the directory of the checkpoints, instead of the environment's RMRT_DIR. The path of rank 0
 * counts, which tells the others. NULL: as at the beginning. Always 0. */
int rmrt_set_directory(const char *path);

/* Saves the arrays; to be called by all ranks, with the same arrays registered. When it has
 * returned 0, the checkpoint is on the disk; else there is none, and those before are as they were.
 * All ranks return the same. -EINVAL: the arguments, the environment, or other arrays than on rank
 * 0; -ENOTSUP: processors of different byte orders; -EXDEV: the folder is not that of rank 0;
 * -ECOMM: the ranks cannot communicate; -EIO and other negative errno values: the folder cannot be
 * written. */
int rmrt_save_by(const struct rmrt_ranks *ranks);

/* Restores the newest checkpoint that is whole everywhere; to be called by all ranks. Returns enum
 * rmrt_restored, or an error: -EBADMSG: there are checkpoints, and none is whole; -EINVAL: it has
 * other arrays than are registered. After these two the memory is as it was. -ECOMM: the ranks
 * cannot communicate; or another negative errno. */
int rmrt_restore_by(const struct rmrt_ranks *ranks);

/* The text of the error of the last call, and which checkpoints were passed over because they are
 * damaged; the same on all ranks. "": no error. Valid until the next call. */
const char *rmrt_checkpoint_error(void);

#ifdef __cplusplus
}
#endif

#endif
