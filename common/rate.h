/* Rates, as token buckets: a number of things at once, and then so many a second. */
#ifndef RM_COMMON_RATE_H
#define RM_COMMON_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* Up to `burst` things at once, and one more each `usec_each`. */
struct rate_limit {
        uint64_t usec_each;
        uint64_t burst;
};

/* Zero-initialised: nothing is taken. Always used with the same limit. */
struct rate {
        uint64_t full_usec; /* when the bucket is full again */
};

/* How long until one thing may be taken: 0: now. */
uint64_t rate_wait_usec(const struct rate *rate, const struct rate_limit *limit, uint64_t now_usec);
/* Takes so much, also more than there is: that is owed, and nothing may be taken until that has
 * come back. */
void rate_take(struct rate *rate, const struct rate_limit *limit, uint64_t now_usec, uint64_t amount);
/* True: the rate has all of its burst left, as if nothing had ever been taken. */
bool rate_is_full(const struct rate *rate, uint64_t now_usec);

#endif
