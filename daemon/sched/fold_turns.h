/* The choice of jobs that share cores first when there are too few (fold.h), by the goals of
 * programs: groups that must find room come to nodes of jobs that do more steps than their goal, as
 * far as these bear it. No group that may stay is moved for it. Pure. */
#ifndef RM_SCHED_FOLD_TURNS_H
#define RM_SCHED_FOLD_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sched/round.h"

struct fold_turns;

/* `jobs`: of the snapshot, NULL ok. NULL: no job has a turn of its own. */
struct fold_turns *fold_turns_create(const struct rm_snapshot *snapshot, const struct round_job *jobs);
void fold_turns_destroy(struct fold_turns *turns); /* NULL ok */

/* The ranks that a node may hold without any group being moved to it: the ranks that are there, as
 * far as it would have to hold them if all nodes shared alike (`even`), and its real cores at
 * least. */
uint32_t fold_turns_cores(const struct fold_turns *turns, uint32_t node, uint32_t real, uint32_t even);

/* The jobs on the node that share first bear a group that comes, with which it has `ratio` ranks to
 * a core, and all nodes together have `even_ratio`. `there`: the group is there already. */
bool fold_turns_bears(const struct fold_turns *turns, uint32_t node, double ratio, double even_ratio, bool there);

#endif
