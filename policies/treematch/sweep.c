#include "policies/treematch/sweep.h"

#include <stdlib.h>
#include <string.h>

enum {
        MOST_CORNERS = 8,
        /* An edge counts as a side of the grid when it has at least 1/8 of the weight of the
         * heaviest at one of its ends. */
        STRONG = 8,
};

struct sweep {
        const struct graph *graph;
        uint32_t low, high;
        uint64_t *first; /* as in the graph, of strong edges only: of each vertex, the `near` ones */
        uint32_t *near;
        uint32_t *queue;
        uint32_t *distance[MOST_CORNERS]; /* from each corner, each vertex */
        uint32_t corner[MOST_CORNERS];
        uint32_t n_corners, furthest;
        uint32_t *key, *order, *count, *place; /* of the sweep in hand; `place`: each vertex, in the order */
        uint8_t *late; /* likewise: at `low` or behind */
};

/* Once, for all the steps over them. */
static void list_strong(struct pool *pool, struct sweep *s) {
        const struct graph *graph = s->graph;
        int64_t *enough = pool_zalloc(pool, graph->n, sizeof(*enough)); /* of each vertex: to be strong at its end */
        uint64_t n = 0;

        s->first = pool_alloc(pool, graph->n + 1u, sizeof(*s->first));
        s->near = pool_alloc(pool, graph->first[graph->n], sizeof(*s->near));
        for (uint32_t v = 0; v < graph->n; v++) {
                for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++)
                        enough[v] = graph->weight[e] > enough[v] ? graph->weight[e] : enough[v];
                enough[v] /= STRONG;
        }
        for (uint32_t v = 0; v < graph->n; v++) {
                s->first[v] = n;
                for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
                        s->near[n] = graph->to[e];
                        n += graph->weight[e] >= enough[v] || graph->weight[e] >= enough[graph->to[e]];
                }
        }
        s->first[graph->n] = n;
}

/* Steps over strong edges from the first `n_starts` of the queue, which have distance 0 and all
 * others UINT32_MAX; what cannot be reached is one step further than the furthest. Returns the
 * vertex that is reached last. */
static uint32_t spread_from(const struct sweep *s, uint32_t n_starts, uint32_t *distance) {
        uint32_t head = 0, tail = n_starts, last;

        while (head < tail) {
                uint32_t v = s->queue[head++];

                for (uint64_t e = s->first[v]; e < s->first[v + 1]; e++)
                        if (distance[s->near[e]] == UINT32_MAX) {
                                distance[s->near[e]] = distance[v] + 1;
                                s->queue[tail++] = s->near[e];
                        }
        }
        last = s->queue[tail - 1];
        for (uint32_t v = 0; tail < s->graph->n && v < s->graph->n; v++)
                if (distance[v] == UINT32_MAX)
                        distance[v] = distance[last] + 1;
        return last;
}

static uint32_t spread(const struct sweep *s, uint32_t start, uint32_t *distance) {
        memset(distance, 0xff, sizeof(*distance) * s->graph->n);
        distance[start] = 0;
        s->queue[0] = start;
        return spread_from(s, 1, distance);
}

/* The vertex that is deepest inside: furthest from all that have fewer partners than others. */
static uint32_t find_middle(const struct sweep *s, uint32_t *distance) {
        const struct graph *graph = s->graph;
        uint64_t most = 0;
        uint32_t n = 0;

        for (uint32_t v = 0; v < graph->n; v++)
                if (graph->first[v + 1] - graph->first[v] > most)
                        most = graph->first[v + 1] - graph->first[v];
        for (uint32_t v = 0; v < graph->n; v++) {
                bool fewer = graph->first[v + 1] - graph->first[v] < most;

                distance[v] = fewer ? 0 : UINT32_MAX;
                if (fewer)
                        s->queue[n++] = v;
        }
        return n == 0 ? 0 : spread_from(s, n, distance);
}

static bool is_corner(const struct sweep *s, uint32_t v, const uint32_t *distance) {
        for (uint64_t e = s->first[v]; e < s->first[v + 1]; e++)
                if (distance[s->near[e]] > distance[v])
                        return false;
        return true;
}

/* Seen from inside, corners are what nothing is behind. The furthest ones from `start`, which
 * replace what there was if they are more. */
static void find_corners(struct sweep *s, uint32_t start, uint32_t *distance) {
        uint32_t corner[MOST_CORNERS], n = 0, furthest = distance[spread(s, start, distance)];

        for (uint32_t v = 0; v < s->graph->n; v++) {
                uint32_t at;

                if ((n == MOST_CORNERS && distance[corner[MOST_CORNERS - 1]] >= distance[v]) || !is_corner(s, v, distance))
                        continue;
                at = n < MOST_CORNERS ? n++ : MOST_CORNERS - 1;
                for (; at > 0 && distance[corner[at - 1]] < distance[v]; at--)
                        corner[at] = corner[at - 1];
                corner[at] = v;
        }
        if (furthest > s->furthest)
                s->furthest = furthest;
        if (n <= s->n_corners)
                return;
        memcpy(s->corner, corner, sizeof(corner));
        s->n_corners = n;
}

/* Vertices by key, those of one key as they were in the order before. */
static void sort_by_key(struct sweep *s, uint32_t n_keys) {
        uint32_t n = s->graph->n, *sorted = s->queue;

        memset(s->count, 0, sizeof(*s->count) * (n_keys + 1u));
        for (uint32_t v = 0; v < n; v++)
                s->count[s->key[v] + 1]++;
        for (uint32_t k = 0; k < n_keys; k++)
                s->count[k + 1] += s->count[k];
        for (uint32_t i = 0; i < n; i++)
                sorted[s->count[s->key[s->order[i]]]++] = s->order[i];
        memcpy(s->order, sorted, sizeof(*sorted) * n);
}

/* The weight that is cut between the first `low` of the order and the others; when it is `enough`
 * or more, it need not be all of it. */
static int64_t first_cut(const struct sweep *s, int64_t enough) {
        const struct graph *graph = s->graph;
        int64_t cut = 0;

        for (uint32_t v = 0; v < graph->n; v++)
                s->late[v] = s->place[v] >= s->low;
        for (uint32_t v = 0; v < graph->n && cut < enough; v++)
                for (uint64_t e = graph->first[v], end = s->late[v] ? e : graph->first[v + 1]; e < end; e++)
                        cut += graph->weight[e] * s->late[graph->to[e]];
        return cut;
}

/* The best of the splits of the order that are allowed, if it cuts less than `most`, else that or
 * more. */
static int64_t best_split(struct sweep *s, int64_t most, uint32_t *ret_split) {
        const struct graph *graph = s->graph;
        int64_t cut, best;

        for (uint32_t i = 0; i < graph->n; i++)
                s->place[s->order[i]] = i;
        best = cut = first_cut(s, s->low == s->high ? most : INT64_MAX);
        *ret_split = s->low;
        for (uint32_t i = s->low; i < s->high; i++) {
                uint32_t v = s->order[i];

                for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++)
                        cut += graph->weight[e] * (2 * (s->place[graph->to[e]] > i) - 1);
                if (cut < best) {
                        best = cut;
                        *ret_split = i + 1;
                }
        }
        return best;
}

static void try_all(struct sweep *s, int64_t *best, uint8_t *side) {
        uint32_t n = s->graph->n, reach = s->furthest, split = 0;

        for (uint32_t a = 0; a < s->n_corners; a++)
                for (uint32_t v = 0; v < n; v++)
                        reach = s->distance[a][v] > reach ? s->distance[a][v] : reach;
        for (uint32_t a = 0; a < s->n_corners; a++)
                for (uint32_t b = a + 1; b < s->n_corners; b++) {
                        int64_t cut;

                        for (uint32_t v = 0; v < n; v++)
                                s->key[v] = reach + s->distance[a][v] - s->distance[b][v];
                        sort_by_key(s, 2 * reach + 1);
                        cut = best_split(s, *best, &split);
                        if (cut >= *best)
                                continue;
                        *best = cut;
                        for (uint32_t i = 0; i < n; i++)
                                side[s->order[i]] = i >= split;
                }
}

bool sweep_bisect(struct pool *pool, const struct graph *graph, uint32_t low, uint32_t high, uint8_t *ret_side) {
        struct pool_mark mark = pool_mark(pool);
        uint32_t n = graph->n, bits = 31 - (uint32_t) __builtin_clz(n | 1), *from_one = pool_alloc(pool, n, sizeof(*from_one));
        struct sweep s = {
                .graph = graph,
                .low = low,
                .high = high,
                .queue = pool_alloc(pool, n, sizeof(*s.queue)),
                .key = pool_alloc(pool, n, sizeof(*s.key)),
                .order = pool_alloc(pool, n, sizeof(*s.order)),
                .count = pool_alloc(pool, 2u * n + 4u, sizeof(*s.count)),
                .place = pool_alloc(pool, n, sizeof(*s.place)),
                .late = pool_alloc(pool, n, sizeof(*s.late)),
        };
        int64_t best = INT64_MAX;

        list_strong(pool, &s);
        for (uint32_t v = 0; v < n; v++)
                s.order[v] = v;
        find_corners(&s, find_middle(&s, from_one), from_one);
        find_corners(&s, pool_random(pool, n), from_one);
        if (s.n_corners > 1 && 5 * s.furthest >= 4 * bits) {
                for (uint32_t i = 0; i < s.n_corners; i++) {
                        s.distance[i] = pool_alloc(pool, n, sizeof(**s.distance));
                        (void) spread(&s, s.corner[i], s.distance[i]);
                }
                try_all(&s, &best, ret_side);
        }
        pool_release(pool, mark);
        return best < INT64_MAX;
}
