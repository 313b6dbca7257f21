/* Rounds over memory that changes meanwhile: when is another one no longer worth it? Pure. */
#ifndef RM_MOVER_ROUNDS_H
#define RM_MOVER_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

struct rounds {
        unsigned max;
        unsigned part; /* a round that sent less than this part of the first is the last */
        unsigned n;
        uint64_t first_bytes;
        uint64_t before_bytes; /* by the round before; 0: there was none */
};

/* After a round that sent so much: is there to be another? Not when a round did not send much less than the one before. */
bool rounds_another(struct rounds *r, uint64_t sent_bytes);

#endif
