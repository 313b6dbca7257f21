#include "policies/distrib/dual.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/chain.h"

/* A chain while it is being swept. */
struct row {
        struct chain_shape shape;
        uint32_t n; /* links */
        uint32_t low, high; /* the window after the last link */
        int64_t constant;   /* of cells that can hold nothing */
};

struct dual_work {
        struct chain_link *links;
        struct chain_value *values;
        struct dual_cell **cells; /* of each link */
        int32_t *marginal;
        bool *changed; /* each link: its cell has other costs or values now */
        int32_t *suffix;   /* (links + 1) states */
        int32_t *state[2]; /* the passes' own */
        struct arena arena;
};

static uint32_t largest(uint32_t a, uint32_t b) {
        return a > b ? a : b;
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
                job_states = largest((uint32_t) job_states, 2 * (problem->jobs[j].full + 1));
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

/* ---- making ---- */

static int64_t scale(int64_t price, int shift) {
        return shift >= 0 ? price * ((int64_t) 1 << shift) : price >> -shift;
}

int32_t dual_reach(const struct problem *problem) {
        return CHAIN_REACH / (int32_t) (largest(problem->n_jobs, problem->n_nodes) + 2);
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

static bool dual_alloc(struct dual *dual, size_t room) {
        const struct problem *problem = dual->problem;
        uint32_t jobs = problem->n_jobs, nodes = problem->n_nodes;

        dual->cells = calloc((size_t) jobs * nodes + 1, sizeof(*dual->cells));
        dual->values = malloc((room + 1) * sizeof(*dual->values));
        dual->room = room;
        dual->node_least = calloc(nodes + 1u, sizeof(*dual->node_least));
        dual->job_least = calloc(jobs + 1u, sizeof(*dual->job_least));
        dual->node_price = calloc(nodes + 1u, sizeof(*dual->node_price));
        dual->node_changed = calloc(nodes + 1u, sizeof(*dual->node_changed));
        dual->job_changed = calloc(jobs + 1u, sizeof(*dual->job_changed));
        return dual->cells && dual->values && dual->node_least && dual->job_least && dual->node_price && dual->node_changed &&
               dual->job_changed;
}

int dual_init(struct dual *dual, const struct problem *problem, const struct dual_start *start, int shift, int64_t target) {
        bool possible = true;

        *dual = (struct dual) { .problem = problem, .shift = shift, .target = scale(target, shift) };
        if (!dual_alloc(dual, problem->n_prices))
                return -ENOMEM;
        for (uint32_t j = 0; j < problem->n_jobs; j++) {
                dual->base += start->job_price[j] * problem->jobs[j].units;
                dual->job_changed[j] = true;
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
        *dual = (struct dual) { 0 };
}

int dual_copy(struct dual *to, const struct dual *from) {
        const struct problem *problem = from->problem;
        size_t n_cells = (size_t) problem->n_jobs * problem->n_nodes, n = 0;
        struct dual old;

        for (size_t i = 0; i < n_cells; i++)
                n += from->cells[i].n;
        if (!to->cells || to->room < n) {
                dual_finish(to);
                to->problem = problem;
                if (!dual_alloc(to, n))
                        return -ENOMEM;
        }
        old = *to;
        *to = *from;
        to->cells = old.cells;
        to->values = old.values;
        to->room = old.room;
        to->node_least = old.node_least;
        to->job_least = old.job_least;
        to->node_price = old.node_price;
        to->node_changed = old.node_changed;
        to->job_changed = old.job_changed;
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
        return 0;
}

void dual_set_target(struct dual *dual, int64_t target) {
        dual->target = scale(target, dual->shift);
}

int64_t dual_bound(const struct dual *dual) {
        int64_t sum = dual->base + dual->sum;

        /* Rounded up: costs are whole numbers, and scaled ones at most 2^shift times the true ones. */
        return dual->shift >= 0 ? -(-sum >> dual->shift) : sum * ((int64_t) 1 << -dual->shift);
}

/* ---- one chain ---- */

static void add_link(struct dual *dual, struct dual_work *work, struct row *row, struct dual_cell *cell, bool of_node, size_t *used) {
        const struct dual_value *values = dual->values + cell->first;

        if (cell->n == 1 && values[0].units == 0) {
                row->constant += of_node ? values[0].node_cost : values[0].job_cost;
                return;
        }
        work->cells[row->n] = cell;
        work->links[row->n++] = (struct chain_link) { .values = work->values + *used, .n = cell->n };
        for (uint32_t i = 0; i < cell->n; i++) {
                const struct dual_value *v = &values[i];

                if (of_node)
                        work->values[(*used)++] = (struct chain_value) { .x = v->units, .cost = v->node_cost };
                else
                        work->values[(*used)++] = (struct chain_value) { .x = v->x, .y = v->y, .cost = v->job_cost };
        }
}

/* What x can be before each link. False: the sizes cannot add up. */
static bool set_windows(struct dual_work *work, struct row *row, uint32_t total, bool exact) {
        uint64_t low = 0, high = 0;

        for (uint32_t i = 0; i < row->n; i++) {
                struct chain_link *link = &work->links[i];
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
                struct chain_link *link = &work->links[i];
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

static void fail(struct dual *dual) {
        dual->sum = 0;
        dual->base = dual->target + 1;
}

/* Give a part of what each value is dearer than the cheapest one to the cell's other chain, and drop the too dear ones. */
static bool push(struct dual *dual, struct row *row, struct dual_work *work, uint32_t i, int64_t least, bool of_node) {
        struct dual_cell *cell = work->cells[i];
        struct dual_value *values = dual->values + cell->first;
        struct chain_value *mine = (struct chain_value *) work->links[i].values;
        int64_t slack = dual->target - dual->base - dual->sum;
        int32_t parts = (int32_t) (row->n - i);
        uint32_t kept = 0;
        bool changed = false;

        for (uint32_t k = 0; k < cell->n; k++) {
                struct dual_value v = values[k];
                int64_t above = (int64_t) work->marginal[k] + mine[k].cost - least;
                int32_t *from = of_node ? &v.node_cost : &v.job_cost, *to = of_node ? &v.job_cost : &v.node_cost;

                if (work->marginal[k] >= CHAIN_REACH || above > slack) {
                        changed = true;
                        continue;
                }
                above = (above + parts - 1) / parts;
                if (above > 0 && *from - above >= -cell->reach && *to + above <= cell->reach) {
                        *from -= (int32_t) above;
                        *to += (int32_t) above;
                        changed = true;
                }
                mine[kept] = (struct chain_value) { .x = mine[k].x, .y = mine[k].y, .cost = *from };
                values[kept++] = v;
        }
        cell->n = kept;
        work->links[i].n = kept;
        return changed;
}

/* The pass back: suffix states. Returns the least cost of the chain. */
static int64_t pass_back(const struct dual_work *work, const struct row *row, int64_t price, uint32_t total, size_t stride) {
        int32_t *end = work->suffix + row->n * stride;
        int64_t reach = CHAIN_REACH / 4;
        uint32_t low = row->low, high = row->high;

        for (uint32_t y = 0; y < row->shape.layers; y++)
                for (uint32_t x = low; x <= high; x++) {
                        int64_t cost = price * (total - x);

                        end[y * row->shape.stride + x] = y + 1 < row->shape.layers ? CHAIN_NEVER : (int32_t) (cost < reach ? cost : reach);
                }
        for (uint32_t i = row->n; i-- > 0;) {
                chain_backward(&row->shape, &work->links[i], work->suffix + (i + 1) * stride, work->suffix + i * stride, low, high);
                low = work->links[i].low;
                high = work->links[i].high;
        }
        return work->suffix[low];
}

/* Returns whether costs have been moved or values dropped. */
static bool pass_forth(struct dual *dual, struct dual_work *work, struct row *row, int64_t least, size_t stride, bool of_node) {
        int32_t *state = work->state[0], *next = work->state[1];

        for (uint32_t y = 0; y < row->shape.layers; y++)
                state[y * row->shape.stride] = y == 0 ? 0 : CHAIN_NEVER;
        for (uint32_t i = 0; i < row->n; i++) {
                uint32_t low = i + 1 < row->n ? work->links[i + 1].low : row->low;
                uint32_t high = i + 1 < row->n ? work->links[i + 1].high : row->high;
                int32_t *swap = state;

                chain_marginals(&row->shape, &work->links[i], state, work->suffix + (i + 1) * stride, low, high, work->marginal);
                work->changed[i] = push(dual, row, work, i, least, of_node);
                if (work->links[i].n == 0)
                        return false;
                chain_forward(&row->shape, &work->links[i], state, next, low, high);
                state = next;
                next = swap;
        }
        return true;
}

static bool sweep_chain(struct dual *dual, struct dual_work *work, struct row *row, uint32_t total, int64_t price, bool of_node,
                        int64_t *stored) {
        size_t stride = (size_t) row->shape.stride * row->shape.layers;
        int64_t least;

        if (!set_windows(work, row, total, !of_node))
                return false;
        if (row->n == 0)
                least = price * total < CHAIN_REACH / 4 ? price * total : CHAIN_REACH / 4;
        else
                least = pass_back(work, row, price, total, stride);
        if (least >= CHAIN_REACH)
                return false;
        dual->sum += least + row->constant - *stored;
        *stored = least + row->constant;
        return !dual_is_over(dual) && pass_forth(dual, work, row, least, stride, of_node);
}

static bool sweep_node(struct dual *dual, struct dual_work *work, uint32_t s) {
        const struct problem *problem = dual->problem;
        struct row row = { .shape = { .stride = problem->nodes[s].capacity + 1, .layers = 1 } };
        size_t used = 0;

        for (uint32_t j = 0; j < problem->n_jobs; j++)
                add_link(dual, work, &row, &dual->cells[(size_t) j * problem->n_nodes + s], true, &used);
        if (!sweep_chain(dual, work, &row, problem->nodes[s].capacity, dual->node_price[s], true, &dual->node_least[s]))
                return false;
        for (uint32_t i = 0; i < row.n; i++)
                if (work->changed[i])
                        dual->job_changed[(size_t) (work->cells[i] - dual->cells) / problem->n_nodes] = true;
        return true;
}

static bool sweep_job(struct dual *dual, struct dual_work *work, uint32_t j) {
        const struct problem *problem = dual->problem;
        struct row row = { .shape = { .stride = problem->jobs[j].full + 1, .layers = problem->jobs[j].rest > 0 ? 2 : 1 } };
        size_t used = 0;

        for (uint32_t s = 0; s < problem->n_nodes; s++)
                add_link(dual, work, &row, &dual->cells[(size_t) j * problem->n_nodes + s], false, &used);
        if (!sweep_chain(dual, work, &row, problem->jobs[j].full, 0, false, &dual->job_least[j]))
                return false;
        for (uint32_t i = 0; i < row.n; i++)
                if (work->changed[i])
                        dual->node_changed[(size_t) (work->cells[i] - dual->cells) % problem->n_nodes] = true;
        return true;
}

bool dual_sweep(struct dual *dual, struct dual_work *work) {
        const struct problem *problem = dual->problem;
        bool any = false;

        if (dual_is_over(dual))
                return false;
        for (uint32_t s = 0; s < problem->n_nodes; s++) {
                if (!dual->node_changed[s])
                        continue;
                dual->node_changed[s] = false;
                any = true;
                if (!sweep_node(dual, work, s)) {
                        fail(dual);
                        return false;
                }
        }
        for (uint32_t j = 0; j < problem->n_jobs; j++) {
                if (!dual->job_changed[j])
                        continue;
                dual->job_changed[j] = false;
                any = true;
                if (!sweep_job(dual, work, j)) {
                        fail(dual);
                        return false;
                }
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
                fail(dual);
}
