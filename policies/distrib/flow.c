#include "policies/distrib/flow.h"

#include <stdlib.h>
#include <string.h>

struct flow {
        const struct problem *problem;
        uint32_t size;            /* of a group, in units */
        uint32_t *low, *high;     /* each cell */
        int64_t *need, *space;     /* groups that each job has yet to place, and that fit on each node */
        int64_t *distance;        /* jobs, then nodes: of the cheapest way from a job that has groups to place */
        uint32_t *before;         /* jobs, then nodes: the last stop on that way; itself at the start */
        struct arena arena;
};

struct flow *flow_create(const struct problem *problem, bool *ret_none) {
        size_t cells = (size_t) problem->n_jobs * problem->n_nodes, stops = (size_t) problem->n_jobs + problem->n_nodes;
        struct flow *flow;

        *ret_none = false;
        for (uint32_t j = 0; j < problem->n_jobs && !*ret_none; j++)
                *ret_none = problem->jobs[j].rest > 0 || problem->jobs[j].size != problem->jobs[0].size;
        if (*ret_none)
                return NULL;
        flow = calloc(1, sizeof(*flow));
        if (!flow)
                return NULL;
        flow->problem = problem;
        flow->size = problem->n_jobs > 0 ? problem->jobs[0].size : 1;
        flow->low = arena_alloc(&flow->arena, cells, sizeof(*flow->low));
        flow->high = arena_alloc(&flow->arena, cells, sizeof(*flow->high));
        flow->need = arena_alloc(&flow->arena, problem->n_jobs, sizeof(*flow->need));
        flow->space = arena_alloc(&flow->arena, problem->n_nodes, sizeof(*flow->space));
        flow->distance = arena_alloc(&flow->arena, stops, sizeof(*flow->distance));
        flow->before = arena_alloc(&flow->arena, stops, sizeof(*flow->before));
        if (flow->arena.failed) {
                flow_destroy(flow);
                return NULL;
        }
        return flow;
}

void flow_destroy(struct flow *flow) {
        if (!flow)
                return;
        arena_finish(&flow->arena);
        free(flow);
}

static const int64_t *prices_of(const struct flow *flow, size_t cell) {
        return flow->problem->prices + flow->problem->cells[cell].first;
}

bool flow_applies(const struct flow *flow, const struct dual *dual) {
        size_t cells = (size_t) flow->problem->n_jobs * flow->problem->n_nodes;

        for (size_t i = 0; i < cells; i++) {
                const struct dual_value *values = dual->values + dual->cells[i].first;
                uint32_t n = dual->cells[i].n;
                const int64_t *price = prices_of(flow, i);

                if (n > 1 && values[0].v == 0)
                        return false;
                for (uint32_t v = values[0].v; v + 2 <= values[n - 1].v; v++)
                        if (price[v + 2] - price[v + 1] < price[v + 1] - price[v])
                                return false;
        }
        return true;
}

/* ---- the cheapest way ---- */

/* The cost of one group more (less) in the cell, and for how many groups this price holds; 0:
 * none. */
static int64_t groups_more(const struct flow *flow, size_t cell, uint32_t value, int64_t *ret_cost) {
        const int64_t *price = prices_of(flow, cell);
        uint32_t end = value + 1;

        if (value >= flow->high[cell])
                return 0;
        *ret_cost = price[value + 1] - price[value];
        while (end < flow->high[cell] && price[end + 1] - price[end] == *ret_cost)
                end++;
        return end - value;
}

static int64_t groups_less(const struct flow *flow, size_t cell, uint32_t value, int64_t *ret_cost) {
        const int64_t *price = prices_of(flow, cell);
        uint32_t end = value - 1;

        if (value <= flow->low[cell])
                return 0;
        *ret_cost = price[value - 1] - price[value];
        while (end > flow->low[cell] && price[end - 1] - price[end] == *ret_cost)
                end--;
        return value - end;
}

static bool shorten(struct flow *flow, uint32_t from, uint32_t to, int64_t cost) {
        if (flow->distance[from] >= PRICE_NEVER || flow->distance[from] + cost >= flow->distance[to])
                return false;
        flow->distance[to] = flow->distance[from] + cost;
        flow->before[to] = from;
        return true;
}

/* From all jobs with groups to place, over what could be more or less in cells. Returns the best
 * node with room, as a stop; or that there is none: the number of stops. */
static uint32_t find_way(struct flow *flow, const uint32_t *values) {
        uint32_t jobs = flow->problem->n_jobs, nodes = flow->problem->n_nodes, best = jobs + nodes;
        bool changed = true;

        for (uint32_t i = 0; i < jobs + nodes; i++) {
                flow->distance[i] = i < jobs && flow->need[i] > 0 ? 0 : PRICE_NEVER;
                flow->before[i] = i;
        }
        while (changed) {
                changed = false;
                for (uint32_t j = 0; j < jobs; j++)
                        for (uint32_t s = 0; s < nodes; s++) {
                                size_t cell = (size_t) j * nodes + s;
                                int64_t cost;

                                if (groups_more(flow, cell, values[cell], &cost) > 0)
                                        changed |= shorten(flow, j, jobs + s, cost);
                                if (groups_less(flow, cell, values[cell], &cost) > 0)
                                        changed |= shorten(flow, jobs + s, j, cost);
                        }
        }
        for (uint32_t i = jobs; i < jobs + nodes; i++)
                if (flow->space[i - jobs] > 0 && flow->distance[i] < PRICE_NEVER &&
                    (best == jobs + nodes || flow->distance[i] < flow->distance[best]))
                        best = i;
        return best;
}

static size_t step_cell(const struct flow *flow, uint32_t a, uint32_t b) {
        uint32_t jobs = flow->problem->n_jobs;

        return a < jobs ? (size_t) a * flow->problem->n_nodes + (b - jobs) : (size_t) b * flow->problem->n_nodes + (a - jobs);
}

/* Sends as many groups as the narrowest edge of the way to stop `end` lets through. */
static void send(struct flow *flow, uint32_t end, uint32_t *values) {
        uint32_t jobs = flow->problem->n_jobs, stop;
        int64_t groups = flow->space[end - jobs], cost;

        for (stop = end; flow->before[stop] != stop; stop = flow->before[stop]) {
                size_t cell = step_cell(flow, flow->before[stop], stop);
                int64_t most =
                        stop >= jobs ? groups_more(flow, cell, values[cell], &cost) : groups_less(flow, cell, values[cell], &cost);

                groups = most < groups ? most : groups;
        }
        groups = flow->need[stop] < groups ? flow->need[stop] : groups;
        flow->need[stop] -= groups;
        flow->space[end - jobs] -= groups;
        for (stop = end; flow->before[stop] != stop; stop = flow->before[stop]) {
                size_t cell = step_cell(flow, flow->before[stop], stop);

                values[cell] = (uint32_t) (values[cell] + (stop >= jobs ? groups : -groups));
        }
}

/* ---- all of it ---- */

/* Every cell at its least. False: that is too much already. */
static bool begin(struct flow *flow, const struct dual *dual, uint32_t *values) {
        const struct problem *problem = flow->problem;
        bool possible = true;

        for (uint32_t j = 0; j < problem->n_jobs; j++)
                flow->need[j] = problem->jobs[j].full;
        for (uint32_t s = 0; s < problem->n_nodes; s++)
                flow->space[s] = problem->nodes[s].capacity / flow->size;
        for (uint32_t j = 0; j < problem->n_jobs; j++)
                for (uint32_t s = 0; s < problem->n_nodes; s++) {
                        size_t cell = (size_t) j * problem->n_nodes + s;
                        const struct dual_value *of_cell = dual->values + dual->cells[cell].first;

                        flow->low[cell] = values[cell] = of_cell[0].v;
                        flow->high[cell] = of_cell[dual->cells[cell].n - 1].v;
                        flow->need[j] -= values[cell];
                        flow->space[s] -= values[cell];
                }
        for (uint32_t j = 0; j < problem->n_jobs; j++)
                possible &= flow->need[j] >= 0;
        for (uint32_t s = 0; s < problem->n_nodes; s++)
                possible &= flow->space[s] >= 0;
        return possible;
}

bool flow_solve(struct flow *flow, const struct dual *dual, uint32_t *ret_values) {
        const struct problem *problem = flow->problem;
        int64_t left = 0;

        if (!begin(flow, dual, ret_values))
                return false;
        do {
                uint32_t end;

                left = 0;
                for (uint32_t j = 0; j < problem->n_jobs; j++)
                        left += flow->need[j];
                if (left == 0)
                        break;
                end = find_way(flow, ret_values);
                if (end == problem->n_jobs + problem->n_nodes)
                        return false;
                send(flow, end, ret_values);
        } while (left > 0);
        return true;
}
