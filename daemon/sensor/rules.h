/*
 * When the word of a reading changes, after Wang et al. 2012: below a low mark all is well, from the low mark on work is moved away while it runs,
 * and from the high mark on there is no time for that. Pure.
 *
 * It changes to a worse word after a number of readings in a row that say so, or at once when a reading is at its high mark; and to a better one
 * when all readings of a while were clearly better, that is below the mark by a margin. So a reading that goes up and down around a mark changes
 * the word at most once within that while.
 */
#ifndef RM_SENSOR_RULES_H
#define RM_SENSOR_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "rm/sensor.h"

struct rule_marks {
        double low, high; /* NAN: none */
        double margin; /* NAN: 5 % of the mark */
        enum rm_sensor_word at_low, at_high;
};

struct rule_limits {
        uint32_t readings; /* in a row, before the word gets worse; at least 1 */
        uint64_t hold_usec; /* before it gets better */
};

/* All zero: ok, and nothing was read yet. */
struct rule {
        enum rm_sensor_word word;
        uint32_t worse; /* readings in a row that were worse than the word */
        enum rm_sensor_word worse_word; /* the least bad of these */
        bool better; /* readings are better than the word, */
        uint64_t better_since_usec;
        enum rm_sensor_word better_word; /* and this is the worst of these */
};

/* What a value says while the word is `word`. `ret_at_once`: it is at the high mark. */
enum rm_sensor_word rule_says(const struct rule_marks *marks, enum rm_sensor_word word, double value, bool *ret_at_once);
/* A reading says `says`. `now_usec`: any clock that does not go backwards. Returns whether the word has changed. */
bool rule_step(struct rule *rule, const struct rule_limits *limits, enum rm_sensor_word says, bool at_once, uint64_t now_usec);

#define GROWTH_SLOTS 60U

/* By how much a counter has grown in the last hour, in steps of a minute. All zero: it was not read yet. */
struct growth {
        bool begun;
        double counter; /* when it was read last */
        uint64_t minute; /* of the clock, then */
        double grown[GROWTH_SLOTS]; /* in each minute, by its number modulo GROWTH_SLOTS */
};

/* A counter that is less than before has begun anew, at 0. Its first value is no growth. */
double growth_step(struct growth *growth, double counter, uint64_t now_usec);

#endif
