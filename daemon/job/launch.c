#include "daemon/job/launch.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/util.h"
#include "daemon/job/fence.h"

/* "j7.h" or "j7.g0". */
static void capsule_name(char out[static 48], uint64_t job, int32_t index) {
        if (index == STATE_HEAD)
                (void) snprintf(out, 48, "j%" PRIu64 ".h", job);
        else
                (void) snprintf(out, 48, "j%" PRIu64 ".g%" PRId32, job, index);
}

void launch_job_prefix(char out[static 32], uint64_t job) {
        (void) snprintf(out, 32, "j%" PRIu64 ".", job);
}

void launch_capsule_id(char out[static 64], uint64_t job, int32_t index, uint64_t incarnation) {
        char name[48];

        capsule_name(name, job, index);
        (void) snprintf(out, 64, "%s.i%" PRIu64, name, incarnation);
}

/* Reads what follows the name in the id of a capsule: ".i21". */
static bool parse_incarnation(const char *text, uint64_t *ret_incarnation) {
        uint64_t number = 0;
        char again[32];

        if (sscanf(text, ".i%" SCNu64, &number) != 1 || number == 0)
                return false;
        (void) snprintf(again, sizeof(again), ".i%" PRIu64, number);
        if (strcmp(again, text) != 0)
                return false;
        *ret_incarnation = number;
        return true;
}

bool launch_parse_id(const char *id, uint64_t *ret_job, int32_t *ret_index, uint64_t *ret_incarnation) {
        uint64_t job = 0;
        uint64_t incarnation;
        int32_t index = STATE_HEAD;
        char name[48];

        if (sscanf(id, "j%" SCNu64 ".g%" SCNd32, &job, &index) != 2 && sscanf(id, "j%" SCNu64 ".h", &job) != 1)
                return false;
        capsule_name(name, job, index);
        if (index < STATE_HEAD || strncmp(name, id, strlen(name)) != 0 || !parse_incarnation(id + strlen(name), &incarnation))
                return false;
        *ret_job = job;
        *ret_index = index;
        *ret_incarnation = incarnation;
        return true;
}

void launch_hostname(char out[static 64], uint64_t job, int32_t index) {
        if (index == STATE_HEAD)
                (void) snprintf(out, 64, "rmj%" PRIu64 "h", job);
        else
                (void) snprintf(out, 64, "rmj%" PRIu64 "g%" PRId32, job, index);
}

bool launch_parse_hostname(const char *hostname, uint64_t job, int32_t *ret_index) {
        uint64_t named = 0;
        int32_t index = 0;
        char again[64];

        if (sscanf(hostname, "rmj%" SCNu64 "g%" SCNd32, &named, &index) != 2 || named != job)
                return false;
        launch_hostname(again, job, index);
        if (index < 0 || strcmp(again, hostname) != 0)
                return false;
        *ret_index = index;
        return true;
}

char *launch_spool_dir(const struct config *config, const char *capsule_id) {
        return xasprintf("%s/spool/%s", config->state_dir, capsule_id);
}

uint32_t launch_address(const struct config *config, const Rm__Capsule *capsule) {
        return config->network + capsule->address;
}

static char *hosts_text(const struct config *config, const Rm__Job *job) {
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                abort();
        (void) fprintf(f, "127.0.0.1 localhost\n");
        for (size_t i = 0; i < job->n_capsules; i++) {
                struct in_addr address = { .s_addr = htonl(launch_address(config, job->capsules[i])) };
                char hostname[64];
                char number[INET_ADDRSTRLEN];

                launch_hostname(hostname, job->id, job->capsules[i]->index);
                (void) fprintf(f, "%s %s\n", inet_ntop(AF_INET, &address, number, sizeof(number)), hostname);
        }
        (void) fclose(f);
        return text;
}

static uint32_t *peer_addresses(const struct config *config, const Rm__Job *job) {
        uint32_t *peers = xcalloc(job->n_capsules, sizeof(*peers));

        for (size_t i = 0; i < job->n_capsules; i++)
                peers[i] = htonl(launch_address(config, job->capsules[i]));
        return peers;
}

int launch_spec_init(struct launch_spec *ret, const struct config *config, const Rm__Job *job, int32_t index, uint64_t incarnation,
                     bool cut) {
        const Rm__Capsule *capsule = job_capsule(job, index);
        uint32_t address;

        if (!capsule)
                return -ENOENT;
        memset(ret, 0, sizeof(*ret));
        launch_capsule_id(ret->id, job->id, index, incarnation);
        launch_hostname(ret->hostname, job->id, index);
        ret->hosts = hosts_text(config, job);
        ret->peers = peer_addresses(config, job);
        ret->spool_dir = launch_spool_dir(config, ret->id);
        address = launch_address(config, capsule);
        ret->spec = (struct capsule_spec) {
                .id = ret->id,
                .hostname = ret->hostname,
                .hosts = ret->hosts,
                .uplink = config->uplink,
                .address = htonl(address),
                .prefix = config->network_prefix,
                .peers = ret->peers,
                .n_peers = job->n_capsules,
                .cut = cut,
                .fenced = fence_applies(job->spec),
                .uid = job->spec->uid,
                .gid = job->spec->gid,
                .groups = job->spec->groups,
                .n_groups = job->spec->n_groups,
                .spool_dir = ret->spool_dir,
                .spool_max_bytes = config->spool_max_bytes,
                .spool_reserve_bytes = config->spool_reserve_bytes,
        };
        fence_mac(job->epoch, address, ret->spec.mac);
        return 0;
}

void launch_spec_finish(struct launch_spec *spec) {
        free(spec->hosts);
        free(spec->peers);
        free(spec->spool_dir);
}

char *launch_hostfile(const Rm__Job *job) {
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                abort();
        for (size_t i = 0; i < job->n_capsules; i++) {
                char hostname[64];

                if (job->capsules[i]->index == STATE_HEAD)
                        continue;
                launch_hostname(hostname, job->id, job->capsules[i]->index);
                (void) fprintf(f, "%s slots=%u\n", hostname, job->capsules[i]->ranks);
        }
        (void) fclose(f);
        return text;
}

static bool env_has(const Rm__JobSpec *spec, const char *assignment) {
        size_t n = strcspn(assignment, "=") + 1;

        for (size_t i = 0; i < spec->n_env; i++)
                if (strncmp(spec->env[i], assignment, n) == 0)
                        return true;
        return false;
}

/* Open MPI polls while it waits, unless told to yield. What a job itself says of that holds. */
#define LOSS_WAIT_TIMEOUTS 12U /* times node_timeout */
#define LOSS_WAIT_LEAST_SEC 60U
#define PRELOAD "LD_PRELOAD="
#define SANITIZER "ASAN_OPTIONS="
#define YIELD_SETTING "OMPI_MCA_mpi_yield_when_idle=1"

bool launch_may_yield(const Rm__JobSpec *spec) {
        return !env_has(spec, YIELD_SETTING);
}

bool launch_goes_on(const Rm__JobSpec *spec) {
        return spec->on_rank_loss == RM__RANK_LOSS__RANK_LOSS_CONTINUE;
}

/* The job's own come first. */
static char *preload_setting(const Rm__JobSpec *spec, unsigned preload) {
        static const struct {
                unsigned bit;
                const char *path;
        } ours[] = { { LAUNCH_WITH_FT, LAUNCH_FT }, { LAUNCH_WITH_YIELD, LAUNCH_YIELD }, { LAUNCH_WITH_PRRTE, LAUNCH_PRRTE } };
        char *setting = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&setting, &size);
        const char *between = "";

        if (!f)
                abort();
        (void) fprintf(f, PRELOAD);
        for (size_t i = 0; i < spec->n_env && !*between; i++)
                if (strncmp(spec->env[i], PRELOAD, strlen(PRELOAD)) == 0 && spec->env[i][strlen(PRELOAD)]) {
                        (void) fprintf(f, "%s", spec->env[i] + strlen(PRELOAD));
                        between = ":";
                }
        for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
                if (preload & ours[i].bit) {
                        (void) fprintf(f, "%s%s", between, ours[i].path);
                        between = ":";
                }
        (void) fclose(f);
        return setting;
}

/* A program of -fsanitize=address ends at once when another library comes before that of the
 * sanitizer. */
static char *sanitizer_setting(const Rm__JobSpec *spec) {
        for (size_t i = 0; i < spec->n_env; i++)
                if (strncmp(spec->env[i], SANITIZER, strlen(SANITIZER)) == 0)
                        return xasprintf(SANITIZER "verify_asan_link_order=0:%s", spec->env[i] + strlen(SANITIZER));
        return xstrdup(SANITIZER "verify_asan_link_order=0");
}

static bool reaches_ranks(unsigned preload) {
        return preload & (LAUNCH_WITH_YIELD | LAUNCH_WITH_FT);
}

static bool is_ours(const char *assignment, const Rm__JobSpec *spec, unsigned preload) {
        static const char *const names[] = { "RM_JOB_ID=",         "RM_ATTEMPT=",     "RM_ACTIVE_RANKS=", "RM_ON_RANK_LOSS=",
                                             "RM_CRITICAL_RANKS=", "RM_SPARE_RANKS=", "RM_LOSS_WAIT=" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strncmp(assignment, names[i], strlen(names[i])) == 0)
                        return true;
        if (strncmp(assignment, LAUNCH_VARIABLE, strlen(LAUNCH_VARIABLE)) == 0)
                return true;
        if (launch_goes_on(spec) && strncmp(assignment, "OMPI_MCA_coll=", 14) == 0)
                return true;
        return (preload && strncmp(assignment, PRELOAD, strlen(PRELOAD)) == 0) ||
               (reaches_ranks(preload) && strncmp(assignment, SANITIZER, strlen(SANITIZER)) == 0);
}

/* The job's environment, and of ours what it does not set itself. */
static char **build_env(const Rm__Job *job, const Rm__JobSpec *spec, unsigned preload) {
        /* Over TCP between capsules and shared memory inside them: what can be carried. Ranks are
         * not bound here: a capsule moves to other cores (see cores.c). What stands in a job's own
         * environment wins. */
        const char *const ours[] = {
                "OMPI_MCA_pml=ob1",
                "OMPI_MCA_btl=self,sm,tcp",
                "OMPI_MCA_btl_tcp_if_include=eth0",
                "OMPI_MCA_osc=^ucx",
                /* Ranks that use coll/han, which is taken over several hosts, may wait for ever
                 * when one is lost. */
                launch_goes_on(spec) ? "OMPI_MCA_coll=basic,tuned,libnbc,self,inter,ftagree" : "OMPI_MCA_coll=^hcoll,ucc",
                /* MPIX_Comm_revoke() asks for the address of a rank that it has not spoken to
                 * before, and waits for ever for that of a dead one. */
                launch_goes_on(spec) ? "OMPI_MCA_mpi_preconnect_mpi=1" : "OMPI_MCA_mpi_preconnect_mpi=0",
                "PRTE_MCA_prte_if_include=eth0",
                /* PRRTE does not look for the agent, whatever path that has, if there is none. It
                 * is where execvp() looks then. */
                "PATH=/bin:/usr/bin",
                /* A launcher that rm-mpirun itself was started by is asked neither for nodes nor to
                 * start anything. */
                "PRTE_MCA_plm=ssh",
                "PRTE_MCA_ras=^slurm,tm,pbs,pals,lsf,gridengine,flux",
                ("PRTE_MCA_plm_ssh_agent=" LAUNCH_AGENT),
                "PRTE_MCA_plm_ssh_no_tree_spawn=1",
                ("PRTE_MCA_prte_default_hostfile=" LAUNCH_HOSTFILE),
                "PRTE_MCA_rmaps_default_mapping_policy=slot:oversubscribe",
                "PRTE_MCA_hwloc_default_binding_policy=none",
                /* PRRTE 3.0.8 starts ranks from 16 threads, which change flags of a rank beside the
                 * main thread without a lock: a rank that ends at once may be forgotten, and mpirun
                 * then waits for ever. Without threads it is not. */
                "PRTE_MCA_odls_base_max_threads=0",
                YIELD_SETTING,
        };
        char **env = xcalloc(spec->n_env + ARRAY_SIZE(ours) + 8, sizeof(char *));
        size_t n = 0;

        for (size_t i = 0; i < spec->n_env; i++)
                if (!is_ours(spec->env[i], spec, preload))
                        env[n++] = xstrdup(spec->env[i]);
        for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
                if (!env_has(spec, ours[i]) || is_ours(ours[i], spec, preload))
                        env[n++] = xstrdup(ours[i]);
        env[n++] = xasprintf("RM_JOB_ID=%" PRIu64, job->id);
        env[n++] = xasprintf("RM_ATTEMPT=%u", job->attempt);
        if (spec->active_ranks > 0)
                env[n++] = xasprintf("RM_ACTIVE_RANKS=%u", spec->active_ranks);
        if (launch_goes_on(spec))
                env[n++] = xstrdup("RM_ON_RANK_LOSS=continue");
        if (launch_goes_on(spec) && spec->critical_ranks[0]) {
                env[n++] = xasprintf("RM_CRITICAL_RANKS=%s", spec->critical_ranks);
                env[n++] = xasprintf("RM_SPARE_RANKS=%u", spec->spare_ranks);
        }
        if (preload)
                env[n++] = preload_setting(spec, preload);
        if (reaches_ranks(preload))
                env[n++] = sanitizer_setting(spec);
        return env;
}

static void finish_command(struct launch_command *ret, const Rm__Job *job, const Rm__JobSpec *spec, bool stdin_null,
                           unsigned preload) {
        ret->env = build_env(job, spec, preload);
        ret->cwd = xstrdup(spec->cwd);
        for (size_t i = 0; i < RLIM_NLIMITS; i++)
                (void) getrlimit((int) i, &ret->rlimits[i]);
        for (size_t i = 0; i < spec->n_rlimits; i++)
                if (spec->rlimits[i]->resource < RLIM_NLIMITS)
                        ret->rlimits[spec->rlimits[i]->resource] = (struct rlimit) {
                                .rlim_cur = spec->rlimits[i]->soft,
                                .rlim_max = spec->rlimits[i]->hard,
                        };
        ret->command = (struct capsule_command) {
                .argv = (const char *const *) ret->argv,
                .env = (const char *const *) ret->env,
                .cwd = ret->cwd,
                .umask = spec->umask,
                .nice = (int) spec->nice,
                .io_priority = spec->io_priority,
                .scheduling = spec->scheduling,
                .rlimits = ret->rlimits,
                .stdin_null = stdin_null,
        };
}

void launch_head_command(struct launch_command *ret, const Rm__Job *job, const Rm__JobSpec *spec, unsigned preload) {
        /* PRRTE then keeps the job when a rank ends, and MPI tells the others. */
        static const char *const survive[] = { "--with-ft", "ulfm" };
        size_t n = 0;

        memset(ret, 0, sizeof(*ret));
        ret->argv = xcalloc(spec->n_argv + ARRAY_SIZE(survive) + 1, sizeof(char *));
        for (size_t i = 0; i < spec->n_argv; i++) {
                ret->argv[n++] = xstrdup(spec->argv[i]);
                for (size_t k = 0; i == 0 && launch_goes_on(spec) && k < ARRAY_SIZE(survive); k++)
                        ret->argv[n++] = xstrdup(survive[k]);
        }
        finish_command(ret, job, spec, !spec->input, preload);
}

/* Has the variable a name that a shell knows as one? */
static bool is_named(const char *assignment) {
        size_t n = strspn(assignment, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

        return n > 0 && assignment[n] == '=' && !isdigit((unsigned char) assignment[0]);
}

/* The shell that starts the daemon drops a variable of another name, as functions that bash exports
 * have. Behind such a name it passes, and rm-prrte takes that off in the daemon. */
static void wrap_variables(char **env) {
        for (size_t i = 0; env[i]; i++)
                if (!is_named(env[i])) {
                        char *wrapped = xasprintf(LAUNCH_VARIABLE "%zu=%s", i, env[i]);

                        free(env[i]);
                        env[i] = wrapped;
                }
}

void launch_group_command(struct launch_command *ret, const Rm__Job *job, const Rm__JobSpec *spec, const char *line,
                          unsigned preload) {
        memset(ret, 0, sizeof(*ret));
        ret->argv = xcalloc(4, sizeof(char *));
        ret->argv[0] = xstrdup("/bin/sh");
        ret->argv[1] = xstrdup("-c");
        ret->argv[2] = xstrdup(line);
        finish_command(ret, job, spec, true, preload);
        if (preload & LAUNCH_WITH_PRRTE)
                wrap_variables(ret->env);
}

static void free_list(char **list) {
        for (size_t i = 0; list && list[i]; i++)
                free(list[i]);
        free(list);
}

/* rmd knows that a node is lost after its node_timeout. If the leader was there, another one is
 * elected first, which then waits for the node for as long again. The rest is for machines that are
 * busy. */
void launch_set_loss_wait(struct launch_command *command, const Rm__JobSpec *spec, uint64_t node_timeout_usec) {
        uint64_t wait_sec = LOSS_WAIT_TIMEOUTS * node_timeout_usec / 1000000U;
        size_t n = 0;

        if (!launch_goes_on(spec))
                return;
        while (command->env[n])
                n++;
        command->env = xrealloc(command->env, (n + 2) * sizeof(*command->env));
        command->env[n] = xasprintf("RM_LOSS_WAIT=%" PRIu64, wait_sec < LOSS_WAIT_LEAST_SEC ? LOSS_WAIT_LEAST_SEC : wait_sec);
        command->env[n + 1] = NULL;
        command->command.env = (const char *const *) command->env;
}

void launch_command_finish(struct launch_command *command) {
        free_list(command->argv);
        free_list(command->env);
        free(command->cwd);
}

int launch_exit_code(int wait_status) {
        if (WIFEXITED(wait_status))
                return WEXITSTATUS(wait_status);
        return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : 255;
}

uint32_t launch_signal_for_ranks(uint32_t signo) {
        switch (signo) {
        case SIGINT:
        case SIGHUP:
        case SIGQUIT:
        case SIGPIPE:
                return SIGTERM; /* as mpirun does */
        default:
                return signo;
        }
}

uint32_t launch_signal_for_mpirun(uint32_t signo) {
        switch (signo) {
        case SIGINT:
        case SIGHUP:
        case SIGQUIT:
        case SIGKILL:
                return signo;
        default:
                return SIGTERM; /* it would pass others on, or end without its daemons */
        }
}

bool launch_signal_ends_job(uint32_t signo) {
        return signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT;
}
