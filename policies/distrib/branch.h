/*
 * Branches of components, and the components that are made of them (see component.h): of those alike in what they hold only the
 * cheapest is kept, and of those that no plan can have none.
 */
#ifndef RM_POLICIES_DISTRIB_BRANCH_H
#define RM_POLICIES_DISTRIB_BRANCH_H

#include <uthash.h>

#include "policies/distrib/component.h"
#include "policies/distrib/margin.h"

enum {
        BRANCH_NONE = UINT32_MAX,
        BRANCH_NO_JOB = UINT16_MAX,
        BRANCH_STEPS = 50, /* work for one that is kept */
};

/* On a node: so many groups of a job, the others in a branch or BRANCH_NONE. */
struct item {
        uint16_t job, units;
        uint32_t branch;
};

/* A branch, or a whole component: then no job hangs out of it. Two lines of a cache. */
struct record {
        UT_hash_handle hh; /* by mask, job and units */
        uint64_t mask;     /* of all that is in it, and the job that it hangs by */
        uint16_t job, units;
        uint8_t node; /* that the items are on */
        bool slack;            /* a node has something free */
        uint8_t n_parts;       /* 0: it has items */
        int64_t cost;          /* as prices are */
        int64_t above;         /* what its nodes and settled jobs cost above what they cost at least, scaled */
        int64_t pieces;        /* what the job costs where it is, less what it costs not to be there, scaled */
        int64_t margin;        /* what the job costs above its least, at least */
        uint32_t latest;       /* the number of the last branch that was joined into it, or its own */
        uint32_t index;
        union {
                struct {
                        uint32_t first_item, n_items;
                };
                uint32_t parts[3];
        };
};

/* A branch, as the others of its job see it. */
struct sibling {
        uint64_t mask;   /* without the job */
        int64_t above;   /* as in the record */
        int64_t all;     /* that, and the pieces of the job */
        uint32_t index, latest;
};

static inline uint32_t record_nodes(const struct record *record) {
        return (uint32_t) __builtin_popcountll(record->mask & UINT32_MAX);
}

/* Branches of one job, alike in groups and slack, by `all`. */
struct siblings {
        struct sibling *siblings;
        size_t n, max;
        int64_t least_pieces; /* the least that `all` is more than `above` */
};

/* All that are kept, by index. */
struct branches {
        const struct problem *problem;
        const struct margins *margins;
        struct record **blocks;
        size_t n_records, n_blocks, max_blocks;
        struct record *by_key;
        struct item *items;
        size_t n_items, max_items;
        struct siblings *siblings; /* of each job, without slack and with it, and number of groups */
        int64_t *job_zeros, *node_zeros; /* margins of nothing: of each node and job, of each job and node */
        int64_t most_full, most_slack; /* that branches may be above; those with slack; set before any is kept */
        uint32_t *seeds; /* branches that are to be joined with others */
        size_t n_seeds, max_seeds;
        uint32_t *news;  /* branches, as they came or got cheaper */
        size_t n_news, max_news;
        uint32_t latest; /* number given to a branch */
        struct component *found;
        size_t n_found, max_found;
        uint64_t steps;
        struct arena arena;
        size_t most_records;
        bool full;       /* there are too many of them */
        bool failed;     /* out of memory */
};

/* False: no memory; branches_finish() is fine after it. */
bool branches_init(struct branches *branches, const struct problem *problem, const struct margins *margins);
void branches_finish(struct branches *branches);

/* Forget all. The margins are those that branches are now kept by. */
void branches_clear(struct branches *branches);

/* After running out of memory: give all of it back, and keep fewer from now on. False: there is not even that little. */
bool branches_shrink(struct branches *branches);

const struct record *branches_at(const struct branches *branches, uint32_t index);

/* Keep it, a branch or, when its job is BRANCH_NO_JOB, a component. `items`: record->n_items of them. */
void branches_keep(struct branches *branches, struct record *record, const struct item *items);

/* Join the branch with all those of its job that came before it and that it can be with. */
void branches_join(struct branches *branches, uint32_t index);

/* Components of branches that are all of the job. */
void branches_close(struct branches *branches, uint32_t job);

/* How the record is filled, into ret_values (n_jobs x n_nodes). */
void branches_fill(const struct branches *branches, uint32_t index, uint32_t *ret_values);

/* Room for one more of `n`. False: no memory. */
bool branches_reserve(void **array, size_t *max, size_t n, size_t size_bytes);

#endif
