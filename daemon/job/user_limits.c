#include "daemon/job/user_limits.h"

#include "daemon/config/config.h"
#include "daemon/state/state.h"

Rm__UserLimits *user_limits(const struct rmd *rmd, bool admin, Rm__UserLimits *limits) {
        const struct config *config = rmd->config;

        rm__user_limits__init(limits);
        limits->ended_kept = config->max_jobs_per_user > 0 ? config->max_jobs_per_user : STATE_JOBS_MAX / 10;
        if (!admin) {
                limits->jobs = config->max_jobs_per_user;
                limits->ranks = config->max_ranks_per_user;
                limits->groups = config->max_groups_per_job;
        }
        return limits;
}
