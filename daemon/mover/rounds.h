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

/* Until when the processes are to have left. It may change between rounds. */
struct rounds_deadline {
        uint64_t end_usec; /* monotonic; 0: none */
        uint64_t cut_usec; /* so long before it there was no time for another round, at least 1; 0: there always was */
};
/* Is there, after a round that took so long, time for another round, which takes as long, and for
 * the freeze behind it? If not, that is noted. NULL ok: there is no deadline. */
bool rounds_in_time(struct rounds_deadline *deadline, uint64_t now_usec, uint64_t last_usec);

/* How long a round took, and with it about how long a freeze would last now. Is it worth it to slow
 * the program down, for `limit_usec` at most? Not for gains that are hardly noticed, nor where
 * these rounds, each of which sends a quarter of the one before, would not end in that time: all of
 * it would be written again. */
bool rounds_slow_pays(uint64_t usec, uint64_t limit_usec);
/* The processor time that each core gives a program which is slowed down, in microseconds a second:
 * for the first of these rounds, after one that sent so much in that time, and for the next
 * ones. */
unsigned rounds_first_share(uint64_t sent_bytes, uint64_t usec);
unsigned rounds_next_share(unsigned share_usec, uint64_t sent_bytes, uint64_t before_bytes);
/* A look at how much of its memory a program writes, in steps of a quarter of a second. Is it in
 * vain to send anything ahead? A small memory is sent in the freeze sooner than a page over the
 * network is waited for. */
bool rounds_futile(uint64_t all_bytes, uint64_t written_bytes);
/* While that is not known, can it still come out, in `left` further steps as the last one, which
 * has added `bytes`? */
bool rounds_maybe_futile(uint64_t all_bytes, uint64_t written_bytes, uint64_t bytes, unsigned left);
/* How many steps there are. */
unsigned rounds_futile_steps(uint64_t all_bytes);
/* Is what the last of the rounds sent, in that time, too much for the freeze? Not where it is
 * little, which took so long only for want of a processor. */
bool rounds_too_long(uint64_t bytes, uint64_t usec);

/* Short enough: to freeze takes longer. */
bool rounds_slow_enough(uint64_t usec);

/* Is there to be another round, after one that sent so much? Not when a round did not send much
 * less than the one before. */
bool rounds_another(struct rounds *r, uint64_t sent_bytes);

#endif
