/* The availability files: the cluster's, and those of jobs that have one. Read by the leader. */
#ifndef RM_LEADER_FILES_H
#define RM_LEADER_FILES_H

#include <stdbool.h>

#include "daemon/context.h"
#include "proto/state.pb-c.h"

struct leader_files;

struct leader_files *leader_files_create(struct rmd *rmd);
void leader_files_destroy(struct leader_files *files); /* NULL ok */
/* The job has a file of its own, and what it says is not in the state yet: it is not to start on
 * cores that are not its own. False once the file is known to be missing, wrong or out of reach.
 * NULL ok: false. */
bool leader_files_unknown(const struct leader_files *files, const Rm__Job *job);
/* Jobs or nodes may have changed; `more_jobs`: one may have come, or go on after its end. NULL
 * ok. */
void leader_files_check(struct leader_files *files, bool more_jobs);

#endif
