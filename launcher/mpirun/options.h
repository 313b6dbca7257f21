/* The RM options: from the command line, else the environment (RM_*), else [mpirun] of rmd.conf. */
#ifndef RM_LAUNCHER_MPIRUN_OPTIONS_H
#define RM_LAUNCHER_MPIRUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "launcher/mpirun/command.h"

#define OPTIONS_CONFIG_PATH "/etc/rmd/rmd.conf"

enum {
        OPTION_POLICY,
        OPTION_PRIORITY,
        OPTION_GROUP_SIZE,
        OPTION_AVAILABILITY,
        OPTION_MAX_RANKS,
        OPTION_MEM,
        OPTION_MIN_RANKS,
        OPTION_SPARE_RANKS,
        OPTION_SPARES,
        OPTION_CHECKPOINT,
        OPTION_CHECKPOINT_FILES,
        OPTION_CHECKPOINT_AT_LIMIT,
        OPTION_RECOVER_WAIT,
        OPTION_ON_NODE_LOSS,
        OPTION_ON_RANK_LOSS,
        OPTION_RESTARTS,
        OPTION_TIME,
        OPTION_DETACH,
        OPTION_JOB_NAME,
        OPTION_WAIT,
        OPTION_COUNT,
};

/* Where a value was found and what it is, before it was checked. */
struct option_source {
        char *value;  /* NULL: not given */
        char *origin; /* "--priority", "RM_PRIORITY in the environment", "/etc/rmd/rmd.conf:12: priority" */
};

/* Initialise with `= {0}`. Owns its strings. */
struct options {
        struct option_source sources[OPTION_COUNT];
        /* Filled in by options_resolve(). Strings NULL: not given. */
        const char *policy;
        int32_t priority;
        uint32_t group_size; /* 0: the cluster's default */
        uint32_t max_ranks; /* 0: not given */
        uint32_t min_ranks; /* likewise; only with max_ranks */
        char *availability;  /* absolute path */
        uint64_t mem_bytes; /* 0: not given */
        bool mem_each; /* that is for each rank, not for all */
        uint32_t spares; /* nodes to be kept free */
        uint32_t on_node_loss; /* 0 abort, 1 restart, 2 fold, as in proto */
        uint32_t restarts;     /* 0 if on_node_loss is 0 */
        uint32_t on_rank_loss; /* 0 abort, 1 continue, as in proto */
        const char *critical_ranks; /* of continue, as the user has written them; NULL: none */
        uint32_t spare_ranks;       /* beside those of the program; only with critical ones */
        uint64_t checkpoint_usec; /* 0: none by itself, UINT64_MAX: auto */
        bool checkpoint_files; /* those written in place are kept with it */
        bool checkpoint_at_limit;
        uint64_t recover_wait_usec; /* 0: without limit */
        uint64_t time_usec;  /* 0: none */
        bool detach;
        const char *job_name;
        bool wait_set;
        uint64_t wait_usec;
};

/* The options for command_parse(), OPTION_COUNT of them; `options_take` is its callback with a
 * `struct options *` as context. */
extern const struct command_option options_known[OPTION_COUNT];
int options_take(void *context, size_t option, const char *value, struct rm_error *err);

/* Fill what the command line did not give. A file that is not there is fine. -EINVAL for one that
 * cannot be read. */
void options_read_environment(struct options *options);
int options_read_config(struct options *options, const char *path, struct rm_error *err);
/* Judge the values found. -EINVAL with a text that names the origin. */
int options_resolve(struct options *options, struct rm_error *err);
/* Checks the options of a job that begins with so many ranks: -EINVAL if they are more than it may
 * have, or fewer. */
int options_check_ranks(const struct options *options, uint32_t ranks, struct rm_error *err);
void options_finish(struct options *options);

#endif
