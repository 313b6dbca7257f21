/*
 * When the status of a reading changes, after Wang et al. 2012: below a low threshold all is well,
 * from the low threshold on work is moved away while it runs, and from the high threshold on there
 * is no time for that. Pure.
 *
 * It changes to a worse status after a number of readings in a row that say so, or at once when a
 * reading is at its high threshold; and to a better one when all readings of a while were clearly
 * better, that is below the threshold by a margin. So a reading that goes up and down around a
 * threshold changes the status at most once within that while.
 */
#ifndef RM_SENSOR_RULES_H
#define RM_SENSOR_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "rm/sensor.h"

struct rule_thresholds {
        double low, high; /* NAN: none */
        double margin; /* NAN: 5 % of the threshold */
        enum rm_sensor_status at_low, at_high;
};

struct rule_limits {
        uint32_t readings; /* in a row, before the status gets worse; at least 1 */
        uint64_t hold_usec; /* before it gets better */
};

/* All zero: ok, and nothing was read yet. */
struct rule {
        enum rm_sensor_status status;
        uint32_t worse; /* readings in a row that were worse than the status */
        enum rm_sensor_status worse_status; /* the least bad of these */
        bool better; /* readings are better than the status, */
        uint64_t better_since_usec;
        enum rm_sensor_status better_status; /* and this is the worst of these */
};

/* The status by a value, while the status is `status`. `ret_at_once`: the value is at the high
 * threshold. */
enum rm_sensor_status rule_says(const struct rule_thresholds *thresholds, enum rm_sensor_status status, double value,
                                bool *ret_at_once);
/* A reading says `says`. `now_usec`: any clock that does not go backwards. Returns whether the
 * status has changed. */
bool rule_step(struct rule *rule, const struct rule_limits *limits, enum rm_sensor_status says, bool at_once, uint64_t now_usec);

#define GROWTH_SLOTS 60U

/* By how much a counter has grown in the last hour, in steps of a minute. All zero: it was not read
 * yet. */
struct growth {
        bool begun;
        double counter; /* when it was read last */
        uint64_t minute; /* of the clock, then */
        double grown[GROWTH_SLOTS]; /* in each minute, by its number modulo GROWTH_SLOTS */
};

/* A counter that is less than before has begun again, at 0. Its first value is no growth. */
double growth_step(struct growth *growth, double counter, uint64_t now_usec);

#endif
