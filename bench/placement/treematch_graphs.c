#include "bench/placement/treematch_graphs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* ---- numbers ---- */

static uint64_t next_random(uint64_t *state) {
        uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
}

static uint32_t roll(uint64_t *state, uint32_t n) {
        return (uint32_t) ((next_random(state) >> 32) * n >> 32);
}

static uint32_t *permutation(uint32_t n, bool shuffle, uint64_t *state) {
        uint32_t *order = xcalloc(n, sizeof(*order));

        for (uint32_t i = 0; i < n; i++) {
                uint32_t at = shuffle ? roll(state, i + 1) : i;

                order[i] = order[at];
                order[at] = i;
        }
        return order;
}

/* ---- lists of pairs to rows ---- */

struct link {
        uint32_t from, to;
        uint64_t bytes;
};

struct links {
        struct link *all;
        size_t n, allocated;
        const uint32_t *name; /* each rank: what it is called in the end */
};

static void add_link(struct links *links, uint32_t a, uint32_t b, uint64_t bytes) {
        if (a == b)
                return;
        if (links->n + 2 > links->allocated) {
                links->allocated = links->allocated ? 2 * links->allocated : 1024;
                links->all = xrealloc(links->all, links->allocated * sizeof(*links->all));
        }
        links->all[links->n++] = (struct link) { links->name[a], links->name[b], bytes };
        links->all[links->n++] = (struct link) { links->name[b], links->name[a], bytes };
}

static int compare_links(const void *a, const void *b) {
        const struct link *x = a, *y = b;

        if (x->from != y->from)
                return x->from < y->from ? -1 : 1;
        return x->to < y->to ? -1 : x->to > y->to;
}

static struct rm_traffic rows_of(struct links *links, uint32_t ranks) {
        uint64_t *offset = xcalloc(ranks + 1u, sizeof(*offset)), used = 0;
        uint32_t *peer = xcalloc(links->n + 1, sizeof(*peer));
        uint64_t *bytes = xcalloc(links->n + 1, sizeof(*bytes));

        qsort(links->all, links->n, sizeof(*links->all), compare_links);
        for (size_t i = 0; i < links->n; i++) {
                const struct link *link = &links->all[i];

                if (i > 0 && compare_links(link - 1, link) == 0) {
                        bytes[used - 1] += link->bytes;
                        continue;
                }
                peer[used] = link->to;
                bytes[used++] = link->bytes;
                offset[link->from + 1] = used;
        }
        for (uint32_t r = 1; r <= ranks; r++)
                if (offset[r] < offset[r - 1])
                        offset[r] = offset[r - 1];
        free(links->all);
        return (struct rm_traffic) { .offset = offset, .peer = peer, .bytes = bytes };
}

void traffic_free(struct rm_traffic *traffic) {
        free((void *) traffic->offset);
        free((void *) traffic->peer);
        free((void *) traffic->bytes);
}

/* ---- kinds ---- */

/* The divisor of n that is nearest below its `root`th root. */
static uint32_t near_root(uint32_t n, uint32_t root) {
        uint32_t best = 1;

        for (uint32_t d = 1; d <= n && (root == 2 ? d * d : d * d * d) <= n; d++)
                if (n % d == 0)
                        best = d;
        return best;
}

struct grid {
        uint32_t x, y, z;
};

static struct grid make_grid(uint32_t n, bool flat) {
        uint32_t z = flat ? 1 : near_root(n, 3), y = near_root(n / z, 2);

        return (struct grid) { n / z / y, y, z };
}

static void add_stencil(struct links *links, uint32_t n, bool flat, bool corners) {
        struct grid g = make_grid(n, flat);

        for (uint32_t r = 0; r < n; r++) {
                int x = (int) (r % g.x), y = (int) (r / g.x % g.y), z = (int) (r / g.x / g.y);

                for (int d = 0; d < 27; d++) {
                        int dx = d % 3 - 1, dy = d / 3 % 3 - 1, dz = d / 9 - 1, away = abs(dx) + abs(dy) + abs(dz);
                        int tx = x + dx, ty = y + dy, tz = z + dz;
                        uint32_t to;

                        if (away == 0 || (!corners && away > 1) || tx < 0 || ty < 0 || tz < 0 || tx >= (int) g.x ||
                            ty >= (int) g.y || tz >= (int) g.z)
                                continue;
                        to = (uint32_t) tx + g.x * ((uint32_t) ty + g.y * (uint32_t) tz);
                        if (to > r) /* faces, edges, corners of a block of 32^3 */
                                add_link(links, r, to, corners ? (away == 1 ? 1024 : away == 2 ? 32 : 1) : 1024);
                }
        }
}

/* Rows of a grid sum up by doubling distances; each rank swaps with its transposed place. */
static void add_cg(struct links *links, uint32_t n) {
        struct grid g = make_grid(n, true);

        for (uint32_t r = 0; r < n; r++) {
                uint32_t row = r / g.x, column = r % g.x;

                for (uint32_t step = 1; step < g.x; step *= 2)
                        if ((column ^ step) > column && (column ^ step) < g.x)
                                add_link(links, r, row * g.x + (column ^ step), 1000);
                if (row < g.x && column < g.y && column * g.x + row > r)
                        add_link(links, r, column * g.x + row, 1000);
        }
}

/* Multi-partition: a torus with neighbours along both axes and one diagonal. */
static void add_bt(struct links *links, uint32_t n) {
        struct grid g = make_grid(n, true);

        for (uint32_t r = 0; r < n; r++) {
                uint32_t x = r % g.x, y = r / g.x, right = (x + 1) % g.x, down = (y + 1) % g.y;

                add_link(links, r, y * g.x + right, 600);
                add_link(links, r, down * g.x + x, 600);
                add_link(links, r, down * g.x + (x + g.x - 1) % g.x, 400);
        }
}

/* Neighbours in a torus at doubling distances, with ever less to say. */
static void add_mg(struct links *links, uint32_t n) {
        struct grid g = make_grid(n, false);

        for (uint32_t r = 0; r < n; r++) {
                uint32_t x = r % g.x, y = r / g.x % g.y, z = r / g.x / g.y;
                uint64_t bytes = 4096;

                for (uint32_t step = 1; step < g.x; step *= 2, bytes /= 4) {
                        if (x % step || y % step || z % step)
                                break;
                        add_link(links, r, (x + step) % g.x + g.x * (y + g.y * z), bytes);
                        add_link(links, r, x + g.x * ((y + step) % g.y + g.y * z), bytes);
                        add_link(links, r, x + g.x * (y + g.y * ((z + step) % g.z)), bytes);
                }
        }
}

static void add_random(struct links *links, uint32_t n, uint64_t *state) {
        for (uint32_t i = 0; i < 4 * n; i++)
                add_link(links, roll(state, n), roll(state, n), 1 + roll(state, 100));
}

/* Clusters of 5 to 24 that talk among themselves, and a little to others. */
static void add_clusters(struct links *links, uint32_t n, uint64_t *state) {
        for (uint32_t begin = 0; begin < n;) {
                uint32_t size = 5 + roll(state, 20);

                if (size > n - begin)
                        size = n - begin;
                for (uint32_t i = 0; i < 4 * size; i++)
                        add_link(links, begin + roll(state, size), begin + roll(state, size), 50 + roll(state, 50));
                for (uint32_t i = 0; i < size; i++)
                        add_link(links, begin + i, roll(state, n), 1 + roll(state, 40));
                begin += size;
        }
}

static void add_rmat(struct links *links, uint32_t n, uint64_t *state) {
        uint32_t bits = 0;

        while ((1u << bits) < n)
                bits++;
        for (uint32_t i = 0; i < 8 * n;) {
                uint32_t a = 0, b = 0;

                for (uint32_t bit = 0; bit < bits; bit++) {
                        uint32_t which = roll(state, 100);

                        a = 2 * a + (which >= 76);
                        b = 2 * b + ((which >= 57 && which < 76) || which >= 95);
                }
                if (a >= n || b >= n)
                        continue;
                add_link(links, a, b, 1 + roll(state, 10));
                i++;
        }
}

static void add_dense(struct links *links, uint32_t n, enum traffic_kind kind, uint64_t *state) {
        for (uint32_t a = 0; a < n; a++)
                for (uint32_t b = a + 1; b < n; b++)
                        add_link(links, a, b,
                                 kind == TRAFFIC_DENSE          ? 1000
                                 : kind == TRAFFIC_DENSE_RANDOM ? 1 + roll(state, 1000)
                                                                : 1 + 1000 * 1000 / (b - a));
}

const char *traffic_kind_name(enum traffic_kind kind) {
        static const char *const names[] = { "2d5",
                                             "3d7",
                                             "3d27",
                                             "2d5-permuted",
                                             "3d7-permuted",
                                             "3d27-permuted",
                                             "cg",
                                             "bt",
                                             "mg",
                                             "random",
                                             "clusters-permuted",
                                             "rmat",
                                             "dense",
                                             "dense-random",
                                             "dense-permuted" };

        return names[kind];
}

struct rm_traffic traffic_make(enum traffic_kind kind, uint32_t ranks, uint64_t seed) {
        uint64_t state = seed;
        bool permuted = (kind >= TRAFFIC_STENCIL_2D5_PERMUTED && kind <= TRAFFIC_STENCIL_3D27_PERMUTED) ||
                        kind == TRAFFIC_CLUSTERS_PERMUTED || kind == TRAFFIC_DENSE_PERMUTED;
        cleanup_free uint32_t *name = permutation(ranks, permuted, &state);
        struct links links = { .name = name };

        switch (kind) {
        case TRAFFIC_STENCIL_2D5:
        case TRAFFIC_STENCIL_2D5_PERMUTED:
                add_stencil(&links, ranks, true, false);
                break;
        case TRAFFIC_STENCIL_3D7:
        case TRAFFIC_STENCIL_3D7_PERMUTED:
                add_stencil(&links, ranks, false, false);
                break;
        case TRAFFIC_STENCIL_3D27:
        case TRAFFIC_STENCIL_3D27_PERMUTED:
                add_stencil(&links, ranks, false, true);
                break;
        case TRAFFIC_CG:
                add_cg(&links, ranks);
                break;
        case TRAFFIC_BT:
                add_bt(&links, ranks);
                break;
        case TRAFFIC_MG:
                add_mg(&links, ranks);
                break;
        case TRAFFIC_RANDOM:
                add_random(&links, ranks, &state);
                break;
        case TRAFFIC_CLUSTERS_PERMUTED:
                add_clusters(&links, ranks, &state);
                break;
        case TRAFFIC_RMAT:
                add_rmat(&links, ranks, &state);
                break;
        case TRAFFIC_DENSE:
        case TRAFFIC_DENSE_RANDOM:
        case TRAFFIC_DENSE_PERMUTED:
                add_dense(&links, ranks, kind, &state);
                break;
        }
        return rows_of(&links, ranks);
}

/* ---- clusters ---- */

const char *cluster_kind_name(enum cluster_kind kind) {
        static const char *const names[] = { "balanced", "irregular", "spare" };

        return names[kind];
}

struct bench_cluster cluster_make(enum cluster_kind kind, uint32_t ranks, uint64_t seed) {
        uint32_t cores = kind == CLUSTER_SPARE ? ranks + ranks / 10 : ranks;
        struct bench_cluster cluster = { .cores = cores };
        uint64_t state = seed ^ 0xc1;

        cluster.nodes = xcalloc(cores / 3 + 2u, sizeof(*cluster.nodes));
        while (cores > 0) {
                uint32_t here = kind == CLUSTER_BALANCED ? NODE_CORES : 3 + roll(&state, NODE_CORES - 2);
                struct rm_node *node = &cluster.nodes[cluster.n_nodes];

                here = here < cores ? here : cores;
                *node = (struct rm_node) { .name = xasprintf("n%u", cluster.n_nodes),
                                           .cores = here,
                                           .topology = "package:2 core:8",
                                           .switch_index = (int32_t) (1 + cluster.n_nodes / SWITCH_NODES) };
                cluster.n_nodes++;
                cores -= here;
        }
        cluster.n_switches = 1 + (cluster.n_nodes + SWITCH_NODES - 1) / SWITCH_NODES;
        cluster.switches = xcalloc(cluster.n_switches, sizeof(*cluster.switches));
        for (uint32_t i = 0; i < cluster.n_switches; i++)
                cluster.switches[i] = (struct rm_switch) { .name = xasprintf("s%u", i), .parent = i == 0 ? RM_NO_NODE : 0 };
        return cluster;
}

void cluster_free(struct bench_cluster *cluster) {
        for (uint32_t i = 0; i < cluster->n_nodes; i++)
                free((void *) cluster->nodes[i].name);
        for (uint32_t i = 0; i < cluster->n_switches; i++)
                free((void *) cluster->switches[i].name);
        free(cluster->nodes);
        free(cluster->switches);
}

uint32_t cluster_hops(uint32_t node_a, uint32_t core_a, uint32_t node_b, uint32_t core_b) {
        if (node_a == node_b)
                return core_a / PACKAGE_CORES == core_b / PACKAGE_CORES ? 2 : 4;
        return node_a / SWITCH_NODES == node_b / SWITCH_NODES ? 6 : 8;
}
