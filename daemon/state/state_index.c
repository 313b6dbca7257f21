#include "daemon/state/state_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/util.h"

/* A node, also one that capsules name and that is not in the cluster. */
struct node_entry {
        const char *name; /* of its own */
        int32_t position; /* in the state's list; -1: not in it */
        uint32_t ranks, capsules; /* there, or on the way */
        LIST_HEAD(, capsule_entry) placed;
        bool changed; /* since state_index_take_changed(); then it is in that list */
        SLIST_ENTRY(node_entry) changed_link;
        UT_hash_handle hh;
};

/* The share of one capsule in the sums of the index; it is taken back before the capsule is counted
 * again. */
struct capsule_entry {
        struct job_entry *job;
        Rm__Capsule *capsule;
        struct node_entry *at; /* that it is named on, whether it takes up room there or not */
        bool placed;         /* it does; then it is in the list of `at` */
        uint32_t ranks; /* that it asks for cores for */
        Rm__Move *move;        /* that is under way */
        struct node_entry *held; /* the other end of the move, where room is held for it */
        uint32_t held_ranks;
        uint32_t address; /* in use; 0: none */
        LIST_ENTRY(capsule_entry) link;
};

/* The head first, then the groups in order, as in the state. */
struct job_entry {
        uint64_t id;
        Rm__Job *job;
        Rm__JobState counted_as;
        bool taken; /* state_index_take_changed() has it already */
        size_t n;
        struct capsule_entry *capsules;
        UT_hash_handle hh;
};

struct state_index {
        Rm__State *state;
        struct node_entry *nodes; /* by name */
        SLIST_HEAD(, node_entry) changed;
        struct job_entry *jobs;   /* by id */
        size_t n_jobs_in[RM__JOB_STATE__JOB_NODE_FAIL + 1];
        Rm__Move **open_moves;    /* by id */
        size_t n_open_moves;
        uint64_t addresses[STATE_CAPSULES_MAX / 64 + 1]; /* a bit each */
};

/* ---- nodes ---- */

static struct node_entry *find_node(const struct state_index *index, const char *name) {
        struct node_entry *entry;

        HASH_FIND_STR(index->nodes, name, entry);
        return entry;
}

static struct node_entry *get_node(struct state_index *index, const char *name) {
        struct node_entry *entry = find_node(index, name);

        if (entry)
                return entry;
        entry = xcalloc(1, sizeof(*entry));
        entry->name = xstrdup(name);
        entry->position = -1;
        LIST_INIT(&entry->placed);
        HASH_ADD_KEYPTR(hh, index->nodes, entry->name, strlen(entry->name), entry);
        return entry;
}

static void mark_changed(struct state_index *index, struct node_entry *entry) {
        if (entry->changed)
                return;
        entry->changed = true;
        SLIST_INSERT_HEAD(&index->changed, entry, changed_link);
}

void state_index_cores(struct state_index *index, const char *node) {
        mark_changed(index, get_node(index, node));
}

/* The nodes behind the new one have moved up by one. */
void state_index_node(struct state_index *index, size_t at) {
        for (size_t i = at; i < index->state->n_nodes; i++)
                get_node(index, index->state->nodes[i]->name)->position = (int32_t) i;
}

void state_index_node_gone(struct state_index *index, const char *name) {
        get_node(index, name)->position = -1;
        state_index_node(index, 0);
}

/* ---- addresses ---- */

static bool address_valid(uint32_t address) {
        return address >= 1 && address <= STATE_CAPSULES_MAX;
}

static void set_address(struct state_index *index, uint32_t address, bool used) {
        if (!address_valid(address))
                return;
        if (used)
                index->addresses[address / 64] |= UINT64_C(1) << (address % 64);
        else
                index->addresses[address / 64] &= ~(UINT64_C(1) << (address % 64));
}

bool state_address_used(const struct state_index *index, uint32_t address) {
        return address_valid(address) && (index->addresses[address / 64] >> (address % 64) & 1);
}

/* ---- capsules ---- */

static struct job_entry *find_job(const struct state_index *index, uint64_t id) {
        struct job_entry *entry;

        HASH_FIND(hh, index->jobs, &id, sizeof(id), entry);
        return entry;
}

static struct capsule_entry *find_capsule(const struct state_index *index, uint64_t job, int32_t capsule) {
        struct job_entry *entry = find_job(index, job);

        /* The head, -1, is the first. */
        return entry && capsule >= STATE_HEAD && capsule + INT64_C(1) < (int64_t) entry->n ? &entry->capsules[capsule + 1] : NULL;
}

static void discount(struct state_index *index, struct capsule_entry *entry) {
        /* A capsule is counted once, so that it can be taken back. */
        assert(!entry->placed || entry->at->capsules > 0);
        assert(!entry->held || entry->held->capsules > 0);
        if (entry->placed) {
                LIST_REMOVE(entry, link);
                entry->at->ranks -= entry->ranks;
                entry->at->capsules--;
                mark_changed(index, entry->at);
        }
        if (entry->held) {
                mark_changed(index, entry->held);
                entry->held->ranks -= entry->held_ranks;
                entry->held->capsules--;
        }
        if (entry->address) {
                set_address(index, entry->address, false);
        }
        entry->placed = false;
        entry->held = NULL;
        entry->address = 0;
}

/* Before its commit a move holds room at both ends; after it, until the source is clean, too. */
static void count_move(struct state_index *index, struct capsule_entry *entry) {
        const Rm__Move *move = entry->move;
        bool running = move && move->state == RM__MOVE_STATE__MOVE_RUNNING;

        if (!move)
                return;
        entry->held = get_node(index, running ? move->to : move->from);
        entry->held_ranks = running ? entry->ranks : 0;
        entry->held->ranks += entry->held_ranks;
        entry->held->capsules++;
        mark_changed(index, entry->held);
}

static void count(struct state_index *index, struct capsule_entry *entry) {
        const Rm__Capsule *capsule = entry->capsule;
        bool ended = job_ended(entry->job->job);

        assert(!entry->placed && !entry->held && entry->address == 0);
        entry->at = get_node(index, capsule->node);
        entry->ranks = job_capsule_cores(entry->job->job, capsule);
        if (!ended && capsule->state != RM__CAPSULE_STATE__CAPSULE_GONE) {
                entry->placed = true;
                LIST_INSERT_HEAD(&entry->at->placed, entry, link);
                entry->at->ranks += entry->ranks;
                entry->at->capsules++;
                mark_changed(index, entry->at);
        }
        if (!ended && capsule->address) {
                entry->address = capsule->address;
                set_address(index, entry->address, true);
        }
        count_move(index, entry);
}

void state_index_capsule(struct state_index *index, uint64_t job, int32_t capsule) {
        struct capsule_entry *entry = find_capsule(index, job, capsule);

        if (!entry)
                return;
        discount(index, entry);
        count(index, entry);
}

static void add_job(struct state_index *index, Rm__Job *job) {
        struct job_entry *entry = xcalloc(1, sizeof(*entry));

        entry->id = job->id;
        entry->job = job;
        entry->counted_as = job->state;
        index->n_jobs_in[job->state]++;
        entry->n = job->n_capsules;
        entry->capsules = xcalloc(entry->n, sizeof(*entry->capsules));
        HASH_ADD(hh, index->jobs, id, sizeof(entry->id), entry);
        for (size_t k = 0; k < entry->n; k++) {
                entry->capsules[k].job = entry;
                entry->capsules[k].capsule = job->capsules[k];
        }
        for (size_t i = 0; i < index->n_open_moves; i++)
                if (index->open_moves[i]->job == job->id && find_capsule(index, job->id, index->open_moves[i]->capsule))
                        find_capsule(index, job->id, index->open_moves[i]->capsule)->move = index->open_moves[i];
        for (size_t k = 0; k < entry->n; k++)
                count(index, &entry->capsules[k]);
}

void state_index_forget(struct state_index *index, uint64_t job) {
        struct job_entry *entry = find_job(index, job);

        if (!entry)
                return;
        for (size_t k = 0; k < entry->n; k++)
                discount(index, &entry->capsules[k]);
        assert(index->n_jobs_in[entry->counted_as] > 0);
        index->n_jobs_in[entry->counted_as]--;
        HASH_DEL(index->jobs, entry);
        free(entry->capsules);
        free(entry);
}

void state_index_job_state(struct state_index *index, uint64_t job) {
        struct job_entry *entry = find_job(index, job);

        if (!entry)
                return;
        assert(index->n_jobs_in[entry->counted_as] > 0);
        index->n_jobs_in[entry->counted_as]--;
        entry->counted_as = entry->job->state;
        index->n_jobs_in[entry->counted_as]++;
        for (size_t k = 0; k < entry->n; k++)
                mark_changed(index, entry->capsules[k].at);
}

size_t state_jobs_in(const struct state_index *index, Rm__JobState state) {
        return index->n_jobs_in[state];
}

void state_index_job(struct state_index *index, uint64_t job) {
        Rm__Job *found = state_job(index->state, job);

        state_index_forget(index, job);
        if (found)
                add_job(index, found);
}

/* ---- moves ---- */

static bool under_way(const Rm__Move *move) {
        return move->state == RM__MOVE_STATE__MOVE_RUNNING || move->state == RM__MOVE_STATE__MOVE_COMMITTED;
}

/* Moves end in any order, and begin in that of their ids. */
static void list_open(struct state_index *index, Rm__Move *move) {
        size_t at = index->n_open_moves;

        while (at > 0 && index->open_moves[at - 1] != move)
                at--;
        if (at == 0 && under_way(move)) {
                index->open_moves = xrealloc(index->open_moves, (index->n_open_moves + 1) * sizeof(*index->open_moves));
                index->open_moves[index->n_open_moves++] = move;
        } else if (at > 0 && !under_way(move)) {
                index->n_open_moves--;
                memmove(index->open_moves + at - 1, index->open_moves + at,
                        (index->n_open_moves - (at - 1)) * sizeof(*index->open_moves));
        }
}

void state_index_move(struct state_index *index, Rm__Move *move) {
        struct capsule_entry *entry = find_capsule(index, move->job, move->capsule);

        list_open(index, move);
        if (!entry)
                return;
        discount(index, entry);
        entry->move = under_way(move) ? move : NULL;
        count(index, entry);
}

Rm__Move *const *state_open_moves(const struct state_index *index, size_t *ret_n) {
        *ret_n = index->n_open_moves;
        return index->open_moves;
}

Rm__Move *state_capsule_move(const struct state_index *index, uint64_t job, int32_t capsule) {
        const struct capsule_entry *entry = find_capsule(index, job, capsule);

        return entry ? entry->move : NULL;
}

/* ---- what follows ---- */

static int compare_placed(const void *a, const void *b) {
        const struct state_placed *x = a, *y = b;

        if (x->job->id != y->job->id)
                return x->job->id < y->job->id ? -1 : 1;
        return (x->capsule->index > y->capsule->index) - (x->capsule->index < y->capsule->index);
}

struct state_placed *state_placed_on(const struct state_index *index, const char *node, size_t *ret_n) {
        const struct node_entry *entry = find_node(index, node);
        const struct capsule_entry *capsule;
        struct state_placed *list;
        size_t n = 0;

        *ret_n = 0;
        if (!entry || LIST_EMPTY(&entry->placed))
                return NULL;
        list = xcalloc(entry->capsules, sizeof(*list));
        LIST_FOREACH (capsule, &entry->placed, link) {
                assert(n < entry->capsules);
                list[n++] = (struct state_placed) { capsule->job->job, capsule->capsule };
        }
        qsort(list, n, sizeof(*list), compare_placed);
        *ret_n = n;
        return list;
}

uint32_t state_node_ranks(const struct state_index *index, const char *node, uint32_t *ret_capsules) {
        const struct node_entry *entry = find_node(index, node);

        if (ret_capsules)
                *ret_capsules = entry ? entry->capsules : 0;
        return entry ? entry->ranks : 0;
}

uint32_t state_capsule_space(const struct state_index *index, const char *node, uint32_t per_core) {
        const Rm__Node *known = state_node(index->state, node);
        uint64_t most = known ? (uint64_t) known->cores * per_core : 0;
        uint32_t capsules = 0;

        if (known && per_core == 0)
                return UINT32_MAX;
        (void) state_node_ranks(index, node, &capsules);
        if (most <= capsules)
                return 0;
        return most - capsules < UINT32_MAX ? (uint32_t) (most - capsules) : UINT32_MAX;
}

const char *state_node_name(const struct state_index *index, const Rm__Node *node) {
        uint32_t capsules = 0;
        uint32_t ranks = state_node_ranks(index, node->name, &capsules);

        if (node->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN)
                return "DOWN";
        if (node->health != RM__NODE_HEALTH__NODE_HEALTH_UP)
                return "UNKNOWN";
        if (node->drain)
                return capsules > 0 ? "DRAINING" : "DRAINED";
        if (node_to_be_left(node))
                return "FAILING";
        if (ranks == 0)
                return "IDLE";
        return ranks >= node_usable_cores(node) ? "ALLOCATED" : "MIXED";
}

static bool is_folded(const struct state_index *index, const struct capsule_entry *entry) {
        return entry->ranks > 0 && entry->at->position >= 0 &&
               entry->at->ranks > node_usable_cores(index->state->nodes[entry->at->position]);
}

const Rm__Node *state_job_fold(const struct state_index *index, const Rm__Job *job, uint32_t *ret_ranks) {
        const struct job_entry *entry = job->state == RM__JOB_STATE__JOB_RUNNING ? find_job(index, job->id) : NULL;
        const Rm__Node *worst = NULL;
        uint64_t ranks = 0;

        for (size_t k = 0; entry && k < entry->n; k++) {
                const struct node_entry *at = entry->capsules[k].at;
                const Rm__Node *node = is_folded(index, &entry->capsules[k]) ? index->state->nodes[at->position] : NULL;

                if (!node || (worst && at->ranks * (uint64_t) node_usable_cores(worst) <= ranks * node_usable_cores(node)))
                        continue;
                worst = node;
                ranks = at->ranks;
        }
        *ret_ranks = (uint32_t) ranks;
        return worst;
}

static bool is_captured_now(const Rm__Job *job) {
        const Rm__Checkpoint *checkpoint = job_checkpoint_under_way(job);

        return checkpoint && checkpoint->state == RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING;
}

const char *state_job_name(const struct state_index *index, const Rm__Job *job) {
        static const char *const words[] = {
                "PENDING",    "STARTING",  "RUNNING", "MIGRATING", "FOLDED",  "CHECKPOINTING", "RECOVERING",
                "COMPLETING", "COMPLETED", "FAILED",  "CANCELLED", "TIMEOUT", "NODE_FAIL",
        };
        const struct job_entry *entry = job->state == RM__JOB_STATE__JOB_RUNNING ? find_job(index, job->id) : NULL;
        uint32_t ranks;

        if (job_fence_node(index->state, job))
                return "RECOVERING";
        for (size_t k = 0; entry && k < entry->n; k++)
                if (entry->capsules[k].move)
                        return "MIGRATING";
        if (entry && is_captured_now(job))
                return "CHECKPOINTING";
        if (state_job_fold(index, job, &ranks) && !job_lost_node(index->state, job))
                return "FOLDED";
        return (size_t) job->state < ARRAY_SIZE(words) ? words[job->state] : "?";
}

int32_t state_capsule_position(const struct state_index *index, const Rm__Job *job, int32_t capsule) {
        const struct capsule_entry *entry = find_capsule(index, job->id, capsule);

        return entry ? entry->at->position : -1;
}

int32_t state_node_position(const struct state_index *index, const char *node) {
        const struct node_entry *entry = find_node(index, node);

        return entry ? entry->position : -1;
}

/* ---- what has changed ---- */

static size_t count_changed(const struct state_index *index) {
        const struct node_entry *node;
        size_t n = 0;

        SLIST_FOREACH(node, &index->changed, changed_link)
        n += node->capsules;
        return n;
}

Rm__Job **state_index_take_changed(struct state_index *index, size_t *ret_n) {
        size_t most = count_changed(index), n = 0;
        Rm__Job **jobs = most > 0 ? xcalloc(most, sizeof(Rm__Job *)) : NULL;
        struct node_entry *node;

        while ((node = SLIST_FIRST(&index->changed))) {
                const struct capsule_entry *capsule;

                SLIST_REMOVE_HEAD(&index->changed, changed_link);
                node->changed = false;
                LIST_FOREACH (capsule, &node->placed, link) {
                        if (!capsule->job->taken)
                                jobs[n++] = capsule->job->job;
                        capsule->job->taken = true;
                }
        }
        for (size_t i = 0; i < n; i++)
                find_job(index, jobs[i]->id)->taken = false;
        *ret_n = n;
        return jobs;
}

/* ---- create and destroy ---- */

struct state_index *state_index_create(Rm__State *state) {
        struct state_index *index = xcalloc(1, sizeof(*index));
        size_t n;

        index->state = state;
        SLIST_INIT(&index->changed);
        state_index_node(index, 0);
        for (size_t i = 0; i < state->n_moves; i++)
                if (under_way(state->moves[i]))
                        list_open(index, state->moves[i]);
        for (size_t i = 0; i < state->n_jobs; i++)
                add_job(index, state->jobs[i]);
        free(state_index_take_changed(index, &n)); /* nothing has: it is new */
        return index;
}

void state_index_destroy(struct state_index *index) {
        struct node_entry *node, *next_node;
        struct job_entry *job, *next_job;

        if (!index)
                return;
        HASH_ITER (hh, index->jobs, job, next_job) {
                HASH_DEL(index->jobs, job);
                free(job->capsules);
                free(job);
        }
        HASH_ITER (hh, index->nodes, node, next_node) {
                HASH_DEL(index->nodes, node);
                free((char *) node->name);
                free(node);
        }
        free(index->open_moves);
        free(index);
}

const Rm__State *state_index_state(const struct state_index *index) {
        return index->state;
}
