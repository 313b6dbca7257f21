#include "policies/treematch/bisect.h"

#include <string.h>

#include "policies/treematch/buckets.h"
#include "policies/treematch/coarsen.h"
#include "policies/treematch/fm.h"
#include "policies/treematch/sweep.h"

enum {
        MAX_LEVELS = 40,
        COARSE_ENOUGH = 48,
        MOST_FULL = 2, /* levels that have hardly fewer entries than the one before, so that memory is linear in the edges */
        N_TRIES = 4, /* at the coarsest level */
        N_RUNS = 4,
        SWEEP_ENOUGH = 16, /* vertices from which on a sweep is tried */
};

struct level {
        struct graph graph;
        uint32_t *coarse; /* each vertex: what it is on the next level */
        uint8_t *side;
};

struct bisection {
        struct pool *pool;
        uint32_t low, high;
        struct level level[MAX_LEVELS];
        uint32_t n_levels;
};

static struct fm_goal goal_of(const struct bisection *b, const struct graph *graph) {
        struct fm_goal goal = { .low = b->low, .high = b->high, .slack = 1, .passes = 6, .patience = 15 + graph->n / 40 };

        for (uint32_t v = 0; v < graph->n; v++)
                if (graph->size[v] > goal.slack)
                        goal.slack = graph->size[v];
        return goal;
}

/* Levels down from 0. `side` (NULL ok): a bisection of level 0 that is kept and carried down. */
static void coarsen(struct bisection *b, const uint8_t *side) {
        uint32_t n_full = 0;

        b->n_levels = 1;
        for (;;) {
                struct level *from = &b->level[b->n_levels - 1], *to = from + 1;
                uint32_t n, max_size = from->graph.total / 20 + 1;

                if (from->graph.n <= COARSE_ENOUGH || b->n_levels == MAX_LEVELS)
                        break;
                from->coarse = pool_alloc(b->pool, from->graph.n, sizeof(*from->coarse));
                n = coarsen_match(b->pool, &from->graph, max_size, side ? from->side : NULL, from->coarse);
                if (n > from->graph.n - from->graph.n / 20)
                        break;
                graph_contract(b->pool, &from->graph, from->coarse, n, &to->graph);
                to->side = pool_alloc(b->pool, n, sizeof(*to->side));
                for (uint32_t v = 0; side && v < from->graph.n; v++)
                        to->side[from->coarse[v]] = from->side[v];
                b->n_levels++;
                n_full += to->graph.first[n] > from->graph.first[from->graph.n] / 8 * 7;
                if (n_full == MOST_FULL)
                        break;
        }
}

/* Side 0 grows from `seed`, always by what is bound to it most. */
static void grow(const struct bisection *b, const struct graph *graph, uint32_t seed, uint32_t target, uint8_t *side) {
        struct pool_mark mark = pool_mark(b->pool);
        struct buckets *border = buckets_make(b->pool, graph->n, NULL);
        int64_t *bound = pool_zalloc(b->pool, graph->n, sizeof(*bound));
        uint32_t size0 = 0, next = 0;

        memset(side, 1, graph->n);
        for (uint32_t v = seed; size0 < target && v != BUCKETS_NONE;) {
                buckets_remove(border, v);
                if (size0 + graph->size[v] <= target || size0 == 0 || !border->words) {
                        side[v] = 0;
                        size0 += graph->size[v];
                        for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
                                uint32_t u = graph->to[e];

                                if (side[u] == 0)
                                        continue;
                                bound[u] += graph->weight[e];
                                buckets_set(border, u, bound[u]);
                        }
                }
                for (; !border->words && next < graph->n && side[next] == 0; next++)
                        ;
                v = border->words ? buckets_top(border) : next < graph->n ? next : BUCKETS_NONE;
        }
        pool_release(b->pool, mark);
}

static struct fm_score start(const struct bisection *b, struct level *level) {
        const struct graph *graph = &level->graph;
        struct pool_mark mark = pool_mark(b->pool);
        uint8_t *trial = pool_alloc(b->pool, graph->n, 1);
        struct fm_goal goal = goal_of(b, graph);
        struct fm_score best = { UINT32_MAX, 0 };

        for (uint32_t i = 0; i < N_TRIES; i++) {
                uint32_t spread = b->high - b->low;
                uint32_t target = spread == 0 ? b->low : b->low + (uint32_t) ((uint64_t) spread * (i % 3) / 2);
                struct fm_score score;

                grow(b, graph, pool_random(b->pool, graph->n), target, trial);
                score = fm_refine(b->pool, graph, &goal, trial);
                if (fm_better(score, best)) {
                        best = score;
                        memcpy(level->side, trial, graph->n);
                }
        }
        pool_release(b->pool, mark);
        return best;
}

/* From the coarsest level, whose sides are there, up to level 0. */
static struct fm_score project(struct bisection *b) {
        struct fm_score score = { UINT32_MAX, 0 };

        for (uint32_t i = b->n_levels; i-- > 0;) {
                struct level *level = &b->level[i];
                struct fm_goal goal = goal_of(b, &level->graph);

                for (uint32_t v = 0; i + 1 < b->n_levels && v < level->graph.n; v++)
                        level->side[v] = level[1].side[level->coarse[v]];
                score = fm_refine(b->pool, &level->graph, &goal, level->side);
        }
        return score;
}

/* Runs once from the bottom. */
static struct fm_score run(struct bisection *b, const struct graph *graph, uint8_t *side) {
        struct pool_mark mark = pool_mark(b->pool);
        struct fm_score score;

        b->level[0] = (struct level) { .graph = *graph, .side = side };
        coarsen(b, NULL);
        score = start(b, &b->level[b->n_levels - 1]);
        if (b->n_levels > 1)
                score = project(b);
        pool_release(b->pool, mark);
        return score;
}

int64_t bisect(struct pool *pool, const struct graph *graph, uint32_t low, uint32_t high, uint8_t *ret_side) {
        struct bisection b = { .pool = pool, .low = low, .high = high };
        struct pool_mark mark = pool_mark(pool);
        uint8_t *trial = pool_alloc(pool, graph->n, 1);
        struct fm_score best = { UINT32_MAX, 0 };

        if (graph->n > SWEEP_ENOUGH && sweep_bisect(pool, graph, low, high, ret_side)) {
                struct fm_goal goal = goal_of(&b, graph);

                best = fm_refine(pool, graph, &goal, ret_side);
        }
        for (uint32_t i = 0; i < N_RUNS; i++) {
                struct fm_score score = run(&b, graph, trial);

                if (fm_better(score, best)) {
                        best = score;
                        memcpy(ret_side, trial, graph->n);
                } else if (!fm_better(best, score))
                        break;
        }
        pool_release(pool, mark);
        return best.cut;
}
