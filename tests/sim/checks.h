/* The invariants of every history, checked whenever an event could break one. */
#ifndef RM_TESTS_SIM_CHECKS_H
#define RM_TESTS_SIM_CHECKS_H

#include "daemon/state/state_index.h"
#include "tests/sim/timeline.h"

struct checks;

/* The name of the cluster, which is in its state. */
#define CHECKS_CLUSTER "simulated"

struct checks *checks_create(struct timeline *t);
void checks_destroy(struct checks *c); /* NULL ok */

/* The first violation; NULL: none. */
const char *checks_violation(const struct checks *c);
void checks_fail(struct checks *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- clients ---- */

/* A new command; returns its number, from 1. However often it is sent, it is to be done once. */
uint32_t checks_operation(struct checks *c, const char *kind);
/* The operation is this host's, in this life of its process: its operations are to be done in the
 * order of their numbers. */
void checks_proposer(struct checks *c, uint32_t operation, unsigned host, uint64_t life);
/* The operation submits a job with this token, its own number or that of the one that is sent
 * again. */
void checks_submission(struct checks *c, uint32_t operation, uint32_t token);
/* The token of a submission that was not answered for so long, but began not longer ago than twice
 * that: whoever made it sends it again, perhaps to another node. 0: there is none. */
uint32_t checks_unanswered(const struct checks *c, uint64_t wait_usec);
/* The operation was answered: it is in the log at `index`, which gave `code` and made `created`. */
void checks_acknowledged(struct checks *c, uint32_t operation, uint64_t index, int code, uint64_t created);
/* The time of the first answer; 0: none has come. */
uint64_t checks_acknowledged_usec(const struct checks *c, uint32_t operation);
uint64_t checks_last_acknowledged(const struct checks *c);

/* ---- voters ---- */

/* A leader is about to put the command into its log. `operation` 0: it is the one of the command's
 * origin, or the leader's own. */
void checks_proposed(struct checks *c, uint64_t index, const Rm__Command *command, uint32_t operation);
/* A host has applied it, and the state is as it is after it. `all`: compare all of it; otherwise
 * now and then. */
void checks_applied(struct checks *c, const char *host, uint64_t index, const Rm__Command *command, Rm__State *state,
                    const struct state_index *indexed, const struct state_result *result, bool all);
/* The state came whole. */
void checks_restored(struct checks *c, const char *host, Rm__State *state, const struct state_index *indexed);
/* The host leads this term; the last entry of its log. Repeated while it does. */
void checks_leads(struct checks *c, unsigned host, const char *name, uint64_t term, uint64_t last_index);

/* Operations that are in the log more than once. */
unsigned checks_repeated(const struct checks *c);
/* Submissions that were sent again, with the token of the first, and are in the log. */
unsigned checks_resubmitted(const struct checks *c);

/* ---- index_check.c ---- */
/* Compares the index with a new one of the same state; NULL: they are equal. */
const char *index_difference(Rm__State *state, const struct state_index *indexed);

#endif
