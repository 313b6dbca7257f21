#include "launcher/mpirun/capture.h"

#include <ctype.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

static size_t words_bytes(char *const *words, size_t *ret_count) {
        size_t bytes = 0;
        size_t n = 0;

        for (; words[n]; n++)
                bytes += strlen(words[n]) + 1;
        *ret_count = n;
        return bytes;
}

static int take_words(Rm__JobSpec *spec, const struct command *command, struct rm_error *err) {
        size_t argv_bytes = words_bytes(command->argv, &spec->n_argv);
        size_t env_bytes = words_bytes(environ, &spec->n_env);

        spec->argv = command->argv;
        spec->env = environ;
        if (argv_bytes + env_bytes > CAPTURE_MAX_BYTES)
                return error_set(err, -E2BIG, "command line (%zu bytes) and environment (%zu bytes) are over %u bytes together",
                                 argv_bytes, env_bytes, CAPTURE_MAX_BYTES);
        return 0;
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

static uint32_t current_umask(void) {
        mode_t mask = umask(0);

        (void) umask(mask);
        return mask;
}

int capture_job(const struct command *command, const struct options *options, bool input, Rm__JobSpec **ret_spec,
                struct rm_error *err) {
        static char none[] = "";
        Rm__JobSpec *spec = xcalloc(1, sizeof(*spec));
        int r;

        rm__job_spec__init(spec);
        spec->name = options->job_name ? xstrdup(options->job_name) : default_name(command->program);
        spec->cwd = getcwd(NULL, 0);
        r = spec->cwd ? 0 : error_sys(err, -errno, "the current directory has no path");
        if (r == 0)
                r = take_words(spec, command, err);
        if (r < 0) {
                capture_free(spec);
                return r;
        }
        take_limits(spec);
        spec->umask = current_umask();
        spec->ranks = command->ranks;
        spec->group_size = options->group_size;
        spec->policy = options->policy ? (char *) options->policy : none;
        spec->priority = options->priority;
        spec->availability_path = options->availability ? options->availability : none;
        spec->time_limit_usec = options->time_usec;
        spec->on_node_loss = options->on_node_loss;
        spec->detach = options->detach;
        spec->input = input;
        *ret_spec = spec;
        return 0;
}

void capture_free(Rm__JobSpec *spec) {
        if (!spec)
                return;
        free(spec->name);
        free(spec->cwd);
        for (size_t i = 0; i < spec->n_rlimits; i++)
                free(spec->rlimits[i]);
        free(spec->rlimits);
        free(spec);
}
