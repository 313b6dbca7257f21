#include "policies/treematch/graph.h"

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

/* Marks the entries of row v that are among its heaviest; of equal ones, those that are nearest behind v. */
static void keep_heaviest(const struct graph *graph, uint32_t v, uint32_t most, int64_t *scratch, bool *keep) {
        uint64_t begin = graph->first[v], degree = graph->first[v + 1] - begin, equal = most, at = 0;
        int64_t least;

        if (degree <= most) {
                memset(keep + begin, true, degree);
                return;
        }
        memcpy(scratch, graph->weight + begin, sizeof(*scratch) * degree);
        least = select_heavy(scratch, degree, most);
        for (uint64_t i = 0; i < degree; i++) {
                keep[begin + i] = graph->weight[begin + i] > least;
                equal -= keep[begin + i];
                at += graph->to[begin + i] < v;
        }
        for (uint64_t i = 0; i < degree && equal > 0; i++) {
                uint64_t e = begin + (at + i) % degree;

                if (graph->weight[e] == least) {
                        keep[e] = true;
                        equal--;
                }
        }
}

/* The entry of row v that leads to u. Rows ascend. */
static uint64_t find_entry(const struct graph *graph, uint32_t v, uint32_t u) {
        uint64_t low = graph->first[v], high = graph->first[v + 1] - 1;

        while (low < high) {
                uint64_t middle = (low + high) / 2;

                if (graph->to[middle] < u)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

void graph_thin(struct pool *pool, const struct graph *graph, uint32_t most, struct graph *ret_graph) {
        uint64_t entries = graph->first[graph->n], used = 0, longest = 0;
        bool *keep;
        int64_t *scratch;
        struct graph thin;

        for (uint32_t v = 0; v < graph->n; v++)
                if (graph->first[v + 1] - graph->first[v] > longest)
                        longest = graph->first[v + 1] - graph->first[v];
        if (longest <= most) {
                *ret_graph = *graph;
                return;
        }
        keep = pool_zalloc(pool, entries, sizeof(*keep));
        scratch = pool_alloc(pool, longest, sizeof(*scratch));
        for (uint32_t v = 0; v < graph->n; v++)
                keep_heaviest(graph, v, most, scratch, keep);
        for (uint32_t v = 0; v < graph->n; v++)
                for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++)
                        if (keep[e] && graph->first[graph->to[e] + 1] - graph->first[graph->to[e]] > most)
                                keep[find_entry(graph, graph->to[e], v)] = true;
        for (uint64_t e = 0; e < entries; e++)
                used += keep[e];
        graph_make(pool, graph->n, used, &thin);
        used = 0;
        for (uint32_t v = 0; v < graph->n; v++) {
                for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++)
                        if (keep[e]) {
                                thin.to[used] = graph->to[e];
                                thin.weight[used++] = graph->weight[e];
                        }
                thin.first[v + 1] = used;
                thin.size[v] = graph->size[v];
        }
        thin.total = graph->total;
        *ret_graph = thin;
}
