#include "launcher/sim/world.h"

#include <math.h>
#include <string.h>

#include "common/util.h"

enum {
        EVENT_END, /* a = job */
        EVENT_MOVED, /* a = job, b = group */
        EVENT_RESIZED, /* a = job */
        EVENT_WAKE,
};

/* ---- figures ---- */

static void take_sample(struct world *world) {
        struct sim_sample *last = world->n_samples > 0 ? &world->samples[world->n_samples - 1] : NULL;
        double working = fabs(world->working) < 1e-6 ? 0 : world->working;

        if (last && last->working == working && last->usable == world->usable)
                return;
        if (!last || last->time_usec != world->now_usec) {
                if (world->n_samples == world->samples_allocated) {
                        world->samples_allocated = world->samples_allocated ? 2 * world->samples_allocated : 1024;
                        world->samples = xrealloc(world->samples, world->samples_allocated * sizeof(*world->samples));
                }
                last = &world->samples[world->n_samples++];
        }
        *last = (struct sim_sample) { .time_usec = world->now_usec, .working = working, .usable = world->usable };
}

/* The ranks of a group if the job has so many in all. */
static uint32_t group_part(const struct sim_job *job, uint32_t group, uint32_t ranks) {
        uint32_t first = group * job->group_size, left = ranks > first ? ranks - first : 0;

        return left < job->group_size ? left : job->group_size;
}

static uint32_t group_ranks(const struct sim_job *job, uint32_t group) {
        return group_part(job, group, job->ranks);
}

static uint64_t bytes_of(const struct world *world, const struct sim_job *job, uint32_t ranks) {
        uint64_t each = job->trace->rank_bytes ? job->trace->rank_bytes : world->config.rank_bytes;

        return each * ranks;
}

static int64_t copy_usec(const struct world *world, uint64_t bytes) {
        return world->config.freeze_usec + (int64_t) ((double) bytes / world->config.bytes_per_usec);
}

int64_t world_freeze_usec(const struct world *world, const struct sim_job *job, uint32_t group) {
        return copy_usec(world, bytes_of(world, job, group_ranks(job, group)));
}

/* ---- nodes ---- */

static bool overloaded(const struct sim_node *node) {
        return node->load > node->cores;
}

/* Change a node through this, so that the sums stay right. */
static void set_node(struct world *world, int32_t index, uint32_t cores, uint32_t load) {
        struct sim_node *node = &world->nodes[index];
        bool was = overloaded(node);

        world->usable = world->usable + cores - node->cores;
        world->busy = world->busy + load - node->load;
        *node = (struct sim_node) { .cores = cores, .load = load };
        world->n_overloaded = world->n_overloaded + overloaded(node) - was;
        world->speeds_stale |= was || overloaded(node);
}

static void add_load(struct world *world, int32_t node, uint32_t ranks) {
        set_node(world, node, world->nodes[node].cores, world->nodes[node].load + ranks);
}

static void drop_load(struct world *world, int32_t node, uint32_t ranks) {
        set_node(world, node, world->nodes[node].cores, world->nodes[node].load - ranks);
}

/* ---- progress ---- */

static double full_speed(const struct sim_job *job) {
        return (double) job->ranks / job->trace->ranks;
}

/* The slowest node decides. A folded rank runs by its part of a core: bench/fold measures 1.8 to
 * 2.2 times as long on half the cores. */
static double speed_of(const struct world *world, const struct sim_job *job) {
        double speed = 1;

        if (job->n_moving > 0 || job->requested > 0)
                return 0;
        for (uint32_t g = 0; g < job->n_groups && world->n_overloaded > 0; g++) {
                const struct sim_node *node = &world->nodes[job->groups[g].node];
                double here = overloaded(node) ? (double) node->cores / node->load : 1;

                speed = here < speed ? here : speed;
        }
        return speed * full_speed(job);
}

static void predict_end(struct world *world, uint32_t j) {
        struct sim_job *job = &world->jobs[j];

        job->version++;
        if (job->speed <= 0)
                return;
        heap_add(&world->heap, &(struct heap_entry) { .time_usec = world->now_usec + (int64_t) ceil(job->left_usec / job->speed),
                                                      .kind = EVENT_END,
                                                      .a = j,
                                                      .version = job->version });
}

static void note_progress(struct world *world, struct sim_job *job) {
        double passed = (double) (world->now_usec - job->updated_usec);

        job->left_usec -= passed * job->speed;
        if (job->left_usec < 0)
                job->left_usec = 0;
        if (job->speed < full_speed(job))
                job->folded_usec += passed;
        job->updated_usec = world->now_usec;
}

static void set_speed(struct world *world, uint32_t j, double speed) {
        struct sim_job *job = &world->jobs[j];

        if (speed == job->speed)
                return;
        note_progress(world, job);
        world->working += (speed - job->speed) * job->trace->ranks;
        job->speed = speed;
        predict_end(world, j);
}

static void update_speeds(struct world *world) {
        for (uint32_t i = 0; i < world->n_running && world->speeds_stale; i++)
                set_speed(world, world->running[i], speed_of(world, &world->jobs[world->running[i]]));
        world->speeds_stale = false;
}

/* ---- lists ---- */

static uint32_t waiting_place(const struct world *world, uint32_t j) {
        uint32_t low = 0, high = world->n_waiting;

        while (low < high) {
                uint32_t middle = (low + high) / 2;

                if (world->waiting[middle] < j)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static void add_waiting(struct world *world, uint32_t j) {
        uint32_t at = waiting_place(world, j);

        memmove(world->waiting + at + 1, world->waiting + at, sizeof(*world->waiting) * (world->n_waiting - at));
        world->waiting[at] = j;
        world->n_waiting++;
        world->jobs[j].state = SIM_WAITING;
}

static void drop_waiting(struct world *world, uint32_t j) {
        uint32_t at = waiting_place(world, j);

        world->n_waiting--;
        memmove(world->waiting + at, world->waiting + at + 1, sizeof(*world->waiting) * (world->n_waiting - at));
}

static void drop_running(struct world *world, uint32_t j) {
        uint32_t last = world->running[--world->n_running];

        world->running[world->running_at[j]] = last;
        world->running_at[last] = world->running_at[j];
}

/* ---- jobs ---- */

/* Give back all that a running job holds. */
static void release(struct world *world, uint32_t j) {
        struct sim_job *job = &world->jobs[j];

        note_progress(world, job);
        for (uint32_t g = 0; g < job->n_groups; g++) {
                drop_load(world, job->groups[g].node, group_ranks(job, g));
                world->n_moving -= job->groups[g].moving_to >= 0;
        }
        world->working -= job->speed * job->trace->ranks;
        free(take_ptr(job->groups));
        job->n_groups = job->n_moving = job->requested = 0;
        job->version++;
        job->speed = 0;
        drop_running(world, j);
        world->touched = true;
}

static void end_job(struct world *world, uint32_t j) {
        release(world, j);
        world->jobs[j].state = SIM_DONE;
        world->jobs[j].end_usec = world->now_usec;
}

void world_start(struct world *world, uint32_t j, uint32_t group_size, const int32_t *group_node) {
        struct sim_job *job = &world->jobs[j];

        drop_waiting(world, j);
        job->state = SIM_RUNNING;
        job->group_size = group_size;
        job->ranks = job->trace->ranks;
        job->n_groups = (job->ranks - 1) / group_size + 1;
        job->groups = xcalloc(((job->most > job->ranks ? job->most : job->ranks) - 1) / group_size + 1, sizeof(*job->groups));
        for (uint32_t g = 0; g < job->n_groups; g++) {
                job->groups[g] = (struct sim_group) { .node = group_node[g], .moving_to = -1 };
                add_load(world, group_node[g], group_ranks(job, g));
        }
        if (job->first_start_usec < 0)
                job->first_start_usec = world->now_usec;
        job->start_usec = job->updated_usec = world->now_usec;
        job->left_usec = (double) job->trace->run_usec;
        job->age = 0;
        world->running_at[j] = world->n_running;
        world->running[world->n_running++] = j;
        set_speed(world, j, speed_of(world, job));
        if (job->speed <= 0) /* it is placed where it cannot run */
                world->speeds_stale = true;
        update_speeds(world);
        take_sample(world);
}

void world_kill(struct world *world, uint32_t j) {
        struct sim_job *job = &world->jobs[j];

        release(world, j);
        job->lost_usec += (double) job->trace->run_usec - job->left_usec;
        job->kills++;
        world->n_kills++;
        add_waiting(world, j);
        update_speeds(world);
        take_sample(world);
}

void world_move(struct world *world, uint32_t j, uint32_t g, int32_t to) {
        struct sim_job *job = &world->jobs[j];
        uint64_t bytes = bytes_of(world, job, group_ranks(job, g));

        job->groups[g].moving_to = to;
        job->n_moving++;
        job->moves++;
        job->moved_bytes += bytes;
        world->n_moving++;
        world->n_moves++;
        world->moved_bytes += bytes;
        heap_add(&world->heap, &(struct heap_entry) { .time_usec = world->now_usec + world_freeze_usec(world, job, g),
                                                      .kind = EVENT_MOVED,
                                                      .a = j,
                                                      .b = g,
                                                      .version = (uint32_t) job->start_usec });
        set_speed(world, j, 0);
        take_sample(world);
}

static void end_move(struct world *world, uint32_t j, uint32_t g) {
        struct sim_job *job = &world->jobs[j];
        struct sim_group *group = &job->groups[g];

        drop_load(world, group->node, group_ranks(job, g));
        add_load(world, group->moving_to, group_ranks(job, g));
        group->node = group->moving_to;
        group->moving_to = -1;
        job->n_moving--;
        world->n_moving--;
        world->speeds_stale = true;
        world->touched = true;
}

/* ---- changes of the number of ranks ---- */

static void set_ranks(struct world *world, struct sim_job *job, uint32_t ranks, const int32_t *group_node) {
        uint32_t had = job->n_groups;

        job->n_groups = (ranks - 1) / job->group_size + 1;
        for (uint32_t g = had; g < job->n_groups; g++)
                job->groups[g] = (struct sim_group) { .node = group_node[g - had], .moving_to = -1 };
        for (uint32_t g = 0; g < had || g < job->n_groups; g++) {
                drop_load(world, job->groups[g].node, group_part(job, g, job->ranks));
                add_load(world, job->groups[g].node, group_part(job, g, ranks));
        }
        job->ranks = ranks;
}

/* Ranks that come take their cores from now on, those that go keep them until it is done. */
void world_resize(struct world *world, uint32_t j, uint32_t ranks, const int32_t *group_node) {
        struct sim_job *job = &world->jobs[j];
        uint32_t differ = ranks > job->ranks ? ranks - job->ranks : job->ranks - ranks;

        note_progress(world, job);
        job->requested = ranks;
        job->resized_usec = world->now_usec;
        job->resizes++;
        world->n_resizes++;
        if (ranks > job->ranks)
                set_ranks(world, job, ranks, group_node);
        heap_add(&world->heap, &(struct heap_entry) { .time_usec = world->now_usec + copy_usec(world, bytes_of(world, job, differ)),
                                                      .kind = EVENT_RESIZED,
                                                      .a = j,
                                                      .version = (uint32_t) job->start_usec });
        set_speed(world, j, 0);
        update_speeds(world);
        take_sample(world);
}

static void end_resize(struct world *world, struct sim_job *job) {
        if (job->requested < job->ranks)
                set_ranks(world, job, job->requested, NULL);
        job->requested = 0;
        world->speeds_stale = true;
        world->touched = true;
}

void world_wake(struct world *world, int64_t usec) {
        heap_add(&world->heap, &(struct heap_entry) { .time_usec = usec, .kind = EVENT_WAKE });
}

/* ---- time ---- */

static void happen(struct world *world, const struct heap_entry *entry) {
        struct sim_job *job = &world->jobs[entry->a];
        bool same_start = job->state == SIM_RUNNING && (uint32_t) job->start_usec == entry->version;

        if (entry->kind == EVENT_WAKE)
                world->touched = true;
        else if (entry->kind == EVENT_END && job->version == entry->version)
                end_job(world, entry->a);
        else if (entry->kind == EVENT_MOVED && same_start)
                end_move(world, entry->a, entry->b);
        else if (entry->kind == EVENT_RESIZED && same_start)
                end_resize(world, job);
}

static void submit(struct world *world) {
        uint32_t j = (uint32_t) world->next_submit++;

        if (world->jobs[j].state != SIM_FUTURE)
                return;
        add_waiting(world, j);
        world->touched = true;
}

static void change_capacity(struct world *world) {
        const struct capacity_change *change = &world->capacity->changes[world->next_change++];

        set_node(world, (int32_t) change->node, change->cores, world->nodes[change->node].load);
        world->touched = true;
}

int64_t world_next_usec(const struct world *world) {
        int64_t next = world->heap.n > 0 ? world->heap.entries[0].time_usec : WORLD_NEVER;
        bool work = world->n_running > 0 || world->n_waiting > 0;

        if (world->next_submit < world->trace->n_jobs) {
                work = true;
                if (world->trace->jobs[world->next_submit].submit_usec < next)
                        next = world->trace->jobs[world->next_submit].submit_usec;
        }
        if (work && world->next_change < world->capacity->n_changes &&
            world->capacity->changes[world->next_change].time_usec < next)
                next = world->capacity->changes[world->next_change].time_usec;
        return next;
}

/* Handles all events of this very moment. */
static void happen_now(struct world *world) {
        while (world->heap.n > 0 && world->heap.entries[0].time_usec <= world->now_usec) {
                struct heap_entry entry = heap_take(&world->heap);

                happen(world, &entry);
        }
        while (world->next_change < world->capacity->n_changes &&
               world->capacity->changes[world->next_change].time_usec <= world->now_usec)
                change_capacity(world);
        while (world->next_submit < world->trace->n_jobs && world->trace->jobs[world->next_submit].submit_usec <= world->now_usec)
                submit(world);
        update_speeds(world);
        take_sample(world);
}

void world_advance(struct world *world, int64_t usec) {
        for (;;) {
                int64_t next = world_next_usec(world);

                if (next > usec)
                        break;
                world->now_usec = next > world->now_usec ? next : world->now_usec;
                happen_now(world);
        }
        world->now_usec = usec;
}

/* ---- create and destroy ---- */

/* The same jobs in each run, and with a larger share these and more. */
static bool is_malleable(const struct world_config *config, uint64_t number) {
        uint64_t mixed =
                number * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 by the golden ratio: spreads numbers that follow each other */

        return (double) (mixed >> 11) * 0x1p-53 < config->malleable_share;
}

static void set_limits(struct world *world, struct sim_job *job, uint64_t cores) {
        double least = floor(job->trace->ranks * world->config.least_ratio),
               most = ceil(job->trace->ranks * world->config.most_ratio);

        if (job->state == SIM_TOO_LARGE || !is_malleable(&world->config, job->trace->number))
                return;
        most = most > (double) cores ? (double) cores : most;
        job->least = least > 1 ? (uint32_t) least : 1;
        job->most = (uint32_t) most;
        if (job->least == job->most)
                job->least = job->most = 0;
        else
                world->n_malleable++;
}

struct world *world_create(const struct rm_snapshot *cluster, const struct swf *trace, const struct capacity *capacity,
                           const struct world_config *config) {
        struct world *world = xcalloc(1, sizeof(*world));
        uint64_t cores = 0;

        *world = (struct world) { .cluster = cluster, .trace = trace, .capacity = capacity, .config = *config };
        world->now_usec = trace->jobs[0].submit_usec;
        world->nodes = xcalloc(cluster->n_nodes + 1u, sizeof(*world->nodes));
        world->jobs = xcalloc(trace->n_jobs, sizeof(*world->jobs));
        world->waiting = xcalloc(trace->n_jobs, sizeof(*world->waiting));
        world->running = xcalloc(trace->n_jobs, sizeof(*world->running));
        world->running_at = xcalloc(trace->n_jobs, sizeof(*world->running_at));
        for (uint32_t s = 0; s < cluster->n_nodes; s++) {
                world->nodes[s].cores = cluster->nodes[s].cores;
                cores += cluster->nodes[s].cores;
        }
        world->usable = cores;
        for (size_t j = 0; j < trace->n_jobs; j++) {
                world->jobs[j] = (struct sim_job) { .trace = &trace->jobs[j],
                                                    .state = trace->jobs[j].ranks > cores ? SIM_TOO_LARGE : SIM_FUTURE,
                                                    .resized_usec = -1,
                                                    .first_start_usec = -1,
                                                    .end_usec = -1 };
                set_limits(world, &world->jobs[j], cores);
        }
        take_sample(world);
        return world;
}

void world_destroy(struct world *world) {
        if (!world)
                return;
        for (size_t j = 0; j < world->trace->n_jobs; j++)
                free(world->jobs[j].groups);
        heap_finish(&world->heap);
        free(world->nodes);
        free(world->jobs);
        free(world->waiting);
        free(world->running);
        free(world->running_at);
        free(world->samples);
        free(world);
}
