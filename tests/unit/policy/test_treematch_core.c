/* The mapping of treematch without any policy: trees, graphs, capacities. */
#include <inttypes.h>
#include <string.h>

#include "common/util.h"
#include "placement/topology/synthetic.h"
#include "policies/treematch/blocks.h"
#include "policies/treematch/evacuate.h"
#include "policies/treematch/layout.h"
#include "policies/treematch/map.h"
#include "tests/unit/repeat.h"
#include "tests/unit/sched/sched_test.h"

static const struct limits no_limits;

/* ---- what is mapped, and onto what ---- */

/* Edges as a list, to rows. */
struct edges {
        uint32_t from[20000], to[20000], n;
        int64_t weight[20000];
};

static void add_edge(struct edges *edges, uint32_t a, uint32_t b, int64_t weight) {
        assert_true(edges->n < ARRAY_SIZE(edges->from));
        edges->from[edges->n] = a;
        edges->to[edges->n] = b;
        edges->weight[edges->n++] = weight;
}

static struct graph make_graph(struct pool *pool, uint32_t n, const struct edges *edges) {
        struct graph graph;

        graph_make(pool, n, 2ull * edges->n, &graph);
        for (uint32_t v = 0; v < n; v++) {
                uint64_t used = graph.first[v];

                for (uint32_t u = 0; u < n; u++)
                        for (uint32_t e = 0; e < edges->n; e++)
                                if ((edges->from[e] == v && edges->to[e] == u) || (edges->to[e] == v && edges->from[e] == u)) {
                                        graph.to[used] = u;
                                        graph.weight[used++] = edges->weight[e];
                                        break;
                                }
                graph.first[v + 1] = used;
        }
        return graph;
}

/* Switches of some nodes of some packages, each with room drawn by lot from low..high. Vertices
 * come depth first. */
static struct tree random_tree(struct pool *pool, struct dice *dice, uint32_t low, uint32_t high) {
        uint32_t parent[400], space[400] = { 0 }, n = 0, n_switches = 1 + dice_roll(dice, 3);
        struct tree tree;

        parent[n++] = TREE_NONE;
        for (uint32_t s = 0; s < n_switches; s++) {
                uint32_t at = n, n_nodes = 1 + dice_roll(dice, 5);

                parent[n++] = 0;
                for (uint32_t i = 0; i < n_nodes; i++) {
                        uint32_t node = n, n_packages = 1 + dice_roll(dice, 3);

                        parent[n++] = at;
                        for (uint32_t p = 0; p < n_packages; p++) {
                                parent[n] = node;
                                space[n++] = low + dice_roll(dice, high - low + 1);
                        }
                }
        }
        tree_make(pool, n, parent, space, &tree);
        return tree;
}

static void fill_by_slot(const struct tree *tree, uint32_t n, uint32_t *leaf) {
        uint32_t x = 0, used = 0;

        for (uint32_t v = 0; v < n; v++) {
                while (used == tree->space[tree->leaf[x]]) {
                        x++;
                        used = 0;
                }
                leaf[v] = x;
                used++;
        }
}

static void assert_within_space(const struct tree *tree, uint32_t n, const uint32_t *leaf) {
        cleanup_free uint32_t *used = xcalloc(tree->n_leaves, sizeof(*used));

        for (uint32_t v = 0; v < n; v++) {
                assert_true(leaf[v] < tree->n_leaves);
                used[leaf[v]]++;
        }
        for (uint32_t x = 0; x < tree->n_leaves; x++)
                assert_true(used[x] <= tree->space[tree->leaf[x]]);
}

/* ---- descriptions of nodes ---- */

static void descriptions(void **state) {
        static const struct {
                const char *text;
                uint32_t n_levels, things, cores;
        } good[] = {
                { "package:2 core:8", 1, 2, 8 },
                { "Package:2 NUMANode:2 L3Cache:1 Core:4 PU:2", 3, 4, 4 },
                { "package:2 [NUMANode(memory=16GB)] l3:2(size=32MB) core:4 pu:2", 2, 4, 4 },
                { "core:16", 0, 1, 16 },
                { "2 8", 1, 2, 8 },
                { "8", 0, 1, 8 },
                { "machine:1 package:2 pu:4", 1, 2, 4 },
                { "  pack=2\tcore=3  ", 1, 2, 3 },
        };
        static const char *const bad[] = { "",
                                           " ",
                                           "core",
                                           "core:",
                                           "core:0",
                                           "package:x core:2",
                                           "core:-1",
                                           ":4",
                                           "core:4x",
                                           "core:99999999",
                                           "a:2000 b:2000 core:2",
                                           "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
                                           "core:(4)",
                                           "[" };
        struct synthetic parsed;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                if (synthetic_parse(good[i].text, &parsed) < 0)
                        fail_msg("refused: %s", good[i].text);
                assert_int_equal(parsed.n_levels, good[i].n_levels);
                assert_int_equal(parsed.things, good[i].things);
                assert_int_equal(parsed.cores, good[i].cores);
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                if (synthetic_parse(bad[i], &parsed) == 0)
                        fail_msg("accepted: %s", bad[i]);
}

/* ---- known optima ---- */

/* 4 nodes of 2 packages with 8 cores. */
static struct tree small_tree(struct pool *pool) {
        uint32_t parent[13] = { TREE_NONE }, space[13] = { 0 }, n = 1;
        struct tree tree;

        for (uint32_t i = 0; i < 4; i++) {
                uint32_t node = n;

                parent[n++] = 0;
                parent[n] = parent[n + 1] = node;
                space[n] = space[n + 1] = 8;
                n += 2;
        }
        tree_make(pool, n, parent, space, &tree);
        return tree;
}

static void distances(void **state) {
        struct pool pool;
        struct tree tree;

        (void) state;
        pool_init(&pool);
        tree = small_tree(&pool);
        assert_int_equal(tree.n_leaves, 8);
        assert_int_equal(tree.space[0], 64);
        assert_int_equal(tree_distance(&tree, 0, 0), 0);
        assert_int_equal(tree_distance(&tree, 0, 1), 2);
        assert_int_equal(tree_distance(&tree, 1, 2), 4);
        pool_finish(&pool);
}

static int64_t map_grid(uint64_t seed, bool permuted) {
        static struct edges edges;
        uint32_t name[64], leaf[64];
        struct dice dice = { seed };
        struct pool pool;
        struct graph graph;
        struct tree tree;
        int64_t cost;

        edges.n = 0;
        for (uint32_t i = 0; i < 64; i++) {
                uint32_t at = permuted ? dice_roll(&dice, i + 1) : i;

                name[i] = name[at];
                name[at] = i;
        }
        for (uint32_t i = 0; i < 64; i++) {
                if (i % 8 < 7)
                        add_edge(&edges, name[i], name[i + 1], 1);
                if (i < 56)
                        add_edge(&edges, name[i], name[i + 8], 1);
        }
        pool_init(&pool);
        tree = small_tree(&pool);
        graph = make_graph(&pool, 64, &edges);
        fill_by_slot(&tree, 64, leaf);
        map_improve(&pool, &tree, &graph, &no_limits, 64 * 8000, leaf);
        assert_within_space(&tree, 64, leaf);
        cost = layout_cost(&pool, &tree, &graph, leaf);
        pool_finish(&pool);
        return cost;
}

/* Blocks of 4 x 4 are on nodes, halves of them in packages: 16 edges of 4 hops between nodes, 16 of
 * 2 between packages. */
static void grids_are_cut_into_blocks(void **state) {
        (void) state;
        assert_int_equal(map_grid(1, false), 96);
        for (uint64_t seed = 1; seed < 6; seed++)
                assert_int_equal(map_grid(seed, true), 96);
}

/* 12 x 8 on six nodes of 16: three by two squares, not strips. */
static void sixths_of_grids_are_squares(void **state) {
        uint32_t parent[7] = { TREE_NONE }, space[7] = { 0, 16, 16, 16, 16, 16, 16 }, leaf[96];
        static struct edges edges;
        struct graph graph;
        struct pool pool;
        struct tree tree;

        (void) state;
        edges.n = 0;
        for (uint32_t v = 0; v < 96; v++) {
                if (v % 12 < 11)
                        add_edge(&edges, v, v + 1, 1);
                if (v / 12 < 7)
                        add_edge(&edges, v, v + 12, 1);
        }
        pool_init(&pool);
        tree_make(&pool, 7, parent, space, &tree);
        graph = make_graph(&pool, 96, &edges);
        fill_by_slot(&tree, 96, leaf);
        map_improve(&pool, &tree, &graph, &no_limits, 100000, leaf);
        assert_within_space(&tree, 96, leaf);
        assert_int_equal(layout_cost(&pool, &tree, &graph, leaf), 2 * (2 * 8 + 12));
        pool_finish(&pool);
}

static void cliques_find_their_packages(void **state) {
        static struct edges edges;
        uint32_t leaf[64];
        struct pool pool;
        struct graph graph;
        struct tree tree;

        (void) state;
        edges.n = 0;
        for (uint32_t a = 0; a < 64; a++)
                for (uint32_t b = a + 1; b < 64; b++)
                        if (a % 8 == b % 8) /* so by slot is the worst there is */
                                add_edge(&edges, a, b, 10);
        pool_init(&pool);
        tree = small_tree(&pool);
        graph = make_graph(&pool, 64, &edges);
        fill_by_slot(&tree, 64, leaf);
        map_improve(&pool, &tree, &graph, &no_limits, 0, leaf);
        assert_within_space(&tree, 64, leaf);
        assert_int_equal(layout_cost(&pool, &tree, &graph, leaf), 0);
        pool_finish(&pool);
}

/* ---- random ones ---- */

/* The graph has up to `tries` edges. */
static struct graph random_graph_of(struct pool *pool, struct dice *dice, uint32_t n, uint32_t tries) {
        static struct edges edges;
        cleanup_free bool *there = xcalloc((size_t) n * n, sizeof(*there));

        edges.n = 0;
        for (uint32_t i = 0; i < tries; i++) {
                uint32_t a = dice_roll(dice, n), b = dice_roll(dice, n);

                if (a == b || there[a * n + b])
                        continue;
                there[a * n + b] = there[b * n + a] = true;
                add_edge(&edges, a, b, 1 + (int64_t) dice_roll(dice, 1000) * dice_roll(dice, 1000));
        }
        return make_graph(pool, n, &edges);
}

static struct graph random_graph(struct pool *pool, struct dice *dice, uint32_t n) {
        return random_graph_of(pool, dice, n, n * (1 + dice_roll(dice, 4)));
}

/* ---- thinning ---- */

/* How many of row v are before entry e when the heaviest come first, and of equal ones those that
 * follow v most closely. */
static uint32_t rank_in_row(const struct graph *graph, uint32_t v, uint64_t e) {
        uint32_t rank = 0;

        for (uint64_t other = graph->first[v]; other < graph->first[v + 1]; other++) {
                uint32_t behind = (graph->to[other] + graph->n - v) % graph->n, own = (graph->to[e] + graph->n - v) % graph->n;

                rank += graph->weight[other] > graph->weight[e] || (graph->weight[other] == graph->weight[e] && behind < own);
        }
        return rank;
}

static uint64_t find_entry(const struct graph *graph, uint32_t v, uint32_t u) {
        uint64_t e = graph->first[v];

        while (graph->to[e] != u)
                e++;
        return e;
}

/* Each entry stays when it is among the heaviest of its row, or of the row of the other end. */
static void thins_rows(void **state) {
        struct dice dice = { 21 };

        (void) state;
        for (unsigned i = 0; i < repetitions(60); i++) {
                bool large = i % 10 > 6; /* long rows: a sample tells which entries may be heavy enough */
                uint32_t n = large ? 150 : 2 + dice_roll(&dice, 40), most = 1 + dice_roll(&dice, large ? 30 : 6);
                struct graph graph, thin;
                uint64_t used = 0;
                struct pool pool;

                pool_init(&pool);
                graph = large ? random_graph_of(&pool, &dice, n, 15000) : random_graph(&pool, &dice, n);
                for (uint64_t e = 0; i % 3 > 0 && e < graph.first[n]; e++) /* many equal ones, or all */
                        graph.weight[e] = i % 3 == 1 ? 7 : 1 + (graph.weight[e] & 1);
                graph_thin(&pool, &graph, most, &thin);
                for (uint32_t v = 0; v < n; v++) {
                        for (uint64_t e = graph.first[v]; e < graph.first[v + 1]; e++) {
                                uint64_t back = find_entry(&graph, graph.to[e], v);

                                if (rank_in_row(&graph, v, e) >= most && rank_in_row(&graph, graph.to[e], back) >= most)
                                        continue;
                                assert_int_equal(thin.to[used], graph.to[e]);
                                assert_int_equal(thin.weight[used], graph.weight[e]);
                                used++;
                        }
                        assert_int_equal(thin.first[v + 1], used);
                        assert_int_equal(thin.size[v], 1);
                }
                pool_finish(&pool);
        }
}

static void never_worse_than_by_slot(void **state) {
        struct dice dice = { 3 };
        uint32_t better = 0;

        (void) state;
        for (unsigned i = 0; i < repetitions(200); i++) {
                uint32_t leaf[400], n;
                struct pool pool;
                struct graph graph;
                struct tree tree;
                int64_t before, after;

                pool_init(&pool);
                tree = random_tree(&pool, &dice, i % 3 == 0 ? 0 : 1, 8);
                n = tree.space[0] - (i % 2 ? dice_roll(&dice, tree.space[0] / 4 + 1) : 0);
                if (n > 0) {
                        graph = random_graph(&pool, &dice, n);
                        fill_by_slot(&tree, n, leaf);
                        before = layout_cost(&pool, &tree, &graph, leaf);
                        map_improve(&pool, &tree, &graph, &no_limits, 0, leaf);
                        after = layout_cost(&pool, &tree, &graph, leaf);
                        assert_within_space(&tree, n, leaf);
                        assert_true(after <= before);
                        better += after < before;
                }
                pool_finish(&pool);
        }
        assert_true(better > repetitions(200) * 3 / 4);
}

/* Four switches with two nodes of two packages each. Who is on a node belongs together, and each
 * node talks to one at another switch: only whole nodes can change places for the better. */
static void whole_nodes_change_places(void **state) {
        uint32_t parent[29] = { TREE_NONE }, room[29] = { 0 }, leaf[64], n = 1;
        static struct edges edges;
        struct graph graph;
        struct pool pool;
        struct tree tree;
        int64_t before;

        (void) state;
        for (uint32_t s = 0; s < 4; s++) {
                uint32_t at = n++;

                for (uint32_t i = 0; i < 2; i++) {
                        uint32_t node = n++;

                        parent[node] = at;
                        for (uint32_t k = 0; k < 2; k++) {
                                room[n] = 4;
                                parent[n++] = node;
                        }
                }
        }
        edges.n = 0;
        for (uint32_t v = 0; v < 64; v++) {
                if (v / 8 < 4)
                        add_edge(&edges, v, v + 32, 3);
                for (uint32_t u = 0; u < v; u++)
                        if (u / 8 == v / 8)
                                add_edge(&edges, v, u, 10);
        }
        pool_init(&pool);
        tree_make(&pool, n, parent, room, &tree);
        graph = make_graph(&pool, 64, &edges);
        fill_by_slot(&tree, 64, leaf);
        before = layout_cost(&pool, &tree, &graph, leaf);
        /* 32 pairs that had 6 hops between them, and have 4. */
        assert_int_equal(blocks_refine(&pool, &tree, &graph, UINT64_MAX, leaf), (int64_t) 32 * 3 * 2);
        assert_int_equal(layout_cost(&pool, &tree, &graph, leaf), before - (int64_t) 32 * 3 * 2);
        assert_within_space(&tree, 64, leaf);
        for (uint32_t v = 0; v < 64; v++)
                assert_int_equal(leaf[v] / 2, leaf[v / 8 * 8] / 2);
        pool_finish(&pool);
}

/* The trees are of any shape: the gain is as reported, and no leaf is over full. */
static void blocks_never_lose(void **state) {
        struct dice dice = { 31 };
        uint32_t better = 0;

        (void) state;
        for (unsigned i = 0; i < repetitions(200); i++) {
                struct pool pool;
                struct tree tree;
                uint32_t leaf[400], n;

                pool_init(&pool);
                tree = random_tree(&pool, &dice, i % 2 ? 3 : 0, 4);
                n = tree.space[0] - dice_roll(&dice, tree.space[0] / 4 + 1);
                if (n > 0) {
                        struct graph graph = random_graph(&pool, &dice, n);
                        int64_t before, gained;

                        fill_by_slot(&tree, n, leaf);
                        before = layout_cost(&pool, &tree, &graph, leaf);
                        gained = blocks_refine(&pool, &tree, &graph, UINT64_MAX, leaf);
                        assert_within_space(&tree, n, leaf);
                        assert_true(gained >= 0);
                        assert_int_equal(layout_cost(&pool, &tree, &graph, leaf), before - gained);
                        better += gained > 0;
                }
                pool_finish(&pool);
        }
        assert_true(better > repetitions(200) / 4);
}

/* n times n partners, so that rows are thinned out. Groups of 13, whose numbers are far from each
 * other, talk a hundred times more: they are to be together. */
static void find_groups(uint32_t n) {
        uint32_t n_groups = n / 13;
        cleanup_free uint32_t *parent = xcalloc(n_groups + 1u, sizeof(*parent)), *space = xcalloc(n_groups + 1u, sizeof(*space));
        cleanup_free uint32_t *leaf = xcalloc(n, sizeof(*leaf)), *by_slot = xcalloc(n, sizeof(*by_slot));
        int64_t pairs = (int64_t) n * (n - 1) / 2, least = 2 * (pairs - (int64_t) n_groups * 13 * 12 / 2);
        struct pool pool;
        struct graph graph;
        struct tree tree;

        pool_init(&pool);
        graph_make(&pool, n, (uint64_t) n * (n - 1), &graph);
        for (uint32_t v = 0; v < n; v++) {
                graph.first[v + 1] = graph.first[v];
                for (uint32_t u = 0; u < n; u++)
                        if (u != v) {
                                graph.to[graph.first[v + 1]] = u;
                                graph.weight[graph.first[v + 1]++] = u % n_groups == v % n_groups ? 100 : 1;
                        }
        }
        parent[0] = TREE_NONE;
        for (uint32_t i = 1; i <= n_groups; i++)
                space[i] = 13;
        tree_make(&pool, n_groups + 1, parent, space, &tree);
        fill_by_slot(&tree, n, by_slot);
        memcpy(leaf, by_slot, sizeof(*leaf) * n);
        map_improve(&pool, &tree, &graph, &no_limits, 0, leaf);
        assert_within_space(&tree, n, leaf);
        assert_int_equal(layout_cost(&pool, &tree, &graph, leaf), least);
        assert_int_equal(layout_gain(&pool, &tree, &graph, by_slot, leaf), layout_cost(&pool, &tree, &graph, by_slot) - least);
        assert_true(layout_gain(&pool, &tree, &graph, by_slot, leaf) > 0);
        pool_finish(&pool);
}

static void everybody_with_everybody(void **state) {
        (void) state;
        find_groups(520);
}

/* So many that of a group, too, most is left out. */
static void thousands_with_thousands(void **state) {
        (void) state;
        find_groups(3328);
}

static bool always(void *context) {
        ++*(uint32_t *) context;
        return true;
}

static void no_time(void **state) {
        uint32_t leaf[64], given[64], asked = 0;
        const struct limits over = { always, &asked };
        struct dice dice = { 5 };
        struct pool pool;
        struct graph graph;
        struct tree tree;

        (void) state;
        pool_init(&pool);
        tree = small_tree(&pool);
        graph = random_graph(&pool, &dice, 64);
        fill_by_slot(&tree, 64, leaf);
        memcpy(given, leaf, sizeof(leaf));
        map_improve(&pool, &tree, &graph, &over, 0, leaf);
        assert_memory_equal(leaf, given, sizeof(leaf));
        assert_true(asked > 0);
        pool_finish(&pool);
}

/* ---- leaving ---- */

/* The leaves' limits and contents: some of them hold too much, some are empty. */
struct shrunk {
        struct pool pool;
        struct tree tree;
        struct graph graph;
        uint32_t home[400], n;
        bool fixed[400];
        int64_t price[400];
};

static void make_shrunk(struct shrunk *s, struct dice *dice, bool with_fixed) {
        bool usable;

        do {
                pool_init(&s->pool);
                s->tree = random_tree(&s->pool, dice, 0, 8);
                s->n = 0;
                for (uint32_t x = 0; x < s->tree.n_leaves; x++) {
                        uint32_t here = dice_roll(dice, 12), space = s->tree.space[s->tree.leaf[x]];

                        for (uint32_t i = 0; i < here && s->n < 390; i++) {
                                s->fixed[s->n] = with_fixed && i < space && dice_roll(dice, 3) == 0;
                                s->price[s->n] = dice_roll(dice, 2000);
                                s->home[s->n] = dice_roll(dice, 10) == 0 && !s->fixed[s->n] ? TREE_NONE : x;
                                s->n++;
                        }
                }
                usable = s->n > 0 && s->n <= s->tree.space[0];
                if (!usable)
                        pool_finish(&s->pool);
        } while (!usable);
        s->graph = random_graph(&s->pool, dice, s->n);
}

static uint32_t count_moves(const struct shrunk *s, const uint32_t *leaf) {
        uint32_t moves = 0;

        for (uint32_t v = 0; v < s->n; v++) {
                moves += s->home[v] != TREE_NONE && s->home[v] != leaf[v];
                if (s->fixed[v])
                        assert_int_equal(leaf[v], s->home[v]);
        }
        return moves;
}

static void moves_are_as_few_as_can_be(void **state) {
        static struct shrunk s;
        struct dice dice = { 11 };
        uint64_t saved = 0;

        (void) state;
        for (unsigned i = 0; i < repetitions(150); i++) {
                uint32_t leaf[400], more[400], least = 0, here[100] = { 0 };
                struct evacuation evacuation = { .limits = &no_limits };

                make_shrunk(&s, &dice, i % 2 == 0);
                evacuation.tree = &s.tree;
                evacuation.graph = &s.graph;
                evacuation.home = s.home;
                evacuation.fixed = s.fixed;
                evacuation.price = s.price;
                for (uint32_t v = 0; v < s.n; v++)
                        if (s.home[v] != TREE_NONE)
                                here[s.home[v]]++;
                for (uint32_t x = 0; x < s.tree.n_leaves; x++)
                        least += here[x] > s.tree.space[s.tree.leaf[x]] ? here[x] - s.tree.space[s.tree.leaf[x]] : 0;
                s.pool.random = 1 + (uint64_t) i;
                assert_int_equal(evacuate_solve(&s.pool, &evacuation, leaf), 0);
                assert_within_space(&s.tree, s.n, leaf);
                assert_int_equal(count_moves(&s, leaf), least);
                s.pool.random = 1 + (uint64_t) i; /* the same way, up to where the budget is spent */
                evacuation.budget = 1 + dice_roll(&dice, 20);
                assert_true(evacuate_solve(&s.pool, &evacuation, more) <= evacuation.budget);
                assert_within_space(&s.tree, s.n, more);
                assert_true(count_moves(&s, more) <= least + evacuation.budget);
                assert_true(layout_cost(&s.pool, &s.tree, &s.graph, more) <= layout_cost(&s.pool, &s.tree, &s.graph, leaf));
                saved += layout_cost(&s.pool, &s.tree, &s.graph, more) < layout_cost(&s.pool, &s.tree, &s.graph, leaf);
                pool_finish(&s.pool);
        }
        assert_true(saved > repetitions(150) / 3);
}

/* Eight nodes with 16 on each, and room for 12: two of each belong to the one clique and two to the
 * other. Two empty nodes take one clique each, though nothing tells beforehand which two of a node
 * are to go together. */
static void cliques_leave_together(void **state) {
        uint32_t parent[11] = { TREE_NONE }, space[11] = { 0 }, home[128], leaf[128];
        bool fixed[128] = { false };
        int64_t price[128] = { 0 };
        struct evacuation evacuation = { .home = home, .fixed = fixed, .price = price, .limits = &no_limits };
        static struct edges edges;
        struct graph graph;
        struct pool pool;
        struct tree tree;

        (void) state;
        pool_init(&pool);
        for (uint32_t x = 1; x <= 10; x++)
                space[x] = x <= 8 ? 12 : 16;
        tree_make(&pool, 11, parent, space, &tree);
        edges.n = 0;
        for (uint32_t v = 0; v < 128; v++) {
                home[v] = v / 16;
                if (v % 16 >= 4) /* in a ring, and one of the four hangs on it */
                        add_edge(&edges, v, v % 16 == 15 ? v - 11 : v + 1, 8);
                if (v % 16 < 4)
                        add_edge(&edges, v, v + 4, 2);
                for (uint32_t u = 0; u < v; u++)
                        if (v % 16 < 4 && u % 16 < 4 && v % 2 == u % 2)
                                add_edge(&edges, v, u, 5);
        }
        graph = make_graph(&pool, 128, &edges);
        evacuation.tree = &tree;
        evacuation.graph = &graph;
        assert_int_equal(evacuate_solve(&pool, &evacuation, leaf), 0);
        for (uint32_t v = 0; v < 128; v++)
                assert_int_equal(leaf[v], v % 16 >= 4 ? home[v] : leaf[v % 2]);
        assert_true(leaf[0] >= 8 && leaf[1] >= 8 && leaf[0] != leaf[1]);
        pool_finish(&pool);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(descriptions),
                cmocka_unit_test(distances),
                cmocka_unit_test(grids_are_cut_into_blocks),
                cmocka_unit_test(sixths_of_grids_are_squares),
                cmocka_unit_test(cliques_find_their_packages),
                cmocka_unit_test(thins_rows),
                cmocka_unit_test(never_worse_than_by_slot),
                cmocka_unit_test(whole_nodes_change_places),
                cmocka_unit_test(blocks_never_lose),
                cmocka_unit_test(everybody_with_everybody),
                cmocka_unit_test(thousands_with_thousands),
                cmocka_unit_test(no_time),
                cmocka_unit_test(moves_are_as_few_as_can_be),
                cmocka_unit_test(cliques_leave_together),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
