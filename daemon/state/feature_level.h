/* Which feature level of the log (STATE_LEVEL in state.h) an entry needs, so that none gets into
 * the log that an older rmd of the cluster does not understand: that one would end. Pure. */
#ifndef RM_STATE_FEATURE_LEVEL_H
#define RM_STATE_FEATURE_LEVEL_H

#include "common/error.h"
#include "proto/state.pb-c.h"

/* "n[2-3]": the nodes whose rmd does not know this feature level; NULL when all do; malloc'ed. */
char *feature_level_behind(const Rm__State *state, uint32_t level);

/* A field that came after level 1, of a message that is in commands or in the state. */
struct feature_field {
        const ProtobufCMessageDescriptor *message;
        uint32_t number;
        uint32_t level;
};

/* Every field of proto/state.proto that came after level 1, and behind the last one an entry
 * without a message. A new field must be added here too, with its level (tests/data/feature-levels
 * lists all fields). */
const struct feature_field *feature_levels(void);

/* The feature level that a field of a message of proto/state.proto is from: as in `later`, or else
 * 1. */
uint32_t feature_level_of(const struct feature_field *later, const ProtobufCMessageDescriptor *message, uint32_t number);

/* -EAGAIN, and which nodes are behind, if the command has a field that is of a higher feature level
 * than the state's. Of what is new in the value of an older field (of an enum, say) only the code
 * that proposes it knows. `later`: feature_levels(), but in tests. */
int feature_level_check(const struct feature_field *later, const Rm__State *state, const Rm__Command *command,
                        struct rm_error *err);

#endif
