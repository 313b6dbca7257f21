/* A checkpoint together with those that it builds on, back to a full one; and what it says of each
 * rank, wherever that lies. */
#ifndef RM_RTLIB_CHECKPOINT_CHAIN_H
#define RM_RTLIB_CHECKPOINT_CHAIN_H

#include "rtlib/checkpoint/manifest.h"

struct chain {
        int dir; /* the caller's */
        size_t n;
        Portable__Manifest **manifests; /* the newest first */
};

/* -EBADMSG: a part is damaged or missing, or does not belong to the others. */
int chain_open(int dir, uint64_t number, struct chain **ret, struct rm_error *err);
void chain_close(struct chain *chain); /* NULL ok */

/* The files of one rank. */
struct source;

/* -EBADMSG. The chain must outlive it. */
int source_open(const struct chain *chain, size_t rank, struct source **ret, struct rm_error *err);
void source_close(struct source *source); /* NULL ok */

/* `size_bytes` of an array from byte `from` on, as they were saved (in the manifest's byte order).
 * Each block that they touch is checked first. -EBADMSG. */
int source_read(struct source *source, size_t array, uint64_t from, uint64_t size_bytes, void *ret, struct rm_error *err);

/* Reads all blocks; `own`: those in the newest file alone. Each that is not good is told (`damaged`
 * NULL ok). How many are not. */
size_t source_check(struct source *source, bool own, void (*damaged)(void *ctx, const struct rm_error *err), void *ctx);

#endif
