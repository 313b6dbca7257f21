/* Keeps what is sent to a rate: when may more follow? */
#ifndef RM_MOVER_PACE_H
#define RM_MOVER_PACE_H

#include <stdint.h>

/* Time that was not used is made up for up to here, and no more. */
#define PACE_BURST_USEC 100000U

struct pace {
        uint64_t bytes_per_sec; /* 0: no limit */
        uint64_t sent_bytes;    /* at the last call */
        uint64_t free_usec;     /* when what was sent is paid for */
        uint64_t rest;          /* what is less than a microsecond: bytes times 1e6, below bytes_per_sec */
};

/* `sent_bytes` have been sent in all since the beginning. How long to wait before more is. */
uint64_t pace_wait_usec(struct pace *pace, uint64_t sent_bytes, uint64_t now_usec);

#endif
