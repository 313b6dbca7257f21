#include "daemon/sched/backfill.h"

#include "common/util.h"
#include "placement/cost.h"
#include "placement/memory.h"
#include "placement/pack.h"

/* ---- room for the groups of one job, while others end ---- */

struct space {
        const struct rm_job *job;
        const struct rm_node *nodes;
        int64_t *free_cores; /* each node */
        int64_t *free_memory; /* each node */
        int64_t memory; /* what the largest group takes */
        uint64_t slots; /* for groups of full size */
        uint32_t rest_nodes; /* nodes where the smaller last group fits beside them */
};

static uint32_t space_on(const struct space *space, uint32_t node) {
        int64_t cores = space->free_cores[node], limit = job_node_limit(space->job, node);
        uint64_t within;

        cores = cores < limit ? cores : limit;
        if (cores <= 0)
                return 0;
        within = (uint64_t) memory_groups(space->memory, space->free_memory[node], (uint32_t) cores) * space->job->group_size;
        return within < (uint64_t) cores ? (uint32_t) within : (uint32_t) cores;
}

static void add(struct space *space, uint32_t node, int64_t cores, int64_t memory) {
        int64_t most = space->nodes[node].memory;
        uint32_t size = space->job->group_size, rest = job_rest_ranks(space->job), before = space_on(space, node), after;

        space->free_cores[node] += cores;
        if (most != RM_NO_MEMORY_LIMIT)
                space->free_memory[node] = memory > most - space->free_memory[node] ? most : space->free_memory[node] + memory;
        after = space_on(space, node);
        space->slots = space->slots + after / size - before / size;
        space->rest_nodes = space->rest_nodes + (after % size >= rest) - (before % size >= rest);
}

static bool has_space(const struct space *space) {
        uint32_t full = job_full_groups(space->job);

        return space->slots > full || (space->slots == full && (job_rest_ranks(space->job) == 0 || space->rest_nodes > 0));
}

/* Takes the cores and memory of a group, where the plan has it. */
static void take_group(struct space *space, const struct rm_job *job, uint32_t group, int32_t node) {
        int64_t memory = memory_taken(job, group, node), left = space->free_memory[node];

        add(space, (uint32_t) node, -(int64_t) job->groups[group].ranks, -(memory < left ? memory : left));
}

/* Gives back the cores and memory of a group. A running group takes at least half of the memory
 * that it needs for a move. */
static void give_group(struct space *space, const struct rm_job *job, uint32_t group, int32_t node) {
        int64_t memory = job->groups[group].memory;

        add(space, (uint32_t) node, job->groups[group].ranks, job_runs(job) ? memory / 2 : memory);
}

static void fill_space(struct space *space, const struct rm_snapshot *snapshot, const struct rm_plan *plan) {
        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                space->free_memory[s] = snapshot->nodes[s].memory_free;
                space->rest_nodes += job_rest_ranks(space->job) == 0; /* what room of 0 counts as */
                add(space, s, snapshot->nodes[s].cores, 0);
        }
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t g = 0; plan->jobs[j].decision == RM_PLACE && g < snapshot->jobs[j].n_groups; g++)
                        take_group(space, &snapshot->jobs[j], g, plan->jobs[j].group_node[g]);
}

/* ---- when running jobs end ---- */

struct ending {
        uint64_t usec;
        uint32_t job;
};

static int compare_endings(const void *a, const void *b) {
        const struct ending *x = a, *y = b;

        if (x->usec != y->usec)
                return x->usec < y->usec ? -1 : 1;
        return x->job < y->job ? -1 : x->job > y->job;
}

static uint32_t find_endings(const struct rm_snapshot *snapshot, const struct rm_plan *plan, const uint64_t *left_usec,
                             struct ending *endings) {
        uint32_t n = 0;

        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];
                uint64_t usec = job_runs(job) ? left_usec[j] : job->time_limit_usec;

                if (plan->jobs[j].decision == RM_PLACE && usec > 0)
                        endings[n++] = (struct ending) { .usec = usec, .job = j };
        }
        qsort(endings, n, sizeof(*endings), compare_endings);
        return n;
}

static struct backfill_reservation reserved(const struct space *space, uint64_t usec) {
        uint64_t needed = job_full_groups(space->job) + (job_rest_ranks(space->job) > 0);

        return (struct backfill_reservation) { usec, space->slots > needed ? space->slots - needed : 0 };
}

struct backfill_reservation backfill_reserve(const struct rm_snapshot *snapshot, const struct rm_plan *plan,
                                             const uint64_t *left_usec, uint32_t job) {
        cleanup_free int64_t *free_cores = xcalloc(snapshot->n_nodes + 1u, sizeof(*free_cores));
        cleanup_free struct ending *endings = xcalloc(snapshot->n_jobs + 1u, sizeof(*endings));
        cleanup_free int64_t *free_memory = xcalloc(snapshot->n_nodes + 1u, sizeof(*free_memory));
        struct space space = { .job = &snapshot->jobs[job],
                               .nodes = snapshot->nodes,
                               .free_cores = free_cores,
                               .free_memory = free_memory,
                               .memory = memory_largest(&snapshot->jobs[job]) };
        uint32_t n = find_endings(snapshot, plan, left_usec, endings);

        fill_space(&space, snapshot, plan);
        if (has_space(&space))
                return reserved(&space, 0);
        for (uint32_t i = 0; i < n; i++) {
                const struct rm_job *ending = &snapshot->jobs[endings[i].job];
                const int32_t *node = plan->jobs[endings[i].job].group_node;

                for (uint32_t g = 0; g < ending->n_groups; g++)
                        give_group(&space, ending, g, node[g]);
                if (has_space(&space) && (i + 1 == n || endings[i + 1].usec > endings[i].usec))
                        return reserved(&space, endings[i].usec);
        }
        return (struct backfill_reservation) { BACKFILL_NEVER, 0 };
}

/* ---- candidates ---- */

int32_t backfill_head(const struct rm_snapshot *snapshot, const struct rm_plan *plan) {
        cleanup_free uint32_t *order = xcalloc(snapshot->n_jobs + 1u, sizeof(*order));
        uint32_t n = pack_order(snapshot, order);

        for (uint32_t i = 0; i < n; i++)
                if (plan->jobs[order[i]].decision == RM_WAIT && pack_fits_alone(snapshot, &snapshot->jobs[order[i]]))
                        return (int32_t) order[i];
        return -1;
}

uint64_t backfill_free_cores(const struct rm_snapshot *snapshot) {
        cleanup_free uint64_t *pinned = xcalloc(snapshot->n_nodes + 1u, sizeof(*pinned));
        uint64_t cores = 0, needed = 0;

        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t g = 0; g < snapshot->jobs[j].n_groups; g++) {
                        const struct rm_group *group = &snapshot->jobs[j].groups[g];

                        if (group->node >= 0 && (group->flags & RM_GROUP_PINNED))
                                pinned[group->node] += group->ranks;
                        else if (group->node >= 0)
                                needed += group->ranks;
                }
        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                cores += snapshot->nodes[s].cores > pinned[s] ? snapshot->nodes[s].cores - pinned[s] : 0;
        return cores > needed ? cores - needed : 0;
}

/* Cores that `plan` leaves free. */
static uint64_t left_free(const struct rm_snapshot *snapshot, const struct rm_plan *plan) {
        cleanup_free uint64_t *load = xcalloc(snapshot->n_nodes + 1u, sizeof(*load));
        uint64_t cores = 0;

        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t g = 0; plan->jobs[j].decision == RM_PLACE && g < snapshot->jobs[j].n_groups; g++)
                        load[plan->jobs[j].group_node[g]] += snapshot->jobs[j].groups[g].ranks;
        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                cores += snapshot->nodes[s].cores > load[s] ? snapshot->nodes[s].cores - load[s] : 0;
        return cores;
}

/* Groups of `head` that may find no place any more when `job` is placed, wherever its groups go:
 * for want of cores, or of memory. */
static uint64_t slots_taken(const struct rm_job *job, const struct rm_job *head) {
        uint32_t size = head->group_size;
        uint64_t cores =
                (uint64_t) job_full_groups(job) * ((job->group_size + size - 1) / size) + (job_rest_ranks(job) + size - 1) / size;
        int64_t largest = memory_largest(head), own = largest > 0 ? memory_largest(job) : 0;
        uint64_t memory = own > 0 ? job->n_groups * (uint64_t) ((own - 1) / largest + 1) : 0;

        return cores > memory ? cores : memory;
}

static bool ends_before(const struct rm_job *job, uint64_t usec) {
        return job->time_limit_usec > 0 && job->time_limit_usec <= usec;
}

uint32_t backfill_candidates(const struct rm_snapshot *snapshot, const struct rm_plan *plan, uint32_t head,
                             const struct backfill_reservation *reservation, bool *ret_may) {
        cleanup_free uint32_t *order = NULL;
        uint64_t cores, slots = reservation->spare_slots;
        uint32_t n, found = 0;
        bool behind = false;

        if (reservation->usec == 0 || reservation->usec == BACKFILL_NEVER)
                return 0;
        order = xcalloc(snapshot->n_jobs + 1u, sizeof(*order));
        n = pack_order(snapshot, order);
        cores = left_free(snapshot, plan);
        for (uint32_t i = 0; i < n && cores > 0; i++) {
                const struct rm_job *job = &snapshot->jobs[order[i]];
                uint64_t taken = ends_before(job, reservation->usec) ? 0 : slots_taken(job, &snapshot->jobs[head]);

                if (behind && plan->jobs[order[i]].decision == RM_WAIT && job->ranks <= cores && taken <= slots) {
                        ret_may[order[i]] = true;
                        cores -= job->ranks;
                        slots -= taken;
                        found++;
                }
                behind |= order[i] == head;
        }
        return found;
}
