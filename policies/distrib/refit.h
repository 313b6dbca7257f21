/* Good plans for large problems: jobs are taken out, some at a time, and put back by dynamic programming over classes of nodes
 * (filling.h): some drawn at random, or those that have what another one wishes for (oust.h). */
#ifndef RM_POLICIES_DISTRIB_REFIT_H
#define RM_POLICIES_DISTRIB_REFIT_H

#include <stdbool.h>

#include "placement/relaxation.h"
#include "policies/distrib/deadline.h"
#include "policies/distrib/dive.h"
#include "policies/distrib/pieces.h"
#include "policies/distrib/wishes.h"

struct refit;

/* Begins at `plan`, which must be valid. Jobs that run already, have limits or groups of several ranks stay as they are. The
 * snapshot is borrowed. NULL: no memory, or nothing to do. `seed`: another one, other jobs are drawn. */
struct refit *refit_create(const struct rm_snapshot *snapshot, const struct rm_plan *plan, uint64_t seed);
void refit_destroy(struct refit *refit); /* NULL ok */

/* What cores are worth from now on. */
void refit_set_prices(struct refit *refit, const struct relaxation *relaxation);
void refit_set_worth(struct refit *refit, const struct pieces *pieces);

/* Where jobs would rather be, by the same prices; it must outlive this. Without it, jobs are drawn at random only. -ENOMEM. */
int refit_set_wishes(struct refit *refit, const struct wishes *wishes);

/* Put all jobs anew, highest priority first, if that is better. -ENOMEM. */
int refit_all(struct refit *refit);

/* Do all jobs take part? */
bool refit_is_whole(const struct refit *refit, const struct relaxation *relaxation);

/* Put all jobs anew, so much of them as `portions` say and then the rest, unless it costs more than `loss` more. Only where all
 * take part. -ENOMEM. */
int refit_adopt(struct refit *refit, const struct portion *portions, uint32_t n, int64_t loss);

/* Take out and put back until `until_usec` are left, or `enough` has been gained in all, or `rounds` are over. -ENOMEM. */
int refit_some(struct refit *refit, const struct deadline *deadline, int64_t until_usec, int64_t enough, uint64_t rounds);

/* How much less the plan costs now than in the beginning. */
int64_t refit_gain(const struct refit *refit);

void refit_write(const struct refit *refit, struct rm_plan *plan);

#endif
