/* Availability files of daemon/leader/files.h: there are none in the virtual world, whose workload
 * says what the nodes' cores are. */
#include <stddef.h>

#include "daemon/leader/files.h"

struct leader_files *leader_files_create(struct rmd *rmd) {
        return NULL;
}

void leader_files_destroy(struct leader_files *files) {
}

void leader_files_check(struct leader_files *files, bool more_jobs) {
}

bool leader_files_unknown(const struct leader_files *files, const Rm__Job *job) {
        return false;
}
