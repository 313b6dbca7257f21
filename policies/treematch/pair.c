#include "policies/treematch/pair.h"

#include <string.h>

enum { PATIENCE = 16 }; /* moves without a gain after which a pair is left */

struct candidate {
        uint32_t vertex;
        uint32_t end;
        int64_t gain; /* of being on the other leaf */
};

/* Two leaves, end 0 and end 1. */
struct pair {
        uint32_t leaf[2], used[2], space[2];
        uint32_t below_meet[2]; /* the child of their lowest common ancestor that each is below */
        int32_t distance;
        int32_t base; /* how much further from end 0 than from end 1 everything is that is below neither */
};

struct pairing {
        struct layout *layout;
        int32_t *nearer; /* each leaf: how much further it is from end 0 than from end 1, without the base; 0 between pairs */
        struct candidate *list; /* vertices that may still move */
        uint32_t n_list;
        uint32_t *where; /* each vertex: 1 + its index in the list, 0: not there */
        struct candidate *moved;
        uint32_t n_moved;
        uint64_t *work;
        uint32_t *changed; /* each leaf: the round in which it changed last */
};

static struct pair make_pair(const struct layout *layout, uint32_t leaf_a, uint32_t leaf_b) {
        const struct tree *tree = layout->tree;
        uint32_t at[2] = { tree->leaf[leaf_a], tree->leaf[leaf_b] };
        struct pair pair = { .leaf = { leaf_a, leaf_b } };

        pair.base = (int32_t) tree->depth[at[0]] - (int32_t) tree->depth[at[1]];
        pair.distance = (int32_t) tree_distance(tree, leaf_a, leaf_b);
        for (uint32_t end = 0; end < 2; end++) {
                pair.used[end] = layout->used[pair.leaf[end]];
                pair.space[end] = tree->space[at[end]];
        }
        while (at[0] != at[1]) {
                uint32_t lower = at[0] > at[1] ? 0 : 1;

                pair.below_meet[lower] = at[lower];
                at[lower] = tree->parent[at[lower]];
        }
        return pair;
}

static void mark_leaves(struct pairing *p, const struct pair *pair, bool on) {
        const struct tree *tree = p->layout->tree;

        for (uint32_t end = 0; end < 2; end++)
                for (uint32_t x = tree->leaf_first[pair->below_meet[end]]; x < tree->leaf_end[pair->below_meet[end]]; x++)
                        p->nearer[x] = on ? (int32_t) tree_distance(tree, pair->leaf[0], x) -
                                                       (int32_t) tree_distance(tree, pair->leaf[1], x) - pair->base
                                          : 0;
}

static int64_t gain_of(const struct pairing *p, const struct pair *pair, uint32_t v, uint32_t end) {
        const struct graph *graph = p->layout->graph;
        const uint32_t *leaf = p->layout->leaf, *to = graph->to;
        const int64_t *weight = graph->weight;
        const int32_t *nearer = p->nearer;
        int64_t gain = 0, all = 0;

        *p->work += graph->first[v + 1] - graph->first[v];
        for (uint64_t e = graph->first[v], row_end = graph->first[v + 1]; e < row_end; e++) {
                gain += weight[e] * nearer[leaf[to[e]]];
                all += weight[e];
        }
        gain += all * pair->base;
        return (end == 0 ? gain : -gain) + layout_worth(p->layout, v, pair->leaf[!end]) -
               layout_worth(p->layout, v, pair->leaf[end]);
}

static void list_candidates(struct pairing *p, const struct pair *pair) {
        mark_leaves(p, pair, true);
        p->n_list = 0;
        p->n_moved = 0;
        for (uint32_t end = 0; end < 2; end++)
                for (uint32_t i = 0; i < pair->used[end]; i++) {
                        uint32_t v = layout_members(p->layout, pair->leaf[end])[i];

                        if (layout_fixed(p->layout, v))
                                continue;
                        p->list[p->n_list++] = (struct candidate) { v, end, gain_of(p, pair, v, end) };
                        p->where[v] = p->n_list;
                }
        mark_leaves(p, pair, false);
}

static void drop_from_list(struct pairing *p, uint32_t i) {
        p->where[p->list[i].vertex] = 0;
        p->list[i] = p->list[--p->n_list];
        if (i < p->n_list)
                p->where[p->list[i].vertex] = i + 1;
}

/* The best that may move, or UINT32_MAX: an end that holds too many must give, one that is over
 * full may not take more. */
static uint32_t choose(const struct pairing *p, const struct pair *pair) {
        uint32_t best = UINT32_MAX;
        bool over[2] = { pair->used[0] > pair->space[0], pair->used[1] > pair->space[1] };

        for (uint32_t i = 0; i < p->n_list; i++) {
                const struct candidate *c = &p->list[i];

                if (!over[!c->end] && (best == UINT32_MAX || c->gain > p->list[best].gain))
                        best = i;
        }
        return best;
}

static void move_candidate(struct pairing *p, struct pair *pair, uint32_t i) {
        const struct graph *graph = p->layout->graph;
        struct candidate moved = p->list[i];

        drop_from_list(p, i);
        p->moved[p->n_moved++] = moved;
        pair->used[moved.end]--;
        pair->used[!moved.end]++;
        for (uint64_t e = graph->first[moved.vertex]; e < graph->first[moved.vertex + 1]; e++) {
                uint32_t at = p->where[graph->to[e]];

                if (at > 0)
                        p->list[at - 1].gain += (p->list[at - 1].end == moved.end ? 2 : -2) * graph->weight[e] * pair->distance;
        }
}

static int64_t pair_exchange(struct pairing *p, uint32_t leaf_a, uint32_t leaf_b) {
        struct pair pair = make_pair(p->layout, leaf_a, leaf_b);
        int64_t gained = 0, best = 0;
        uint32_t kept = 0;

        list_candidates(p, &pair);
        while (p->n_moved - kept < PATIENCE) {
                uint32_t i = choose(p, &pair);

                if (i == UINT32_MAX)
                        break;
                gained += p->list[i].gain;
                move_candidate(p, &pair, i);
                if (gained > best && pair.used[0] <= pair.space[0] && pair.used[1] <= pair.space[1]) {
                        best = gained;
                        kept = p->n_moved;
                }
        }
        while (p->n_list > 0)
                drop_from_list(p, p->n_list - 1);
        for (uint32_t i = 0; i < kept; i++)
                layout_move(p->layout, p->moved[i].vertex, pair.leaf[!p->moved[i].end]);
        return best;
}

/* The leaves above `leaf` that its vertices talk to, into `ret_other`. `seen`: each leaf, never
 * `leaf` + 1 before. */
static uint32_t list_partners(const struct layout *layout, uint32_t leaf, uint32_t *seen, uint32_t *ret_other) {
        const struct graph *graph = layout->graph;
        uint32_t n = 0;

        for (uint32_t i = 0; i < layout->used[leaf]; i++) {
                uint32_t v = layout_members(layout, leaf)[i];

                for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
                        uint32_t other = layout->leaf[graph->to[e]];

                        if (other > leaf && seen[other] != leaf + 1) {
                                seen[other] = leaf + 1;
                                ret_other[n++] = other;
                        }
                }
        }
        return n;
}

static int64_t refine_round(struct pairing *p, uint32_t round, uint64_t until, uint32_t *seen, uint32_t *other) {
        uint32_t n_leaves = p->layout->tree->n_leaves;
        int64_t gained = 0;

        memset(seen, 0, sizeof(*seen) * n_leaves);
        for (uint32_t a = 0; a < n_leaves && *p->work < until; a++) {
                uint32_t n = list_partners(p->layout, a, seen, other);
                bool loose = layout_loose(p->layout, a);

                for (uint32_t i = 0; i < n; i++) {
                        int64_t gain;

                        if ((p->changed[a] + 1 < round && p->changed[other[i]] + 1 < round) ||
                            (!loose && !layout_loose(p->layout, other[i])))
                                continue;
                        gain = pair_exchange(p, a, other[i]);
                        if (gain > 0)
                                p->changed[a] = p->changed[other[i]] = round;
                        gained += gain;
                }
        }
        return gained;
}

static struct pairing *pair_begin(struct pool *pool, struct layout *layout) {
        uint32_t n = layout->graph->n, n_leaves = layout->tree->n_leaves;
        struct pairing *p = pool_alloc(pool, 1, sizeof(*p));

        *p = (struct pairing) {
                .layout = layout,
                .work = &pool->work,
                .nearer = pool_zalloc(pool, n_leaves, sizeof(*p->nearer)),
                .list = pool_alloc(pool, n, sizeof(*p->list)),
                .where = pool_zalloc(pool, n, sizeof(*p->where)),
                .moved = pool_alloc(pool, n, sizeof(*p->moved)),
                .changed = pool_zalloc(pool, n_leaves, sizeof(*p->changed)),
        };
        return p;
}

int64_t pair_refine(struct pool *pool, struct layout *layout, uint32_t rounds, uint64_t until) {
        struct pool_mark mark = pool_mark(pool);
        uint32_t n_leaves = layout->tree->n_leaves;
        uint32_t *seen = pool_alloc(pool, n_leaves, sizeof(*seen)), *other = pool_alloc(pool, n_leaves, sizeof(*other));
        struct pairing *p = pair_begin(pool, layout);
        int64_t gained = 0;

        for (uint32_t round = 1; round <= rounds; round++) {
                int64_t gain = refine_round(p, round, until, seen, other);

                gained += gain;
                if (gain == 0 || pool->work >= until)
                        break;
        }
        pool_release(pool, mark);
        return gained;
}
