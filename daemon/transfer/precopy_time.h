/* How long may the memory of a running group be sent ahead? A program that does all it can to
 * prolong it must not keep a move, and one of the places for moves, for good. Pure. */
#ifndef RM_TRANSFER_PRECOPY_TIME_H
#define RM_TRANSFER_PRECOPY_TIME_H

#include <stdint.h>

/* `bytes`: what the group had at the begin; `rate`: [node] move_rate in bytes per second, 0: none.
 * Ten minutes for what grows and for processes that are hard to stop; a link of 5 MB/s; and the
 * memory four times where it is slow on purpose. */
static inline uint64_t precopy_time_usec(uint64_t bytes, uint64_t rate) {
        uint64_t link_usec = bytes / 5;
        double paced_usec = rate > 0 ? (double) bytes * 4e6 / (double) rate : 0;

        if (paced_usec > 1e18)
                paced_usec = 1e18;
        return UINT64_C(600000000) + (paced_usec > (double) link_usec ? (uint64_t) paced_usec : link_usec);
}

#endif
