/* What must hold in every history, looked at whenever something happens that could break it. */
#ifndef RM_TESTS_SIM_CHECKS_H
#define RM_TESTS_SIM_CHECKS_H

#include <raft.h>

#include "daemon/cluster/state_index.h"
#include "tests/sim/timeline.h"

struct checks;

/* The name of the cluster, which is in its state. */
#define CHECKS_CLUSTER "simulated"

/* How often the state changed for one operation, of all that were sent more than once. */
struct checks_repeats {
        unsigned sent_again; /* operations that came into the log more than once */
        unsigned done_again; /* of these, those that changed the state more than once */
};

/* `strict`: an operation without a token that is done more than once is a violation too. The state does not promise that for them. */
struct checks *checks_create(struct timeline *t, bool strict);
void checks_destroy(struct checks *c); /* NULL ok */

/* What was violated first; NULL: nothing. */
const char *checks_violation(const struct checks *c);
void checks_fail(struct checks *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- clients ---- */

/* A client begins an operation, which it sends until it is answered; returns its number, from 1. `token`: it is to be done once. */
uint32_t checks_operation(struct checks *c, const char *kind, bool token);
/* It was answered: it is in the log at `index`, which gave `code` and made `created`. */
void checks_acknowledged(struct checks *c, uint32_t operation, uint64_t index, int code, uint64_t created);
/* When the first answer came; 0: none has. */
uint64_t checks_acknowledged_usec(const struct checks *c, uint32_t operation);
uint64_t checks_last_acknowledged(const struct checks *c);

/* ---- voters ---- */

/* A leader is about to put an entry into its log. */
void checks_proposed(struct checks *c, uint64_t index, const struct raft_buffer *entry, uint32_t operation);
/* The state is as it is after the entry. */
void checks_applied(struct checks *c, const char *host, uint64_t index, const struct raft_buffer *entry, Rm__State *state,
                    const struct state_index *indexed, const struct state_result *result);
/* The state came whole. */
void checks_restored(struct checks *c, const char *host, Rm__State *state, const struct state_index *indexed);
/* It leads this term; the last entry of its log. Repeated while it does. */
void checks_leads(struct checks *c, unsigned host, const char *name, uint64_t term, uint64_t last_index);

struct checks_repeats checks_repeats(const struct checks *c);

/* ---- index_check.c ---- */
/* What the index says beside a new one of the same state; NULL: it is the same. */
const char *index_difference(Rm__State *state, const struct state_index *indexed);

#endif
