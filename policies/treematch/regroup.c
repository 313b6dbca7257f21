#include "policies/treematch/regroup.h"

#include <string.h>

#include "policies/treematch/pair.h"

/* One who may be sent. */
struct volunteer {
        uint32_t vertex;
        bool sent;
        int64_t gain[2]; /* by going to the one or the other leaf */
};

struct regroup {
        struct pool *pool;
        struct layout *layout;
        struct pairing *pairing;
        uint32_t leaf[2], n_leaves; /* in hand; the second may be missing */
        uint32_t *home, n_homes;    /* of those who were sent there */
        uint32_t *owed;             /* each leaf: how many it is to send; 0 between */
        uint32_t *before_vertex, *before_leaf, n_before; /* who was where */
        struct volunteer *list;
        uint32_t n_list;
        uint32_t *where;            /* each vertex: 1 + its index in the list, 0: not there */
};

static int64_t gain_of(struct regroup *r, uint32_t v, uint32_t to) {
        const struct layout *layout = r->layout;
        const struct graph *graph = layout->graph;
        uint32_t here = layout->leaf[v];
        int64_t gain = 0;

        r->pool->work += graph->first[v + 1] - graph->first[v];
        for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
                uint32_t there = layout->leaf[graph->to[e]];

                gain += graph->weight[e] *
                        ((int64_t) tree_distance(layout->tree, here, there) - (int64_t) tree_distance(layout->tree, to, there));
        }
        return gain;
}

static bool is_sent(const struct layout *layout, uint32_t v) {
        return layout->ties->home[v] != TREE_NONE && layout->ties->home[v] != layout->leaf[v];
}

static void remember(struct regroup *r, uint32_t leaf) {
        for (uint32_t i = 0; i < r->layout->used[leaf]; i++) {
                r->before_vertex[r->n_before] = layout_members(r->layout, leaf)[i];
                r->before_leaf[r->n_before++] = leaf;
        }
}

/* A leaf to go with leaf[0]: one that somebody from the same home was sent to. */
static void choose_second(struct regroup *r) {
        const struct layout *layout = r->layout;
        const struct graph *graph = layout->graph;
        uint64_t degree, start;
        uint32_t v;

        r->n_leaves = 1;
        v = layout_members(layout, r->leaf[0])[pool_random(r->pool, layout->used[r->leaf[0]])];
        degree = graph->first[v + 1] - graph->first[v];
        if (degree == 0)
                return;
        start = pool_random(r->pool, (uint32_t) degree);
        for (uint64_t i = 0; i < degree && i < 16; i++) {
                uint32_t other = graph->to[graph->first[v] + (start + i) % degree];

                for (uint64_t e = graph->first[other]; e < graph->first[other + 1] && e < graph->first[other] + 16; e++) {
                        uint32_t u = graph->to[e];

                        if (!is_sent(layout, u) || layout->leaf[u] == r->leaf[0] || layout_fixed(layout, u))
                                continue;
                        r->leaf[1] = layout->leaf[u];
                        r->n_leaves = 2;
                        return;
                }
        }
}

/* All that were sent to the leaves go home. What that gains. */
static int64_t take_back(struct regroup *r) {
        struct layout *layout = r->layout;
        int64_t gained = 0;

        r->n_homes = 0;
        for (uint32_t k = 0; k < r->n_leaves; k++)
                for (uint32_t i = layout->used[r->leaf[k]]; i-- > 0;) {
                        uint32_t v = layout_members(layout, r->leaf[k])[i], home = layout->ties->home[v];

                        if (!is_sent(layout, v) || layout_fixed(layout, v))
                                continue;
                        if (r->owed[home]++ == 0) {
                                r->home[r->n_homes++] = home;
                                remember(r, home);
                        }
                        gained += gain_of(r, v, home);
                        layout_move(layout, v, home);
                }
        return gained;
}

static void list_volunteers(struct regroup *r) {
        const struct layout *layout = r->layout;

        r->n_list = 0;
        for (uint32_t h = 0; h < r->n_homes; h++)
                for (uint32_t i = 0; i < layout->used[r->home[h]]; i++) {
                        uint32_t v = layout_members(layout, r->home[h])[i];

                        if (layout_fixed(layout, v) || layout->ties->home[v] != r->home[h])
                                continue;
                        r->list[r->n_list] = (struct volunteer) { .vertex = v };
                        for (uint32_t k = 0; k < r->n_leaves; k++)
                                r->list[r->n_list].gain[k] = gain_of(r, v, r->leaf[k]);
                        r->where[v] = ++r->n_list;
                }
}

static int64_t send(struct regroup *r, uint32_t i, uint32_t k) {
        struct layout *layout = r->layout;
        const struct graph *graph = layout->graph;
        uint32_t v = r->list[i].vertex;

        r->list[i].sent = true;
        r->owed[layout->leaf[v]]--;
        layout_move(layout, v, r->leaf[k]);
        for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
                uint32_t at = r->where[graph->to[e]];

                for (uint32_t other = 0; at > 0 && !r->list[at - 1].sent && other < r->n_leaves; other++)
                        r->list[at - 1].gain[other] = gain_of(r, graph->to[e], r->leaf[other]);
        }
        return r->list[i].gain[k];
}

static bool may_send(const struct regroup *r, uint32_t i, uint32_t k) {
        const struct layout *layout = r->layout;

        return !r->list[i].sent && r->owed[layout->leaf[r->list[i].vertex]] > 0 &&
               layout->used[r->leaf[k]] < layout->tree->room[layout->tree->leaf[r->leaf[k]]];
}

/* As many as are owed, the best first, but that each leaf begins with one that is drawn by lot. False when not all find a place. */
static bool send_owed(struct regroup *r, uint32_t n, int64_t *gained) {
        for (uint32_t k = 0; k < r->n_leaves && n > 0; k++) {
                uint32_t i = pool_random(r->pool, r->n_list);

                if (!may_send(r, i, k))
                        continue;
                *gained += send(r, i, k);
                n--;
        }
        while (n > 0) {
                uint32_t best = UINT32_MAX, to = 0;

                for (uint32_t i = 0; i < r->n_list; i++)
                        for (uint32_t k = 0; k < r->n_leaves; k++)
                                if (may_send(r, i, k) && (best == UINT32_MAX || r->list[i].gain[k] > r->list[best].gain[to])) {
                                        best = i;
                                        to = k;
                                }
                if (best == UINT32_MAX)
                        return false;
                *gained += send(r, best, to);
                n--;
        }
        return true;
}

/* Everybody to where they were: by way of their homes where they have any, and others when there is room, one in and one out. */
static void undo(struct regroup *r) {
        struct layout *layout = r->layout;
        bool again = true;

        for (uint32_t i = 0; i < r->n_before; i++)
                if (layout->leaf[r->before_vertex[i]] != r->before_leaf[i] && layout->ties->home[r->before_vertex[i]] != TREE_NONE)
                        layout_move(layout, r->before_vertex[i], layout->ties->home[r->before_vertex[i]]);
        while (again) {
                again = false;
                for (uint32_t i = 0; i < r->n_before; i++) {
                        uint32_t to = r->before_leaf[i];

                        if (layout->leaf[r->before_vertex[i]] == to)
                                continue;
                        if (layout->used[to] <= layout->tree->room[layout->tree->leaf[to]])
                                layout_move(layout, r->before_vertex[i], to);
                        else
                                again = true;
                }
        }
}

static int64_t exchange(struct regroup *r) {
        int64_t gained = 0;

        for (uint32_t k = 0; k < r->n_leaves; k++)
                for (uint32_t h = 0; h < r->n_homes; h++)
                        if (r->home[h] != r->leaf[k])
                                gained += pair_exchange(r->pairing, r->leaf[k], r->home[h]);
        if (r->n_leaves == 2)
                gained += pair_exchange(r->pairing, r->leaf[0], r->leaf[1]);
        return gained;
}

/* What was gained; when that is nothing, everything is as it was. */
static int64_t regroup(struct regroup *r) {
        int64_t gained;
        uint32_t n = 0;
        bool all;

        choose_second(r);
        r->n_before = 0;
        for (uint32_t k = 0; k < r->n_leaves; k++)
                remember(r, r->leaf[k]);
        gained = take_back(r);
        for (uint32_t h = 0; h < r->n_homes; h++)
                n += r->owed[r->home[h]];
        list_volunteers(r);
        all = r->n_list > 0 && send_owed(r, n, &gained);
        for (uint32_t h = 0; h < r->n_homes; h++)
                r->owed[r->home[h]] = 0;
        while (r->n_list > 0)
                r->where[r->list[--r->n_list].vertex] = 0;
        if (all) {
                gained += exchange(r);
                if (gained > 0)
                        return gained;
        }
        undo(r);
        return 0;
}

int64_t regroup_refine(struct pool *pool, struct layout *layout, uint32_t tries, uint64_t until) {
        struct pool_mark mark = pool_mark(pool);
        uint32_t n = layout->graph->n, n_leaves = layout->tree->n_leaves, n_loose = 0;
        uint32_t *loose = pool_alloc(pool, n_leaves, sizeof(*loose));
        struct regroup r = {
                .pool = pool,
                .layout = layout,
                .pairing = pair_begin(pool, layout),
                .home = pool_alloc(pool, n_leaves, sizeof(*r.home)),
                .owed = pool_zalloc(pool, n_leaves, sizeof(*r.owed)),
                .before_vertex = pool_alloc(pool, 2u * n, sizeof(*r.before_vertex)),
                .before_leaf = pool_alloc(pool, 2u * n, sizeof(*r.before_leaf)),
                .list = pool_alloc(pool, n, sizeof(*r.list)),
                .where = pool_zalloc(pool, n, sizeof(*r.where)),
        };
        int64_t gained = 0;

        for (uint32_t x = 0; x < n_leaves; x++)
                if (layout->used[x] > 0 && layout_loose(layout, x))
                        loose[n_loose++] = x;
        for (uint32_t i = 0; i < tries && n_loose > 0 && pool->work < until; i++) {
                r.leaf[0] = loose[pool_random(pool, n_loose)];
                if (layout->used[r.leaf[0]] > 0)
                        gained += regroup(&r);
        }
        pool_release(pool, mark);
        return gained;
}
