#include "policies/treematch/fm.h"

#include <stdbool.h>
#include <string.h>

#include "policies/treematch/buckets.h"

struct fm {
        const struct graph *graph;
        const struct fm_goal *goal;
        uint8_t *side;
        int64_t *gain;  /* each vertex: how much less is cut when it crosses */
        bool *locked;
        uint32_t *moved; /* in this pass, in order */
        uint32_t n_moved;
        struct buckets *open[2]; /* what may leave side 0, and side 1 */
        uint64_t size0;
        int64_t cut;
        uint64_t *work;
};

static uint32_t imbalance(uint64_t size0, uint32_t low, uint32_t high) {
        return size0 > high ? (uint32_t) (size0 - high) : size0 < low ? (uint32_t) (low - size0) : 0;
}

static struct fm_score score_now(const struct fm *fm) {
        return (struct fm_score) { imbalance(fm->size0, fm->goal->low, fm->goal->high), fm->cut };
}

/* Gains of all, and the vertices at the border into the buckets. */
static void open_border(struct fm *fm) {
        const struct graph *graph = fm->graph;

        *fm->work += graph->first[graph->n];
        fm->size0 = 0;
        fm->cut = 0;
        for (uint32_t v = 0; v < graph->n; v++) {
                int64_t out = 0, all = 0;

                for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
                        out += graph->weight[e] * (fm->side[graph->to[e]] != fm->side[v]);
                        all += graph->weight[e];
                }
                fm->gain[v] = 2 * out - all;
                fm->size0 += fm->side[v] ? 0 : graph->size[v];
                fm->cut += fm->side[v] ? 0 : out;
                if (out > 0)
                        buckets_set(fm->open[fm->side[v]], v, fm->gain[v]);
        }
}

/* A side has no vertex at the border, and must give: all may go. */
static void offer_all(struct fm *fm, uint8_t side) {
        for (uint32_t v = 0; v < fm->graph->n; v++)
                if (fm->side[v] == side && !fm->locked[v])
                        buckets_set(fm->open[side], v, fm->gain[v]);
}

/* Moving `size` away from `from` ends within the slack, or at least nearer to it. */
static bool may_leave(const struct fm *fm, uint8_t from, uint32_t size) {
        uint64_t after = from == 0 ? fm->size0 - size : fm->size0 + size;
        uint32_t then = imbalance(after, fm->goal->low, fm->goal->high);

        return then <= fm->goal->slack || then < imbalance(fm->size0, fm->goal->low, fm->goal->high);
}

/* The best of a side that may go, or BUCKETS_NONE; others are locked on the way. */
static uint32_t candidate(struct fm *fm, uint8_t side) {
        for (;;) {
                uint32_t v = buckets_top(fm->open[side]);

                if (v == BUCKETS_NONE || may_leave(fm, side, fm->graph->size[v]))
                        return v;
                if (fm->graph->size[v] == 1) /* then none may */
                        return BUCKETS_NONE;
                fm->locked[v] = true;
                buckets_remove(fm->open[side], v);
        }
}

static uint32_t choose(struct fm *fm) {
        uint32_t from[2] = { BUCKETS_NONE, BUCKETS_NONE };
        bool too_big = fm->size0 > fm->goal->high, too_small = fm->size0 < fm->goal->low;

        for (uint8_t s = 0; s < 2; s++) {
                if (s == 0 ? too_small : too_big)
                        continue;
                if (!fm->open[s]->words && (s == 0 ? too_big : too_small))
                        offer_all(fm, s);
                from[s] = candidate(fm, s);
        }
        if (from[0] == BUCKETS_NONE || from[1] == BUCKETS_NONE)
                return from[0] != BUCKETS_NONE ? from[0] : from[1];
        if (fm->gain[from[0]] != fm->gain[from[1]])
                return from[fm->gain[from[1]] > fm->gain[from[0]]];
        return from[2 * fm->size0 < (uint64_t) fm->goal->low + fm->goal->high];
}

/* Puts v across, for this pass, with all that follows for the gains. */
static void cross(struct fm *fm, uint32_t v) {
        const struct graph *graph = fm->graph;
        uint8_t from = fm->side[v], to = !from;

        *fm->work += graph->first[v + 1] - graph->first[v];
        buckets_remove(fm->open[from], v);
        fm->locked[v] = true;
        fm->side[v] = to;
        fm->cut -= fm->gain[v];
        fm->gain[v] = -fm->gain[v];
        fm->size0 = to == 0 ? fm->size0 + graph->size[v] : fm->size0 - graph->size[v];
        for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
                uint32_t u = graph->to[e];

                fm->gain[u] += graph->weight[e] * (2 - 4 * (fm->side[u] == to));
                if (!fm->locked[u])
                        buckets_set(fm->open[fm->side[u]], u, fm->gain[u]);
        }
}

/* Takes back the moves after the first `kept`, and makes all of them free to move again; after the
 * last pass gains are not needed. */
static void end_pass(struct fm *fm, uint32_t kept, bool again) {
        const struct graph *graph = fm->graph;

        for (uint32_t i = fm->n_moved; i-- > kept;)
                if (again)
                        cross(fm, fm->moved[i]);
                else
                        fm->side[fm->moved[i]] = !fm->side[fm->moved[i]];
        memset(fm->locked, 0, graph->n);
        for (uint32_t i = 0; again && i < fm->n_moved; i++)
                buckets_set(fm->open[fm->side[fm->moved[i]]], fm->moved[i], fm->gain[fm->moved[i]]);
}

/* Makes a pass, and returns whether it gained anything. */
static bool pass(struct fm *fm, struct fm_score *score, bool last) {
        bool better = false;
        uint32_t kept = 0;

        fm->n_moved = 0;
        while (fm->n_moved - kept < fm->goal->patience) {
                uint32_t v = choose(fm);

                if (v == UINT32_MAX)
                        break;
                cross(fm, v);
                fm->moved[fm->n_moved++] = v;
                if (fm_better(score_now(fm), *score)) {
                        *score = score_now(fm);
                        kept = fm->n_moved;
                        better = true;
                }
        }
        end_pass(fm, kept, better && !last);
        return better;
}

struct fm_score fm_refine(struct pool *pool, const struct graph *graph, const struct fm_goal *goal, uint8_t *side) {
        struct pool_mark mark = pool_mark(pool);
        struct fm fm = {
                .graph = graph,
                .goal = goal,
                .side = side,
                .work = &pool->work,
                .gain = pool_alloc(pool, graph->n, sizeof(*fm.gain)),
                .locked = pool_zalloc(pool, graph->n, sizeof(*fm.locked)),
                .moved = pool_alloc(pool, graph->n, sizeof(*fm.moved)),
        };
        struct fm_score score;

        fm.open[0] = buckets_make(pool, graph->n, NULL);
        fm.open[1] = buckets_make(pool, graph->n, fm.open[0]);
        open_border(&fm);
        score = score_now(&fm);
        for (uint32_t i = 0; i < goal->passes && pass(&fm, &score, i + 1 == goal->passes); i++)
                ;
        pool_release(pool, mark);
        return score;
}
