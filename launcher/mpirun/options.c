#include "launcher/mpirun/options.h"

#include <ctype.h>
#include <ini.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"

#define MAX_PRIORITY 1000000
#define MAX_GROUP_SIZE 65536
#define MAX_RESTARTS 1000
#define DEFAULT_RESTARTS 3
#define CHECKPOINT_MIN_USEC UINT64_C(1000000)
#define WAIT_MAX_USEC (UINT64_C(366) * 86400 * 1000000)

const struct command_option options_known[OPTION_COUNT] = {
        [OPTION_POLICY] = { "policy", true },
        [OPTION_PRIORITY] = { "priority", true },
        [OPTION_GROUP_SIZE] = { "group-size", true },
        [OPTION_AVAILABILITY] = { "availability", true },
        [OPTION_MAX_RANKS] = { "max-ranks", true },
        [OPTION_MEM] = { "mem", true },
        [OPTION_MIN_RANKS] = { "min-ranks", true },
        [OPTION_SPARE_RANKS] = { "spare-ranks", true },
        [OPTION_SPARES] = { "spares", true },
        [OPTION_CHECKPOINT] = { "checkpoint", true },
        [OPTION_CHECKPOINT_FILES] = { "checkpoint-files", true },
        [OPTION_CHECKPOINT_AT_LIMIT] = { "checkpoint-at-limit", false },
        [OPTION_RECOVER_WAIT] = { "recover-wait", true },
        [OPTION_ON_NODE_LOSS] = { "on-node-loss", true },
        [OPTION_ON_RANK_LOSS] = { "on-rank-loss", true },
        [OPTION_RESTARTS] = { "restarts", true },
        [OPTION_TIME] = { "time", true },
        [OPTION_DETACH] = { "detach", false },
        [OPTION_JOB_NAME] = { "job-name", true },
        [OPTION_WAIT] = { "wait", true },
};

/* ---- where values come from ---- */

static void source_set(struct option_source *source, const char *value, char *origin) {
        free(source->value);
        free(source->origin);
        source->value = xstrdup(value);
        source->origin = origin;
}

int options_take(void *context, size_t option, const char *value, struct rm_error *err) {
        struct options *options = context;

        (void) err;
        source_set(&options->sources[option], value ? value : "yes", xasprintf("--%s", options_known[option].name));
        return 0;
}

/* "group-size" as RM_GROUP_SIZE, or as group_size of the file. */
static char *other_name(const char *prefix, const char *name, bool upper) {
        char *s = xasprintf("%s%s", prefix, name);

        for (char *p = s; *p; p++) {
                if (*p == '-')
                        *p = '_';
                if (upper)
                        *p = (char) toupper((unsigned char) *p);
        }
        return s;
}

void options_read_environment(struct options *options) {
        for (size_t i = 0; i < OPTION_COUNT; i++) {
                cleanup_free char *name = other_name("RM_", options_known[i].name, true);
                const char *value = getenv(name);

                if (value && *value && !options->sources[i].value)
                        source_set(&options->sources[i], value, xasprintf("%s in the environment", name));
        }
}

struct config_reader {
        struct options *options;
        const char *path;
        FILE *file;
        int line;
        bool from_file[OPTION_COUNT]; /* the last line of a key counts, as in rmd */
};

/* libinih's own reader, and count the lines: Debian's does not tell them to the handler. */
static char *config_read_line(char *text, int size, void *stream) {
        struct config_reader *reader = stream;

        reader->line++;
        return fgets(text, size, reader->file);
}

static int config_line(void *context, const char *section, const char *key, const char *value) {
        struct config_reader *reader = context;

        for (size_t i = 0; strcmp(section, "mpirun") == 0 && key && value && i < OPTION_COUNT; i++) {
                cleanup_free char *name = other_name("", options_known[i].name, false);

                if (strcmp(key, name) != 0 || (reader->options->sources[i].value && !reader->from_file[i]))
                        continue;
                source_set(&reader->options->sources[i], value, xasprintf("%s:%d: %s", reader->path, reader->line, name));
                reader->from_file[i] = true;
        }
        return 1;
}

int options_read_config(struct options *options, const char *path, struct rm_error *err) {
        struct config_reader reader = { .options = options, .path = path };
        cleanup_file FILE *f = fopen(path, "re");
        int r;

        if (!f)
                return errno == ENOENT || errno == ENOTDIR
                               ? 0
                               : error_set(err, -EINVAL, "%s cannot be read: %s", path, strerror(errno));
        reader.file = f;
        r = ini_parse_stream(config_read_line, &reader, config_line, &reader);
        /* Lines of other sections are rmd's to judge; but a broken line may hide one of ours. */
        if (ferror(f))
                return error_set(err, -EINVAL, "%s cannot be read: %s", path, strerror(errno));
        if (r > 0)
                return error_set(err, -EINVAL, "%s:%d: neither '[section]' nor 'key = value'", path, r);
        return 0;
}

/* ---- what they mean ---- */

static int bad(const struct option_source *source, const char *what, struct rm_error *err) {
        return error_set(err, -EINVAL, "%s: '%s' is not %s", source->origin, source->value, what);
}

static int resolve_name(const struct option_source *source, const char **ret_name, struct rm_error *err) {
        if (!source->value)
                return 0;
        if (!name_valid(source->value))
                return bad(source, "a name (1 to 63 letters, digits, '.', '_', '-')", err);
        *ret_name = source->value;
        return 0;
}

static int resolve_number(const struct option_source *source, int64_t max, int64_t *ret_number, struct rm_error *err) {
        cleanup_free char *what = xasprintf("a number from 0 to %lld", (long long) max);

        if (!source->value)
                return 0;
        if (parse_i64(source->value, 0, max, ret_number) < 0)
                return bad(source, what, err);
        return 0;
}

static int resolve_group_size(struct options *o, struct rm_error *err) {
        const struct option_source *source = &o->sources[OPTION_GROUP_SIZE];
        int64_t number = 0;

        if (!source->value || strcmp(source->value, "auto") == 0)
                return 0;
        if (parse_i64(source->value, 1, MAX_GROUP_SIZE, &number) < 0)
                return bad(source, "a number of ranks (1 to 65536) or 'auto'", err);
        o->group_size = (uint32_t) number;
        return 0;
}

static int resolve_ranks(const struct option_source *source, uint32_t *ret_ranks, struct rm_error *err) {
        cleanup_free char *what = xasprintf("a number of ranks (1 to %u)", COMMAND_MAX_RANKS);
        int64_t number = 0;

        if (!source->value)
                return 0;
        if (parse_i64(source->value, 1, COMMAND_MAX_RANKS, &number) < 0)
                return bad(source, what, err);
        *ret_ranks = (uint32_t) number;
        return 0;
}

/* The least number by the environment or the file is for those jobs that can change. */
static int resolve_reserve(struct options *o, struct rm_error *err) {
        const struct option_source *least = &o->sources[OPTION_MIN_RANKS];
        int r = resolve_ranks(&o->sources[OPTION_MAX_RANKS], &o->max_ranks, err);

        if (r == 0)
                r = resolve_ranks(least, &o->min_ranks, err);
        if (r == 0 && o->min_ranks > 0 && o->max_ranks == 0 && strncmp(least->origin, "--", 2) == 0)
                return error_set(err, -EINVAL, "%s: needs --max-ranks", least->origin);
        if (o->max_ranks == 0)
                o->min_ranks = 0;
        return r;
}

static int resolve_duration(const struct option_source *source, bool zero_ok, uint64_t *ret_usec, struct rm_error *err) {
        uint64_t usec = 0;

        if (!source->value)
                return 0;
        if (parse_duration_usec(source->value, &usec) < 0 || (usec == 0 && !zero_ok))
                return bad(source, "a time (as 90, 90s, 5m, 2h, 1d)", err);
        *ret_usec = usec;
        return 0;
}

/* "8G" for the whole job, or "500M/rank". */
static int resolve_memory(struct options *o, struct rm_error *err) {
        static const char each[] = "/rank";
        const struct option_source *source = &o->sources[OPTION_MEM];
        cleanup_free char *size = NULL;
        size_t length;

        if (!source->value)
                return 0;
        size = xstrdup(source->value);
        length = strlen(size);
        o->mem_each = length > strlen(each) && strcmp(size + length - strlen(each), each) == 0;
        if (o->mem_each)
                size[length - strlen(each)] = '\0';
        if (parse_bytes(size, &o->mem_bytes) < 0 || o->mem_bytes == 0)
                return bad(source, "a size (as 500M, 8G), or one with '/rank' behind it", err);
        return 0;
}

static int resolve_choice(const struct option_source *source, const char *const *choices, size_t n, const char *what,
                          uint32_t *ret_choice, struct rm_error *err) {
        if (!source->value)
                return 0;
        for (size_t i = 0; i < n; i++) {
                if (strcmp(choices[i], source->value) != 0)
                        continue;
                *ret_choice = (uint32_t) i;
                return 0;
        }
        return bad(source, what, err);
}

static int resolve_yes_no(const struct option_source *source, bool *ret_yes, struct rm_error *err) {
        static const char *const choices[] = { "no", "yes", "0", "1", "false", "true", "off", "on" };
        uint32_t choice = 0;
        int r = resolve_choice(source, choices, ARRAY_SIZE(choices), "yes or no", &choice, err);

        *ret_yes = choice % 2 == 1;
        return r;
}

static int resolve_checkpoint(struct options *o, struct rm_error *err) {
        const struct option_source *source = &o->sources[OPTION_CHECKPOINT];
        uint64_t usec = 0;

        if (!source->value)
                return 0;
        if (strcmp(source->value, "auto") == 0)
                usec = UINT64_MAX;
        else if (parse_duration_usec(source->value, &usec) < 0 || usec < CHECKPOINT_MIN_USEC || usec > WAIT_MAX_USEC)
                return bad(source, "'auto' or a time from 1s to 366d (as 90s, 5m, 2h)", err);
        o->checkpoint_usec = usec;
        return 0;
}

/* The option by the environment or the file is for those jobs that have checkpoints. */
static int resolve_checkpoint_files(struct options *o, struct rm_error *err) {
        static const char *const choices[] = { "size", "copy" };
        const struct option_source *source = &o->sources[OPTION_CHECKPOINT_FILES];
        uint32_t copy = 0;
        int r = resolve_choice(source, choices, ARRAY_SIZE(choices), "size or copy", &copy, err);

        if (r == 0 && copy && o->checkpoint_usec == 0 && strncmp(source->origin, "--", 2) == 0)
                r = error_set(err, -EINVAL, "%s: 'copy' needs --checkpoint", source->origin);
        o->checkpoint_files = copy && o->checkpoint_usec > 0;
        return r;
}

/* To be resolved after the time limit, on which it depends. */
static int resolve_checkpoint_at_limit(struct options *o, struct rm_error *err) {
        const struct option_source *source = &o->sources[OPTION_CHECKPOINT_AT_LIMIT];
        int r = resolve_yes_no(source, &o->checkpoint_at_limit, err);

        if (r == 0 && o->checkpoint_at_limit && o->time_usec == 0 && strncmp(source->origin, "--", 2) == 0)
                return error_set(err, -EINVAL, "%s: needs --time", source->origin);
        o->checkpoint_at_limit = o->checkpoint_at_limit && o->time_usec > 0;
        return r;
}

static int resolve_recover_wait(struct options *o, struct rm_error *err) {
        const struct option_source *source = &o->sources[OPTION_RECOVER_WAIT];
        int r = resolve_duration(source, true, &o->recover_wait_usec, err);

        return r == 0 && o->recover_wait_usec > WAIT_MAX_USEC ? bad(source, "a time of at most 366d", err) : r;
}

/* "continue:critical=0,5-7": what the list says is for rmd to judge. */
static bool take_critical(const struct option_source *source, struct options *o) {
        static const char prefix[] = "continue:critical=";

        o->critical_ranks = NULL;
        if (!source->value || strncmp(source->value, prefix, sizeof(prefix) - 1) != 0 || !source->value[sizeof(prefix) - 1])
                return false;
        o->critical_ranks = source->value + sizeof(prefix) - 1;
        o->on_rank_loss = 1;
        return true;
}

/* To be resolved after the reserve. A value of the environment or the file applies to those jobs
 * that can go on without a rank. */
static int resolve_on_rank_loss(struct options *o, struct rm_error *err) {
        static const char *const choices[] = { "abort", "continue" };
        const struct option_source *source = &o->sources[OPTION_ON_RANK_LOSS];
        int r = take_critical(source, o) ? 0
                                         : resolve_choice(source, choices, ARRAY_SIZE(choices),
                                                          "abort or continue[:critical=RANKS]", &o->on_rank_loss, err);

        if (r < 0 || o->on_rank_loss == 0 || o->max_ranks == 0)
                return r;
        if (strncmp(source->origin, "--", 2) == 0)
                return error_set(err, -EINVAL, "%s: 'continue' cannot be combined with --max-ranks", source->origin);
        o->on_rank_loss = 0;
        o->critical_ranks = NULL;
        return 0;
}

/* To be resolved after the option for lost ranks. Spare ranks by the environment or the file are
 * for those jobs that have critical ranks. */
static int resolve_spare_ranks(struct options *o, struct rm_error *err) {
        const struct option_source *source = &o->sources[OPTION_SPARE_RANKS];
        int64_t number = 0;
        int r = resolve_number(source, COMMAND_MAX_RANKS, &number, err);

        if (r < 0 || number == 0)
                return r;
        if (o->critical_ranks)
                o->spare_ranks = (uint32_t) number;
        else if (strncmp(source->origin, "--", 2) == 0)
                return error_set(err, -EINVAL, "%s: needs --on-rank-loss continue:critical=RANKS", source->origin);
        return 0;
}

/* To be resolved after the interval of checkpoints and the option for lost ranks: a user who sets
 * either wants the job to go on. mpirun does not go on without a node or a daemon of its own, so
 * there the job falls back to its last checkpoint. */
static int resolve_on_node_loss(struct options *o, struct rm_error *err) {
        enum { ABORT, RESTART, FOLD };
        static const char *const choices[] = { [ABORT] = "abort", [RESTART] = "restart", [FOLD] = "fold" };

        int64_t restarts = DEFAULT_RESTARTS;
        int r;

        o->on_node_loss = o->checkpoint_usec > 0 || o->on_rank_loss > 0 ? RESTART : ABORT;
        r = resolve_choice(&o->sources[OPTION_ON_NODE_LOSS], choices, ARRAY_SIZE(choices), "restart, fold or abort",
                           &o->on_node_loss, err);
        if (r == 0)
                r = resolve_number(&o->sources[OPTION_RESTARTS], MAX_RESTARTS, &restarts, err);
        if (r == 0)
                o->restarts = o->on_node_loss == ABORT ? 0 : (uint32_t) restarts;
        return r;
}

/* A time by the environment or the file is for those jobs that rm-mpirun waits for. */
static int resolve_wait(struct options *o, struct rm_error *err) {
        const struct option_source *source = &o->sources[OPTION_WAIT];
        int r = resolve_duration(source, true, &o->wait_usec, err);

        if (r == 0)
                r = resolve_yes_no(&o->sources[OPTION_DETACH], &o->detach, err);
        if (r == 0 && o->detach && source->value && strncmp(source->origin, "--", 2) == 0)
                return error_set(err, -EINVAL, "--wait: cannot be combined with --detach, with which nobody waits");
        o->wait_set = source->value != NULL;
        return r;
}

static int resolve_availability(struct options *o, struct rm_error *err) {
        const struct option_source *source = &o->sources[OPTION_AVAILABILITY];
        cleanup_free char *cwd = NULL;
        struct stat st;

        if (!source->value)
                return 0;
        if (access(source->value, R_OK) < 0)
                return error_set(err, -EINVAL, "%s: '%s' cannot be read: %s", source->origin, source->value, strerror(errno));
        if (stat(source->value, &st) == 0 && S_ISDIR(st.st_mode))
                return bad(source, "a file, but a directory", err);
        if (source->value[0] == '/') {
                o->availability = xstrdup(source->value);
                return 0;
        }
        cwd = getcwd(NULL, 0);
        if (!cwd)
                return error_set(err, -EINVAL, "cannot determine the current directory: %s", strerror(errno));
        o->availability = xasprintf("%s/%s", cwd, source->value);
        return 0;
}

static int resolve_checkpoints(struct options *o, struct rm_error *err) {
        int r = resolve_checkpoint(o, err);

        if (r == 0)
                r = resolve_checkpoint_files(o, err);
        if (r == 0)
                r = resolve_checkpoint_at_limit(o, err);
        if (r == 0)
                r = resolve_recover_wait(o, err);
        return r;
}

static int resolve_losses(struct options *o, struct rm_error *err) {
        int r = resolve_on_rank_loss(o, err);

        if (r == 0)
                r = resolve_spare_ranks(o, err);
        return r == 0 ? resolve_on_node_loss(o, err) : r;
}

int options_resolve(struct options *o, struct rm_error *err) {
        int64_t priority = 0, spares = 0;
        int r;

        r = resolve_name(&o->sources[OPTION_POLICY], &o->policy, err);
        if (r == 0)
                r = resolve_name(&o->sources[OPTION_JOB_NAME], &o->job_name, err);
        if (r == 0)
                r = resolve_number(&o->sources[OPTION_PRIORITY], MAX_PRIORITY, &priority, err);
        if (r == 0)
                r = resolve_group_size(o, err);
        if (r == 0)
                r = resolve_reserve(o, err);
        if (r == 0)
                r = resolve_duration(&o->sources[OPTION_TIME], false, &o->time_usec, err);
        if (r == 0)
                r = resolve_checkpoints(o, err);
        if (r == 0)
                r = resolve_losses(o, err);
        if (r == 0)
                r = resolve_wait(o, err);
        if (r == 0)
                r = resolve_availability(o, err);
        if (r == 0)
                r = resolve_memory(o, err);
        if (r == 0)
                r = resolve_number(&o->sources[OPTION_SPARES], UINT32_MAX, &spares, err);
        o->spares = (uint32_t) spares;
        o->priority = (int32_t) priority;
        return r;
}

int options_check_ranks(const struct options *o, uint32_t ranks, struct rm_error *err) {
        const char *most = o->sources[OPTION_MAX_RANKS].origin, *least = o->sources[OPTION_MIN_RANKS].origin;

        if (o->max_ranks > 0 && o->max_ranks < ranks)
                return error_set(err, -EINVAL, "%s: the job begins with %u ranks, so it cannot have %u at most", most, ranks,
                                 o->max_ranks);
        if (o->min_ranks > ranks)
                return error_set(err, -EINVAL, "%s: the job begins with %u ranks, so it cannot have %u at least", least, ranks,
                                 o->min_ranks);
        if (o->spare_ranks > COMMAND_MAX_RANKS - ranks)
                return error_set(err, -EINVAL, "%s: %u ranks and %u spare ones are too many (at most %u)",
                                 o->sources[OPTION_SPARE_RANKS].origin, ranks, o->spare_ranks, COMMAND_MAX_RANKS);
        return 0;
}

void options_finish(struct options *o) {
        for (size_t i = 0; i < OPTION_COUNT; i++) {
                free(o->sources[i].value);
                free(o->sources[i].origin);
        }
        free(o->availability);
        *o = (struct options) { 0 };
}
