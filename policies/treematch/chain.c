#include "policies/treematch/chain.h"

#include <string.h>

enum { MOST_STEPS = 5 };

struct chains {
        struct layout *layout;
        int64_t *bound;     /* each vertex of the tree: traffic of the graph's vertex in hand with what is below; 0 between two */
        uint32_t *touched;  /* vertices of the tree where `bound` is not 0 */
        uint32_t n_touched;
        uint32_t *queue;    /* a ring: vertices to start from */
        uint32_t head, n_queued;
        bool *queued;
        bool *locked;       /* each vertex: is in the chain */
        uint64_t *work;
};

/* Where a vertex may go, and what that gains. */
struct step {
        uint32_t vertex, to; /* `to` TREE_NONE: there is none */
        int64_t gain;
};

/* The traffic of v with everything, up the tree. */
static void gather(struct chains *c, uint32_t v) {
        const struct tree *tree = c->layout->tree;
        const struct graph *graph = c->layout->graph;

        c->n_touched = 0;
        for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++)
                for (uint32_t at = tree->leaf[c->layout->leaf[graph->to[e]]]; at > 0; at = tree->parent[at]) {
                        if (c->bound[at] == 0)
                                c->touched[c->n_touched++] = at;
                        c->bound[at] += graph->weight[e];
                }
        *c->work += graph->first[v + 1] - graph->first[v];
}

static void scatter(struct chains *c) {
        for (uint32_t i = 0; i < c->n_touched; i++)
                c->bound[c->touched[i]] = 0;
}

/* Twice the traffic, for each vertex of the tree on the way up, that does not cross it when v is on
 * `leaf`; less is further. */
static int64_t pull(const struct chains *c, uint32_t leaf) {
        const struct tree *tree = c->layout->tree;
        int64_t sum = 0;

        for (uint32_t at = tree->leaf[leaf]; at > 0; at = tree->parent[at])
                sum += c->bound[at];
        return 2 * sum;
}

static bool has_space(const struct layout *layout, uint32_t leaf) {
        return layout->used[leaf] < layout->tree->space[layout->tree->leaf[leaf]];
}

static int64_t all_traffic(const struct graph *graph, uint32_t v) {
        int64_t sum = 0;

        for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++)
                sum += graph->weight[e];
        return sum;
}

/* The leaf that v would go to, and what it gains by that; also what it would gain on `hole`. */
static struct step best_step(struct chains *c, uint32_t v, uint32_t hole, int64_t *ret_to_hole) {
        const struct layout *layout = c->layout;
        const struct tree *tree = layout->tree;
        uint32_t here = layout->leaf[v];
        struct step best = { v, TREE_NONE, INT64_MIN };
        int64_t now, all = 0;
        bool even = tree->even_depth;

        gather(c, v);
        if (!even)
                all = all_traffic(layout->graph, v);
        now = pull(c, here) - all * tree->depth[tree->leaf[here]] + layout_worth(layout, v, here);
        for (uint32_t i = 0; i < c->n_touched; i++) {
                uint32_t at = c->touched[i], leaf = tree->leaf_first[at];
                int64_t gain;

                if (tree->end[at] != at + 1 || leaf == here || tree->space[at] == 0)
                        continue;
                gain = pull(c, leaf) - all * tree->depth[at] + layout_worth(layout, v, leaf) - now;
                if (gain > best.gain) {
                        best.gain = gain;
                        best.to = leaf;
                }
        }
        if (hole != TREE_NONE)
                *ret_to_hole = pull(c, hole) - all * tree->depth[tree->leaf[hole]] + layout_worth(layout, v, hole) - now;
        scatter(c);
        return best;
}

static void enqueue(struct chains *c, uint32_t v) {
        uint32_t n = c->layout->graph->n;

        if (c->queued[v] || layout_fixed(c->layout, v))
                return;
        c->queued[v] = true;
        c->queue[(c->head + c->n_queued++) % n] = v;
}

static uint32_t dequeue(struct chains *c) {
        uint32_t v = c->queue[c->head];

        c->head = (c->head + 1) % c->layout->graph->n;
        c->n_queued--;
        c->queued[v] = false;
        return v;
}

/* Finds among the vertices on `leaf` the one that had best go on, and (ret_close) the one that had
 * best take the hole. */
static struct step next_step(struct chains *c, uint32_t leaf, uint32_t hole, struct step *ret_close) {
        const struct layout *layout = c->layout;
        struct step best = { UINT32_MAX, TREE_NONE, INT64_MIN };

        *ret_close = (struct step) { UINT32_MAX, hole, INT64_MIN };
        for (uint32_t i = 0; i < layout->used[leaf]; i++) {
                uint32_t v = layout_members(layout, leaf)[i];
                struct step step;
                int64_t to_hole;

                if (c->locked[v] || layout_fixed(layout, v))
                        continue;
                step = best_step(c, v, hole, &to_hole);
                if (to_hole > ret_close->gain) {
                        ret_close->gain = to_hole;
                        ret_close->vertex = v;
                }
                if (step.gain > best.gain)
                        best = step;
        }
        return best;
}

/* A chain from v; what it gained, 0 when everything is as it was. */
static int64_t try_chain(struct chains *c, uint32_t v) {
        struct layout *layout = c->layout;
        struct {
                uint32_t vertex, from;
        } done[MOST_STEPS + 1];
        uint32_t hole = layout->leaf[v], n = 0;
        struct step step = best_step(c, v, TREE_NONE, NULL), close;
        int64_t gained = 0;
        bool won = false;

        while (!won && step.to != TREE_NONE && gained + step.gain > 0) {
                uint32_t to = step.to;

                done[n].vertex = step.vertex;
                done[n++].from = layout->leaf[step.vertex];
                gained += step.gain;
                won = has_space(layout, to) || to == hole;
                layout_move(layout, step.vertex, to);
                c->locked[step.vertex] = true;
                if (won)
                        break;
                step = next_step(c, to, hole, &close);
                if (close.vertex != UINT32_MAX && gained + close.gain > 0 &&
                    (n == MOST_STEPS || step.to == TREE_NONE || close.gain >= step.gain || gained + step.gain <= 0)) {
                        done[n].vertex = close.vertex;
                        done[n++].from = to;
                        gained += close.gain;
                        layout_move(layout, close.vertex, hole);
                        won = true;
                } else if (n == MOST_STEPS)
                        break;
        }
        for (uint32_t i = n; i-- > 0;) {
                c->locked[done[i].vertex] = false;
                if (!won)
                        layout_move(layout, done[i].vertex, done[i].from);
        }
        for (uint32_t i = 0; won && i < n; i++) {
                const struct graph *graph = layout->graph;

                enqueue(c, done[i].vertex);
                for (uint64_t e = graph->first[done[i].vertex]; e < graph->first[done[i].vertex + 1]; e++)
                        enqueue(c, graph->to[e]);
        }
        return won ? gained : 0;
}

int64_t chain_refine(struct pool *pool, struct layout *layout, uint64_t until) {
        struct pool_mark mark = pool_mark(pool);
        uint32_t n = layout->graph->n;
        struct chains c = {
                .layout = layout,
                .bound = pool_zalloc(pool, layout->tree->n, sizeof(*c.bound)),
                .touched = pool_alloc(pool, layout->tree->n, sizeof(*c.touched)),
                .queue = pool_alloc(pool, n, sizeof(*c.queue)),
                .queued = pool_zalloc(pool, n, sizeof(*c.queued)),
                .locked = pool_zalloc(pool, n, sizeof(*c.locked)),
                .work = &pool->work,
        };
        int64_t gained = 0;

        for (uint32_t v = 0; v < n; v++)
                enqueue(&c, v);
        while (c.n_queued > 0 && pool->work < until)
                gained += try_chain(&c, dequeue(&c));
        pool_release(pool, mark);
        return gained;
}
