/* Ranks that go on together, or fail together. */
#ifndef RM_RTLIB_CHECKPOINT_AGREEMENT_H
#define RM_RTLIB_CHECKPOINT_AGREEMENT_H

#include "common/error.h"
#include "rm/rmrt_checkpoint.h"

/* The ranks cannot speak with each other: nothing is agreed upon. */
#define AGREEMENT_LOST (-ECOMM)

/* Called by all ranks with their results, 0 or a negative errno. All return 0, or the error of the
 * lowest rank that has one, whose text is in `err` everywhere. */
int agree(const struct rmrt_ranks *ranks, int r, struct rm_error *err);

/* Like the calls of `struct rmrt_ranks`; AGREEMENT_LOST. */
int agree_broadcast(const struct rmrt_ranks *ranks, void *data, size_t bytes, struct rm_error *err);
int agree_gather(const struct rmrt_ranks *ranks, const void *mine, void *all, size_t bytes, struct rm_error *err);

#endif
