#include <inttypes.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/sched/malleable.h"
#include "daemon/sched/move_cost.h"
#include "daemon/sched/policy_load.h"
#include "daemon/sched/policy_model.h"
#include "daemon/sched/round.h"
#include "launcher/sim/resizes.h"
#include "launcher/sim/scheduler.h"

struct managed {
        struct managed_config config;
        struct rm_plugin_host host;
        struct loaded_policy policy;
        char *model, *model_name; /* when the policy is one */
        uint64_t deadline_usec;
        char (*names)[24]; /* of all jobs of the world */
        uint32_t *job_at; /* of the jobs in the snapshot: their index in the world */
        struct round_job *jobs;
        int64_t wake_usec; /* of the world: when it was asked to have a round */
};

/* ---- the world as the scheduler sees it ---- */

/* The size of groups as rmd chooses it: half of the smallest node that can be used. */
static uint32_t usual_group_size(const struct managed *managed, const struct world *world) {
        uint32_t smallest = 0;

        if (managed->config.group_size > 0)
                return managed->config.group_size;
        for (uint32_t s = 0; s < world->cluster->n_nodes; s++)
                if (world->nodes[s].cores > 0 && (smallest == 0 || world->nodes[s].cores < smallest))
                        smallest = world->nodes[s].cores;
        return smallest > 1 ? smallest / 2 : 1;
}

static void add_placed(struct managed *managed, const struct world *world, const struct sim_job *own, struct snapshot *snapshot,
                       uint32_t index) {
        struct round_job *round = &managed->jobs[index];
        int32_t *moving = own->n_moving > 0 ? snapshot_alloc(snapshot, sizeof(*moving) * own->n_groups) : NULL;
        uint64_t *move_usec = snapshot_alloc(snapshot, sizeof(*move_usec) * own->n_groups);
        int64_t left = own->start_usec + own->trace->limit_usec - world->now_usec, cost = 0;
        uint64_t usec = 0;

        round->group_moving_to = moving;
        round->group_move_usec = move_usec;
        round->left_usec = left > 0 ? (uint64_t) left : 0; /* beyond its limit it is unknown */
        for (uint32_t g = 0; g < own->n_groups; g++) {
                struct rm_group *group = snapshot_group(snapshot, index, g);

                if (g == 0 || g + 1 == own->n_groups) { /* only the last one is not as the first */
                        usec = (uint64_t) world_freeze_usec(world, own, g);
                        cost = move_cost(usec, (uint64_t) managed->config.horizon_usec);
                }
                move_usec[g] = usec;
                group->node = own->groups[g].node;
                group->move_cost = cost;
                if (moving)
                        moving[g] = own->groups[g].moving_to;
        }
}

static void add_job(struct managed *managed, const struct world *world, struct snapshot *snapshot, uint32_t j,
                    uint32_t group_size) {
        const struct sim_job *own = &world->jobs[j];
        uint32_t index = snapshot_view(snapshot)->n_jobs;
        uint32_t size = own->state == SIM_RUNNING ? own->group_size : group_size;
        struct rm_job *job;

        if (own->state != SIM_RUNNING && own->most > 0)
                size = malleable_group_size(own->trace->ranks, size);
        job = snapshot_add_job(snapshot, managed->names[j], own->state == SIM_RUNNING ? own->ranks : own->trace->ranks, size);
        job->priority = 1;
        job->age = own->age;
        job->time_limit_usec = (uint64_t) own->trace->limit_usec;
        managed->job_at[index] = j;
        managed->jobs[index] = (struct round_job) { .head_node = RM_NO_NODE, .head_moving_to = RM_NO_NODE };
        if (own->state == SIM_RUNNING)
                add_placed(managed, world, own, snapshot, index);
}

static void mark(uint64_t *marks, const uint32_t *jobs, uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                marks[jobs[i] / 64] |= UINT64_C(1) << jobs[i] % 64;
}

/* Running and waiting jobs in the order of submission. */
static struct snapshot *describe(struct managed *managed, const struct world *world) {
        struct snapshot *snapshot = snapshot_copy(world->cluster, NULL); /* it has no jobs */
        uint32_t n_waiting = world->n_waiting < managed->config.queue ? world->n_waiting : managed->config.queue;
        uint32_t group_size = usual_group_size(managed, world);
        size_t n_words = world->trace->n_jobs / 64 + 1;
        cleanup_free uint64_t *requested = xcalloc(n_words, sizeof(*requested));

        snapshot_params(snapshot)->backfill = managed->config.backfill == MANAGED_LIMITS ? ROUND_BACKFILL_LIMITS
                                              : managed->config.backfill == MANAGED_ANY  ? 1
                                                                                         : 0;
        for (uint32_t s = 0; s < world->cluster->n_nodes; s++)
                snapshot_node(snapshot, s)->cores = world->nodes[s].cores;
        mark(requested, world->running, world->n_running);
        mark(requested, world->waiting, n_waiting);
        for (size_t word = 0; word < n_words; word++)
                for (uint64_t left = requested[word]; left; left &= left - 1)
                        add_job(managed, world, snapshot, (uint32_t) (word * 64) + (uint32_t) __builtin_ctzll(left), group_size);
        return snapshot;
}

/* ---- asking ---- */

static uint64_t left_usec(void *context) {
        const struct managed *managed = context;
        uint64_t now = now_usec();

        return now < managed->deadline_usec ? managed->deadline_usec - now : 0;
}

static void ask(struct managed *managed, struct round *round, uint32_t pass) {
        const struct rm_snapshot *asked = round_prepare(round, pass);
        cleanup_plan struct rm_plan *plan = plan_create(asked);
        struct rm_policy_run run = { .size = sizeof(run), .context = managed, .left_usec = left_usec };
        struct rm_error err = { 0 };
        int r;

        managed->deadline_usec = now_usec() + managed->config.budget_usec;
        r = managed->policy.plugin->place(managed->policy.self, asked, &run, plan);
        if (r < 0)
                (void) error_sys(&err, r, "policy '%s'", managed->config.policy);
        else
                r = round_accept(round, pass, managed->config.policy, plan, &err);
        if (r < 0) {
                log_warn("%s: running jobs stay, waiting ones wait", error_text(&err));
                round_skip(round, pass, error_text(&err));
        }
}

/* ---- carrying out ---- */

static void carry_out(const struct managed *managed, struct world *world, const struct rm_snapshot *snapshot,
                      const struct round_result *result) {
        bool started = false;

        for (size_t i = 0; i < result->n_actions; i++) {
                const struct round_action *action = &result->actions[i];
                uint32_t j = managed->job_at[action->job];

                if (action->kind == ROUND_START) {
                        world_start(world, j, snapshot->jobs[action->job].group_size, action->group_node);
                        started = true;
                } else if (action->kind == ROUND_MOVE && action->group != ROUND_HEAD && world->jobs[j].requested == 0 &&
                           world->n_moving < managed->config.moves_at_once)
                        world_move(world, j, (uint32_t) action->group, action->to);
        }
        for (uint32_t i = 0; started && i < result->n_jobs; i++)
                if (result->jobs[i].waits && result->jobs[i].lost)
                        world->jobs[managed->job_at[i]].age++;
}

static void grow_and_shrink(struct managed *managed, struct world *world, const struct rm_snapshot *snapshot,
                            const struct round_result *result) {
        int64_t wake_usec = resizes_decide(world, snapshot, result, managed->job_at, managed->config.resize_interval_usec);

        if (wake_usec == WORLD_NEVER || (managed->wake_usec > world->now_usec && managed->wake_usec <= wake_usec))
                return;
        managed->wake_usec = wake_usec;
        world_wake(world, wake_usec);
}

static void prepare(struct managed *managed, const struct swf *trace) {
        managed->names = xcalloc(trace->n_jobs + 1, sizeof(*managed->names));
        managed->jobs = xcalloc(trace->n_jobs + 1, sizeof(*managed->jobs));
        managed->job_at = xcalloc(trace->n_jobs + 1, sizeof(*managed->job_at));
        for (size_t j = 0; j < trace->n_jobs; j++)
                (void) snprintf(managed->names[j], sizeof(managed->names[j]), "%" PRIu64, trace->jobs[j].number);
}

static int run(void *self, struct world *world, struct rm_error *err) {
        struct managed *managed = self;
        cleanup_snapshot struct snapshot *snapshot = NULL;
        struct round_result *result;
        struct round *round;
        int r;

        if (!managed->jobs)
                prepare(managed, world->trace);
        snapshot = describe(managed, world);
        r = snapshot_check_jobs(snapshot_view(snapshot), err); /* its nodes were checked when they were read */
        if (r == 0)
                r = round_create_checked(snapshot_view(snapshot), managed->jobs, &round, err);
        if (r < 0)
                return r;
        for (uint32_t pass = 0; pass < round_passes(round); pass++)
                ask(managed, round, pass);
        round_finish(round, &result);
        round_destroy(round);
        carry_out(managed, world, snapshot_view(snapshot), result);
        if (world->n_malleable > 0)
                grow_and_shrink(managed, world, snapshot_view(snapshot), result);
        round_result_destroy(result);
        return 0;
}

/* ---- create and destroy ---- */

static void on_log(void *context, enum rm_plugin_level level, const char *text) {
        (void) context;
        log_write((int) level, "%s", text ? text : "");
}

static void destroy(void *self) {
        struct managed *managed = self;

        policy_unload(&managed->policy);
        free(managed->model);
        free(managed->model_name);
        free(managed->names);
        free(managed->jobs);
        free(managed->job_at);
        free(managed);
}

int managed_create(const struct managed_config *config, struct sim_scheduler *ret_scheduler, struct rm_error *err) {
        const struct policy_folders folders = { .own = config->directory, .standard = RM_POLICY_DIR };
        struct managed *managed = xcalloc(1, sizeof(*managed));
        int r;

        managed->config = *config;
        managed->host = (struct rm_plugin_host) { .size = sizeof(managed->host), .context = managed, .log = on_log };
        r = model_read(config->directory, config->policy, &managed->model, err);
        if (r == 0 && managed->model) {
                managed->model_name = xasprintf("%s" MODEL_SUFFIX, config->policy);
                managed->host.text = managed->model;
                managed->host.text_name = managed->model_name;
        }
        if (r == 0)
                r = policy_load(&folders, config->policy, &managed->host, &managed->policy, err);
        if (r < 0) {
                destroy(managed);
                return r;
        }
        *ret_scheduler = (struct sim_scheduler) { .self = managed, .run = run, .destroy = destroy };
        return 0;
}
