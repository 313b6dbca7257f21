#include "policies/distrib/dual.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/dp_row.h"

/* ---- making ---- */

static int64_t scale(int64_t price, int shift) {
        return shift >= 0 ? price * ((int64_t) 1 << shift) : price >> -shift;
}

int32_t dual_reach(const struct problem *problem) {
        uint32_t longest = problem->n_jobs > problem->n_nodes ? problem->n_jobs : problem->n_nodes;

        return FACTOR_REACH / 2 / (int32_t) (longest + 2);
}

/* The cell's prices, less what the job pays for its units, and more what the node takes. */
static bool make_cell(struct dual *dual, const struct dual_start *start, uint32_t j, uint32_t s) {
        const struct problem *problem = dual->problem;
        const struct problem_job *job = &problem->jobs[j];
        const struct cell *from = problem_cell(problem, j, s);
        struct dual_cell *cell = &dual->cells[(size_t) j * problem->n_nodes + s];
        const int64_t *price = problem->prices + from->first;
        int64_t least = PRICE_NEVER, margin = start->node_price[s] - start->job_price[j];

        *cell = (struct dual_cell) { .first = dual->n_values, .reach = dual_reach(problem) };
        for (uint32_t v = 0; v < from->n; v++) {
                uint32_t units = (v % from->n_x) * job->size + (v / from->n_x) * job->rest;
                int64_t cost;

                if (price[v] >= PRICE_NEVER)
                        continue;
                cost = scale(price[v], dual->shift) + margin * units;
                if (cost < least)
                        least = cost;
                dual->values[dual->n_values++] =
                        (struct dual_value) { .v = v, .x = v % from->n_x, .y = v / from->n_x, .units = units };
                cell->n++;
        }
        for (uint32_t i = 0; i < cell->n; i++) {
                struct dual_value *value = &dual->values[cell->first + i];
                int64_t cost = scale(price[value->v], dual->shift) + margin * value->units - least;

                if (cost > cell->reach)
                        cost = cell->reach;
                value->node_cost = (int32_t) (cost / 2);
                value->job_cost = (int32_t) (cost - cost / 2);
        }
        dual->base += cell->n > 0 ? least : 0;
        return cell->n > 0;
}

static bool dual_alloc(struct dual *dual, size_t space) {
        const struct problem *problem = dual->problem;
        uint32_t jobs = problem->n_jobs, nodes = problem->n_nodes;

        dual->cells = calloc((size_t) jobs * nodes + 1, sizeof(*dual->cells));
        dual->values = malloc((space + 1) * sizeof(*dual->values));
        dual->space = space;
        dual->node_least = calloc(nodes + 1u, sizeof(*dual->node_least));
        dual->job_least = calloc(jobs + 1u, sizeof(*dual->job_least));
        dual->node_price = calloc(nodes + 1u, sizeof(*dual->node_price));
        dual->node_changed = calloc(nodes + 1u, sizeof(*dual->node_changed));
        dual->job_changed = calloc(jobs + 1u, sizeof(*dual->job_changed));
        dual->least_degree = calloc(jobs + 1u, sizeof(*dual->least_degree));
        dual->most_degree = calloc(jobs + 1u, sizeof(*dual->most_degree));
        return dual->cells && dual->values && dual->node_least && dual->job_least && dual->node_price && dual->node_changed &&
               dual->job_changed && dual->least_degree && dual->most_degree;
}

int dual_init(struct dual *dual, const struct problem *problem, const struct dual_start *start, int shift, int64_t target) {
        bool possible = true;

        *dual = (struct dual) { .problem = problem, .shift = shift, .target = scale(target, shift) };
        if (!dual_alloc(dual, problem->n_prices))
                return -ENOMEM;
        for (uint32_t j = 0; j < problem->n_jobs; j++) {
                dual->base += start->job_price[j] * problem->jobs[j].units;
                dual->job_changed[j] = true;
                dual->most_degree[j] = UINT32_MAX;
                for (uint32_t s = 0; s < problem->n_nodes; s++)
                        possible &= make_cell(dual, start, j, s);
        }
        for (uint32_t s = 0; s < problem->n_nodes; s++) {
                dual->base -= start->node_price[s] * problem->nodes[s].capacity;
                dual->node_price[s] = start->node_price[s];
                dual->node_changed[s] = true;
        }
        if (!possible)
                dual->base = dual->target + 1;
        return 0;
}

void dual_finish(struct dual *dual) {
        free(dual->cells);
        free(dual->values);
        free(dual->node_least);
        free(dual->job_least);
        free(dual->node_price);
        free(dual->node_changed);
        free(dual->job_changed);
        free(dual->least_degree);
        free(dual->most_degree);
        *dual = (struct dual) { 0 };
}

int dual_copy(struct dual *to, const struct dual *from) {
        const struct problem *problem = from->problem;
        size_t n_cells = (size_t) problem->n_jobs * problem->n_nodes, n = 0;
        struct dual old;

        for (size_t i = 0; i < n_cells; i++)
                n += from->cells[i].n;
        if (!to->cells || to->space < n) {
                dual_finish(to);
                to->problem = problem;
                if (!dual_alloc(to, n))
                        return -ENOMEM;
        }
        old = *to;
        *to = *from;
        to->cells = old.cells;
        to->values = old.values;
        to->space = old.space;
        to->node_least = old.node_least;
        to->job_least = old.job_least;
        to->node_price = old.node_price;
        to->node_changed = old.node_changed;
        to->job_changed = old.job_changed;
        to->least_degree = old.least_degree;
        to->most_degree = old.most_degree;
        to->n_values = 0;
        for (size_t i = 0; i < n_cells; i++) {
                to->cells[i] = from->cells[i];
                to->cells[i].first = to->n_values;
                memcpy(to->values + to->n_values, from->values + from->cells[i].first, sizeof(*to->values) * from->cells[i].n);
                to->n_values += from->cells[i].n;
        }
        memcpy(to->node_least, from->node_least, sizeof(*to->node_least) * problem->n_nodes);
        memcpy(to->job_least, from->job_least, sizeof(*to->job_least) * problem->n_jobs);
        memcpy(to->node_price, from->node_price, sizeof(*to->node_price) * problem->n_nodes);
        memcpy(to->node_changed, from->node_changed, sizeof(*to->node_changed) * problem->n_nodes);
        memcpy(to->job_changed, from->job_changed, sizeof(*to->job_changed) * problem->n_jobs);
        memcpy(to->least_degree, from->least_degree, sizeof(*to->least_degree) * problem->n_jobs);
        memcpy(to->most_degree, from->most_degree, sizeof(*to->most_degree) * problem->n_jobs);
        return 0;
}

void dual_set_target(struct dual *dual, int64_t target) {
        dual->target = scale(target, dual->shift);
}

int64_t dual_bound(const struct dual *dual) {
        int64_t sum = dual->base + dual->sum;

        /* Rounded up: costs are whole numbers, and scaled ones at most 2^shift times the true
         * ones. */
        return dual->shift >= 0 ? -(-sum >> dual->shift) : sum * ((int64_t) 1 << -dual->shift);
}

/* ---- sweeps ---- */

void dual_fail(struct dual *dual) {
        dual->sum = 0;
        dual->base = dual->target + 1;
}

/* Give half of what each value is dearer than the cheapest one to the cell's other factor, the last
 * link all of it; drop the values that are too dear. Returns whether anything is different now. */
static bool push(struct dual *dual, const struct dp_row *row, struct dual_work *work, uint32_t i, int64_t least) {
        struct dual_cell *cell = work->cells[i];
        struct dual_value *values = dual->values + cell->first;
        struct factor_value *mine = work->values + (work->links[i].values - work->values);
        int64_t slack = dual_gap(dual);
        uint32_t kept = 0;
        bool changed = false;

        for (uint32_t k = 0; k < cell->n; k++) {
                struct dual_value v = values[k];
                int64_t above = (int64_t) work->marginal[k] + mine[k].cost - least;
                int32_t *from = row->of_node ? &v.node_cost : &v.job_cost, *to = row->of_node ? &v.job_cost : &v.node_cost;

                if (work->marginal[k] >= FACTOR_REACH || above > slack) {
                        changed = true;
                        continue;
                }
                if (i + 1 < row->n)
                        above = (above + 1) / 2;
                if (above > 0 && *from - above >= -cell->reach && *to + above <= cell->reach) {
                        *from -= (int32_t) above;
                        *to += (int32_t) above;
                        changed = true;
                }
                mine[kept] = (struct factor_value) { .x = mine[k].x, .y = mine[k].y, .cost = *from };
                values[kept++] = v;
        }
        cell->n = kept;
        work->links[i].n = kept;
        return changed;
}

/* False: a cell has no value left. */
static bool push_all(struct dual *dual, struct dual_work *work, const struct dp_row *row, int64_t least) {
        int32_t *state = work->state[0], *next = work->state[1];

        state[0] = 0;
        for (uint32_t y = 1; y < row->shape.layers; y++)
                state[y * row->shape.stride] = FACTOR_NEVER;
        for (uint32_t i = 0; i < row->n; i++) {
                uint32_t low = i + 1 < row->n ? work->links[i + 1].low : row->low;
                uint32_t high = i + 1 < row->n ? work->links[i + 1].high : row->high;
                int32_t *swap = state;

                factor_marginals(&row->shape, &work->links[i], state, work->suffix + (i + 1) * dp_row_states(row), low, high,
                                 work->marginal);
                work->changed[i] = push(dual, row, work, i, least);
                if (work->links[i].n == 0)
                        return false;
                factor_forward(&row->shape, &work->links[i], state, next, low, high);
                state = next;
                next = swap;
        }
        return true;
}

static bool sweep_row(struct dual *dual, struct dual_work *work, struct dp_row *row, int64_t *stored) {
        int64_t least;

        if (!dp_row_least(work, row, &least))
                return false;
        dual->sum += least + row->constant - *stored;
        *stored = least + row->constant;
        return !dual_is_over(dual) && push_all(dual, work, row, least);
}

static bool sweep_nodes(struct dual *dual, struct dual_work *work, bool *any) {
        uint32_t nodes = dual->problem->n_nodes;

        for (uint32_t s = 0; s < nodes; s++) {
                struct dp_row row;

                if (!dual->node_changed[s])
                        continue;
                dual->node_changed[s] = false;
                *any = true;
                dp_row_of_node(dual, work, s, &row);
                if (!sweep_row(dual, work, &row, &dual->node_least[s]))
                        return false;
                for (uint32_t i = 0; i < row.n; i++)
                        if (work->changed[i])
                                dual->job_changed[(size_t) (work->cells[i] - dual->cells) / nodes] = true;
        }
        return true;
}

static bool sweep_jobs(struct dual *dual, struct dual_work *work, bool *any) {
        uint32_t nodes = dual->problem->n_nodes;

        for (uint32_t j = 0; j < dual->problem->n_jobs; j++) {
                struct dp_row row;

                if (!dual->job_changed[j])
                        continue;
                dual->job_changed[j] = false;
                *any = true;
                dp_row_of_job(dual, work, j, &row);
                if (!sweep_row(dual, work, &row, &dual->job_least[j]))
                        return false;
                for (uint32_t i = 0; i < row.n; i++)
                        if (work->changed[i])
                                dual->node_changed[(size_t) (work->cells[i] - dual->cells) % nodes] = true;
        }
        return true;
}

bool dual_sweep(struct dual *dual, struct dual_work *work) {
        bool any = false;

        if (dual_is_over(dual))
                return false;
        dual->backwards = !dual->backwards;
        if (!sweep_nodes(dual, work, &any) || !sweep_jobs(dual, work, &any)) {
                dual_fail(dual);
                return false;
        }
        return any;
}

void dual_restrict(struct dual *dual, uint32_t job, uint32_t node, uint32_t low, uint32_t high) {
        struct dual_cell *cell = &dual->cells[(size_t) job * dual->problem->n_nodes + node];
        struct dual_value *values = dual->values + cell->first;
        uint32_t kept = 0;

        for (uint32_t i = 0; i < cell->n; i++)
                if (values[i].v >= low && values[i].v <= high)
                        values[kept++] = values[i];
        if (kept == cell->n)
                return;
        cell->n = kept;
        dual->node_changed[node] = dual->job_changed[job] = true;
        if (kept == 0)
                dual_fail(dual);
}

void dual_restrict_degree(struct dual *dual, uint32_t job, uint32_t least, uint32_t most) {
        if (least > dual->least_degree[job])
                dual->least_degree[job] = least;
        if (most < dual->most_degree[job])
                dual->most_degree[job] = most;
        dual->job_changed[job] = true;
        if (dual->least_degree[job] > dual->most_degree[job])
                dual_fail(dual);
}
