#include "daemon/leader/node_memory.h"

#include <stdlib.h>
#include <string.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/groups.h"
#include "common/util.h"
#include "daemon/node/memory_use.h"
#include "daemon/sched/fields.h"

/* More than any node has; keeps sums in range. */
#define MOST_BYTES (UINT64_C(1) << 50)
/* With reports every two seconds, what a group took counts for half after five. */
#define FALL_PART 4U

struct group {
        struct group_key {
                uint64_t job;
                int64_t capsule;
        } key;
        uint64_t memory_bytes, files_bytes;
        bool tracked;
        UT_hash_handle hh;
};

struct node {
        char *name;
        uint64_t capacity; /* UINT64_MAX: no limit */
        uint64_t space;     /* of that, what groups have left that were there */
        uint64_t marked;   /* the same at node_memory_mark() */
        bool pages;        /* tracked memory can come there */
        UT_hash_handle hh;
};

struct node_memory {
        struct node *nodes;
        struct group *groups;
        unsigned without_pages; /* nodes */
        size_t marked_tracked;  /* groups that could move so at node_memory_mark() */
};

struct node_memory *node_memory_create(void) {
        return xcalloc(1, sizeof(struct node_memory));
}

static void drop_node(struct node_memory *memory, struct node *node) {
        memory->without_pages -= !node->pages;
        HASH_DEL(memory->nodes, node);
        free(node->name);
        free(node);
}

static void drop_group(struct node_memory *memory, struct group *group) {
        HASH_DEL(memory->groups, group);
        free(group);
}

void node_memory_destroy(struct node_memory *memory) {
        struct node *node, *next_node;
        struct group *group, *next_group;

        if (!memory)
                return;
        HASH_ITER (hh, memory->nodes, node, next_node)
                drop_node(memory, node);
        HASH_ITER (hh, memory->groups, group, next_group)
                drop_group(memory, group);
        free(memory);
}

static struct group *find_group(const struct node_memory *memory, uint64_t job, int32_t capsule) {
        const struct group_key key = { job, capsule };
        struct group *group;

        HASH_FIND(hh, memory->groups, &key, sizeof(key), group);
        return group;
}

static struct group *find_or_add_group(struct node_memory *memory, uint64_t job, int32_t capsule) {
        struct group *group = find_group(memory, job, capsule);

        if (group)
                return group;
        group = xcalloc(1, sizeof(*group));
        group->key = (struct group_key) { job, capsule };
        HASH_ADD(hh, memory->groups, key, sizeof(group->key), group);
        return group;
}

static struct node *find_node(const struct node_memory *memory, const char *name) {
        struct node *node;

        HASH_FIND_STR(memory->nodes, name, node);
        return node;
}

static struct node *find_or_add_node(struct node_memory *memory, const char *name) {
        struct node *node = find_node(memory, name);

        if (node)
                return node;
        node = xcalloc(1, sizeof(*node));
        node->name = xstrdup(name);
        memory->without_pages++;
        HASH_ADD_KEYPTR(hh, memory->nodes, node->name, strlen(node->name), node);
        return node;
}

static uint64_t least(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static uint64_t fall_slowly(uint64_t before, uint64_t now) {
        return now >= before ? now : before - (before - now + FALL_PART - 1) / FALL_PART;
}

/* ---- reports ---- */

void node_memory_add(struct node_memory *memory, const Rm__State *state, const char *name, const Rm__NodeMemory *report) {
        struct node *node;
        uint64_t taken = 0;

        if (!state_node(state, name))
                return;
        node = find_or_add_node(memory, name);
        for (size_t i = 0; i < report->n_groups; i++) {
                const Rm__GroupMemory *reported = report->groups[i];
                const Rm__Job *job = state_job(state, reported->job);
                const Rm__Capsule *capsule = job && job_running(job) ? job_capsule(job, reported->capsule) : NULL;
                struct group *group;

                if (!capsule || capsule->index == STATE_HEAD || strcmp(capsule->node, name) != 0)
                        continue;
                group = find_or_add_group(memory, reported->job, reported->capsule);
                group->memory_bytes = fall_slowly(group->memory_bytes, least(reported->memory_bytes, MOST_BYTES));
                group->files_bytes = fall_slowly(group->files_bytes, least(reported->files_bytes, MOST_BYTES));
                group->tracked = reported->tracked;
                taken += group->memory_bytes + group->files_bytes;
        }
        memory->without_pages -= !node->pages;
        memory->without_pages += !report->pages;
        node->pages = report->pages;
        node->capacity = report->capacity_bytes == UINT64_MAX ? UINT64_MAX : least(report->capacity_bytes, MOST_BYTES);
        node->space = least(node->capacity > taken ? node->capacity - taken : 0, MOST_BYTES);
}

bool node_memory_knows(const struct node_memory *memory, const char *name) {
        return find_node(memory, name) != NULL;
}

void node_memory_forget(struct node_memory *memory, const Rm__State *state) {
        struct node *node, *next_node;
        struct group *group, *next_group;

        HASH_ITER (hh, memory->nodes, node, next_node)
                if (!state_node(state, node->name))
                        drop_node(memory, node);
        HASH_ITER (hh, memory->groups, group, next_group) {
                const Rm__Job *job = state_job(state, group->key.job);

                if (!job || !job_running(job))
                        drop_group(memory, group);
        }
}

/* Counts the groups that need their memory only once while they move. */
static size_t count_tracked(const struct node_memory *memory) {
        size_t n = 0;

        for (const struct group *group = memory->groups; memory->without_pages == 0 && group; group = group->hh.next)
                n += group->tracked;
        return n;
}

bool node_memory_grown(const struct node_memory *memory) {
        for (const struct node *node = memory->nodes; node; node = node->hh.next)
                if (node->space >= node->marked + NODE_MEMORY_STEP_BYTES)
                        return true;
        return count_tracked(memory) > memory->marked_tracked;
}

void node_memory_mark(struct node_memory *memory) {
        memory->marked_tracked = count_tracked(memory);
        for (struct node *node = memory->nodes; node; node = node->hh.next)
                node->marked = node->space;
}

/* ---- what a policy sees ---- */

/* The memory that was promised to so many of a job's ranks. */
static uint64_t reserved(const Rm__Job *job, uint32_t ranks) {
        uint64_t bytes = least(job->spec->rank_memory_bytes, MOST_BYTES);

        return ranks > 0 && bytes > MOST_BYTES / ranks ? MOST_BYTES : bytes * ranks;
}

struct need {
        uint64_t there;  /* where it is */
        uint64_t coming; /* where it moves */
};

static struct need need_of(const struct node_memory *memory, const Rm__Job *job, const Rm__Capsule *capsule) {
        const struct group *group = memory ? find_group(memory, job->id, capsule->index) : NULL;
        uint64_t promised = reserved(job, capsule->ranks);
        struct need need = { promised, promised };
        uint64_t coming;

        if (!group)
                return need;
        coming = memory_use_of_move(group->memory_bytes, group->files_bytes, group->tracked && memory->without_pages == 0);
        if (need.there < group->memory_bytes + group->files_bytes)
                need.there = group->memory_bytes + group->files_bytes;
        if (need.coming < coming)
                need.coming = coming;
        return need;
}

static void subtract(struct snapshot *snapshot, int32_t node, uint64_t bytes) {
        int64_t free_now = node >= 0 ? snapshot_view(snapshot)->nodes[node].memory_free : RM_NO_MEMORY_LIMIT;

        if (free_now != RM_NO_MEMORY_LIMIT && bytes > 0)
                snapshot_node(snapshot, (uint32_t) node)->memory_free -= (int64_t) least(bytes, (uint64_t) free_now);
}

static void set_capacity(const struct node_memory *memory, const Rm__Node *from, struct rm_node *to) {
        const struct node *node = memory ? find_node(memory, from->name) : NULL;
        uint64_t capacity;

        capacity = node ? node->capacity : UINT64_MAX;
        /* Until it has told, what has been asked for must at least fit what it has. */
        if (!node && from->memory_bytes > 0)
                capacity = from->memory_bytes;
        if (capacity != UINT64_MAX)
                to->memory = to->memory_free = (int64_t) least(capacity, MOST_BYTES);
}

void node_memory_fill(const struct node_memory *memory, const struct state_index *index, struct snapshot *snapshot) {
        const Rm__State *state = state_index_state(index);

        for (size_t i = 0; i < state->n_nodes; i++)
                set_capacity(memory, state->nodes[i], snapshot_node(snapshot, (uint32_t) i));
        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                for (size_t k = 0; !job_ended(job) && k < job->n_capsules; k++) {
                        const Rm__Capsule *capsule = job->capsules[k];
                        const Rm__Move *move;
                        struct need need;

                        if (capsule->index == STATE_HEAD)
                                continue;
                        need = need_of(memory, job, capsule);
                        move = state_capsule_move(index, job->id, capsule->index);
                        subtract(snapshot, state_capsule_position(index, job, capsule->index), need.there);
                        if (move && strcmp(move->to, capsule->node) != 0)
                                subtract(snapshot, state_node_position(index, move->to), need.coming);
                }
        }
}

void node_memory_fill_job(const struct node_memory *memory, const Rm__Job *job, uint32_t group_size, struct snapshot *snapshot,
                          uint32_t index) {
        uint32_t n_groups = snapshot_view(snapshot)->jobs[index].n_groups;

        for (uint32_t g = 0; job->n_capsules == 0 && g < n_groups; g++)
                snapshot_group(snapshot, index, g)->memory = (int64_t) reserved(job, groups_ranks(job->spec->ranks, group_size, g));
        for (size_t k = 0; k < job->n_capsules; k++) {
                const Rm__Capsule *capsule = job->capsules[k];

                if (capsule->index >= 0 && (uint32_t) capsule->index < n_groups)
                        snapshot_group(snapshot, index, (uint32_t) capsule->index)->memory =
                                (int64_t) least(need_of(memory, job, capsule).coming, FIELD_MAX);
        }
}
