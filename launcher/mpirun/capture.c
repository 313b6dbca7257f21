#include "launcher/mpirun/capture.h"

#include <ctype.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/util.h"

#define NAME_BYTES 63

/* The program's name, made fit for a job's. */
static char *default_name(const char *program) {
        const char *slash = strrchr(program, '/');
        char *name = xstrdup(slash ? slash + 1 : program);

        if (strlen(name) > NAME_BYTES)
                name[NAME_BYTES] = 0;
        for (char *p = name; *p; p++)
                if (!isalnum((unsigned char) *p) && (p == name || !strchr("._-", *p)))
                        *p = p == name ? 'x' : '_';
        if (!*name) {
                free(name);
                name = xstrdup("job");
        }
        return name;
}

/* Strings that are no variables, as a program may have left them there, would be refused by rmd. */
static void take_environment(Rm__JobSpec *spec) {
        size_t n = 0;

        while (environ[n])
                n++;
        spec->env = xcalloc(n + 1, sizeof(*spec->env));
        for (size_t i = 0; i < n; i++)
                if (strchr(environ[i], '='))
                        spec->env[spec->n_env++] = environ[i];
}

static int check_size(const Rm__JobSpec *spec, struct rm_error *err) {
        size_t size = rm__job_spec__get_packed_size(spec);

        if (size <= CAPTURE_MAX_BYTES)
                return 0;
        return error_set(err, -E2BIG, "command line and environment are too large: %zu KiB, the limit is %u", size / 1024,
                         CAPTURE_MAX_BYTES / 1024);
}

static void take_limits(Rm__JobSpec *spec) {
        spec->rlimits = xcalloc(RLIM_NLIMITS, sizeof(Rm__Rlimit *));
        for (unsigned i = 0; i < RLIM_NLIMITS; i++) {
                struct rlimit limit;
                Rm__Rlimit *r;

                if (getrlimit((__rlimit_resource_t) i, &limit) < 0)
                        continue;
                r = xcalloc(1, sizeof(*r));
                rm__rlimit__init(r);
                r->resource = i;
                r->soft = limit.rlim_cur;
                r->hard = limit.rlim_max;
                spec->rlimits[spec->n_rlimits++] = r;
        }
}

/* Returns the mount that a capsule has of its own above the path: the files below it here are not
 * there for the job. */
static const char *private_mount(const char *path) {
        static const char *const mounts[] = { "/tmp", "/run", "/var/run", "/dev/shm" };

        for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
                size_t length = strlen(mounts[i]);

                if (strncmp(path, mounts[i], length) == 0 && path[length] == '/')
                        return mounts[i];
        }
        return NULL;
}

/* Told here, where the user sees it: mpirun would start in a directory that is not there, or not
 * find the program. */
static int check_places(const char *cwd, const char *program, struct rm_error *err) {
        static const char advice[] = "every job has a %s of its own; use a directory that all nodes share, such as your home";
        cleanup_free char *real = strchr(program, '/') ? realpath(program, NULL) : NULL;
        const char *path = real ? real : program;
        const char *mount = private_mount(cwd);
        char text[160];

        if (mount) {
                (void) snprintf(text, sizeof(text), advice, mount);
                return error_set(err, -EINVAL, "the job cannot run in %s: %s", cwd, text);
        }
        mount = private_mount(path);
        if (!mount)
                return 0;
        (void) snprintf(text, sizeof(text), advice, mount);
        return error_set(err, -EINVAL, "the job cannot run the program %s: %s", path, text);
}

static uint32_t current_umask(void) {
        mode_t mask = umask(0);

        (void) umask(mask);
        return mask;
}

/* Only root may go below 0, and rmd does that for nobody. */
static uint32_t current_nice(void) {
        int nice = getpriority(PRIO_PROCESS, 0);

        return nice > 0 ? (uint32_t) nice : 0;
}

/* Without what newer kernels add to it, and without the real-time class, which takes privileges. */
static uint32_t current_io_priority(void) {
        long value = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
        unsigned class = value > 0 ? IOPRIO_PRIO_CLASS(value) : IOPRIO_CLASS_NONE;

        if (class != IOPRIO_CLASS_BE && class != IOPRIO_CLASS_IDLE)
                return 0;
        return class << IOPRIO_CLASS_SHIFT | ((uint32_t) value & (IOPRIO_NR_LEVELS - 1));
}

static uint32_t current_scheduling(void) {
        int policy = sched_getscheduler(0);

        return policy == SCHED_BATCH || policy == SCHED_IDLE ? (uint32_t) policy : SCHED_OTHER;
}

static uint64_t rank_memory(const struct options *options, uint32_t ranks) {
        uint64_t parts = options->mem_each || ranks == 0 ? 1 : ranks;

        return options->mem_bytes / parts + (options->mem_bytes % parts > 0);
}

int capture_job(const struct command *command, const struct options *options, bool input, Rm__JobSpec **ret_spec,
                struct rm_error *err) {
        static char none[] = "";
        Rm__JobSpec *spec = xcalloc(1, sizeof(*spec));
        int r;

        rm__job_spec__init(spec);
        spec->name = options->job_name ? xstrdup(options->job_name) : default_name(command->program);
        spec->cwd = getcwd(NULL, 0);
        r = spec->cwd ? check_places(spec->cwd, command->program, err)
                      : error_sys(err, -errno, "cannot determine the current directory");
        if (r < 0) {
                capture_free(spec);
                return r;
        }
        spec->argv = command->argv;
        spec->n_argv = command->argc;
        take_environment(spec);
        take_limits(spec);
        spec->umask = current_umask();
        spec->nice = current_nice();
        spec->io_priority = current_io_priority();
        spec->scheduling = current_scheduling();
        spec->ranks = options->max_ranks > 0 ? options->max_ranks : command->ranks + options->spare_ranks;
        spec->active_ranks = options->max_ranks > 0 ? command->ranks : 0;
        spec->min_ranks = options->max_ranks > 0 && options->min_ranks == 0 ? command->ranks : options->min_ranks;
        spec->group_size = options->group_size;
        spec->policy = options->policy ? (char *) options->policy : none;
        spec->priority = options->priority;
        spec->availability_path = options->availability ? options->availability : none;
        spec->time_limit_usec = options->time_usec;
        spec->on_node_loss = options->on_node_loss;
        spec->restarts = options->restarts;
        spec->on_rank_loss = (Rm__RankLoss) options->on_rank_loss;
        spec->critical_ranks = options->critical_ranks ? (char *) options->critical_ranks : none;
        spec->spare_ranks = options->spare_ranks;
        spec->checkpoint_usec = options->checkpoint_usec;
        spec->checkpoint_files = options->checkpoint_files;
        spec->checkpoint_at_limit = options->checkpoint_at_limit;
        spec->recover_wait_usec = options->recover_wait_usec;
        spec->rank_memory_bytes = rank_memory(options, spec->ranks);
        spec->spares = options->spares;
        spec->detach = options->detach;
        spec->input = input;
        r = check_size(spec, err);
        if (r < 0)
                capture_free(spec);
        else
                *ret_spec = spec;
        return r;
}

void capture_free(Rm__JobSpec *spec) {
        if (!spec)
                return;
        free(spec->name);
        free(spec->cwd);
        free(spec->env);
        for (size_t i = 0; i < spec->n_rlimits; i++)
                free(spec->rlimits[i]);
        free(spec->rlimits);
        free(spec);
}
