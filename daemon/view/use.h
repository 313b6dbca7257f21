/* Figures that only the leader has, since they are in no log: memory that is free, what folded jobs
 * get of their cores, how far programs are, and when pending jobs start. Pure. */
#ifndef RM_VIEW_USE_H
#define RM_VIEW_USE_H

#include "daemon/view/view.h"
#include "proto/local.pb-c.h"
#include "rm/policy.h"

/* The leader's figures. Borrowed. */
struct view_figures {
        const struct rm_snapshot *nodes; /* only nodes are looked at */
        /* How many times as long a folded job takes as on cores of its own; 0: not known. */
        double (*slowdown)(const void *context, const Rm__Job *job);
        /* How far the job's program is. False: it does not say; `ret` is not touched. */
        bool (*progress)(const void *context, const Rm__Job *job, Rm__Progress *ret);
        /* When the pending job starts at the latest; 0: not known. */
        uint64_t (*start)(const void *context, const Rm__Job *job);
        const void *context;
};

/* `job`: the slowdown, progress and expected start of this one, as far as `reader` may see it; 0:
 * none. `all_progress`: progress and expected starts of all jobs that he may see. Fills `ret`,
 * which is initialized; nodes' names are those of the figures. Free with view_use_finish(). */
void view_use(const struct view_source *source, const struct view_reader *reader, const struct view_figures *figures, uint64_t job,
              bool all_progress, Rm__Use *ret);
void view_use_finish(Rm__Use *use);

#endif
