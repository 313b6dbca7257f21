/* What a program has registered, and the hashes of what it saved last. Pure. */
#ifndef RM_RTLIB_CHECKPOINT_ARRAYS_H
#define RM_RTLIB_CHECKPOINT_ARRAYS_H

#include "rtlib/checkpoint/manifest.h"

struct array {
        char *name;
        void *ptr;
        uint64_t count; /* on this rank */
        struct rmrt_type type;
        enum rmrt_distribution distribution;
};

struct arrays {
        struct array *list; /* in the order of registration */
        size_t n;
};

/* Replaces one of the same name. -EINVAL, -ENOTSUP, -EFBIG. */
int arrays_register(struct arrays *arrays, const struct array *array, struct rm_error *err);
int arrays_unregister(struct arrays *arrays, const char *name); /* -ENOENT */
void arrays_finish(struct arrays *arrays);
const struct array *arrays_find(const struct arrays *arrays, const char *name); /* NULL: none */
uint64_t array_bytes(const struct array *array);
/* Equal where the same arrays are registered in the same order; `counts`: with as many elements on this rank, else only of replicated ones. */
void arrays_digest(const struct arrays *arrays, bool counts, uint8_t ret[static PORTABLE_DIGEST_BYTES]);

/* Hashes of all blocks of this rank, as a checkpoint has them. */
struct saved {
        uint64_t number; /* of the checkpoint; 0: there is none */
        uint8_t digest[PORTABLE_DIGEST_BYTES];
        uint32_t n_increments; /* since the last full one */
        int rank, size;
        uint32_t block_bytes;
        uint8_t layout[PORTABLE_DIGEST_BYTES]; /* arrays_digest() with counts */
        uint8_t *hashes; /* array after array, block after block */
};
void saved_finish(struct saved *saved);

#endif
