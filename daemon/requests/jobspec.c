#include "daemon/requests/jobspec.h"

#include <inttypes.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

#include "common/groups.h"
#include "common/rank_map.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/sched/fields.h"
#include "daemon/state/state.h"

typedef int check_fn(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err);

static int check_name(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (name_valid(spec->name))
                return 0;
        return error_set(err, -EINVAL,
                         "a job's name has 1 to 63 letters, digits, '.', '_' and '-', and begins with a letter or digit");
}

static int check_words(const char *what, char *const *words, size_t n, struct rm_error *err) {
        for (size_t i = 0; i < n; i++)
                if (strlen(words[i]) >= JOBSPEC_WORD_MAX_BYTES)
                        return error_set(err, -E2BIG, "%s %zu has %zu bytes; no program can be started with more than %u", what, i,
                                         strlen(words[i]), JOBSPEC_WORD_MAX_BYTES - 1);
        return 0;
}

static int check_argv(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->n_argv == 0 || spec->n_argv > JOBSPEC_ARGS_MAX)
                return error_set(err, -E2BIG, "the command line has 1 to %u words, not %zu", JOBSPEC_ARGS_MAX, spec->n_argv);
        if (!spec->argv[0][0])
                return error_set(err, -EINVAL, "the command line names no program");
        return check_words("word", spec->argv, spec->n_argv, err);
}

static int check_env(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->n_env > JOBSPEC_ENV_MAX)
                return error_set(err, -E2BIG, "the environment has at most %u variables, not %zu", JOBSPEC_ENV_MAX, spec->n_env);
        for (size_t i = 0; i < spec->n_env; i++)
                if (!strchr(spec->env[i], '='))
                        return error_set(err, -EINVAL, "entry %zu of the environment has no '='", i);
        return check_words("variable", spec->env, spec->n_env, err);
}

static int check_cwd(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->cwd[0] == '/' && strlen(spec->cwd) < PATH_MAX)
                return 0;
        return error_set(err, -EINVAL, "the working directory must be an absolute path of less than %d bytes", PATH_MAX);
}

static int check_umask(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        return spec->umask <= 0777 ? 0 : error_set(err, -EINVAL, "umask: from 0 to 0777, not %#o", spec->umask);
}

static int check_nice(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        return spec->nice <= 19 ? 0 : error_set(err, -EINVAL, "the nice value is from 0 to 19, not %u", spec->nice);
}

/* The real-time class takes privileges, and so do real-time policies, which rmd gives to nobody. */
static int check_io_priority(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        unsigned class = IOPRIO_PRIO_CLASS(spec->io_priority), level = spec->io_priority & (IOPRIO_NR_LEVELS - 1);

        if (spec->io_priority == 0 || ((class == IOPRIO_CLASS_BE || class == IOPRIO_CLASS_IDLE) &&
                                       spec->io_priority == (class << IOPRIO_CLASS_SHIFT | level)))
                return 0;
        return error_set(err, -EINVAL, "the I/O priority is of the best-effort or the idle class, not %#x", spec->io_priority);
}

static int check_scheduling(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->scheduling == SCHED_OTHER || spec->scheduling == SCHED_BATCH || spec->scheduling == SCHED_IDLE)
                return 0;
        return error_set(err, -EINVAL, "the scheduling policy is SCHED_OTHER, SCHED_BATCH or SCHED_IDLE, not %u", spec->scheduling);
}

static int check_rlimits(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        bool seen[RLIM_NLIMITS] = { false };

        for (size_t i = 0; i < spec->n_rlimits; i++) {
                const Rm__Rlimit *limit = spec->rlimits[i];

                if (limit->resource >= RLIM_NLIMITS)
                        return error_set(err, -EINVAL, "limits: unknown resource %u", limit->resource);
                if (seen[limit->resource])
                        return error_set(err, -EINVAL, "limits: resource %u is given twice", limit->resource);
                if (limit->soft > limit->hard) /* no limit is the largest number */
                        return error_set(err, -EINVAL, "limits: the soft limit of resource %u is above the hard one",
                                         limit->resource);
                seen[limit->resource] = true;
        }
        return 0;
}

static int check_ranks(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->ranks >= 1 && spec->ranks <= JOBSPEC_RANKS_MAX)
                return 0;
        return error_set(err, -EINVAL, "a job has 1 to %u ranks, not %u", JOBSPEC_RANKS_MAX, spec->ranks);
}

/* Each group is a capsule with an address. Of a size that rmd chooses there are never too many
 * groups (round_input_group_size()). */
static int check_group_size(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->group_size == 0 || spec->group_size >= groups_least_size(spec->ranks, STATE_GROUPS_MAX))
                return 0;
        return error_set(err, -EINVAL, "--group-size %u: %u ranks make more than the %u groups there are addresses for",
                         spec->group_size, spec->ranks, STATE_GROUPS_MAX);
}

static int check_policy(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (!spec->policy[0] || name_valid(spec->policy))
                return 0;
        return error_set(err, -EINVAL, "--policy: a policy's name has 1 to 63 letters, digits, '.', '_' and '-'");
}

static int check_priority(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->priority >= 0 && spec->priority <= rules->max_priority)
                return 0;
        if (rules->max_priority >= JOBSPEC_PRIORITY_MAX)
                return error_set(err, -EINVAL, "--priority %d: from 0 to %d", spec->priority, JOBSPEC_PRIORITY_MAX);
        return error_set(err, -EINVAL, "--priority %d: users may set 0 to %d (rmd.conf: [job] max_priority)", spec->priority,
                         rules->max_priority);
}

/* The leader logs it, and shows it in errors. */
static int check_availability_path(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        const char *path = spec->availability_path;
        size_t n = strlen(path);

        if (n == 0 || (path[0] == '/' && path[n - 1] != '/' && n < PATH_MAX && text_is_plain(path)))
                return 0;
        return error_set(
                err, -EINVAL,
                "--availability: must be the absolute path of a file, of less than %d bytes and without control characters",
                PATH_MAX);
}

static int check_time_limit(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        /* The limit is the largest that a policy can be shown, in microseconds. */
        return spec->time_limit_usec <= (uint64_t) FIELD_MAX ? 0 : error_set(err, -EINVAL, "--time: at most 104249 days");
}

static int check_on_node_loss(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        switch (spec->on_node_loss) {
        case 0: /* abort */
        case STATE_LOSS_RESTART:
        case STATE_LOSS_FOLD:
                return 0;
        default:
                return error_set(err, -EINVAL, "--on-node-loss: invalid value %u", spec->on_node_loss);
        }
}

static int check_restarts(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->restarts <= JOBSPEC_RESTARTS_MAX)
                return 0;
        return error_set(err, -EINVAL, "--restarts %u: from 0 to %u", spec->restarts, JOBSPEC_RESTARTS_MAX);
}

static int check_token(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        size_t n = strspn(spec->token, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-");

        if (!spec->token[n] && n <= JOBSPEC_TOKEN_MAX_BYTES)
                return 0;
        return error_set(err, -EINVAL, "token: at most %u letters, digits, '.', '_' and '-'", JOBSPEC_TOKEN_MAX_BYTES);
}

static int check_spares(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->spares <= JOBSPEC_SPARES_MAX)
                return 0;
        return error_set(err, -EINVAL, "--spares %u: at most %u", spec->spares, JOBSPEC_SPARES_MAX);
}

static int check_rank_memory(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->rank_memory_bytes > JOBSPEC_RANK_MEMORY_MAX_BYTES)
                return error_set(err, -EINVAL, "--mem: more than %llu bytes for each rank",
                                 (unsigned long long) JOBSPEC_RANK_MEMORY_MAX_BYTES);
        return 0;
}

static int check_checkpoint(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        uint64_t usec = spec->checkpoint_usec;

        if (usec == 0)
                return 0;
        if (usec != STATE_CHECKPOINT_AUTO && (usec < JOBSPEC_CHECKPOINT_MIN_USEC || usec > JOBSPEC_WAIT_MAX_USEC))
                return error_set(err, -EINVAL, "--checkpoint: 'auto', or a time from 1 s to 366 days");
        return 0;
}

static int check_checkpoint_files(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->checkpoint_files && spec->checkpoint_usec == 0)
                return error_set(err, -EINVAL, "--checkpoint-files: 'copy' needs --checkpoint");
        return 0;
}

static int check_recover_wait(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->recover_wait_usec > JOBSPEC_WAIT_MAX_USEC)
                return error_set(err, -EINVAL, "--recover-wait: at most 366 days");
        return 0;
}

static int check_checkpoint_at_limit(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->checkpoint_at_limit && spec->time_limit_usec == 0)
                return error_set(err, -EINVAL, "--checkpoint-at-limit is for jobs with a time limit (--time)");
        return 0;
}

static int check_active_ranks(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->active_ranks > spec->ranks)
                return error_set(err, -EINVAL, "--max-ranks: the job begins with %u ranks, so it cannot have %u at most",
                                 spec->active_ranks, spec->ranks);
        return 0;
}

static int check_min_ranks(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->active_ranks == 0 && spec->min_ranks > 0)
                return error_set(err, -EINVAL, "--min-ranks is for jobs with --max-ranks");
        if (spec->min_ranks <= spec->active_ranks)
                return 0;
        return error_set(err, -EINVAL, "--min-ranks: the job begins with %u ranks, so it cannot have %u at least",
                         spec->active_ranks, spec->min_ranks);
}

static int check_on_rank_loss(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->on_rank_loss == RM__RANK_LOSS__RANK_LOSS_ABORT)
                return 0;
        if (spec->on_rank_loss != RM__RANK_LOSS__RANK_LOSS_CONTINUE)
                return error_set(err, -EINVAL, "--on-rank-loss: invalid value %d", (int) spec->on_rank_loss);
        if (spec->active_ranks > 0)
                return error_set(err, -EINVAL, "--on-rank-loss continue cannot be combined with --max-ranks");
        return 0;
}

static int check_critical_ranks(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        struct rank_map *map = NULL;

        if (!spec->critical_ranks[0])
                return 0;
        if (spec->on_rank_loss != RM__RANK_LOSS__RANK_LOSS_CONTINUE)
                return error_set(err, -EINVAL, "critical ranks are for jobs with --on-rank-loss continue");
        if (spec->spare_ranks >= spec->ranks)
                return 0; /* check_spare_ranks() tells */
        if (rank_map_create(spec->ranks - spec->spare_ranks, spec->spare_ranks, spec->critical_ranks, &map, err) < 0) {
                error_clean(err);
                return error_prefix(err, "--on-rank-loss continue:critical");
        }
        rank_map_destroy(map);
        return 0;
}

static int check_spare_ranks(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        if (spec->spare_ranks == 0)
                return 0;
        if (!spec->critical_ranks[0])
                return error_set(err, -EINVAL, "--spare-ranks is for jobs with --on-rank-loss continue:critical=RANKS");
        if (spec->spare_ranks < spec->ranks)
                return 0;
        return error_set(err, -EINVAL, "--spare-ranks: %u of %u ranks leave none for the program", spec->spare_ranks, spec->ranks);
}

/* Any value is good. */
static int check_nothing(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        return 0;
}

static const struct {
        uint32_t number; /* in proto/state.proto */
        const char *name;
        check_fn *check; /* NULL: rmd sets it, whatever the client said */
} fields[] = {
        { 1, "name", check_name },
        { 2, "uid", NULL },
        { 3, "gid", NULL },
        { 4, "groups", NULL },
        { 5, "user", NULL },
        { 6, "argv", check_argv },
        { 7, "env", check_env },
        { 8, "cwd", check_cwd },
        { 9, "umask", check_umask },
        { 10, "rlimits", check_rlimits },
        { 11, "ranks", check_ranks },
        { 12, "group_size", check_group_size },
        { 13, "policy", check_policy },
        { 14, "priority", check_priority },
        { 15, "availability_path", check_availability_path },
        { 16, "time_limit_usec", check_time_limit },
        { 17, "on_node_loss", check_on_node_loss },
        { 18, "detach", check_nothing },
        { 19, "input", check_nothing },
        { 20, "submit_node", NULL },
        { 21, "token", check_token },
        { 22, "spares", check_spares },
        { 40, "body_digest", NULL },
        { 41, "body_bytes", NULL },
        { 42, "argv_cut", NULL },
        { 43, "cwd_cut", NULL },
        { 60, "restarts", check_restarts },
        { 110, "rank_memory_bytes", check_rank_memory },
        { 180, "checkpoint_usec", check_checkpoint },
        { 181, "checkpoint_files", check_checkpoint_files },
        { 182, "recover_wait_usec", check_recover_wait },
        { 183, "checkpoint_at_limit", check_checkpoint_at_limit },
        { 220, "active_ranks", check_active_ranks },
        { 221, "min_ranks", check_min_ranks },
        { 230, "on_rank_loss", check_on_rank_loss },
        { 231, "critical_ranks", check_critical_ranks },
        { 232, "spare_ranks", check_spare_ranks },
        { 260, "nice", check_nice },
        { 261, "io_priority", check_io_priority },
        { 262, "scheduling", check_scheduling },
};

void jobspec_normalize(Rm__JobSpec *spec) {
        if (spec->group_size > spec->ranks)
                spec->group_size = spec->ranks;
        if (spec->on_node_loss == 0)
                spec->restarts = 0;
        if (spec->on_node_loss != STATE_LOSS_RESTART) /* with fold it does not wait */
                spec->recover_wait_usec = 0;
}

int jobspec_check(const Rm__JobSpec *spec, const struct jobspec_rules *rules, struct rm_error *err) {
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
                int r = fields[i].check ? fields[i].check(spec, rules, err) : 0;

                if (r < 0)
                        return r;
        }
        if (protobuf_c_message_get_packed_size(&spec->base) > JOBSPEC_MAX_BYTES)
                return error_set(err, -E2BIG, "command line and environment are over %u KiB", JOBSPEC_MAX_BYTES / 1024);
        return 0;
}

int jobspec_check_groups(const Rm__JobSpec *spec, uint32_t group_size, const struct jobspec_rules *rules, struct rm_error *err) {
        uint32_t groups = groups_number(spec->ranks, group_size);

        if (rules->max_groups > 0 && groups > rules->max_groups)
                return error_set(err, -EDQUOT,
                                 "--group-size: %u ranks in groups of %u are %u groups, and a job may have %u ([job] "
                                 "max_groups_per_job)",
                                 spec->ranks, group_size, groups, rules->max_groups);
        /* Groups that compute need cores, and wait for them; parked ones need none. With the
         * head: */
        if ((spec->active_ranks == 0 && spec->spare_ranks == 0) || rules->max_capsules == 0 ||
            groups + UINT64_C(1) <= rules->max_capsules)
                return 0;
        return error_set(err, -EDQUOT,
                         "%s: %u ranks in groups of %u are %u capsules with the head, and all nodes together may have %" PRIu64
                         " ([job] max_capsules_per_core): use larger groups (--group-size), or fewer ranks",
                         spec->active_ranks > 0 ? "--max-ranks" : "--spare-ranks", spec->ranks, group_size, groups + 1,
                         rules->max_capsules);
}

const char *jobspec_field(size_t i, uint32_t *ret_number) {
        if (i >= ARRAY_SIZE(fields))
                return NULL;
        *ret_number = fields[i].number;
        return fields[i].name;
}
