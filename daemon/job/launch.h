/* How a job's capsules are described and what is run in them. Pure: from the state's job to specs
 * and command lines. */
#ifndef RM_JOB_LAUNCH_H
#define RM_JOB_LAUNCH_H

#include <stdint.h>
#include <sys/resource.h>

#include "daemon/capsule/capsule.h"
#include "daemon/config/config.h"
#include "daemon/state/state.h"

/* Owned description of a capsule; free with launch_spec_finish(). */
struct launch_spec {
        struct capsule_spec spec;
        char id[64];
        char hostname[64];
        char *hosts;
        uint32_t *peers;
        char *spool_dir;
};

/* "j7.h.i20" or "j7.g0.i21": with the incarnation, so that no two copies of a capsule ever share a
 * name. */
void launch_capsule_id(char out[static 64], uint64_t job, int32_t index, uint64_t incarnation);
/* "j7.": how the names of all its copies begin. */
void launch_job_prefix(char out[static 32], uint64_t job);
/* The reverse of launch_capsule_id(); false when it is not such a name. */
bool launch_parse_id(const char *id, uint64_t *ret_job, int32_t *ret_index, uint64_t *ret_incarnation);
/* "rmj7h" or "rmj7g0": how the capsules of a job call each other. */
void launch_hostname(char out[static 64], uint64_t job, int32_t index);
bool launch_parse_hostname(const char *hostname, uint64_t job, int32_t *ret_index);
/* IPv4, host byte order. */
uint32_t launch_address(const struct config *config, const Rm__Capsule *capsule);
/* Directory of a job's output on the node of its head; malloc'ed. */
char *launch_spool_dir(const struct config *config, const char *capsule_id);

int launch_spec_init(struct launch_spec *ret, const struct config *config, const Rm__Job *job, int32_t index, uint64_t incarnation,
                     bool cut);
void launch_spec_finish(struct launch_spec *spec);

/* A command with all that it points to; free with launch_command_finish(). */
struct launch_command {
        struct capsule_command command;
        char **argv;
        char **env;
        char *cwd;
        struct rlimit rlimits[RLIM_NLIMITS];
};

/* Does the job leave it to rmd how its ranks wait for messages? Then they yield, by rm-yield. */
bool launch_may_yield(const Rm__JobSpec *spec);

/* Does the job go on without ranks that are lost? Then they do so by librmrt-ft. */
bool launch_goes_on(const Rm__JobSpec *spec);

/* The libraries of rmd that a capsule has for all that its command starts. */
enum {
        LAUNCH_WITH_YIELD = 1, /* rm-yield */
        LAUNCH_WITH_FT = 2, /* librmrt-ft */
        LAUNCH_WITH_PRRTE = 4, /* rm-prrte */
};
/* mpirun, as the user wrote it, told to start its daemons through rm-agent in the job's capsules;
 * `preload`: LAUNCH_WITH_PRRTE, or nothing. */
void launch_head_command(struct launch_command *ret, const Rm__Job *job, const Rm__JobSpec *spec, unsigned preload);
/* The shell line that PRRTE gives to its agent; `preload` of these. */
void launch_group_command(struct launch_command *ret, const Rm__Job *job, const Rm__JobSpec *spec, const char *line,
                          unsigned preload);
/* Tells the ranks of a job that goes on without lost ones for how long they may wait until rmd says
 * who was lost, when MPI has lost one. */
void launch_set_loss_wait(struct launch_command *command, const Rm__JobSpec *spec, uint64_t node_timeout_usec);
void launch_command_finish(struct launch_command *command);

/* Text of the host file for mpirun; malloc'ed. */
char *launch_hostfile(const Rm__Job *job);
/* The path of the host file inside the head capsule. */
#define LAUNCH_HOSTFILE "/run/rmd-hostfile"
/* The copy of rm-agent in the head capsule. mpirun keeps it running, and it moves with the head:
 * the file of the node may be replaced by another version meanwhile, and be another one on the node
 * that the head moves to. */
#define LAUNCH_AGENT "/run/rmd-agent"
/* The copy of rm-yield in each group, made for the same reason. */
#define LAUNCH_YIELD "/run/rmd-yield.so"
/* The copies of rm-prrte in the head and in each group; it knows this path too (launcher/prrte). */
#define LAUNCH_PRRTE "/run/rmd-prrte.so"
/* So begins a variable whose value is a whole one, name and all; as PRRTE_VARIABLE in
 * launcher/prrte/rm-prrte.h. */
#define LAUNCH_VARIABLE "RM_VARIABLE_"
/* The copy of librmrt-ft in each group. */
#define LAUNCH_FT "/run/rmd-ft.so"
#define LAUNCH_FT_NAME "librmrt-ft.so" /* beside rmd's other programs */

/* A job that is to end by `signo` gets these signals: its ranks the first, and mpirun the second
 * afterwards. mpirun ends by some signals, after which its ranks get SIGTERM; others it passes on
 * to them. */
uint32_t launch_signal_for_ranks(uint32_t signo);
uint32_t launch_signal_for_mpirun(uint32_t signo);
/* mpirun ends its job when it gets it. */
bool launch_signal_ends_job(uint32_t signo);

/* Exit code a shell would see, of a status as of waitpid(2). */
int launch_exit_code(int wait_status);

#endif
