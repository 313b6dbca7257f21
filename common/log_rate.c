#include "common/log_rate.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/log.h"
#include "common/util.h"

/* Enough to see what happens; 2 lines a second cannot fill a disk within a day: 170,000 lines of 100 bytes. */
#define WINDOW_USEC UINT64_C(10000000)
#define LINES_MAX 20U

/* May a line be written at `now`? If so, `ret_left_out` is how many were not since the last one. */
static bool may_write(struct log_rate *rate, uint64_t now, unsigned *ret_left_out) {
        if (rate->window_usec == 0 || now - rate->window_usec >= WINDOW_USEC) {
                rate->window_usec = now;
                rate->written = 0;
        }
        if (rate->written >= LINES_MAX) {
                rate->left_out++;
                return false;
        }
        rate->written++;
        *ret_left_out = rate->left_out;
        rate->left_out = 0;
        return true;
}

void log_limited(struct log_rate *rate, int level, const char *fmt, ...) {
        char text[1024];
        unsigned left_out = 0;
        va_list ap;

        if (!may_write(rate, now_usec(), &left_out))
                return;
        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (left_out > 0)
                log_write(level, "%s (and %u such lines before that are left out)", text, left_out);
        else
                log_write(level, "%s", text);
}
