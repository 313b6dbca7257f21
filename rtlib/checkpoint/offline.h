/* Folders of portable checkpoints without a program: look, verify, merge. */
#ifndef RM_RTLIB_CHECKPOINT_OFFLINE_H
#define RM_RTLIB_CHECKPOINT_OFFLINE_H

#include "rtlib/checkpoint/chain.h"

/* Bytes of all arrays, and of all files. */
uint64_t offline_raw_bytes(const Portable__Manifest *m);
uint64_t offline_file_bytes(const Portable__Manifest *m);

/* Called after each file; `damaged` for each block or file that is not good. */
struct offline_watch {
        void (*damaged)(void *ctx, const struct rm_error *err);
        void (*progress)(void *ctx, size_t done, size_t total);
        void *ctx;
};

/* Reads one checkpoint again; of those that it builds on only the manifests. How much of it is not
 * good. */
size_t offline_verify(int dir, uint64_t number, const struct offline_watch *watch);

struct offline_merge {
        uint64_t number; /* of what is read */
        bool big_endian; /* of what is written */
        int zstd_level;
};

/* Makes one full checkpoint, of the next number in folder `to`, of one and what it builds on. */
int offline_merge(int from, int to, const struct offline_merge *merge, const struct offline_watch *watch, uint64_t *ret_number,
                  struct rm_error *err);

#endif
