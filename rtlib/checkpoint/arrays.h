/* The arrays that a program has registered. Pure. */
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
/* The bytes of the array that `rank` saves: of a replicated one, rank 0 alone saves any. */
uint64_t array_piece_bytes(const struct array *array, int rank);
/* Equal where the same arrays are registered in the same order; `counts`: with as many elements on
 * this rank, else only of replicated ones. */
void arrays_digest(const struct arrays *arrays, bool counts, uint8_t ret[static PORTABLE_DIGEST_BYTES]);

#endif
