/*
 * The checks of a submitted JobSpec. Anyone who can open a socket is a client, and the fields of a
 * JobSpec go into the replicated state, into every policy's snapshot, into logs and onto other
 * nodes: so each field is looked at here, and a field without a check is one that the unit test
 * finds missing in the table. A spec that passes can be put into the state, shown to a policy and
 * read back without being refused (tests/fuzz/requests).
 *
 * Pure: no files, no user data base, no clock.
 */
#ifndef RM_REQUESTS_JOBSPEC_H
#define RM_REQUESTS_JOBSPEC_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/state.pb-c.h"

#define JOBSPEC_ARGS_MAX 4096U
#define JOBSPEC_ENV_MAX 8192U
#define JOBSPEC_WORD_MAX_BYTES (32U * 4096U) /* with its NUL: the kernel starts no program with a longer one (MAX_ARG_STRLEN) */
#define JOBSPEC_MAX_BYTES (1U << 20)         /* packed */
#define JOBSPEC_RANKS_MAX 65536U
#define JOBSPEC_SPARES_MAX 10000U
#define JOBSPEC_RANK_MEMORY_MAX_BYTES (UINT64_C(1) << 43) /* times ranks fits 64 bits */
#define JOBSPEC_RESTARTS_MAX 1000U
#define JOBSPEC_PRIORITY_MAX 1000000
#define JOBSPEC_CHECKPOINT_MIN_USEC UINT64_C(1000000)
#define JOBSPEC_WAIT_MAX_USEC (UINT64_C(366) * 86400 * 1000000) /* longer ones are mistakes, and it is added to times */
#define JOBSPEC_TOKEN_MAX_BYTES 64U

struct jobspec_rules {
        int32_t max_priority; /* of the user who asks; at most JOBSPEC_PRIORITY_MAX */
        uint32_t max_groups; /* of a job of the user who asks; 0: as many as there are addresses for */
        uint64_t max_capsules; /* of a job with parked groups: all that its nodes could have; 0: no limit */
};

/* Set what is not the client's to say to what it means: a group size above the number of ranks is
 * the number of ranks, and a job that never starts again has no number of restarts, nor a time to
 * wait for cores then. `spec` must own its memory. */
void jobspec_normalize(Rm__JobSpec *spec);

/* Checks each field. Those that rmd fills in itself (user, groups, node of submission) are not
 * looked at: the caller sets them, whatever they say. Whether the policy exists is not known here.
 * -EINVAL or -E2BIG, and `err` names the option or field, what is wrong and what is allowed. */
int jobspec_check(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err);

/* Does it come to too many groups, each of which is a capsule, with groups of that size (at least
 * 1)? Of a spec that has passed jobspec_check(). -EDQUOT, and `err` names the limit. */
int jobspec_check_groups(const Rm__JobSpec *spec, uint32_t group_size, const struct jobspec_rules *rules, struct rm_error *err);

/* The fields that are checked or set, for the test that compares them with the message: name of
 * entry `i`, and its number in proto/state.proto; NULL behind the last. */
const char *jobspec_field(size_t i, uint32_t *ret_number);

#endif
