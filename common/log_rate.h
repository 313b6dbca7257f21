/* Log lines that strangers can cause: so many in a while, then only how many there were. */
#ifndef RM_COMMON_LOG_RATE_H
#define RM_COMMON_LOG_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialised; plain storage of the caller, one for each kind of line that is to be bounded. */
struct log_rate {
        uint64_t window_usec; /* began then */
        unsigned written;     /* within the window */
        unsigned left_out;    /* since the last line that was written */
};

/* As log_write(), at most 20 lines within 10 s. The first one after some were left out tells how many. */
void log_limited(struct log_rate *rate, int level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
