#include "bench/placement/treematch_scotch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <scotch/scotch.h>

#include "common/util.h"

static const struct {
        const char *name;
        SCOTCH_Num flags;
} strategies[N_SCOTCH_STRATEGIES] = {
        { "default", SCOTCH_STRATDEFAULT },
        { "quality", SCOTCH_STRATQUALITY },
        { "balance", SCOTCH_STRATBALANCE },
};

const char *scotch_strategy_name(uint32_t strategy) {
        return strategies[strategy].name;
}

struct rows {
        SCOTCH_Num *first, *to, *load;
};

static struct rows make_rows(const struct rm_traffic *traffic, uint32_t ranks) {
        uint64_t entries = traffic->offset[ranks];
        struct rows rows = { .first = xcalloc(ranks + 1u, sizeof(SCOTCH_Num)),
                             .to = xcalloc(entries + 1, sizeof(SCOTCH_Num)),
                             .load = xcalloc(entries + 1, sizeof(SCOTCH_Num)) };

        for (uint32_t r = 0; r <= ranks; r++)
                rows.first[r] = (SCOTCH_Num) traffic->offset[r];
        for (uint64_t e = 0; e < entries; e++) {
                rows.to[e] = (SCOTCH_Num) traffic->peer[e];
                rows.load[e] = (SCOTCH_Num) traffic->bytes[e];
        }
        return rows;
}

static void free_rows(struct rows *rows) {
        free(rows->first);
        free(rows->to);
        free(rows->load);
}

/* The whole tree, and of its leaves the cores that are free. */
static int make_arch(const struct bench_cluster *cluster, SCOTCH_Arch *whole, SCOTCH_Arch *part, uint32_t *ret_free) {
        SCOTCH_Num sizes[] = { (SCOTCH_Num) (cluster->n_switches - 1), SWITCH_NODES, NODE_PACKAGES, PACKAGE_CORES };
        SCOTCH_Num links[] = { 1, 1, 1, 1 };
        cleanup_free SCOTCH_Num *cores = xcalloc(cluster->cores, sizeof(*cores));
        uint32_t n = 0;

        for (uint32_t s = 0; s < cluster->n_nodes; s++)
                for (uint32_t c = 0; c < cluster->nodes[s].cores; c++) {
                        ret_free[n] = s * NODE_CORES + c;
                        cores[n] = (SCOTCH_Num) ret_free[n];
                        n++;
                }
        if (SCOTCH_archInit(whole) != 0 || SCOTCH_archInit(part) != 0 || SCOTCH_archTleaf(whole, 4, sizes, links) != 0)
                return -1;
        return SCOTCH_archSub(part, whole, (SCOTCH_Num) n, cores);
}

static uint64_t cost_at(const struct rm_traffic *traffic, const uint32_t *core, uint32_t rank, uint32_t at) {
        uint64_t cost = 0;

        for (uint64_t e = traffic->offset[rank]; e < traffic->offset[rank + 1]; e++) {
                uint32_t other = core[traffic->peer[e]];

                cost += traffic->bytes[e] * cluster_hops(at / NODE_CORES, at % NODE_CORES, other / NODE_CORES, other % NODE_CORES);
        }
        return cost;
}

/* Leaves one rank on a core. */
static uint32_t repair(const struct bench_cluster *cluster, const struct rm_traffic *traffic, uint32_t ranks, const uint32_t *all,
                       uint32_t *core) {
        cleanup_free uint8_t *taken = xcalloc((size_t) cluster->n_nodes * NODE_CORES, 1);
        cleanup_free uint32_t *homeless = xcalloc(ranks, sizeof(*homeless));
        uint32_t n = 0;

        for (uint32_t r = 0; r < ranks; r++)
                if (taken[core[r]]++)
                        homeless[n++] = r;
        for (uint32_t i = 0; i < n; i++) {
                uint64_t least = UINT64_MAX;
                uint32_t best = 0;

                for (uint32_t c = 0; c < cluster->cores; c++) {
                        uint64_t cost;

                        if (taken[all[c]])
                                continue;
                        cost = cost_at(traffic, core, homeless[i], all[c]);
                        if (cost < least) {
                                least = cost;
                                best = all[c];
                        }
                }
                core[homeless[i]] = best;
                taken[best] = 1;
        }
        return n;
}

int scotch_map(const struct bench_cluster *cluster, const struct rm_traffic *traffic, uint32_t ranks, uint32_t strategy,
               uint32_t *ret_core) {
        struct rows rows = make_rows(traffic, ranks);
        cleanup_free uint32_t *all = xcalloc(cluster->cores, sizeof(*all));
        cleanup_free SCOTCH_Num *part = xcalloc(ranks, sizeof(*part));
        SCOTCH_Graph graph;
        SCOTCH_Strat strat;
        SCOTCH_Arch whole, free_cores;
        int r;

        SCOTCH_randomReset();
        r = make_arch(cluster, &whole, &free_cores, all);
        if (r == 0)
                r = SCOTCH_graphInit(&graph);
        if (r == 0)
                r = SCOTCH_graphBuild(&graph, 0, (SCOTCH_Num) ranks, rows.first, NULL, NULL, NULL, rows.first[ranks], rows.to,
                                      rows.load);
        if (r == 0)
                r = SCOTCH_stratInit(&strat);
        if (r == 0)
                r = SCOTCH_stratGraphMapBuild(&strat, strategies[strategy].flags, (SCOTCH_Num) cluster->cores, 0.01);
        if (r == 0)
                r = SCOTCH_graphMap(&graph, &free_cores, &strat, part);
        if (r == 0) {
                for (uint32_t i = 0; i < ranks; i++)
                        ret_core[i] = all[part[i]];
                (void) repair(cluster, traffic, ranks, all, ret_core);
                SCOTCH_stratExit(&strat);
                SCOTCH_graphExit(&graph);
                SCOTCH_archExit(&free_cores);
                SCOTCH_archExit(&whole);
        }
        free_rows(&rows);
        return r;
}
