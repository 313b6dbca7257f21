#include "policies/distrib/relax.h"

#include <errno.h>
#include <glpk.h>
#include <math.h>
#include <stdlib.h>

/* The least that a unit more than the least possible costs in the cell. False: nothing more can be
 * there. */
static bool unit_cost(const struct problem *problem, uint32_t j, uint32_t s, double *ret_cost, uint32_t *ret_least_units,
                      uint32_t *ret_most_units) {
        const struct problem_job *job = &problem->jobs[j];
        const struct cell *cell = problem_cell(problem, j, s);
        const int64_t *price = problem->prices + cell->first;
        bool any = false;
        uint32_t first = 0;

        while (first < cell->n && price[first] >= PRICE_NEVER)
                first++;
        *ret_least_units = *ret_most_units = (first % cell->n_x) * job->size + (first / cell->n_x) * job->rest;
        for (uint32_t v = first + 1; v < cell->n; v++) {
                uint32_t units = (v % cell->n_x) * job->size + (v / cell->n_x) * job->rest;
                double cost;

                if (price[v] >= PRICE_NEVER || units <= *ret_least_units)
                        continue;
                cost = (double) (price[v] - price[first]) / (units - *ret_least_units);
                if (!any || cost < *ret_cost)
                        *ret_cost = cost;
                if (units > *ret_most_units)
                        *ret_most_units = units;
                any = true;
        }
        return any;
}

/* Rows: jobs, then nodes. */
static bool build(glp_prob *lp, const struct problem *problem) {
        uint32_t jobs = problem->n_jobs, nodes = problem->n_nodes;
        uint64_t *taken = calloc((size_t) jobs + nodes + 1, sizeof(*taken));

        if (!taken)
                return false;
        glp_add_rows(lp, (int) (jobs + nodes));
        for (uint32_t j = 0; j < jobs; j++)
                for (uint32_t s = 0; s < nodes; s++) {
                        int rows[3] = { 0, (int) j + 1, (int) (jobs + s) + 1 }, column;
                        double ones[3] = { 0, 1, 1 }, cost = 0;
                        uint32_t least, most;

                        if (problem_cell(problem, j, s)->n == 0 || !unit_cost(problem, j, s, &cost, &least, &most)) {
                                if (problem_cell(problem, j, s)->n > 0) {
                                        taken[j] += least;
                                        taken[jobs + s] += least;
                                }
                                continue;
                        }
                        taken[j] += least;
                        taken[jobs + s] += least;
                        column = glp_add_cols(lp, 1);
                        glp_set_col_bnds(lp, column, GLP_DB, 0, most - least);
                        glp_set_obj_coef(lp, column, cost);
                        glp_set_mat_col(lp, column, 2, rows, ones);
                }
        for (uint32_t j = 0; j < jobs; j++) {
                double units = (double) problem->jobs[j].units - (double) taken[j];

                glp_set_row_bnds(lp, (int) j + 1, GLP_FX, units, units);
        }
        for (uint32_t s = 0; s < nodes; s++)
                glp_set_row_bnds(lp, (int) (jobs + s) + 1, GLP_UP, 0,
                                 (double) problem->nodes[s].capacity - (double) taken[jobs + s]);
        free(taken);
        return true;
}

/* The prices of a unit of each job, and (>= 0) of each node. 0, -ENOMEM or -EAGAIN when time was
 * over. */
static int relax_prices(const struct problem *problem, int64_t limit_usec, double *ret_job_price, double *ret_node_price) {
        glp_prob *lp;
        glp_smcp simplex;
        int r = -EAGAIN;

        if (limit_usec < 1000 || problem->n_jobs == 0 || problem->n_nodes == 0)
                return -EAGAIN;
        (void) glp_term_out(GLP_OFF);
        lp = glp_create_prob();
        glp_set_obj_dir(lp, GLP_MIN);
        glp_init_smcp(&simplex);
        simplex.msg_lev = GLP_MSG_OFF;
        simplex.tm_lim = limit_usec / 1000 < 1000000 ? (int) (limit_usec / 1000) : 1000000;
        if (!build(lp, problem))
                r = -ENOMEM;
        else if (glp_simplex(lp, &simplex) == 0 && glp_get_status(lp) == GLP_OPT) {
                for (uint32_t j = 0; j < problem->n_jobs; j++)
                        ret_job_price[j] = glp_get_row_dual(lp, (int) j + 1);
                for (uint32_t s = 0; s < problem->n_nodes; s++) {
                        double price = -glp_get_row_dual(lp, (int) (problem->n_jobs + s) + 1);

                        ret_node_price[s] = price > 0 ? price : 0;
                }
                r = 0;
        }
        glp_delete_prob(lp);
        return r;
}

/* So that what lies between the bound and the cost of the best plan known fits into a dual. */
static int pick_shift(const struct problem *problem, double relaxed, int64_t cost) {
        double slack = (double) cost - relaxed + 1, reach = (double) dual_reach(problem);
        int shift = 0;

        while (shift < 20 && slack * 2 * 4 < reach) {
                slack *= 2;
                shift++;
        }
        while (shift > -40 && slack * 4 > reach) {
                slack /= 2;
                shift--;
        }
        return shift;
}

int relax_dual(const struct problem *problem, int64_t limit_usec, int64_t cost, int64_t target, struct dual *ret_dual) {
        struct arena arena = { 0 };
        struct dual_start start = { .job_price = arena_alloc(&arena, problem->n_jobs, sizeof(int64_t)),
                                    .node_price = arena_alloc(&arena, problem->n_nodes, sizeof(int64_t)) };
        double *job_price = arena_alloc(&arena, problem->n_jobs, sizeof(double));
        double *node_price = arena_alloc(&arena, problem->n_nodes, sizeof(double));
        double relaxed = 0;
        int shift, r = arena.failed ? -ENOMEM : relax_prices(problem, limit_usec, job_price, node_price);

        if (r == 0) {
                for (uint32_t j = 0; j < problem->n_jobs; j++)
                        relaxed += job_price[j] * problem->jobs[j].units;
                for (uint32_t s = 0; s < problem->n_nodes; s++)
                        relaxed -= node_price[s] * problem->nodes[s].capacity;
        }
        if (r != -ENOMEM) {
                shift = pick_shift(problem, relaxed, cost);
                for (uint32_t j = 0; j < problem->n_jobs; j++)
                        start.job_price[j] = llround(ldexp(job_price[j], shift));
                for (uint32_t s = 0; s < problem->n_nodes; s++)
                        start.node_price[s] = llround(ldexp(node_price[s], shift));
                r = dual_init(ret_dual, problem, &start, shift, target);
        }
        arena_finish(&arena);
        return r;
}
