/* Figures of a job's checkpoints that are shown beside the checkpoints themselves. Pure. */
#ifndef RM_VIEW_CHECKPOINT_H
#define RM_VIEW_CHECKPOINT_H

#include "daemon/view/view.h"
#include "proto/local.pb-c.h"

/* Fills in how long it takes from one checkpoint to the next, and what the loss of a node would
 * cost now. Nothing is filled in for a job that has ended. */
void view_checkpoints(const struct view_source *source, const Rm__Job *job, Rm__JobView *view);

#endif
