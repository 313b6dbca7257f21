/*
 * Which jobs a round is made with when not all can be: a policy's snapshot has limits on sums over
 * all jobs, and what is over them must cost those jobs their round that exceed them, not all jobs.
 * Pure.
 */
#ifndef RM_LEADER_ADMIT_H
#define RM_LEADER_ADMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct admit_job {
        long double weight; /* what it adds to the sum */
        int64_t priority; /* effective: the higher, the sooner it is served */
        bool runs;
        bool too_large; /* it could not start now in any case */
};

/* Marks those to be left out so that the weights of the others are `limit` at most; marks none when
 * all together are. Taken first is what runs, then what could start, in the order it would be
 * served, then the rest; equals in the order given. One that does not fit any more does not keep a
 * lighter one behind it out. Returns how many are marked. */
size_t admit_within(const struct admit_job *jobs, size_t n, long double limit, bool *ret_left_out);

#endif
