/* The check of restart-job: from which checkpoint a job may go on. */
#ifndef RM_REQUESTS_RESTART_JOB_H
#define RM_REQUESTS_RESTART_JOB_H

#include "common/error.h"
#include "proto/state.pb-c.h"

/* Checks that the job can go on from the checkpoint; `number` 0: from the newest that is done, or
 * if the job is held and has none, from the beginning. Pure. -ENOENT: there is none, -EBUSY: it is
 * not done. */
int restart_job_check(const Rm__Job *job, uint64_t number, struct rm_error *err);

#endif
