#include "policies/treematch/map.h"

#include <string.h>

#include "policies/treematch/blocks.h"
#include "policies/treematch/chain.h"
#include "policies/treematch/descend.h"
#include "policies/treematch/layout.h"
#include "policies/treematch/pair.h"

enum {
        MOST_DESCENTS = 30,
        ROUNDS = 20,
        CHAIN_WORK = 10, /* times the entries of all rows: after that chains cost more than they bring */
        PAIR_WORK = 300, /* likewise */
        DENSE_PAIR_WORK = 15, /* likewise */
        BLOCK_WORK = 5, /* likewise */
        AFTER_BLOCKS = 30, /* likewise, of pairs */
        BLOCK_ROUNDS = 2,
        MOST_PAIR_WORK = 4 * 1000 * 1000,
        PROMISING = 8, /* what was given is worth refining when 1/8 less of it is better than the best */
        MOST_ENTRIES = 1 << 17, /* that vertices keep, where that is not less than */
        FEWEST_PARTNERS = 32,   /* of each */
        DENSE_ENTRIES = 1 << 21, /* with more than so many, */
        DENSE_PARTNERS = 256,    /* and of a vertex on the average, it is the time to look through them that counts: */
        DENSE_PART = 4,          /* only one part in so many is kept */
};

struct mapping {
        struct pool *pool;
        const struct tree *tree;
        struct graph graph; /* thinned out */
        bool dense;         /* before */
        const struct limits *limits;
        uint64_t work;
        uint32_t *all, *number; /* as descend() wants them */
        uint32_t *trial, *best;
        int64_t least;
};

static uint64_t pair_work(const struct mapping *m) {
        uint64_t entries = m->graph.first[m->graph.n], most = MOST_PAIR_WORK + 50 * entries;

        if (m->dense)
                return DENSE_PAIR_WORK * entries;
        return PAIR_WORK * entries < most ? PAIR_WORK * entries : most;
}

/* The trial, improved, becomes the best if it is. */
static void refine(struct mapping *m, uint64_t most_pair_work) {
        struct pool *pool = m->pool;
        struct pool_mark mark = pool_mark(pool);
        uint64_t entries = m->graph.first[m->graph.n];
        struct layout layout;
        int64_t cost;

        layout_make(pool, m->tree, &m->graph, NULL, m->trial, &layout);
        if (!limits_over(m->limits))
                (void) chain_refine(pool, &layout, pool->work + CHAIN_WORK * entries);
        if (!limits_over(m->limits))
                (void) pair_refine(pool, &layout, ROUNDS, pool->work + most_pair_work);
        pool_release(pool, mark);
        cost = layout_cost(pool, m->tree, &m->graph, m->trial);
        if (cost < m->least) {
                m->least = cost;
                memcpy(m->best, m->trial, sizeof(*m->best) * m->graph.n);
        }
}

/* How the first attempts go down the tree. Where nodes are alike and three times a power of two,
 * they end in squares when switches are left aside; but then both ways are tried. */
struct attempts {
        uint32_t ways[4]; /* again and again */
        uint32_t least;
};

static struct attempts choose_attempts(const struct tree *tree) {
        static const struct attempts uneven = { { 0, DESCEND_SHUFFLED, DESCEND_THIRDS, DESCEND_THIRDS | DESCEND_SHUFFLED }, 1 };
        static const struct attempts even = { { 0, DESCEND_FLAT | DESCEND_THIRDS, DESCEND_SHUFFLED, DESCEND_THIRDS }, 1 };
        static const struct attempts three = { { DESCEND_FLAT | DESCEND_THIRDS, 0, DESCEND_SHUFFLED, DESCEND_THIRDS }, 2 };

        for (uint32_t x = 1; x < tree->n_leaves; x++)
                if (tree->space[tree->leaf[x]] != tree->space[tree->leaf[0]])
                        return uneven;
        return tree->n_leaves > 0 && tree->n_leaves >> __builtin_ctz(tree->n_leaves) == 3 ? three : even;
}

static void descend_once(struct mapping *m, uint32_t ways) {
        descend(m->pool, m->tree, 0, &m->graph, m->limits, m->all, m->graph.n, m->number, ways, m->trial);
        if (ways & DESCEND_FLAT)
                (void) blocks_refine(m->pool, m->tree, &m->graph, UINT64_MAX, m->trial);
}

/* From the top, again and again with other random numbers, while another time fits into the work
 * allowed. */
static void descend_often(struct mapping *m) {
        struct attempts attempts = choose_attempts(m->tree);
        uint64_t begin = m->pool->work, spent = 0;

        for (uint32_t i = 0; i < MOST_DESCENTS && !limits_over(m->limits); i++) {
                if (i >= attempts.least && spent + spent / i > m->work)
                        break;
                descend_once(m, attempts.ways[i % 4]);
                refine(m, pair_work(m));
                spent = m->pool->work - begin;
        }
}

/* Whole nodes of the best change places, and again the ranks on them, as long as that gains. */
static void exchange_blocks(struct mapping *m) {
        uint64_t entries = m->graph.first[m->graph.n];

        for (uint32_t i = 0; i < BLOCK_ROUNDS && m->least < INT64_MAX && !limits_over(m->limits); i++) {
                memcpy(m->trial, m->best, sizeof(*m->trial) * m->graph.n);
                if (blocks_refine(m->pool, m->tree, &m->graph, m->pool->work + BLOCK_WORK * entries, m->trial) == 0)
                        break;
                refine(m, AFTER_BLOCKS * entries);
        }
}

static bool is_dense(const struct graph *graph) {
        uint64_t entries = graph->first[graph->n];

        return entries > DENSE_ENTRIES && entries / graph->n > DENSE_PARTNERS;
}

static uint32_t most_partners(uint32_t n, bool dense) {
        uint32_t share = n > 0 ? MOST_ENTRIES / n : 0, most = share > FEWEST_PARTNERS ? share : FEWEST_PARTNERS;

        return dense ? most / DENSE_PART : most;
}

void map_improve(struct pool *pool, const struct tree *tree, const struct graph *graph, const struct limits *limits, uint64_t work,
                 uint32_t *leaf) {
        struct pool_mark mark = pool_mark(pool);
        uint32_t n = graph->n;
        struct mapping m = {
                .pool = pool,
                .tree = tree,
                .limits = limits,
                .work = work,
                .all = pool_alloc(pool, n, sizeof(*m.all)),
                .number = pool_alloc(pool, n, sizeof(*m.number)),
                .trial = pool_alloc(pool, n, sizeof(*m.trial)),
                .best = pool_alloc(pool, n, sizeof(*m.best)),
                .least = INT64_MAX,
                .dense = is_dense(graph),
        };
        int64_t given;
        bool thinned;

        graph_thin(pool, graph, most_partners(n, m.dense), &m.graph);
        given = layout_cost(pool, tree, &m.graph, leaf);
        for (uint32_t v = 0; v < n; v++) {
                m.all[v] = v;
                m.number[v] = UINT32_MAX;
        }
        if (given > 0)
                descend_often(&m);
        thinned = m.graph.first[n] < graph->first[n];
        if (!thinned && given - given / PROMISING < m.least && !limits_over(limits)) {
                memcpy(m.trial, leaf, sizeof(*leaf) * n);
                refine(&m, pair_work(&m));
        }
        exchange_blocks(&m);
        if (m.least < given && (!thinned || layout_gain(pool, tree, graph, leaf, m.best) > 0))
                memcpy(leaf, m.best, sizeof(*leaf) * n);
        pool_release(pool, mark);
}
