/* Chooses which end of a rank ended its job. Pure. */
#ifndef RM_JOB_RANK_ENDS_H
#define RM_JOB_RANK_ENDS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/capsule/capsule.h"

struct rank_ends_first {
        int exit_code; /* as a shell would see it */
        int signal; /* that has killed it; 0: none */
        int32_t group; /* -1: it is mpirun's word */
};

/* Chooses the end of a job whose mpirun has failed with `exit_code`, by what is known of its
 * groups. */
struct rank_ends_first rank_ends_choose(int exit_code, const struct capsule_rank_ends *groups, size_t n);

#endif
