#include "daemon/checkpoint/rounds.h"

#define FIRST_USEC UINT64_C(20000) /* ranks of different nodes hear of it within some milliseconds */

void rounds_begin(struct rounds *rounds, uint64_t now, uint64_t wait_usec) {
        *rounds = (struct rounds) { .round = 1, .usec = FIRST_USEC, .end_usec = now + wait_usec };
}

uint64_t rounds_left(const struct rounds *rounds, uint64_t now) {
        uint64_t left = now < rounds->end_usec ? rounds->end_usec - now : 0;

        return left < rounds->usec ? left : rounds->usec;
}

bool rounds_next(struct rounds *rounds, uint64_t now) {
        rounds->round++;
        rounds->usec *= 2;
        return now < rounds->end_usec;
}

void rounds_end(struct rounds *rounds) {
        rounds->round = 0;
}
