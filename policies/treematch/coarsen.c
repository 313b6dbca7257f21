#include "policies/treematch/coarsen.h"

#include <string.h>

static uint32_t *random_order(struct pool *pool, uint32_t n) {
        uint32_t *order = pool_alloc(pool, n, sizeof(*order));

        for (uint32_t i = 0; i < n; i++) {
                uint32_t at = pool_random(pool, i + 1);

                order[i] = order[at];
                order[at] = i;
        }
        return order;
}

struct matching {
        const struct graph *graph;
        const uint8_t *side;
        uint32_t max_size;
        uint32_t *mate; /* UINT32_MAX: none yet */
};

static uint32_t best_mate(const struct matching *m, uint32_t v) {
        const struct graph *graph = m->graph;
        uint32_t best = UINT32_MAX;
        double most = 0;

        for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
                uint32_t u = graph->to[e];
                double rating;

                if (m->mate[u] != UINT32_MAX || (m->side && m->side[u] != m->side[v]) ||
                    graph->size[u] + graph->size[v] > m->max_size)
                        continue;
                rating = (double) graph->weight[e] / graph->size[u];
                if (rating > most) {
                        most = rating;
                        best = u;
                }
        }
        return best;
}

/* Vertices whose partners are all taken (of a hub, say) are paired with each other when they share
 * the heaviest one. */
static void match_orphans(struct pool *pool, const struct matching *m, const uint32_t *order) {
        const struct graph *graph = m->graph;
        uint32_t *waiting = pool_alloc(pool, graph->n, sizeof(*waiting)); /* each vertex: an orphan whose heaviest partner it is */

        memset(waiting, 0xff, sizeof(*waiting) * graph->n);
        for (uint32_t i = 0; i < graph->n; i++) {
                uint32_t v = order[i], hub = UINT32_MAX, other;
                int64_t most = 0;

                if (m->mate[v] != v)
                        continue;
                for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++)
                        if (graph->weight[e] > most) {
                                most = graph->weight[e];
                                hub = graph->to[e];
                        }
                if (hub == UINT32_MAX)
                        continue;
                other = waiting[hub];
                if (other == UINT32_MAX || (m->side && m->side[other] != m->side[v]) ||
                    graph->size[other] + graph->size[v] > m->max_size) {
                        waiting[hub] = v;
                        continue;
                }
                m->mate[v] = other;
                m->mate[other] = v;
                waiting[hub] = UINT32_MAX;
        }
}

uint32_t coarsen_match(struct pool *pool, const struct graph *graph, uint32_t max_size, const uint8_t *side, uint32_t *ret_coarse) {
        struct pool_mark mark = pool_mark(pool);
        struct matching m = { .graph = graph, .side = side, .max_size = max_size };
        uint32_t *order = random_order(pool, graph->n);
        uint32_t n = 0, alone = 0;

        m.mate = pool_alloc(pool, graph->n, sizeof(*m.mate));
        memset(m.mate, 0xff, sizeof(*m.mate) * graph->n);
        for (uint32_t i = 0; i < graph->n; i++) {
                uint32_t v = order[i], mate;

                if (m.mate[v] != UINT32_MAX)
                        continue;
                mate = best_mate(&m, v);
                alone += mate == UINT32_MAX;
                m.mate[v] = mate == UINT32_MAX ? v : mate;
                m.mate[m.mate[v]] = v;
        }
        if (alone > graph->n / 4)
                match_orphans(pool, &m, order);
        for (uint32_t v = 0; v < graph->n; v++)
                if (m.mate[v] >= v)
                        ret_coarse[v] = n++;
        for (uint32_t v = 0; v < graph->n; v++)
                if (m.mate[v] < v)
                        ret_coarse[v] = ret_coarse[m.mate[v]];
        pool_release(pool, mark);
        return n;
}
