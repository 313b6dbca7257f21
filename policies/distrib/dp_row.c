#include "policies/distrib/dp_row.h"

#include <stdlib.h>

enum { MAX_STATES = 8 * 1000 * 1000 }; /* of all links of a factor */

static uint32_t largest(uint32_t a, uint32_t b) {
        return a > b ? a : b;
}

uint32_t dual_most_layers(const struct problem *problem) {
        uint64_t largest_job = 0, largest_node = 0;

        for (uint32_t j = 0; j < problem->n_jobs; j++)
                if (problem->jobs[j].full + 1u > largest_job)
                        largest_job = problem->jobs[j].full + 1u;
        for (uint32_t s = 0; s < problem->n_nodes; s++)
                if (problem->nodes[s].capacity + 1u > largest_node)
                        largest_node = problem->nodes[s].capacity + 1u;
        largest_job *= problem->n_nodes + 1u;
        largest_node *= problem->n_jobs + 1u;
        if (largest_node > MAX_STATES)
                return 0;
        return 8 * largest_job <= MAX_STATES ? 8 : 2 * largest_job <= MAX_STATES ? 2 : 0;
}

static uint32_t smallest(uint32_t a, uint32_t b) {
        return a < b ? a : b;
}

struct dual_work *dual_work_create(const struct problem *problem) {
        struct dual_work *work = calloc(1, sizeof(*work));
        size_t links = largest(problem->n_jobs, problem->n_nodes) + 1u, states = 1, job_states = 1, node_states = 1, values;

        if (!work)
                return NULL;
        for (uint32_t j = 0; j < problem->n_jobs; j++)
                job_states = problem->jobs[j].full + 1 > job_states ? problem->jobs[j].full + 1 : job_states;
        work->most_layers = dual_most_layers(problem);
        job_states *= work->most_layers;
        for (uint32_t s = 0; s < problem->n_nodes; s++)
                node_states = largest((uint32_t) node_states, problem->nodes[s].capacity + 1);
        states = job_states > node_states ? job_states : node_states;
        job_states *= problem->n_nodes + 1u;
        node_states *= problem->n_jobs + 1u;
        values = links * states;
        work->links = arena_alloc(&work->arena, links, sizeof(*work->links));
        work->cells = arena_alloc(&work->arena, links, sizeof(struct dual_cell *));
        work->values = arena_alloc(&work->arena, values, sizeof(*work->values));
        work->marginal = arena_alloc(&work->arena, states, sizeof(*work->marginal));
        work->picked = arena_alloc(&work->arena, links, sizeof(*work->picked));
        work->changed = arena_alloc(&work->arena, links, sizeof(*work->changed));
        work->suffix = arena_alloc(&work->arena, job_states > node_states ? job_states : node_states, sizeof(*work->suffix));
        for (int i = 0; i < 2; i++)
                work->state[i] = arena_alloc(&work->arena, states, sizeof(*work->state[i]));
        if (work->arena.failed) {
                dual_work_destroy(work);
                return NULL;
        }
        return work;
}

void dual_work_destroy(struct dual_work *work) {
        if (!work)
                return;
        arena_finish(&work->arena);
        free(work);
}

static void add_link(const struct dual *dual, struct dual_work *work, struct dp_row *row, struct dual_cell *cell, size_t *used) {
        const struct dual_value *values = dual->values + cell->first;

        if (cell->n == 1 && values[0].units == 0) {
                row->constant += row->of_node ? values[0].node_cost : values[0].job_cost;
                return;
        }
        work->cells[row->n] = cell;
        work->links[row->n++] = (struct factor_link) { .values = work->values + *used, .n = cell->n };
        for (uint32_t i = 0; i < cell->n; i++) {
                const struct dual_value *v = &values[i];

                if (row->of_node)
                        work->values[(*used)++] = (struct factor_value) { .x = v->units, .cost = v->node_cost };
                else
                        work->values[(*used)++] =
                                (struct factor_value) { .x = v->x, .y = row->degrees ? v->x > 0 : v->y, .cost = v->job_cost };
        }
}

/* Computes the range of x before each link. False: the sizes cannot add up. */
static bool set_windows(struct dual_work *work, struct dp_row *row) {
        uint32_t total = row->total;
        bool exact = !row->of_node;
        uint64_t low = 0, high = 0;

        for (uint32_t i = 0; i < row->n; i++) {
                struct factor_link *link = &work->links[i];
                uint32_t least = UINT32_MAX, most = 0;

                link->low = (uint32_t) (low < total ? low : total);
                link->high = (uint32_t) (high < total ? high : total);
                for (uint32_t k = 0; k < link->n; k++) {
                        least = smallest(least, link->values[k].x);
                        most = largest(most, link->values[k].x);
                }
                low += least;
                high += most;
        }
        if (low > total || (exact && high < total))
                return false;
        row->low = exact ? total : (uint32_t) low;
        row->high = (uint32_t) (high < total ? high : total);
        low = row->low;
        high = row->high;
        for (uint32_t i = row->n; i-- > 0;) {
                struct factor_link *link = &work->links[i];
                uint32_t least = UINT32_MAX, most = 0;

                for (uint32_t k = 0; k < link->n; k++) {
                        least = smallest(least, link->values[k].x);
                        most = largest(most, link->values[k].x);
                }
                low = low > most ? low - most : 0;
                if (high < least)
                        return false;
                high -= least;
                if (link->low < low)
                        link->low = (uint32_t) low;
                if (link->high > high)
                        link->high = (uint32_t) high;
                low = link->low;
                high = link->high;
                if (low > high)
                        return false;
        }
        return true;
}

void dp_row_of_node(const struct dual *dual, struct dual_work *work, uint32_t node, struct dp_row *ret_row) {
        const struct problem *problem = dual->problem;
        size_t used = 0;

        *ret_row = (struct dp_row) {
                .shape = { .stride = problem->nodes[node].capacity + 1, .layers = 1 },
                .total = problem->nodes[node].capacity,
                .price = dual->node_price[node],
                .of_node = true,
        };
        for (uint32_t i = 0; i < problem->n_jobs; i++) {
                uint32_t j = dual->backwards ? problem->n_jobs - 1 - i : i;

                add_link(dual, work, ret_row, &dual->cells[(size_t) j * problem->n_nodes + node], &used);
        }
}

void dp_row_of_job(const struct dual *dual, struct dual_work *work, uint32_t job, struct dp_row *ret_row) {
        const struct problem *problem = dual->problem;
        uint32_t low = dual->least_degree[job], high = dual->most_degree[job];
        bool rest = problem->jobs[job].rest > 0;
        size_t used = 0;

        *ret_row = (struct dp_row) {
                .shape = { .stride = problem->jobs[job].full + 1, .layers = rest ? 2 : 1 },
                .first_layer = rest,
                .total = problem->jobs[job].full,
                .degrees = low > 0 || high < UINT32_MAX,
        };
        if (ret_row->degrees) {
                ret_row->first_layer = low;
                ret_row->shape.at_least = high == UINT32_MAX;
                ret_row->shape.layers = (ret_row->shape.at_least ? low : high) + 1;
        }
        for (uint32_t i = 0; i < problem->n_nodes; i++) {
                uint32_t s = dual->backwards ? problem->n_nodes - 1 - i : i;

                add_link(dual, work, ret_row, &dual->cells[(size_t) job * problem->n_nodes + s], &used);
        }
}

static void set_end(const struct dual_work *work, const struct dp_row *row) {
        int32_t *end = work->suffix + row->n * dp_row_states(row);

        for (uint32_t y = 0; y < row->shape.layers; y++)
                for (uint32_t x = row->low; x <= row->high; x++) {
                        int64_t cost = row->price * (row->total - x);

                        if (y < row->first_layer)
                                cost = FACTOR_NEVER;
                        else if (cost > FACTOR_REACH / 4)
                                cost = FACTOR_REACH / 4;
                        end[y * row->shape.stride + x] = (int32_t) cost;
                }
}

bool dp_row_least(struct dual_work *work, struct dp_row *row, int64_t *ret_least) {
        size_t stride = dp_row_states(row);
        uint32_t low, high;

        if (!set_windows(work, row))
                return false;
        low = row->low;
        high = row->high;
        set_end(work, row);
        for (uint32_t i = row->n; i-- > 0;) {
                factor_backward(&row->shape, &work->links[i], work->suffix + (i + 1) * stride, work->suffix + i * stride, low,
                                high);
                low = work->links[i].low;
                high = work->links[i].high;
        }
        *ret_least = work->suffix[0];
        return *ret_least < FACTOR_REACH;
}

void dp_row_trace(struct dual_work *work, const struct dp_row *row) {
        uint32_t x = 0, y = 0;

        for (uint32_t i = 0; i < row->n; i++) {
                const struct factor_link *link = &work->links[i];
                const int32_t *next = work->suffix + (i + 1) * dp_row_states(row);
                uint32_t low = i + 1 < row->n ? work->links[i + 1].low : row->low;
                uint32_t high = i + 1 < row->n ? work->links[i + 1].high : row->high;
                int64_t least = INT64_MAX;

                for (uint32_t k = 0; k < link->n; k++) {
                        const struct factor_value *v = &link->values[k];
                        int64_t cost;
                        uint32_t layer = factor_layer(&row->shape, y, v->y);

                        if (x + v->x < low || x + v->x > high || layer >= row->shape.layers)
                                continue;
                        cost = (int64_t) v->cost + next[layer * row->shape.stride + x + v->x];
                        if (cost < least) {
                                least = cost;
                                work->picked[i] = k;
                        }
                }
                x += link->values[work->picked[i]].x;
                y = factor_layer(&row->shape, y, link->values[work->picked[i]].y);
        }
}
