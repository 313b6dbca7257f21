/* Which feature level of the log (STATE_LEVEL in state.h) an entry needs, so that none gets into the log that an older rmd of the
 * cluster does not understand: that one would end. Pure. */
#ifndef RM_STATE_FEATURE_LEVEL_H
#define RM_STATE_FEATURE_LEVEL_H

#include "common/error.h"
#include "proto/state.pb-c.h"

/* "n[2-3]": the nodes whose rmd does not know this feature level; NULL when all do; malloc'ed. */
char *feature_level_behind(const Rm__State *state, uint32_t level);

/* -EAGAIN if the log is below this feature level: that `what`, as a subject, needs it, and which nodes are behind. */
int feature_level_need(const Rm__State *state, uint32_t level, const char *what, struct rm_error *err);

/* -EAGAIN, and which nodes are behind, if the command has a field that is of a higher feature level than the state's. Of what is new in
 * the value of an older field (of an enum, say) only those know who propose it. */
int feature_level_check(const Rm__State *state, const Rm__Command *command, struct rm_error *err);

/* The feature level that a field of a message of proto/state.proto is from. */
uint32_t feature_level_of(const ProtobufCMessageDescriptor *message, uint32_t number);

#endif
