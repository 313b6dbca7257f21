/* The operations that all ranks do together: save and restore. Each returns the same on all ranks,
 * with the same text. */
#ifndef RM_RTLIB_CHECKPOINT_COLLECTIVE_H
#define RM_RTLIB_CHECKPOINT_COLLECTIVE_H

#include "rtlib/checkpoint/agreement.h"
#include "rtlib/checkpoint/changes.h"

/* `directory` counts on rank 0; NULL: see options_read(). `saved` is what this rank has saved last,
 * and then what it has saved now. */
int checkpoint_save(const struct rmrt_ranks *ranks, const struct arrays *arrays, const char *directory, struct saved *saved,
                    struct rm_error *err);

/* enum rmrt_restored, or a negative errno. What was damaged and passed over is in `err` in either
 * case. */
int checkpoint_restore(const struct rmrt_ranks *ranks, const struct arrays *arrays, const char *directory, struct rm_error *err);

#endif
