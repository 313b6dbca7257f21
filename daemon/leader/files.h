/* The availability files: the cluster's, and those of jobs that have one. Read by the leader. */
#ifndef RM_LEADER_FILES_H
#define RM_LEADER_FILES_H

#include "daemon/context.h"

struct leader_files;

struct leader_files *leader_files_create(struct rmd *rmd);
void leader_files_destroy(struct leader_files *files); /* NULL ok */
/* Jobs or nodes may have changed. NULL ok. */
void leader_files_check(struct leader_files *files);

#endif
