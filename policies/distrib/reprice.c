#include "policies/distrib/reprice.h"

#include <errno.h>
#include <math.h>

struct pattern *pattern_of_dual(const struct dual *root, const uint32_t *values, const struct pattern_host *host) {
        const struct problem *problem = root->problem;
        size_t cells = (size_t) problem->n_jobs * problem->n_nodes;
        struct arena arena = { 0 };
        uint32_t *low = arena_alloc(&arena, cells, sizeof(*low)), *high = arena_alloc(&arena, cells, sizeof(*high));
        double *costs = arena_alloc(&arena, problem->n_prices, sizeof(*costs));
        struct pattern_start start = { .values = values, .low = low, .high = high, .costs = costs };
        struct pattern *pattern = NULL;

        for (size_t i = 0; !arena.failed && i < cells; i++) {
                const struct dual_cell *cell = &root->cells[i];
                size_t first = problem->cells[i].first;

                low[i] = root->values[cell->first].v;
                high[i] = root->values[cell->first + cell->n - 1].v;
                for (uint32_t v = 0; v < problem->cells[i].n; v++)
                        costs[first + v] = INFINITY;
                for (uint32_t k = 0; k < cell->n; k++)
                        costs[first + root->values[cell->first + k].v] =
                                ldexp(root->values[cell->first + k].job_cost, -root->shift);
        }
        if (!arena.failed)
                pattern = pattern_create(problem, host, &start);
        arena_finish(&arena);
        return pattern;
}

/* The largest scale, not above the root's, at which all that values in it cost fits into a dual. */
static int shift_of_prices(const struct dual *root, const double *job_price, const double *value_price) {
        const struct problem *problem = root->problem;
        double largest = 1;
        int shift = root->shift;

        for (size_t i = 0; i < (size_t) problem->n_jobs * problem->n_nodes; i++)
                for (uint32_t k = 0; k < root->cells[i].n; k++) {
                        const struct dual_value *value = &root->values[root->cells[i].first + k];
                        size_t at = problem->cells[i].first + value->v;
                        double cost = (double) problem->prices[at] - job_price[i / problem->n_nodes] * value->units;

                        largest = fmax(largest, fmax(fabs(cost), fabs(value_price[at])));
                }
        while (ldexp(largest, shift) * 3 > dual_reach(problem))
                shift--;
        return shift;
}

int reprice(const struct pattern *pattern, const struct dual *root, int64_t target, struct dual *ret_dual) {
        const struct problem *problem = root->problem;
        struct arena arena = { 0 };
        double *job_price = arena_alloc(&arena, problem->n_jobs, sizeof(*job_price));
        double *value_price = arena_alloc(&arena, problem->n_prices, sizeof(*value_price));
        int64_t *job_costs = arena_alloc(&arena, problem->n_prices, sizeof(*job_costs));
        struct dual_start start = { .job_price = arena_alloc(&arena, problem->n_jobs, sizeof(int64_t)),
                                    .node_price = arena_alloc(&arena, problem->n_nodes, sizeof(int64_t)) };
        int r = arena.failed ? -ENOMEM : pattern_prices(pattern, job_price, value_price), shift = 0;

        if (r == 1)
                shift = shift_of_prices(root, job_price, value_price);
        for (uint32_t j = 0; r == 1 && j < problem->n_jobs; j++)
                start.job_price[j] = llround(ldexp(job_price[j], shift));
        for (size_t i = 0; r == 1 && i < problem->n_prices; i++)
                job_costs[i] = llround(ldexp(value_price[i], shift));
        if (r == 1)
                r = dual_init(ret_dual, problem, &start, shift, target) < 0 ? -ENOMEM : 1;
        if (r == 1) {
                dual_split(ret_dual, job_costs);
                dual_intersect(ret_dual, root);
        }
        arena_finish(&arena);
        return r;
}
