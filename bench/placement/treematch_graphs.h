/* Instances for the benchmark of treematch: the traffic of ranks, and the cluster on which they are
 * to be placed. All made from seeds. */
#ifndef RM_BENCH_TREEMATCH_GRAPHS_H
#define RM_BENCH_TREEMATCH_GRAPHS_H

#include <stdint.h>

#include "rm/policy.h"

enum traffic_kind {
        TRAFFIC_STENCIL_2D5,
        TRAFFIC_STENCIL_3D7,
        TRAFFIC_STENCIL_3D27,
        TRAFFIC_STENCIL_2D5_PERMUTED,
        TRAFFIC_STENCIL_3D7_PERMUTED,
        TRAFFIC_STENCIL_3D27_PERMUTED,
        TRAFFIC_CG,
        TRAFFIC_BT,
        TRAFFIC_MG,
        TRAFFIC_RANDOM,
        TRAFFIC_CLUSTERS_PERMUTED,
        TRAFFIC_RMAT,
        N_TRAFFIC_KINDS,
        /* Traffic of all ranks with all others; only timed: all the same, at random, and less with
         * the distance between numbers that are permuted. */
        TRAFFIC_DENSE = N_TRAFFIC_KINDS,
        TRAFFIC_DENSE_RANDOM,
        TRAFFIC_DENSE_PERMUTED,
};
enum { ALL_TRAFFIC_KINDS = TRAFFIC_DENSE_PERMUTED + 1 };

enum cluster_kind { CLUSTER_BALANCED, CLUSTER_IRREGULAR, CLUSTER_SPARE, N_CLUSTER_KINDS };

const char *traffic_kind_name(enum traffic_kind kind);
const char *cluster_kind_name(enum cluster_kind kind);

/* Rows as in rm_job; offset, peer and bytes are malloc'ed, traffic_free() frees them. */
struct rm_traffic traffic_make(enum traffic_kind kind, uint32_t ranks, uint64_t seed);
void traffic_free(struct rm_traffic *traffic);

/* Nodes of 2 packages with 8 cores each, 8 nodes to a switch below one root. Balanced: as many as
 * `ranks` fill. Irregular: every node has 3 to 16 cores free, `ranks` in all; spare: a tenth
 * more. */
struct bench_cluster {
        uint32_t n_nodes, n_switches;
        struct rm_node *nodes;
        struct rm_switch *switches;
        uint32_t cores;
};
struct bench_cluster cluster_make(enum cluster_kind kind, uint32_t ranks, uint64_t seed);
void cluster_free(struct bench_cluster *cluster);

enum { NODE_PACKAGES = 2, PACKAGE_CORES = 8, NODE_CORES = NODE_PACKAGES * PACKAGE_CORES, SWITCH_NODES = 8 };

/* Hops between cores of such a cluster: 2 in a package, 4 in a node, 6 below a switch, else 8. */
uint32_t cluster_hops(uint32_t node_a, uint32_t core_a, uint32_t node_b, uint32_t core_b);

#endif
