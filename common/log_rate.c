#include "common/log_rate.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/log.h"
#include "common/text.h"
#include "common/util.h"

const struct rate_limit log_limit_strangers = { .usec_each = 500000, .burst = 20 };
const struct rate_limit log_limit_work = { .usec_each = 500000, .burst = 200 };

/* May a line be written? If so, `ret_left_out` is how many were not since the last one. */
static bool may_write(struct log_rate *rate, const struct rate_limit *limit, uint64_t now, unsigned *ret_left_out) {
        uint64_t before = __atomic_load_n(&rate->rate.full_usec, __ATOMIC_RELAXED);
        struct rate next;

        do {
                next.full_usec = before;
                if (rate_wait_usec(&next, limit, now) > 0) {
                        (void) __atomic_add_fetch(&rate->left_out, 1, __ATOMIC_RELAXED);
                        return false;
                }
                rate_take(&next, limit, now, 1);
        } while (!__atomic_compare_exchange_n(&rate->rate.full_usec, &before, next.full_usec, false, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED));
        *ret_left_out = __atomic_exchange_n(&rate->left_out, 0, __ATOMIC_RELAXED);
        return true;
}

void log_rated(struct log_rate *rate, const struct rate_limit *limit, int level, const char *fmt, ...) {
        char text[LOG_TEXT_BYTES];
        unsigned left_out = 0;
        va_list ap;

        if (!log_writes(level) || (!log_writes_all() && !may_write(rate, limit, now_usec(), &left_out)))
                return;
        va_start(ap, fmt);
        (void) text_format_va(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (left_out > 0)
                log_write(level, "%s (and %u such lines before that are left out)", text, left_out);
        else
                log_write(level, "%s", text);
}
