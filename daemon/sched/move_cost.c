#include "daemon/sched/move_cost.h"

/* A day of freeze in a horizon of a second: more than any plan gains, and far from the limit on
 * sums of costs. */
#define MOST INT64_C(1000000000)
#define MOST_BYTES (INT64_C(1) << 32)

int64_t move_cost(uint64_t freeze_usec, uint64_t horizon_usec) {
        double parts = (double) freeze_usec * MOVE_COST_PARTS / (double) (horizon_usec > 0 ? horizon_usec : 1);

        return MOVE_COST_BASE + (parts < (double) MOST ? (int64_t) parts : MOST);
}

int64_t move_cost_bytes(uint64_t link_bytes_per_sec, uint64_t horizon_usec) {
        double bytes = (double) link_bytes_per_sec * ((double) horizon_usec / 1e6) / MOVE_COST_PARTS;

        return bytes < 1 ? 1 : bytes > MOST_BYTES ? MOST_BYTES : (int64_t) bytes;
}
