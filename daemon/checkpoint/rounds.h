/* The wait for ranks that come to their places before a checkpoint. They do not hear of it at the
 * same time: a rank may wait at a place that another has passed, and which cannot go on without it.
 * So there are rounds, each twice as long as the one before: in each all are to come to their next
 * places, and wait there. Pure. */
#ifndef RM_CHECKPOINT_ROUNDS_H
#define RM_CHECKPOINT_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

struct rounds {
        uint32_t round; /* 1 is the first; 0: there is no wait */
        uint64_t usec; /* its length */
        uint64_t end_usec; /* of all of them */
};

void rounds_begin(struct rounds *rounds, uint64_t now, uint64_t wait_usec);
/* The time from now on until this round ends. */
uint64_t rounds_left(const struct rounds *rounds, uint64_t now);
/* The round has ended; begins the next. False: there is no time for another. */
bool rounds_next(struct rounds *rounds, uint64_t now);
void rounds_end(struct rounds *rounds);

#endif
