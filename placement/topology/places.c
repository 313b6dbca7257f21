#include "placement/topology/places.h"

#include <string.h>

#include "placement/topology/synthetic.h"

struct planting {
        struct pool *pool;
        const struct rm_snapshot *snapshot;
        const struct synthetic *inside; /* each node */
        bool down_to_cores;
        uint32_t *first_node, *next_node;     /* each switch, and last those without: its nodes */
        uint32_t *first_switch, *next_switch; /* likewise, the switches below */
        uint32_t *parent, *space;
        struct place *leaf;
        uint32_t *node_vertex;
        uint32_t n, n_leaves;
};

/* More cores than its topology has: ranks are to share them. */
static bool shares_cores(const struct planting *p, uint32_t node) {
        return p->down_to_cores && p->snapshot->nodes[node].cores > p->inside[node].things * p->inside[node].cores;
}

static void plant_leaf(struct planting *p, uint32_t node, uint32_t vertex, uint32_t first, uint32_t count) {
        struct place *place = &p->leaf[p->n_leaves++];

        *place = (struct place) { node, first, count, p->inside[node].things * p->inside[node].cores };
        p->space[vertex] = place_cores(place, p->snapshot->nodes[node].cores);
}

/* Levels of a node, from `level` on; `first`: the core it begins with. */
static void plant_inside(struct planting *p, uint32_t node, uint32_t vertex, uint32_t level, uint32_t first) {
        const struct synthetic *inside = &p->inside[node];
        uint32_t cores = inside->cores;

        if (!p->down_to_cores) {
                plant_leaf(p, node, vertex, first, inside->things * cores);
                return;
        }
        if (level == inside->n_levels) {
                if (!shares_cores(p, node) || cores == 1)
                        plant_leaf(p, node, vertex, first, cores);
                for (uint32_t i = 0; i < cores && cores > 1 && shares_cores(p, node); i++) {
                        uint32_t below = p->n++;

                        p->parent[below] = vertex;
                        plant_leaf(p, node, below, first + i, 1);
                }
                return;
        }
        for (uint32_t i = level + 1; i < inside->n_levels; i++)
                cores *= inside->count[i];
        for (uint32_t i = 0; i < inside->count[level]; i++) {
                uint32_t below = p->n++;

                p->parent[below] = vertex;
                plant_inside(p, node, below, level + 1, first + i * cores);
        }
}

/* Adds the vertices below switch `at`, the number of switches standing for no switch at all. Depth
 * is limited by the snapshot's check. */
static void plant(struct planting *p, uint32_t at, uint32_t vertex) {
        uint32_t before = p->n;

        for (uint32_t s = p->first_switch[at]; s != TREE_NONE; s = p->next_switch[s]) {
                uint32_t below = p->n++;

                p->parent[below] = vertex;
                plant(p, s, below);
        }
        for (uint32_t node = p->first_node[at]; node != TREE_NONE; node = p->next_node[node]) {
                uint32_t below = p->n++;

                p->parent[below] = vertex;
                p->node_vertex[node] = below;
                plant_inside(p, node, below, 0, 0);
        }
        if (p->n == before) /* a leaf like any other, but without cores */
                p->leaf[p->n_leaves++] = (struct place) { .node = UINT32_MAX, .wrap = 1 };
}

static void list_plugged(struct planting *p) {
        const struct rm_snapshot *snapshot = p->snapshot;
        uint32_t none = snapshot->n_switches;

        p->first_node = pool_alloc(p->pool, none + 1u, sizeof(uint32_t));
        p->first_switch = pool_alloc(p->pool, none + 1u, sizeof(uint32_t));
        p->next_node = pool_alloc(p->pool, snapshot->n_nodes + 1u, sizeof(uint32_t));
        p->next_switch = pool_alloc(p->pool, none + 1u, sizeof(uint32_t));
        memset(p->first_node, 0xff, sizeof(uint32_t) * (none + 1u));
        memset(p->first_switch, 0xff, sizeof(uint32_t) * (none + 1u));
        for (uint32_t i = snapshot->n_nodes; i-- > 0;) {
                uint32_t at = snapshot->nodes[i].switch_index < 0 ? none : (uint32_t) snapshot->nodes[i].switch_index;

                p->next_node[i] = p->first_node[at];
                p->first_node[at] = i;
        }
        for (uint32_t i = none; i-- > 0;) {
                uint32_t at = snapshot->switches[i].parent < 0 ? none : (uint32_t) snapshot->switches[i].parent;

                p->next_switch[i] = p->first_switch[at];
                p->first_switch[at] = i;
        }
}

/* A node whose topology is unknown, or has an endless number of parts, is a set of cores and
 * nothing else. */
static const struct synthetic *scan_inside(struct planting *p, uint64_t *ret_most) {
        const struct rm_snapshot *snapshot = p->snapshot;
        struct synthetic *inside = pool_alloc(p->pool, snapshot->n_nodes + 1u, sizeof(*inside));
        uint64_t most = 1;

        for (uint32_t i = 0; i < snapshot->n_nodes; i++) {
                const struct rm_node *node = &snapshot->nodes[i];
                uint32_t things = 1;

                if (i > 0 && node->topology && snapshot->nodes[i - 1].topology &&
                    strcmp(node->topology, snapshot->nodes[i - 1].topology) == 0)
                        inside[i] = inside[i - 1];
                else if (!node->topology || synthetic_parse(node->topology, &inside[i]) < 0)
                        inside[i] = (struct synthetic) { .things = 1, .cores = 1 };
                for (uint32_t level = 0; level < inside[i].n_levels && p->down_to_cores; level++) {
                        things *= inside[i].count[level];
                        most += things;
                }
                most += 1 + (p->down_to_cores && node->cores > things * inside[i].cores ? things * (uint64_t) inside[i].cores : 0);
        }
        *ret_most = most + snapshot->n_switches; /* and the root */
        return inside;
}

void places_make(struct pool *pool, const struct rm_snapshot *snapshot, bool down_to_cores, struct places *ret_places) {
        struct planting p = { .pool = pool, .snapshot = snapshot, .down_to_cores = down_to_cores };
        uint64_t most;

        p.inside = scan_inside(&p, &most);
        list_plugged(&p);
        p.parent = pool_alloc(pool, most, sizeof(*p.parent));
        p.space = pool_zalloc(pool, most, sizeof(*p.space));
        p.leaf = pool_alloc(pool, most, sizeof(*p.leaf));
        p.node_vertex = pool_alloc(pool, snapshot->n_nodes + 1u, sizeof(*p.node_vertex));
        p.parent[0] = TREE_NONE;
        p.n = 1;
        plant(&p, snapshot->n_switches, 0);
        *ret_places = (struct places) { .node_vertex = p.node_vertex };
        tree_make(pool, p.n, p.parent, p.space, &ret_places->tree);
        ret_places->leaf = p.leaf;
}
