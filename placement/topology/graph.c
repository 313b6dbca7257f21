#include "placement/topology/graph.h"

#include <stdbool.h>
#include <string.h>

void graph_make(struct pool *pool, uint32_t n, uint64_t entries, struct graph *ret_graph) {
        struct graph graph = {
                .n = n,
                .total = n,
                .first = pool_alloc(pool, n + 1u, sizeof(*graph.first)),
                .to = pool_alloc(pool, entries, sizeof(*graph.to)),
                .weight = pool_alloc(pool, entries, sizeof(*graph.weight)),
                .size = pool_alloc(pool, n, sizeof(*graph.size)),
        };

        graph.first[0] = 0;
        for (uint32_t v = 0; v < n; v++)
                graph.size[v] = 1;
        *ret_graph = graph;
}

void graph_induce(struct pool *pool, const struct graph *graph, const uint32_t *vertices, uint32_t n, uint32_t *number,
                  struct graph *ret_graph) {
        uint64_t entries = 0;
        struct graph sub;

        for (uint32_t i = 0; i < n; i++) {
                number[vertices[i]] = i;
                entries += graph->first[vertices[i] + 1] - graph->first[vertices[i]];
        }
        graph_make(pool, n, entries, &sub);
        sub.total = 0;
        entries = 0;
        for (uint32_t i = 0; i < n; i++) {
                uint32_t v = vertices[i];

                sub.size[i] = graph->size[v];
                sub.total += graph->size[v];
                for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
                        uint32_t to = number[graph->to[e]];

                        if (to == UINT32_MAX)
                                continue;
                        sub.to[entries] = to;
                        sub.weight[entries++] = graph->weight[e];
                }
                sub.first[i + 1] = entries;
        }
        for (uint32_t i = 0; i < n; i++)
                number[vertices[i]] = UINT32_MAX;
        *ret_graph = sub;
}

/* The vertices of each coarse one, in a row: a counting sort. */
static void list_members(const uint32_t *coarse, uint32_t n, uint32_t n_coarse, uint32_t *ret_first, uint32_t *ret_member) {
        memset(ret_first, 0, sizeof(*ret_first) * (n_coarse + 2u));
        for (uint32_t v = 0; v < n; v++)
                ret_first[coarse[v] + 2]++;
        for (uint32_t c = 0; c < n_coarse; c++)
                ret_first[c + 2] += ret_first[c + 1];
        for (uint32_t v = 0; v < n; v++)
                ret_member[ret_first[coarse[v] + 1]++] = v;
}

void graph_contract(struct pool *pool, const struct graph *graph, const uint32_t *coarse, uint32_t n_coarse,
                    struct graph *ret_graph) {
        uint32_t *first, *member;
        uint64_t *seen; /* each coarse vertex: where its entry in the row in hand is, if not before the row */
        struct pool_mark mark;
        struct graph small;
        uint64_t used = 0;

        pool->work += graph->first[graph->n];
        graph_make(pool, n_coarse, graph->first[graph->n], &small);
        mark = pool_mark(pool);
        first = pool_alloc(pool, n_coarse + 2u, sizeof(*first));
        member = pool_alloc(pool, graph->n, sizeof(*member));
        seen = pool_zalloc(pool, n_coarse, sizeof(*seen));
        list_members(coarse, graph->n, n_coarse, first, member);
        for (uint32_t c = 0; c < n_coarse; c++) {
                uint64_t begin = used;

                small.size[c] = 0;
                for (uint32_t i = first[c]; i < first[c + 1]; i++) {
                        uint32_t v = member[i];

                        small.size[c] += graph->size[v];
                        for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
                                uint32_t to = coarse[graph->to[e]];

                                if (to == c)
                                        continue;
                                if (seen[to] > begin)
                                        small.weight[seen[to] - 1] += graph->weight[e];
                                else {
                                        small.to[used] = to;
                                        small.weight[used] = graph->weight[e];
                                        seen[to] = ++used;
                                }
                        }
                }
                small.first[c + 1] = used;
        }
        small.total = graph->total;
        pool_release(pool, mark);
        *ret_graph = small;
}

/* ---- thinning ---- */

enum {
        SAMPLED = 16, /* one in so many */
        PLENTY = 4,  /* times what is kept, about, is heavier than what the sample says */
};

static void swap(int64_t *a, int64_t *b) {
        int64_t was = *a;

        *a = *b;
        *b = was;
}

/* The nth heaviest of n weights, counted from 1; changes their order. */
static int64_t select_heavy(int64_t *weight, uint64_t n, uint64_t nth) {
        uint64_t low = 0, high = n;

        for (;;) {
                int64_t middle = weight[low + (high - low) / 2];
                uint64_t heavier = low, at = low, lighter = high;

                while (at < lighter)
                        if (weight[at] > middle)
                                swap(&weight[at++], &weight[heavier++]);
                        else if (weight[at] < middle)
                                swap(&weight[at], &weight[--lighter]);
                        else
                                at++;
                if (nth <= heavier)
                        high = heavier;
                else if (nth <= lighter)
                        return middle;
                else
                        low = lighter;
        }
}

/* The entries that are kept of rows that are too long, and those that come to them because the
 * other end keeps them. */
struct thinning {
        const struct graph *graph;
        uint32_t most;
        uint64_t *first_kept; /* each vertex: into `kept`; nothing for short rows, which are kept as they are */
        uint64_t *kept;       /* entries, ascending in each row */
        uint64_t *first_coming; /* each vertex: into `coming`; nothing for short rows */
        struct coming {
                uint32_t from; /* ascending in each row */
                int64_t weight;
        } *coming;
        int64_t *weight;     /* scratch, as many as the longest row has */
        uint32_t *candidate; /* likewise: of one row, ascending, what may be kept */
        bool *heavy;         /* likewise: each candidate */
};

static uint64_t degree_of(const struct graph *graph, uint32_t v) {
        return graph->first[v + 1] - graph->first[v];
}

static bool is_long(const struct thinning *t, uint32_t v) {
        return degree_of(t->graph, v) > t->most;
}

static bool all_equal(const int64_t *weight, uint64_t n) {
        for (uint64_t i = 1; i < n; i++)
                if (weight[i] != weight[0])
                        return false;
        return true;
}

/* The entries from number `at` on, and at the end from the first on, as many as are kept. */
static uint64_t list_next(const struct thinning *t, uint64_t degree, uint64_t at) {
        uint64_t wrapped = at + t->most > degree ? at + t->most - degree : 0, n = 0;

        for (uint64_t i = 0; i < wrapped; i++)
                t->candidate[n++] = (uint32_t) i;
        for (uint64_t i = at; n < t->most; i++)
                t->candidate[n++] = (uint32_t) i;
        return n;
}

/* Lists some edges that are heavier than all others, at least as many as are kept: what is lighter
 * than a few of a sample need not be looked at twice. */
static uint64_t list_heavy(const struct thinning *t, const int64_t *weight, uint64_t degree) {
        uint64_t n_sample = 0, nth = 1 + (uint64_t) t->most * PLENTY / SAMPLED, n = 0;
        int64_t least;

        for (uint64_t i = 0; i < degree; i += SAMPLED)
                t->weight[n_sample++] = weight[i];
        least = select_heavy(t->weight, n_sample, nth < n_sample ? nth : n_sample);
        for (uint64_t i = 0; i < degree; i++) {
                t->candidate[n] = (uint32_t) i;
                n += weight[i] > least;
        }
        for (uint64_t i = 0; n < t->most && i < degree; i++)
                t->candidate[i] = (uint32_t) i;
        return n < t->most ? degree : n;
}

/* The heaviest entries of row v; of equal ones, those that are nearest behind v. Returns where the
 * next row's begin. */
static uint64_t keep_heaviest(struct thinning *t, uint32_t v, uint64_t used) {
        const struct graph *graph = t->graph;
        const int64_t *weight = graph->weight + graph->first[v];
        uint64_t degree = degree_of(graph, v), equal = t->most, n, i = 0;
        uint64_t at = graph_first_from(graph->to, graph->first[v], graph->first[v + 1], v) - graph->first[v];
        int64_t least;

        n = all_equal(weight, degree) ? list_next(t, degree, at) : list_heavy(t, weight, degree);
        for (uint64_t k = 0; k < n; k++)
                t->weight[k] = weight[t->candidate[k]];
        least = select_heavy(t->weight, n, t->most);
        for (uint64_t k = 0; k < n; k++) {
                t->heavy[k] = weight[t->candidate[k]] > least;
                equal -= t->heavy[k];
        }
        while (i < n && t->candidate[i] < at)
                i++;
        for (; equal > 0; i++) {
                if (i == n)
                        i = 0;
                if (weight[t->candidate[i]] == least) {
                        t->heavy[i] = true;
                        equal--;
                }
        }
        for (uint64_t k = 0; k < n; k++)
                if (t->heavy[k])
                        t->kept[used++] = graph->first[v] + t->candidate[k];
        return used;
}

static void keep_all(struct pool *pool, struct thinning *t) {
        uint32_t n = t->graph->n, n_long = 0;
        uint64_t longest = 0, used = 0;

        for (uint32_t v = 0; v < n; v++) {
                n_long += is_long(t, v);
                longest = degree_of(t->graph, v) > longest ? degree_of(t->graph, v) : longest;
        }
        t->first_kept = pool_alloc(pool, n + 1u, sizeof(*t->first_kept));
        t->kept = pool_alloc(pool, (size_t) n_long * t->most, sizeof(*t->kept));
        t->weight = pool_alloc(pool, longest, sizeof(*t->weight));
        t->candidate = pool_alloc(pool, longest, sizeof(*t->candidate));
        t->heavy = pool_alloc(pool, longest, sizeof(*t->heavy));
        for (uint32_t v = 0; v < n; v++) {
                t->first_kept[v] = used;
                if (is_long(t, v))
                        used = keep_heaviest(t, v, used);
        }
        t->first_kept[n] = used;
}

/* Calls `take` for all entries that row v keeps. */
static void for_kept(struct thinning *t, uint32_t v, void (*take)(struct thinning *t, uint32_t v, uint64_t entry)) {
        if (is_long(t, v))
                for (uint64_t i = t->first_kept[v]; i < t->first_kept[v + 1]; i++)
                        take(t, v, t->kept[i]);
        else
                for (uint64_t e = t->graph->first[v]; e < t->graph->first[v + 1]; e++)
                        take(t, v, e);
}

static void count_coming(struct thinning *t, uint32_t v, uint64_t entry) {
        (void) v;
        if (is_long(t, t->graph->to[entry]))
                t->first_coming[t->graph->to[entry] + 2]++;
}

static void take_coming(struct thinning *t, uint32_t v, uint64_t entry) {
        uint32_t to = t->graph->to[entry];

        if (is_long(t, to))
                t->coming[t->first_coming[to + 1]++] = (struct coming) { v, t->graph->weight[entry] };
}

static void list_coming(struct pool *pool, struct thinning *t) {
        uint32_t n = t->graph->n;

        t->first_coming = pool_zalloc(pool, n + 2u, sizeof(*t->first_coming));
        for (uint32_t v = 0; v < n; v++)
                for_kept(t, v, count_coming);
        for (uint32_t v = 0; v < n; v++)
                t->first_coming[v + 2] += t->first_coming[v + 1];
        t->coming = pool_alloc(pool, t->first_coming[n + 1], sizeof(*t->coming));
        for (uint32_t v = 0; v < n; v++)
                for_kept(t, v, take_coming);
}

static void add_entry(struct graph *graph, uint64_t *used, uint32_t to, int64_t weight) {
        graph->to[*used] = to;
        graph->weight[(*used)++] = weight;
}

/* Merges the entries that a long row keeps with those that come to it, each once, ascending. */
static void merge_row(const struct thinning *t, uint32_t v, struct graph *thin, uint64_t *used) {
        uint64_t k = t->first_kept[v], c = t->first_coming[v];

        while (k < t->first_kept[v + 1] || c < t->first_coming[v + 1]) {
                uint32_t kept = k < t->first_kept[v + 1] ? t->graph->to[t->kept[k]] : UINT32_MAX;
                uint32_t coming = c < t->first_coming[v + 1] ? t->coming[c].from : UINT32_MAX;

                if (coming < kept)
                        add_entry(thin, used, coming, t->coming[c].weight);
                else
                        add_entry(thin, used, kept, t->graph->weight[t->kept[k]]);
                k += kept <= coming;
                c += coming <= kept;
        }
}

void graph_thin(struct pool *pool, const struct graph *graph, uint32_t most, struct graph *ret_graph) {
        struct thinning t = { .graph = graph, .most = most };
        uint64_t used = 0, entries = 0;
        bool any = false;
        struct graph thin;

        for (uint32_t v = 0; v < graph->n; v++) {
                any |= is_long(&t, v);
                entries += is_long(&t, v) ? 0 : degree_of(graph, v);
        }
        if (!any) {
                *ret_graph = *graph;
                return;
        }
        keep_all(pool, &t);
        list_coming(pool, &t);
        graph_make(pool, graph->n, entries + t.first_kept[graph->n] + t.first_coming[graph->n], &thin);
        for (uint32_t v = 0; v < graph->n; v++) {
                if (is_long(&t, v))
                        merge_row(&t, v, &thin, &used);
                else
                        for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++)
                                add_entry(&thin, &used, graph->to[e], graph->weight[e]);
                thin.first[v + 1] = used;
                thin.size[v] = graph->size[v];
        }
        thin.total = graph->total;
        *ret_graph = thin;
}
