/* The requests of clients: commands of all kinds, drawn so that jobs come, run, move and end. */
#ifndef RM_TESTS_SIM_WORKLOAD_H
#define RM_TESTS_SIM_WORKLOAD_H

#include "tests/sim/checks.h"

/* Returns a command, drawn by what `state` says, on the node `self`; the caller frees it. It is a
 * new operation of `checks`. */
Rm__Command *workload_command(struct timeline *t, struct checks *checks, const Rm__State *state, const char *self,
                              uint32_t *ret_operation);

#endif
