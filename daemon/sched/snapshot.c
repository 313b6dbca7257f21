/* Making snapshots and checking them; the JSON form is in snapshot_json.c. */
#include "daemon/sched/snapshot.h"

#include <inttypes.h>
#include <string.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/util.h"
#include "daemon/sched/fields.h"

/* Memory is taken from blocks of this size: a snapshot of a large cluster has many small pieces. */
#define BLOCK_BYTES (64u * 1024 - 64)

struct block {
        struct block *next;
        size_t used, size;
        unsigned char data[] __attribute__((aligned(16)));
};

struct switch_name {
        const char *name;
        int32_t index;
        UT_hash_handle hh;
};

struct snapshot {
        struct rm_snapshot view;
        struct rm_node *nodes; /* those of the view; NULL while they are the source's that this is a copy of */
        struct rm_switch *switches; /* likewise */
        struct switch_name *switch_names; /* those of the view, as soon as one was looked for */
        struct rm_job *jobs;
        bool *shares_groups; /* the first `n_copied` jobs: their groups are the source's */
        struct block *blocks; /* strings and the arrays of jobs: freed with the snapshot */
        uint32_t n_copied;
        uint32_t nodes_allocated, switches_allocated, jobs_allocated;
};

static struct block *add_block(struct snapshot *snapshot, size_t size_bytes) {
        struct block *block = xcalloc(1, sizeof(*block) + size_bytes);

        block->size = size_bytes;
        block->next = snapshot->blocks;
        snapshot->blocks = block;
        return block;
}

void *snapshot_alloc(struct snapshot *snapshot, size_t size_bytes) {
        struct block *block = snapshot->blocks;
        void *data;

        size_bytes = (size_bytes + 15) & ~(size_t) 15;
        if (!block || size_bytes > block->size - block->used)
                block = add_block(snapshot, size_bytes > BLOCK_BYTES ? size_bytes : BLOCK_BYTES);
        data = block->data + block->used;
        block->used += size_bytes;
        return data;
}

struct snapshot *snapshot_create(void) {
        struct snapshot *snapshot = xcalloc(1, sizeof(*snapshot));

        snapshot->view.size = sizeof(snapshot->view);
        snapshot->view.params = (struct rm_params) { .distribution_weight = 10, .age_weight = 1, .bytes_per_cost = 1 };
        return snapshot;
}

void snapshot_destroy(struct snapshot *snapshot) {
        if (!snapshot)
                return;
        HASH_CLEAR(hh, snapshot->switch_names); /* which lie in the blocks */
        while (snapshot->blocks) {
                struct block *next = snapshot->blocks->next;

                free(snapshot->blocks);
                snapshot->blocks = next;
        }
        free(snapshot->nodes);
        free(snapshot->switches);
        free(snapshot->jobs);
        free(snapshot->shares_groups);
        free(snapshot);
}

const struct rm_snapshot *snapshot_view(const struct snapshot *snapshot) {
        return &snapshot->view;
}

struct rm_params *snapshot_params(struct snapshot *snapshot) {
        return &snapshot->view.params;
}

const char *snapshot_string(struct snapshot *snapshot, const char *text) {
        size_t size;

        if (!text)
                return NULL;
        size = strlen(text) + 1;
        return memcpy(snapshot_alloc(snapshot, size), text, size);
}

/* Room for one more element. */
static void *grow(void *array, uint32_t used, uint32_t *allocated, size_t element_bytes) {
        if (used < *allocated)
                return array;
        *allocated = *allocated ? *allocated * 2 : 16;
        return xrealloc(array, *allocated * element_bytes);
}

static void own_nodes(struct snapshot *snapshot) {
        uint32_t n = snapshot->view.n_nodes;

        if (snapshot->nodes || n == 0)
                return;
        snapshot->nodes = xcalloc(n, sizeof(*snapshot->nodes));
        memcpy(snapshot->nodes, snapshot->view.nodes, sizeof(*snapshot->nodes) * n);
        snapshot->view.nodes = snapshot->nodes;
        snapshot->nodes_allocated = n;
}

static void own_switches(struct snapshot *snapshot) {
        uint32_t n = snapshot->view.n_switches;

        if (snapshot->switches || n == 0)
                return;
        snapshot->switches = xcalloc(n, sizeof(*snapshot->switches));
        memcpy(snapshot->switches, snapshot->view.switches, sizeof(*snapshot->switches) * n);
        snapshot->view.switches = snapshot->switches;
        snapshot->switches_allocated = n;
}

struct rm_node *snapshot_add_node(struct snapshot *snapshot, const char *name, uint32_t cores) {
        uint32_t i = snapshot->view.n_nodes;

        own_nodes(snapshot);
        snapshot->view.n_nodes++;
        snapshot->nodes = grow(snapshot->nodes, i, &snapshot->nodes_allocated, sizeof(*snapshot->nodes));
        snapshot->view.nodes = snapshot->nodes;
        snapshot->nodes[i] = (struct rm_node) { .name = snapshot_string(snapshot, name),
                                                .cores = cores,
                                                .switch_index = RM_NO_NODE,
                                                .memory = RM_NO_MEMORY_LIMIT,
                                                .memory_free = RM_NO_MEMORY_LIMIT };
        return &snapshot->nodes[i];
}

static void index_switch(struct snapshot *snapshot, uint32_t i) {
        struct switch_name *entry = snapshot_alloc(snapshot, sizeof(*entry));

        entry->name = snapshot->view.switches[i].name;
        entry->index = (int32_t) i;
        HASH_ADD_KEYPTR(hh, snapshot->switch_names, entry->name, strlen(entry->name), entry);
}

int32_t snapshot_add_switch(struct snapshot *snapshot, const char *name) {
        uint32_t i = snapshot->view.n_switches;
        struct switch_name *entry;

        for (uint32_t s = HASH_COUNT(snapshot->switch_names); s < i; s++) /* of the source that this is a copy of */
                index_switch(snapshot, s);
        HASH_FIND_STR(snapshot->switch_names, name, entry);
        if (entry)
                return entry->index;
        own_switches(snapshot);
        snapshot->switches = grow(snapshot->switches, i, &snapshot->switches_allocated, sizeof(*snapshot->switches));
        snapshot->view.switches = snapshot->switches;
        snapshot->view.n_switches++;
        snapshot->switches[i] = (struct rm_switch) { .name = snapshot_string(snapshot, name), .parent = RM_NO_NODE };
        index_switch(snapshot, i);
        return (int32_t) i;
}

void snapshot_set_parent(struct snapshot *snapshot, int32_t child, int32_t parent) {
        own_switches(snapshot);
        snapshot->switches[child].parent = parent;
}

static struct rm_job *add_job(struct snapshot *snapshot) {
        uint32_t i = snapshot->view.n_jobs++;

        snapshot->jobs = grow(snapshot->jobs, i, &snapshot->jobs_allocated, sizeof(*snapshot->jobs));
        snapshot->view.jobs = snapshot->jobs;
        return &snapshot->jobs[i];
}

struct rm_job *snapshot_add_job(struct snapshot *snapshot, const char *name, uint32_t ranks, uint32_t group_size) {
        struct rm_job *job = add_job(snapshot);
        struct rm_group *groups;

        ranks = ranks ? ranks : 1;
        group_size = group_size ? group_size : 1;
        group_size = group_size < ranks ? group_size : ranks;
        *job = (struct rm_job) {
                .name = snapshot_string(snapshot, name),
                .ranks = ranks,
                .group_size = group_size,
                .n_groups = (ranks - 1) / group_size + 1,
        };
        job->groups = groups = snapshot_alloc(snapshot, sizeof(*groups) * job->n_groups);
        for (uint32_t g = 0; g < job->n_groups; g++) {
                uint32_t first = g * group_size;

                groups[g] = (struct rm_group) { .first_rank = first, .node = RM_NO_NODE };
                groups[g].ranks = ranks - first < group_size ? ranks - first : group_size;
        }
        return job;
}

struct rm_node *snapshot_node(struct snapshot *snapshot, uint32_t node) {
        own_nodes(snapshot);
        return &snapshot->nodes[node];
}

struct rm_job *snapshot_job(struct snapshot *snapshot, uint32_t job) {
        return &snapshot->jobs[job];
}

static void *take_copy(struct snapshot *snapshot, const void *data, size_t size_bytes) {
        return data ? memcpy(snapshot_alloc(snapshot, size_bytes), data, size_bytes) : NULL;
}

struct rm_group *snapshot_group(struct snapshot *snapshot, uint32_t job, uint32_t group) {
        struct rm_job *own = &snapshot->jobs[job];

        if (job < snapshot->n_copied && snapshot->shares_groups[job]) {
                own->groups = take_copy(snapshot, own->groups, sizeof(*own->groups) * own->n_groups);
                snapshot->shares_groups[job] = false;
        }
        return (struct rm_group *) &own->groups[group]; /* made here, const for readers only */
}

void snapshot_set_limit(struct snapshot *snapshot, uint32_t job, uint32_t node, uint32_t cores) {
        uint32_t *limits = (uint32_t *) snapshot->jobs[job].node_limit;

        if (!limits) {
                limits = snapshot_alloc(snapshot, sizeof(*limits) * snapshot->view.n_nodes);
                for (uint32_t s = 0; s < snapshot->view.n_nodes; s++)
                        limits[s] = RM_NO_LIMIT;
                snapshot->jobs[job].node_limit = limits;
        }
        limits[node] = cores;
}

void snapshot_share_limits(struct snapshot *snapshot, uint32_t job, const uint32_t *limits) {
        snapshot->jobs[job].node_limit = limits;
}

static uint32_t count_requested(const struct rm_snapshot *source, const bool *requested) {
        uint32_t n = 0;

        for (uint32_t j = 0; j < source->n_jobs; j++)
                n += !requested || requested[j];
        return n;
}

struct snapshot *snapshot_copy(const struct rm_snapshot *source, const bool *requested) {
        struct snapshot *copy = snapshot_create();
        const uint32_t *limits = NULL, *limits_copy = NULL;

        copy->view = *source;
        copy->view.size = sizeof(copy->view);
        copy->view.n_jobs = 0;
        copy->n_copied = copy->jobs_allocated = count_requested(source, requested);
        copy->view.jobs = copy->jobs = xcalloc(copy->n_copied + 1u, sizeof(*copy->jobs));
        copy->shares_groups = xcalloc(copy->n_copied + 1u, sizeof(*copy->shares_groups));
        memset(copy->shares_groups, true, copy->n_copied);
        for (uint32_t j = 0; j < source->n_jobs; j++) {
                struct rm_job *job;

                if (requested && !requested[j])
                        continue;
                job = add_job(copy);
                *job = source->jobs[j];
                /* Jobs that share their limits go on doing so. */
                if (job->node_limit && job->node_limit != limits) {
                        limits = job->node_limit;
                        limits_copy = take_copy(copy, limits, sizeof(*limits) * source->n_nodes);
                }
                if (job->node_limit)
                        job->node_limit = limits_copy;
        }
        return copy;
}

/* ---- names ---- */

static const char *node_name_at(const void *context, uint32_t i) {
        return ((const struct rm_snapshot *) context)->nodes[i].name;
}

static const char *job_name_at(const void *context, uint32_t i) {
        return ((const struct rm_snapshot *) context)->jobs[i].name;
}

struct name_index *snapshot_index_nodes(const struct rm_snapshot *snapshot) {
        return name_index_create(snapshot->n_nodes, node_name_at, snapshot);
}

struct name_index *snapshot_index_jobs(const struct rm_snapshot *snapshot) {
        return name_index_create(snapshot->n_jobs, job_name_at, snapshot);
}

int32_t snapshot_find_node(const struct rm_snapshot *snapshot, const char *name) {
        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                if (strcmp(snapshot->nodes[s].name, name) == 0)
                        return (int32_t) s;
        return RM_NO_NODE;
}

static const char *const state_words[] = {
        [RM_NODE_IDLE] = "IDLE",         [RM_NODE_MIXED] = "MIXED",     [RM_NODE_ALLOCATED] = "ALLOCATED",
        [RM_NODE_DRAINING] = "DRAINING", [RM_NODE_DRAINED] = "DRAINED", [RM_NODE_DOWN] = "DOWN",
};

const char *node_state_name(uint32_t state) {
        return state < ARRAY_SIZE(state_words) ? state_words[state] : "UNKNOWN";
}

int node_state_parse(const char *word, uint32_t *ret_state) {
        for (uint32_t i = 0; i < ARRAY_SIZE(state_words); i++)
                if (strcmp(state_words[i], word) == 0) {
                        *ret_state = i;
                        return 0;
                }
        return -EINVAL;
}

/* ---- rules ---- */

/* `name` NULL: there is only one of them. */
static int check_range(const char *what, const char *name, const char *field, int64_t value, int64_t min, int64_t max,
                       struct rm_error *err) {
        if (value >= min && value <= max)
                return 0;
        if (!name)
                return error_set(err, -EINVAL, "%s: %s must be from %" PRId64 " to %" PRId64 ", is %" PRId64, what, field, min, max,
                                 value);
        return error_set(err, -EINVAL, "%s '%s': %s must be from %" PRId64 " to %" PRId64 ", is %" PRId64, what, name, field, min,
                         max, value);
}

/* Each name longer than the one before, or as long and behind it in the alphabet: as n1, n2, ...
 * n10 are, and numbers. */
static bool names_ascend(uint32_t n, const char *(*name_at)(const void *, uint32_t), const struct rm_snapshot *snapshot) {
        size_t last_length = 0, length;

        for (uint32_t i = 0; i < n; i++, last_length = length) {
                const char *name = name_at(snapshot, i);

                length = strlen(name);
                if (i > 0 &&
                    (length < last_length || (length == last_length && memcmp(name_at(snapshot, i - 1), name, length) >= 0)))
                        return false;
        }
        return true;
}

static int check_unique(const char *what, uint32_t n, const char *(*name_at)(const void *, uint32_t),
                        const struct rm_snapshot *snapshot, struct rm_error *err) {
        struct name_index *index;
        int32_t twice;

        if (names_ascend(n, name_at, snapshot))
                return 0;
        index = name_index_create(n, name_at, snapshot);
        twice = name_index_duplicate(index);
        name_index_destroy(index);
        if (twice < 0)
                return 0;
        return error_set(err, -EINVAL, "%s '%s' is defined twice", what, name_at(snapshot, (uint32_t) twice));
}

/* Policies may go down the tree by calling themselves, so its depth has a limit; a cycle is over
 * every limit. */
static int check_switch(const struct rm_snapshot *snapshot, uint32_t index, struct rm_error *err) {
        const char *name = snapshot->switches[index].name;
        int32_t at = snapshot->switches[index].parent;

        for (uint32_t steps = 1; at >= 0; steps++) {
                if (at >= (int32_t) snapshot->n_switches)
                        return error_set(err, -EINVAL, "switch '%s': unknown parent switch", name);
                if (at == (int32_t) index)
                        return error_set(err, -EINVAL, "switch '%s': cycle", name);
                if (steps >= SNAPSHOT_MAX_DEPTH)
                        return error_set(err, -EINVAL, "switch '%s': more than %u levels above it, or a cycle", name,
                                         SNAPSHOT_MAX_DEPTH - 1);
                at = snapshot->switches[at].parent;
        }
        return 0;
}

static int check_switches(const struct rm_snapshot *snapshot, struct rm_error *err) {
        for (uint32_t s = 0; s < snapshot->n_switches; s++) {
                int r = check_switch(snapshot, s, err);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Without a limit both are RM_NO_MEMORY_LIMIT; else both are numbers that JSON keeps. */
static int check_memory(const struct rm_node *node, struct rm_error *err) {
        int r;

        if (node->memory == RM_NO_MEMORY_LIMIT && node->memory_free == RM_NO_MEMORY_LIMIT)
                return 0;
        r = check_range("node", node->name, "memory", node->memory, 0, FIELD_MAX, err);
        return r < 0 ? r : check_range("node", node->name, "memory_free", node->memory_free, 0, node->memory, err);
}

static int check_node(const struct rm_snapshot *snapshot, const struct rm_node *node, struct rm_error *err) {
        int r;

        if (!node->name || !name_valid(node->name))
                return error_set(err, -EINVAL, "node name '%.64s' is not valid", node->name ? node->name : "");
        if ((r = check_range("node", node->name, "cores", node->cores, 0, SNAPSHOT_MAX_RANKS, err)) < 0 ||
            (r = check_range("node", node->name, "penalty", node->penalty, 0, FIELD_MAX, err)) < 0 ||
            (r = check_range("node", node->name, "state", node->state, 0, RM_NODE_DOWN, err)) < 0 ||
            (r = check_memory(node, err)) < 0)
                return r;
        return check_range("node", node->name, "switch", node->switch_index, RM_NO_NODE, (int64_t) snapshot->n_switches - 1, err);
}

static int check_groups(const struct rm_snapshot *snapshot, const struct rm_job *job, struct rm_error *err) {
        uint32_t rank = 0;
        int r;

        if (job->n_groups != (job->ranks - 1) / job->group_size + 1 || !job->groups)
                return error_set(err, -EINVAL, "job '%s': %u groups do not make %u ranks by %u", job->name, job->n_groups,
                                 job->ranks, job->group_size);
        for (uint32_t g = 0; g < job->n_groups; g++) {
                const struct rm_group *group = &job->groups[g];
                uint32_t ranks = job->ranks - rank < job->group_size ? job->ranks - rank : job->group_size;

                if (group->first_rank != rank || group->ranks != ranks)
                        return error_set(err, -EINVAL, "job '%s': group %u must hold ranks %u to %u", job->name, g, rank,
                                         rank + ranks - 1);
                if ((r = check_range("job", job->name, "node of a group", group->node, RM_NO_NODE, (int64_t) snapshot->n_nodes - 1,
                                     err)) < 0 ||
                    (r = check_range("job", job->name, "move_cost", group->move_cost, 0, FIELD_MAX, err)) < 0 ||
                    (r = check_range("job", job->name, "group_memory", group->memory, 0, FIELD_MAX, err)) < 0)
                        return r;
                if ((group->flags & RM_GROUP_PINNED) && group->node < 0)
                        return error_set(err, -EINVAL, "job '%s': group %u is pinned to no node", job->name, g);
                rank += ranks;
        }
        return 0;
}

/* Traffic that cannot be written as JSON and read again is refused. */
static int check_traffic(const struct rm_job *job, struct rm_error *err) {
        int r = 0;

        for (uint64_t e = 0; job->traffic.offset && e < job->traffic.offset[job->ranks] && r == 0; e++)
                r = job->traffic.bytes[e] <= (uint64_t) FIELD_MAX
                            ? 0
                            : error_set(err, -EINVAL, "job '%s': traffic of more than 2^53 bytes between two ranks", job->name);
        return r;
}

static int check_limits(const struct rm_snapshot *snapshot, const struct rm_job *job, struct rm_error *err) {
        int r = job->time_limit_usec <= (uint64_t) FIELD_MAX
                        ? 0
                        : error_set(err, -EINVAL, "job '%s': time_limit_usec must be from 0 to %" PRId64 ", is %" PRIu64, job->name,
                                    FIELD_MAX, job->time_limit_usec);

        for (uint32_t s = 0; job->node_limit && s < snapshot->n_nodes && r == 0; s++)
                if (job->node_limit[s] != RM_NO_LIMIT)
                        r = check_range("job", job->name, "availability", job->node_limit[s], 0, SNAPSHOT_MAX_RANKS, err);
        return r;
}

int snapshot_check_job(const struct rm_snapshot *snapshot, uint32_t index, struct rm_error *err) {
        const struct rm_job *job = &snapshot->jobs[index];
        int r;

        if (!job->name || !name_valid(job->name))
                return error_set(err, -EINVAL, "job name '%.64s' is not valid", job->name ? job->name : "");
        if (job->policy && !name_valid(job->policy))
                return error_set(err, -EINVAL, "job '%s': policy name '%.64s' is not valid", job->name, job->policy);
        if ((r = check_range("job", job->name, "ranks", job->ranks, 1, SNAPSHOT_MAX_RANKS, err)) < 0 ||
            (r = check_range("job", job->name, "group_size", job->group_size, 1, job->ranks, err)) < 0 ||
            (r = check_range("job", job->name, "priority", job->priority, 0, FIELD_MAX, err)) < 0 ||
            (r = check_limits(snapshot, job, err)) < 0 || (r = check_traffic(job, err)) < 0)
                return r;
        return check_groups(snapshot, job, err);
}

static long double dearest_penalty(const struct rm_snapshot *snapshot) {
        long double penalty = 0;

        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                if (snapshot->nodes[s].penalty > penalty)
                        penalty = (long double) snapshot->nodes[s].penalty;
        return penalty;
}

static long double worst_cost(const struct rm_snapshot *snapshot, const struct rm_job *job, long double penalty) {
        uint32_t most = job->n_groups < snapshot->n_nodes ? job->n_groups : snapshot->n_nodes;
        long double worst =
                (long double) job->priority * (penalty * job->ranks + (long double) snapshot->params.distribution_weight * most);

        for (uint32_t g = 0; g < job->n_groups; g++)
                worst += (long double) job->groups[g].move_cost;
        return worst;
}

void snapshot_worst_costs(const struct rm_snapshot *snapshot, long double *ret_costs) {
        long double penalty = dearest_penalty(snapshot);

        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                ret_costs[j] = worst_cost(snapshot, &snapshot->jobs[j], penalty);
}

/* The dearest plan there could be must stay below 2^53, so that no policy has to think of
 * overflow. */
static int check_costs(const struct rm_snapshot *snapshot, struct rm_error *err) {
        long double worst = 0, penalty = dearest_penalty(snapshot);

        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                worst += worst_cost(snapshot, &snapshot->jobs[j], penalty);
                if (worst > (long double) FIELD_MAX)
                        return error_set(
                                err, -EINVAL,
                                "job '%s': the costs of all jobs together could exceed 2^53; use smaller priorities, penalties, "
                                "weights or move costs",
                                snapshot->jobs[j].name);
        }
        return 0;
}

int snapshot_check_jobs(const struct rm_snapshot *snapshot, struct rm_error *err) {
        uint64_t ranks = 0;
        int r = check_range("top level", NULL, "number of jobs", snapshot->n_jobs, 0, SNAPSHOT_MAX_JOBS, err);

        for (uint32_t j = 0; j < snapshot->n_jobs && r == 0; j++) {
                r = snapshot_check_job(snapshot, j, err);
                ranks += snapshot->jobs[j].ranks;
                if (r == 0 && ranks > SNAPSHOT_MAX_TOTAL_RANKS)
                        r = error_set(err, -EINVAL, "more than %u ranks in all jobs together", SNAPSHOT_MAX_TOTAL_RANKS);
        }
        if (r == 0)
                r = check_unique("job", snapshot->n_jobs, job_name_at, snapshot, err);
        return r < 0 ? r : check_costs(snapshot, err);
}

int snapshot_check(const struct rm_snapshot *snapshot, struct rm_error *err) {
        uint64_t cores = 0;
        int r;

        if ((r = check_range("top level", NULL, "number of nodes", snapshot->n_nodes, 0, SNAPSHOT_MAX_NODES, err)) < 0 ||
            (r = check_range("top level", NULL, "number of switches", snapshot->n_switches, 0, SNAPSHOT_MAX_SWITCHES, err)) < 0 ||
            (r = check_range("params", NULL, "distribution_weight", snapshot->params.distribution_weight, 0, FIELD_MAX, err)) < 0 ||
            (r = check_range("params", NULL, "age_weight", snapshot->params.age_weight, 0, 1 << 20, err)) < 0 ||
            (r = check_switches(snapshot, err)) < 0)
                return r;
        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                if ((r = check_node(snapshot, &snapshot->nodes[s], err)) < 0)
                        return r;
                cores += snapshot->nodes[s].cores;
                if (cores > SNAPSHOT_MAX_TOTAL_RANKS)
                        return error_set(err, -EINVAL, "more than %u cores in all nodes together", SNAPSHOT_MAX_TOTAL_RANKS);
        }
        r = check_unique("node", snapshot->n_nodes, node_name_at, snapshot, err);
        return r < 0 ? r : snapshot_check_jobs(snapshot, err);
}
