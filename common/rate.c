#include "common/rate.h"

static uint64_t taken_usec(const struct rate *rate, uint64_t now) {
        return rate->full_usec > now ? rate->full_usec - now : 0;
}

uint64_t rate_wait_usec(const struct rate *rate, const struct rate_limit *limit, uint64_t now) {
        uint64_t needed_usec = taken_usec(rate, now) + limit->usec_each;
        uint64_t all_usec = limit->usec_each * limit->burst;

        return needed_usec > all_usec ? needed_usec - all_usec : 0;
}

void rate_take(struct rate *rate, const struct rate_limit *limit, uint64_t now, uint64_t amount) {
        rate->full_usec = now + taken_usec(rate, now) + amount * limit->usec_each;
}

bool rate_is_full(const struct rate *rate, uint64_t now) {
        return taken_usec(rate, now) == 0;
}
