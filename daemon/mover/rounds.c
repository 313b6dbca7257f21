#include "daemon/mover/rounds.h"

#define SLOW_FROM_USEC 100000U
#define SLOW_ENOUGH_USEC 30000U
#define LATER_LEAST_BYTES (UINT64_C(128) << 10)
/* A program that writes so much a second, as fast as memory is, writes a quarter of what is sent
 * meanwhile, so that each round is a quarter of the one before. */
#define WRITES_BYTES_PER_SEC UINT64_C(4000000000)
#define FUTILE_LEAST_BYTES (UINT64_C(16) << 20)
/* The protection makes each first write slower, so that it takes a program some seconds to write
 * all of a large memory. What writes less than that in a step is slower than 4 Gbit/s. */
#define FUTILE_STEP_BYTES UINT64_C(125000000)
#define FUTILE_STEPS_LEAST 4U
#define FUTILE_STEPS_MOST 40U
#define QUARTERS 4U
/* The other parts of a freeze, beside sending the pages that were written: dump and restore, which
 * take 0.2 to 0.5 s, more with many processes. */
#define FREEZE_USEC 1000000U
#define SHARE_LEAST_USEC 2000U
#define SHARE_MOST_USEC 200000U

static bool gained(uint64_t sent_bytes, uint64_t before_bytes) {
        return before_bytes == 0 || sent_bytes <= before_bytes / 4 * 3;
}

bool rounds_slow_pays(uint64_t usec, uint64_t limit_usec) {
        return usec >= SLOW_FROM_USEC && usec < limit_usec / QUARTERS * (QUARTERS - 1);
}

static unsigned within(uint64_t usec) {
        if (usec < SHARE_LEAST_USEC)
                return SHARE_LEAST_USEC;
        return usec > SHARE_MOST_USEC ? SHARE_MOST_USEC : (unsigned) usec;
}

unsigned rounds_first_share(uint64_t sent_bytes, uint64_t usec) {
        uint64_t sent_per_sec = usec > 0 ? sent_bytes * 1000000 / usec : 0;

        return within(sent_per_sec * 1000000 / (QUARTERS * WRITES_BYTES_PER_SEC));
}

unsigned rounds_next_share(unsigned share_usec, uint64_t sent_bytes, uint64_t before_bytes) {
        return gained(sent_bytes, before_bytes) ? share_usec : within(share_usec / QUARTERS);
}

bool rounds_slow_enough(uint64_t usec) {
        return usec <= SLOW_ENOUGH_USEC;
}

bool rounds_futile(uint64_t all_bytes, uint64_t written_bytes) {
        return all_bytes >= FUTILE_LEAST_BYTES && written_bytes >= all_bytes / 2;
}

bool rounds_maybe_futile(uint64_t all_bytes, uint64_t written_bytes, uint64_t bytes, unsigned left) {
        return all_bytes >= FUTILE_LEAST_BYTES && bytes > 0 && (all_bytes / 2 - written_bytes) / bytes < left;
}

unsigned rounds_futile_steps(uint64_t all_bytes) {
        uint64_t more = all_bytes / FUTILE_STEP_BYTES;

        return more < FUTILE_STEPS_MOST - FUTILE_STEPS_LEAST ? FUTILE_STEPS_LEAST + (unsigned) more : FUTILE_STEPS_MOST;
}

bool rounds_too_long(uint64_t bytes, uint64_t usec) {
        return bytes >= LATER_LEAST_BYTES && usec >= SLOW_FROM_USEC;
}

/* In the freeze there is as much to be sent as in that round: a program that writes less makes the
 * next one shorter. */
bool rounds_in_time(struct rounds_deadline *deadline, uint64_t now_usec, uint64_t last_usec) {
        uint64_t left_usec;

        if (!deadline || deadline->end_usec == 0)
                return true;
        left_usec = deadline->end_usec > now_usec ? deadline->end_usec - now_usec : 0;
        if (left_usec > FREEZE_USEC && last_usec <= (left_usec - FREEZE_USEC) / 2)
                return true;
        deadline->cut_usec = left_usec > 0 ? left_usec : 1;
        return false;
}

bool rounds_another(struct rounds *r, uint64_t sent_bytes) {
        bool less = gained(sent_bytes, r->before_bytes);

        if (r->n++ == 0 && r->first_bytes == 0)
                r->first_bytes = sent_bytes;
        r->before_bytes = sent_bytes;
        return r->n < r->max && less && sent_bytes > r->first_bytes / r->part;
}
