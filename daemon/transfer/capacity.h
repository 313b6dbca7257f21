/* Is there room for a group? Checked before it is frozen, so that a full node does not cost a
 * freeze. */
#ifndef RM_TRANSFER_CAPACITY_H
#define RM_TRANSFER_CAPACITY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* The resources that a group takes up at its source. */
struct capacity_need {
        uint64_t memory_bytes; /* of its processes' own */
        uint64_t files_bytes;  /* in the capsule's /tmp, /dev/shm and /run */
        bool ahead;            /* memory, and such files as are mapped, go ahead and are kept until the image is whole */
        bool pages;            /* memory travels apart from CRIU's images */
};

/* The resources that a node has free. */
struct capacity_free {
        uint64_t memory_bytes;
        uint64_t images_bytes; /* where images wait */
};

/* This node; what cannot be asked counts as endless. */
void capacity_here(const char *images_dir, struct capacity_free *ret);

/* Pure. 0, or -ENOSPC with a text that says how much is missing where. Until the group runs at its
 * destination its image and its memory are both there; while the image comes, the image and what
 * went ahead. With `pages` its memory is there once (memory_use.h). */
int capacity_check(const struct capacity_need *need, const struct capacity_free *free, struct rm_error *err);

/* Pure. After that: how much of the group may arrive, beside what the group then runs in. It grows
 * while it is moved, and its children bring what they have in common once each. What was needed at
 * the begin always; else twice that, or twice what the group may have here (`limit_bytes`;
 * UINT64_MAX: no limit) if that is more, as long as `reserve_bytes` stay free. 0: no limit. */
uint64_t capacity_grant(const struct capacity_need *need, const struct capacity_free *free, uint64_t limit_bytes,
                        uint64_t reserve_bytes);

#endif
