/* Out of memory, the hash table says so instead of ending the process. */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(record) (b->failed = true)
#define HASH_FUNCTION(key, n, hash) HASH_FNV(key, n, hash) /* the one of its own falls through cases, and compilers say so */
#include "policies/distrib/branch.h"

#include <stddef.h>
#include <stdlib.h>

enum {
        MAX_RECORDS = 400 * 1000,
        BLOCK = 4096,     /* records that are allocated at once */
        STEPS_A_LOOK = 8, /* looks at others: so many a step */
        KEY_BYTES = offsetof(struct record, units) + sizeof(uint16_t) - offsetof(struct record, mask),
};

static int64_t most_of(int64_t a, int64_t b) {
        return a > b ? a : b;
}

bool branches_reserve(void **array, size_t *max, size_t n, size_t size_bytes) {
        size_t larger = 2 * *max + 1024;
        void *grown;

        if (n < *max)
                return true;
        grown = realloc(*array, larger * size_bytes);
        if (!grown)
                return false;
        *array = grown;
        *max = larger;
        return true;
}

/* ---- what a plan with it costs ---- */

/* What jobs that are not in the mask cost above their least at least, because they are on none of its nodes. */
static int64_t other_jobs(const struct branches *b, uint64_t mask) {
        int64_t sum = 0;

        for (uint32_t j = 0; j < b->problem->n_jobs && sum <= b->margins->gap; j++) {
                int64_t most = 0;

                for (uint64_t left = mask & component_job(j) ? 0 : mask & UINT32_MAX; left; left &= left - 1)
                        most = most_of(most,
                                       b->margins->job_margin[margins_at(b->margins, j, (uint32_t) __builtin_ctzll(left), 0)]);
                sum += most;
        }
        return sum;
}

/* What nodes that are not in the mask cost above their least at least, because none of its jobs is there. */
static int64_t other_nodes(const struct branches *b, uint64_t mask) {
        int64_t sum = 0;

        for (uint32_t s = 0; s < b->problem->n_nodes && sum <= b->margins->gap; s++) {
                int64_t most = 0;

                for (uint64_t left = mask & component_node(s) ? 0 : mask >> COMPONENT_MAX_SIDE; left; left &= left - 1)
                        most = most_of(most,
                                       b->margins->node_margin[margins_at(b->margins, (uint32_t) __builtin_ctzll(left), s, 0)]);
                sum += most;
        }
        return sum;
}

/* What the job that a branch hangs by costs above its least, together with the nodes that its other groups go to and what is there
 * besides; or together with `others`, what all these cost anyway. */
static int64_t job_above(const struct branches *b, const struct record *record, int64_t others) {
        uint32_t j = record->job;
        int64_t complete = b->margins->complete[(size_t) j * b->margins->stride + b->problem->jobs[j].units - record->units];

        return complete >= MARGIN_NEVER ? MARGIN_NEVER
                                        : most_of(record->margin + others,
                                                  b->margins->job_zero[j] + record->pieces + complete - b->margins->job_least[j]);
}

/* What a plan with it costs above the least, at least: soon said. */
static int64_t quickly_above(const struct branches *b, const struct record *record) {
        return record->job == BRANCH_NO_JOB ? record->above : record->above + job_above(b, record, 0);
}

/* The same, all things considered. The job that a branch hangs by is on other nodes as well. */
static int64_t least_above(const struct branches *b, const struct record *record) {
        if (record->job == BRANCH_NO_JOB)
                return record->above + other_jobs(b, record->mask) + other_nodes(b, record->mask);
        return record->above +
               job_above(b, record, other_jobs(b, record->mask) + other_nodes(b, record->mask & ~component_job(record->job)));
}

static struct record *record_at(const struct branches *b, uint32_t index) {
        return &b->blocks[index / BLOCK][index % BLOCK];
}

const struct record *branches_at(const struct branches *b, uint32_t index) {
        return record_at(b, index);
}

static bool keep_items(struct branches *b, struct record *record, const struct item *items) {
        record->first_item = (uint32_t) b->n_items;
        for (uint32_t i = 0; i < record->n_items; i++) {
                if (!branches_reserve((void **) &b->items, &b->max_items, b->n_items, sizeof(*b->items)))
                        return false;
                b->items[b->n_items++] = items[i];
        }
        return true;
}

/* One that replaces another is there twice. */
static bool keep_sibling(struct branches *b, const struct record *record, uint32_t index) {
        struct siblings *siblings = &b->of_job[record->job];

        if (!branches_reserve((void **) &b->news, &b->max_news, b->n_news, sizeof(*b->news)))
                return false;
        b->news[b->n_news++] = index;

        if (!branches_reserve((void **) &siblings->siblings, &siblings->max, siblings->n, sizeof(*siblings->siblings)))
                return false;
        siblings->siblings[siblings->n++] = (struct sibling) { .mask = record->mask & ~component_job(record->job),
                                                               .above = record->above,
                                                               .margin = record->margin,
                                                               .index = index,
                                                               .latest = record->latest,
                                                               .units = record->units,
                                                               .n_nodes = record->n_nodes };
        return true;
}

static bool keep_place(struct branches *b, const struct record *record, uint32_t index, bool replaces) {
        if (record->job != BRANCH_NO_JOB)
                return keep_sibling(b, record, index);
        if (replaces)
                return true;
        if (!branches_reserve((void **) &b->found, &b->max_found, b->n_found, sizeof(*b->found)))
                return false;
        b->found[b->n_found++] = (struct component) { .mask = record->mask, .record = index };
        return true;
}

static bool keep_seed(struct branches *b, struct record *record, uint32_t at_index) {
        if (record->left != BRANCH_NONE || record->job == BRANCH_NO_JOB)
                return true;
        if (!branches_reserve((void **) &b->seeds, &b->max_seeds, b->n_seeds, sizeof(*b->seeds)))
                return false;
        record->latest = b->latest++;
        b->seeds[b->n_seeds++] = at_index;
        return true;
}

/* All that belongs to it but the record itself. */
static bool keep_rest(struct branches *b, struct record *record, const struct item *items, uint32_t index, bool replaces) {
        record->index = index;
        return keep_items(b, record, items) && keep_seed(b, record, index) && keep_place(b, record, index, replaces);
}

static void replace(struct branches *b, struct record *old, struct record *record, const struct item *items) {
        UT_hash_handle hh = old->hh;

        b->failed |= !keep_rest(b, record, items, old->index, true);
        *old = *record;
        old->hh = hh;
}

static bool make_room(struct branches *b) {
        if (b->n_records / BLOCK < b->n_blocks)
                return true;
        if (!branches_reserve((void **) &b->blocks, &b->max_blocks, b->n_blocks, sizeof(struct record *)))
                return false;
        b->blocks[b->n_blocks] = calloc(BLOCK, sizeof(struct record));
        if (!b->blocks[b->n_blocks])
                return false;
        b->n_blocks++;
        return true;
}

static void add(struct branches *b, struct record *record, const struct item *items) {
        struct record *kept;

        b->full |= b->n_records == MAX_RECORDS;
        if (b->full)
                return;
        if (!make_room(b) || !keep_rest(b, record, items, (uint32_t) b->n_records, false)) {
                b->failed = true;
                return;
        }
        kept = record_at(b, (uint32_t) b->n_records++);
        *kept = *record;
        b->steps += BRANCH_STEPS;
        HASH_ADD(hh, b->by_key, mask, KEY_BYTES, kept);
}

void branches_keep(struct branches *b, struct record *record, const struct item *items) {
        struct record *old;

        if (b->full || b->failed || quickly_above(b, record) > b->margins->gap)
                return;
        HASH_FIND(hh, b->by_key, &record->mask, KEY_BYTES, old);
        if (old && record->cost < old->cost)
                replace(b, old, record, items);
        else if (!old && least_above(b, record) <= b->margins->gap)
                add(b, record, items);
}

/* ---- joining ---- */

static void join_two(struct branches *b, uint32_t left_index, uint32_t right_index) {
        const struct record *left = record_at(b, left_index), *right = record_at(b, right_index);
        struct record both = { .mask = left->mask | right->mask,
                               .cost = left->cost + right->cost,
                               .above = left->above + right->above,
                               .pieces = left->pieces + right->pieces,
                               .margin = most_of(left->margin, right->margin),
                               .job = left->job,
                               .units = (uint16_t) (left->units + right->units),
                               .n_nodes = (uint8_t) (left->n_nodes + right->n_nodes),
                               .latest = left->latest,
                               .left = left_index,
                               .right = right_index };

        b->steps++;
        branches_keep(b, &both, NULL);
}

static int compare_siblings(const void *a, const void *b) {
        const struct sibling *x = a, *y = b;

        return x->above != y->above ? (x->above < y->above ? -1 : 1) : (x->index > y->index) - (x->index < y->index);
}

static bool sort_siblings(struct siblings *siblings) {
        if (siblings->max_masks < siblings->n) {
                uint64_t *masks = realloc(siblings->masks, siblings->max * sizeof(*masks));

                if (!masks)
                        return false;
                siblings->masks = masks;
                siblings->max_masks = siblings->max;
        }
        qsort(siblings->siblings, siblings->n, sizeof(*siblings->siblings), compare_siblings);
        for (size_t i = 0; i < siblings->n; i++)
                siblings->masks[i] = siblings->siblings[i].mask;
        siblings->n_sorted = siblings->n;
        return true;
}

/* How many of the sorted ones are above by `most` at most. */
static size_t count_up_to(const struct siblings *siblings, int64_t most) {
        size_t low = 0, high = siblings->n_sorted;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (siblings->siblings[middle].above <= most)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* A branch, and what it can be joined with. */
struct joint {
        uint64_t mask; /* without the job */
        int64_t above, most; /* most: that the other may be above */
        uint32_t index, latest, units; /* units: fewer are left for the other */
};

static void try_join(struct branches *b, const struct joint *joint, const struct sibling *sibling) {
        if (!(sibling->mask & joint->mask) && sibling->units < joint->units && sibling->latest < joint->latest &&
            sibling->above <= joint->most && joint->above + sibling->above + sibling->margin <= b->margins->gap)
                join_two(b, joint->index, sibling->index);
}

/* A branch with all those of its job that came before it and that it can be with. */
void branches_join(struct branches *b, uint32_t index) {
        const struct record *record = record_at(b, index);
        struct siblings *siblings = &b->of_job[record->job];
        struct joint joint = { .mask = record->mask & ~component_job(record->job),
                               .index = index,
                               .latest = record->latest,
                               .above = record->above,
                               .most = b->margins->gap - record->above - record->margin,
                               .units = b->problem->jobs[record->job].units - record->units };
        size_t n, sorted;

        if (siblings->n > siblings->n_sorted + siblings->n_sorted / 8 + 64)
                b->failed |= !sort_siblings(siblings);
        n = siblings->n;
        sorted = count_up_to(siblings, joint.most);
        b->steps += (sorted + n - siblings->n_sorted) / STEPS_A_LOOK;
        for (size_t i = 0; i < sorted; i++)
                if (!(siblings->masks[i] & joint.mask))
                        try_join(b, &joint, &siblings->siblings[i]);
        for (size_t i = siblings->n_sorted; i < n; i++) {
                const struct sibling sibling = siblings->siblings[i];

                try_join(b, &joint, &sibling);
        }
}

/* ---- how they are filled ---- */

void branches_fill(const struct branches *b, uint32_t index, uint32_t *ret_values) {
        const struct record *record = record_at(b, index);

        if (record->left != BRANCH_NONE) {
                branches_fill(b, record->left, ret_values);
                branches_fill(b, record->right, ret_values);
                return;
        }
        for (uint32_t i = 0; i < record->n_items; i++) {
                const struct item *item = &b->items[record->first_item + i];

                ret_values[(size_t) item->job * b->problem->n_nodes + record->node] = item->units;
                if (item->branch != BRANCH_NONE)
                        branches_fill(b, item->branch, ret_values);
        }
}

/* ---- making ---- */

void branches_init(struct branches *b, const struct problem *problem, const struct margins *margins) {
        *b = (struct branches) { .problem = problem, .margins = margins };
}

void branches_clear(struct branches *b) {
        HASH_CLEAR(hh, b->by_key);
        b->n_records = b->n_items = b->n_found = b->n_seeds = b->n_news = 0;
        b->latest = 0;
        b->steps = 0;
        b->full = b->failed = false;
        for (uint32_t j = 0; j < COMPONENT_MAX_SIDE; j++)
                b->of_job[j].n = b->of_job[j].n_sorted = 0;
}

void branches_finish(struct branches *b) {
        branches_clear(b);
        for (size_t i = 0; i < b->n_blocks; i++)
                free(b->blocks[i]);
        for (uint32_t j = 0; j < COMPONENT_MAX_SIDE; j++) {
                free(b->of_job[j].siblings);
                free(b->of_job[j].masks);
        }
        free(b->blocks);
        free(b->items);
        free(b->seeds);
        free(b->news);
        free(b->found);
}
