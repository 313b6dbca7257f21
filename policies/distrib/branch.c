/* Out of memory, the hash table says so instead of ending the process. */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(record) (b->failed = true)
#define HASH_FUNCTION(key, n, hash) HASH_FNV(key, n, hash) /* the one of its own falls through cases, and compilers say so */
#include "policies/distrib/branch.h"

/* More buckets than usual: looking records up is what takes most of the time. */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 4U

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
        MAX_RECORDS = 1000 * 1000,
        BLOCK = 4096,     /* records that are allocated at once */
        ALIGNMENT = 128,
        STEPS_A_LOOK = 8, /* looks at others: so many a step */
        KEY_BYTES = offsetof(struct record, units) + sizeof(uint16_t) - offsetof(struct record, mask),
};

static int64_t least_of(int64_t a, int64_t b) {
        return a < b ? a : b;
}

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

/* What those of `n` others that are not in the mask `own` cost above their least at least, because nothing of them is with the
 * elements of `with`: each at least as much as for one of these. zeros: of each element, n of others. */
static int64_t others_above(const int64_t *zeros, uint32_t n, uint64_t with, uint64_t own) {
        int64_t most[COMPONENT_MAX_SIDE] = { 0 }, sum = 0;

        for (; with; with &= with - 1) {
                const int64_t *zero = zeros + (size_t) __builtin_ctzll(with) * n;

                for (uint32_t i = 0; i < n; i++)
                        most[i] = most_of(most[i], zero[i]);
        }
        for (uint32_t i = 0; i < n; i++)
                sum += own >> i & 1 ? 0 : most[i];
        return sum;
}

static int64_t other_jobs(const struct branches *b, uint64_t mask) {
        return others_above(b->job_zeros, b->problem->n_jobs, mask & UINT32_MAX, mask >> COMPONENT_MAX_SIDE);
}

static int64_t other_nodes(const struct branches *b, uint64_t mask) {
        return others_above(b->node_zeros, b->problem->n_nodes, mask >> COMPONENT_MAX_SIDE, mask & UINT32_MAX);
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

static size_t n_siblings(const struct branches *b) {
        return (size_t) b->problem->n_jobs * 2 * b->margins->stride;
}

static struct siblings *siblings_of(const struct branches *b, uint32_t job, bool slack, uint32_t units) {
        return &b->siblings[((size_t) job * 2 + slack) * b->margins->stride + units];
}

static struct record *record_at(const struct branches *b, uint32_t index) {
        return &b->blocks[index / BLOCK][index % BLOCK];
}

const struct record *branches_at(const struct branches *b, uint32_t index) {
        return record_at(b, index);
}

static bool keep_items(struct branches *b, struct record *record, const struct item *items) {
        if (record->n_parts > 0)
                return true;
        record->first_item = (uint32_t) b->n_items;
        for (uint32_t i = 0; i < record->n_items; i++) {
                if (!branches_reserve((void **) &b->items, &b->max_items, b->n_items, sizeof(*b->items)))
                        return false;
                b->items[b->n_items++] = items[i];
        }
        return true;
}

/* The first of them that comes after `all`. */
static size_t place_after(const struct siblings *siblings, int64_t all) {
        size_t low = 0, high = siblings->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (siblings->siblings[middle].all <= all)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* One that replaces another is there twice. */
static bool keep_sibling(struct branches *b, const struct record *record, uint32_t index) {
        struct siblings *siblings = siblings_of(b, record->job, record->slack, record->units);
        struct sibling sibling = { .mask = record->mask & ~component_job(record->job),
                                   .above = record->above,
                                   .all = record->above + record->pieces,
                                   .index = index,
                                   .latest = record->latest };
        size_t at;

        if (!branches_reserve((void **) &b->news, &b->max_news, b->n_news, sizeof(*b->news)) ||
            !branches_reserve((void **) &siblings->siblings, &siblings->max, siblings->n, sizeof(*siblings->siblings)))
                return false;
        b->news[b->n_news++] = index;
        at = place_after(siblings, sibling.all);
        memmove(siblings->siblings + at + 1, siblings->siblings + at, (siblings->n++ - at) * sizeof(sibling));
        siblings->siblings[at] = sibling;
        siblings->least_pieces = siblings->n == 1 ? record->pieces : least_of(siblings->least_pieces, record->pieces);
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
        if (record->n_parts > 0 || record->job == BRANCH_NO_JOB)
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
        b->blocks[b->n_blocks] = aligned_alloc(ALIGNMENT, BLOCK * sizeof(struct record));
        if (!b->blocks[b->n_blocks])
                return false;
        b->n_blocks++;
        return true;
}

static void add(struct branches *b, struct record *record, const struct item *items) {
        struct record *kept;

        b->full |= b->n_records >= b->most_records;
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
        if (record->job != BRANCH_NO_JOB && record->above > (record->slack ? b->most_slack : b->most_full))
                return;
        HASH_FIND(hh, b->by_key, &record->mask, KEY_BYTES, old);
        if (old && (record->cost < old->cost || (record->cost == old->cost && record->above < old->above)))
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
                               .slack = left->slack || right->slack,
                               .latest = left->latest,
                               .n_parts = 2,
                               .parts = { left_index, right_index } };

        b->steps++;
        branches_keep(b, &both, NULL);
}

/* Pieces of the job: what so many groups of it that are yet to come leave for two branches, with all that is theirs. */
static int64_t most_of_two(const struct branches *b, uint32_t job, uint32_t to_come) {
        int64_t complete = to_come > 0 ? b->margins->complete[(size_t) job * b->margins->stride + to_come] : 0;

        return complete >= MARGIN_NEVER ? -MARGIN_NEVER
                                        : b->margins->gap + b->margins->job_least[job] - b->margins->job_zero[job] - complete;
}

static void join_with(struct branches *b, const struct record *record, uint32_t units, bool slack) {
        const struct siblings *siblings = siblings_of(b, record->job, slack, units);
        uint64_t mask = record->mask & ~component_job(record->job);
        int64_t all = most_of_two(b, record->job, b->problem->jobs[record->job].units - record->units - units) - record->above -
                      record->pieces;
        int64_t above = (slack || record->slack ? b->most_slack : b->most_full) - record->above;
        size_t i;

        for (i = 0; i < siblings->n && siblings->siblings[i].all <= all; i++) {
                const struct sibling *sibling = &siblings->siblings[i];

                if (!(sibling->mask & mask) && sibling->latest < record->latest && sibling->above <= above)
                        join_two(b, record->index, sibling->index);
        }
        b->steps += i / STEPS_A_LOOK;
}

void branches_join(struct branches *b, uint32_t index) {
        const struct record *record = record_at(b, index);

        for (uint32_t units = 1; record->units + units < b->problem->jobs[record->job].units; units++) {
                join_with(b, record, units, false);
                if (!record->slack)
                        join_with(b, record, units, true);
        }
}

/* ---- closing ---- */

/* The component of all of them. */
static void close_all(struct branches *b, uint32_t job, const struct sibling *const siblings[], uint32_t n) {
        struct record whole = { .job = BRANCH_NO_JOB, .latest = BRANCH_NONE, .n_parts = (uint8_t) n };

        whole.above = b->margins->job_zero[job] - b->margins->job_least[job];
        for (uint32_t i = 0; i < n; i++) {
                const struct record *part = record_at(b, siblings[i]->index);

                whole.mask |= part->mask;
                whole.cost += part->cost;
                whole.above += part->above + part->pieces;
                whole.slack |= part->slack;
                whole.parts[i] = siblings[i]->index;
        }
        b->steps++;
        branches_keep(b, &whole, NULL);
}

static void close_with(struct branches *b, uint32_t job, const struct siblings *left, const struct siblings *right) {
        int64_t most = most_of_two(b, job, 0);

        for (size_t i = 0; i < left->n && !b->full && !b->failed; i++) {
                const struct sibling *one = &left->siblings[i];
                size_t k;

                for (k = left == right ? i + 1 : 0; k < right->n && one->all + right->siblings[k].all <= most; k++)
                        if (!(one->mask & right->siblings[k].mask))
                                close_all(b, job, (const struct sibling *const[]) { one, &right->siblings[k] }, 2);
                b->steps += k / STEPS_A_LOOK + 1;
        }
}

/* The two, and one with slack. */
static void close_three(struct branches *b, uint32_t job, const struct sibling *one, const struct sibling *two,
                        const struct siblings *slack) {
        int64_t most = most_of_two(b, job, 0) - one->all - two->all;
        size_t k;

        for (k = 0; k < slack->n && slack->siblings[k].all <= most; k++)
                if (!((one->mask | two->mask) & slack->siblings[k].mask))
                        close_all(b, job, (const struct sibling *const[]) { one, two, &slack->siblings[k] }, 3);
        b->steps += k / STEPS_A_LOOK;
}

/* Of so many groups each, and one with slack: those that cannot be joined, being above by too much together. */
static void close_apart(struct branches *b, uint32_t job, uint32_t units, uint32_t more_units) {
        const struct siblings *left = siblings_of(b, job, 0, units), *right = siblings_of(b, job, 0, more_units);
        uint32_t rest = b->problem->jobs[job].units - units - more_units;
        const struct siblings *slack = siblings_of(b, job, 1, rest);
        int64_t most = most_of_two(b, job, rest);

        if (slack->n == 0 || right->n == 0 || left->n == 0)
                return;
        most = least_of(most, most_of_two(b, job, 0) - slack->siblings[0].all);
        for (size_t i = 0; i < left->n && !b->full && !b->failed; i++) {
                const struct sibling *one = &left->siblings[i];
                size_t begin = place_after(right, b->most_full - one->above + right->least_pieces), k;

                begin = left == right && begin <= i ? i + 1 : begin;
                for (k = begin; k < right->n && one->all + right->siblings[k].all <= most; k++) {
                        const struct sibling *two = &right->siblings[k];

                        if (!(one->mask & two->mask) && one->above + two->above > b->most_full)
                                close_three(b, job, one, two, slack);
                }
                b->steps += (k - begin) / STEPS_A_LOOK + 1;
        }
}

/* Branches that meet at a job, each above by `most_full` at most and all by the gap, make two groups that are above by `most_full`
 * at most: the most costly one and the rest, or when all are cheaper than 1/3, as many as come to that and the rest. One with
 * slack is left alone: then these are two or three. */
void branches_close(struct branches *b, uint32_t job) {
        uint32_t all = b->problem->jobs[job].units;

        for (uint32_t units = 1; units < all; units++) {
                const struct siblings *full = siblings_of(b, job, 0, units);

                if (2 * units <= all)
                        close_with(b, job, full, siblings_of(b, job, 0, all - units));
                close_with(b, job, full, siblings_of(b, job, 1, all - units));
                for (uint32_t more = units; units + more < all; more++)
                        close_apart(b, job, units, more);
        }
}

/* ---- how they are filled ---- */

void branches_fill(const struct branches *b, uint32_t index, uint32_t *ret_values) {
        const struct record *record = record_at(b, index);

        for (uint32_t i = 0; i < record->n_parts; i++)
                branches_fill(b, record->parts[i], ret_values);
        for (uint32_t i = 0; record->n_parts == 0 && i < record->n_items; i++) {
                const struct item *item = &b->items[record->first_item + i];

                ret_values[(size_t) item->job * b->problem->n_nodes + record->node] = item->units;
                if (item->branch != BRANCH_NONE)
                        branches_fill(b, item->branch, ret_values);
        }
}

/* ---- making ---- */

bool branches_init(struct branches *b, const struct problem *problem, const struct margins *margins) {
        *b = (struct branches) { .problem = problem, .margins = margins, .most_records = MAX_RECORDS };
        b->job_zeros = arena_alloc(&b->arena, (size_t) problem->n_jobs * problem->n_nodes, sizeof(int64_t));
        b->node_zeros = arena_alloc(&b->arena, (size_t) problem->n_jobs * problem->n_nodes, sizeof(int64_t));
        b->siblings = arena_alloc(&b->arena, n_siblings(b), sizeof(*b->siblings));
        return !b->arena.failed;
}

static void read_zeros(struct branches *b) {
        uint32_t jobs = b->problem->n_jobs, nodes = b->problem->n_nodes;

        for (uint32_t j = 0; j < jobs; j++)
                for (uint32_t s = 0; s < nodes; s++) {
                        size_t i = margins_at(b->margins, j, s, 0);

                        b->job_zeros[(size_t) s * jobs + j] = b->margins->job_margin[i];
                        b->node_zeros[(size_t) j * nodes + s] = b->margins->node_margin[i];
                }
}

void branches_clear(struct branches *b) {
        read_zeros(b);
        HASH_CLEAR(hh, b->by_key);
        b->n_records = b->n_items = b->n_found = b->n_seeds = b->n_news = 0;
        b->latest = 0;
        b->steps = 0;
        b->full = b->failed = false;
        for (size_t i = 0; i < n_siblings(b); i++)
                b->siblings[i].n = 0;
}

void branches_finish(struct branches *b) {
        HASH_CLEAR(hh, b->by_key);
        for (size_t i = 0; i < b->n_blocks; i++)
                free(b->blocks[i]);
        for (size_t i = 0; b->siblings && i < n_siblings(b); i++)
                free(b->siblings[i].siblings);
        free(b->blocks);
        free(b->items);
        free(b->seeds);
        free(b->news);
        free(b->found);
        arena_finish(&b->arena);
}

bool branches_shrink(struct branches *b) {
        size_t most = b->n_records / 2;
        bool ready;

        branches_finish(b);
        ready = branches_init(b, b->problem, b->margins);
        b->most_records = most;
        return ready;
}
