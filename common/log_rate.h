/* Rates of log lines: what others can cause is written so often, and then only how often it was
 * left out. */
#ifndef RM_COMMON_LOG_RATE_H
#define RM_COMMON_LOG_RATE_H

#include "common/rate.h"

/* Zero-initialised; plain storage of the caller, one for each kind of line that is to be limited.
 * Any thread may use it. */
struct log_rate {
        struct rate rate;
        unsigned left_out; /* since the last line that was written */
};

/* Lines that strangers cause: it is enough to see what happens. 2 lines of 100 bytes a second are
 * 17 MB a day. */
extern const struct rate_limit log_limit_strangers;
/* Lines that are part of the work, and come in bursts as when many nodes connect or a node with
 * many capsules is drained. */
extern const struct rate_limit log_limit_work;

/* As log_write(), but only as often as the limit says. The first line after some were left out
 * tells how many. */
void log_rated(struct log_rate *rate, const struct rate_limit *limit, int level, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

#define log_limited(rate, level, ...) log_rated((rate), &log_limit_strangers, (level), __VA_ARGS__)

#endif
