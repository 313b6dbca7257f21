#include "policies/distrib/facet.h"

#include <glpk.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/arena.h"

enum {
        MAX_WAYS = 300, /* of a job */
        MAX_ROUNDS = 60, /* of one search */
        MAX_PIVOTS = 2000, /* of one program: the solver may go round in circles */
};

static const double least_lack = 0.01, enough = 0.6, hardly = 1e-6;
static const int64_t never = INT64_MAX / 4;

/* Ways to place a job that have been met, one after another: each node, groups there. */
struct ways {
        uint16_t *amounts;
        uint32_t n;
};

struct facets {
        const struct problem *problem;
        uint32_t stride;
        const uint16_t *now_low, *now_high; /* ranges of cells */
        uint16_t *low, *high;               /* as they are taken into account */
        struct ways *ways; /* each job: room for MAX_WAYS; NULL: not asked for yet */
        glp_smcp simplex;
        int *column;     /* as values: of the program; 0: it is not in it */
        int64_t *before; /* by nodes before one and groups on them: the least they weigh */
        int64_t *after;  /* by nodes from one on */
        bool *free_values; /* as values: may become smaller */
        uint16_t *way;   /* each node: groups there */
        uint32_t n_before; /* stride of `before` and `after` */
        struct arena arena;
};

static uint32_t low_of(const struct facets *facets, uint32_t j, uint32_t s) {
        return facets->low[(size_t) j * facets->problem->n_nodes + s];
}

static uint32_t high_of(const struct facets *facets, uint32_t j, uint32_t s) {
        uint32_t high = facets->high[(size_t) j * facets->problem->n_nodes + s], full = facets->problem->jobs[j].full;

        return high < full ? high : full;
}

/* ---- ways in whole numbers ---- */

/* to[x + v] = the least of from[x] and what v groups on the node weigh; or, backwards, to[x] of from[x + v]. */
static void add_node(const struct facets *facets, uint32_t j, uint32_t s, const int32_t *values, const int64_t *from, int64_t *to,
                     bool backwards) {
        uint32_t full = facets->problem->jobs[j].full;

        for (uint32_t x = 0; x <= full; x++)
                to[x] = never;
        for (uint32_t v = low_of(facets, j, s); v <= high_of(facets, j, s); v++) {
                int64_t weight = values[(size_t) s * facets->stride + v];
                const int64_t *source = backwards ? from + v : from;
                int64_t *target = backwards ? to : to + v;

                for (uint32_t x = 0; x + v <= full; x++)
                        target[x] = source[x] + weight < target[x] ? source[x] + weight : target[x];
        }
}

static int64_t *before_of(const struct facets *facets, uint32_t s) {
        return facets->before + (size_t) s * facets->n_before;
}

static int64_t *after_of(const struct facets *facets, uint32_t s) {
        return facets->after + (size_t) s * facets->n_before;
}

/* The way over the nodes before `s` that weighs least, with `left` groups; `before` is known. */
static void trace_before(struct facets *facets, uint32_t j, const int32_t *values, uint32_t s, uint32_t left) {
        while (s-- > 0) {
                const int64_t *from = before_of(facets, s);
                int64_t to = before_of(facets, s + 1)[left];
                uint32_t v = low_of(facets, j, s);

                while (from[left - v] + values[(size_t) s * facets->stride + v] != to)
                        v++;
                facets->way[s] = (uint16_t) v;
                left -= v;
        }
}

/* The same over the nodes from `s` on, when there are `x` groups before them; `after` is known. */
static void trace_after(struct facets *facets, uint32_t j, const int32_t *values, uint32_t s, uint32_t x) {
        for (; s < facets->problem->n_nodes; s++) {
                const int64_t *to = after_of(facets, s + 1);
                int64_t from = after_of(facets, s)[x];
                uint32_t v = low_of(facets, j, s);

                while (to[x + v] + values[(size_t) s * facets->stride + v] != from)
                        v++;
                facets->way[s] = (uint16_t) v;
                x += v;
        }
}

/* The least that any way of the job weighs, and that way. INT64_MAX: there is none. */
static int64_t least_way(struct facets *facets, uint32_t j, const int32_t *values) {
        uint32_t nodes = facets->problem->n_nodes, full = facets->problem->jobs[j].full;

        for (uint32_t x = 0; x <= full; x++)
                before_of(facets, 0)[x] = x == 0 ? 0 : never;
        for (uint32_t s = 0; s < nodes; s++)
                add_node(facets, j, s, values, before_of(facets, s), before_of(facets, s + 1), false);
        if (before_of(facets, nodes)[full] > never / 2)
                return INT64_MAX;
        trace_before(facets, j, values, nodes, full);
        return before_of(facets, nodes)[full];
}

static void look_back(struct facets *facets, uint32_t j, const int32_t *values) {
        uint32_t nodes = facets->problem->n_nodes, full = facets->problem->jobs[j].full;

        for (uint32_t x = 0; x <= full; x++)
                after_of(facets, nodes)[x] = x == full ? 0 : never;
        for (uint32_t s = nodes; s-- > 0;)
                add_node(facets, j, s, values, after_of(facets, s + 1), after_of(facets, s), true);
}

/* Make free values as small as they can be, one after another, such that all ways still weigh `least`; but not below `lowest`. */
static void lower_values(struct facets *facets, uint32_t j, int32_t *values, int64_t least, int32_t lowest) {
        uint32_t nodes = facets->problem->n_nodes, full = facets->problem->jobs[j].full;

        look_back(facets, j, values);
        for (uint32_t x = 0; x <= full; x++)
                before_of(facets, 0)[x] = x == 0 ? 0 : never;
        for (uint32_t s = 0; s < nodes; s++) {
                const int64_t *before = before_of(facets, s), *after = after_of(facets, s + 1);

                for (uint32_t v = low_of(facets, j, s); v <= high_of(facets, j, s); v++) {
                        size_t i = (size_t) s * facets->stride + v;
                        int64_t others = never, value;

                        for (uint32_t x = 0; x + v <= full && facets->free_values[i]; x++)
                                others = before[x] + after[x + v] < others ? before[x] + after[x + v] : others;
                        value = least - others > lowest ? least - others : lowest;
                        if (facets->free_values[i] && value < values[i])
                                values[i] = (int32_t) value;
                }
                add_node(facets, j, s, values, before, before_of(facets, s + 1), false);
        }
}

/* ---- the program of one job ---- */

/* facets->way is remembered. False: no memory. */
static bool keep_way(struct facets *facets, uint32_t j) {
        struct ways *ways = &facets->ways[j];
        size_t nodes = facets->problem->n_nodes;

        if (!ways->amounts)
                ways->amounts = calloc(MAX_WAYS * nodes, sizeof(*ways->amounts));
        if (!ways->amounts)
                return false;
        memcpy(ways->amounts + ways->n++ * nodes, facets->way, nodes * sizeof(*facets->way));
        return true;
}

/* A row: that way must weigh as much as the right side says. Values that are not in the program weigh 1. */
static void add_way(const struct facets *facets, glp_prob *lp, const uint16_t *way) {
        int indices[64], n = 0, row = glp_add_rows(lp, 1), others = 0;
        double coefficients[64];

        for (uint32_t s = 0; s < facets->problem->n_nodes; s++) {
                int column = way[s] > 0 ? facets->column[(size_t) s * facets->stride + way[s]] : 0;

                if (column > 0) {
                        indices[++n] = column;
                        coefficients[n] = 1;
                }
                others += way[s] > 0 && column == 0;
        }
        indices[++n] = 1;
        coefficients[n] = -1;
        glp_set_row_bnds(lp, row, GLP_LO, -others, 0);
        glp_set_mat_row(lp, row, n, indices, coefficients);
}

/* Variables: the right side, and the values that the shares have; all others are as large as can be, to be lowered later. Rows: the
 * ways known. What the right side exceeds the shares by is to be large. */
static glp_prob *create_program(struct facets *facets, uint32_t j, const double *shares) {
        const struct ways *ways = &facets->ways[j];
        glp_prob *lp = glp_create_prob();

        glp_set_obj_dir(lp, GLP_MAX);
        glp_add_cols(lp, 1);
        glp_set_col_bnds(lp, 1, GLP_FR, 0, 0);
        glp_set_obj_coef(lp, 1, 1);
        for (uint32_t s = 0; s < facets->problem->n_nodes; s++)
                for (uint32_t v = 1; v < facets->stride; v++) {
                        size_t i = (size_t) s * facets->stride + v;

                        facets->free_values[i] = shares[i] <= hardly || v < low_of(facets, j, s) || v > high_of(facets, j, s);
                        facets->column[i] = facets->free_values[i] ? 0 : glp_add_cols(lp, 1);
                        if (facets->free_values[i])
                                continue;
                        glp_set_col_bnds(lp, facets->column[i], GLP_DB, -1, 1);
                        glp_set_obj_coef(lp, facets->column[i], -shares[i]);
                }
        for (uint32_t k = 0; k < ways->n; k++)
                add_way(facets, lp, ways->amounts + (size_t) k * facets->problem->n_nodes);
        return lp;
}

/* What the program found, in whole numbers. Returns what the shares weigh at that. */
static double read_values(const struct facets *facets, glp_prob *lp, const double *shares, int32_t *values) {
        double kept = 0;

        for (uint32_t s = 0; s < facets->problem->n_nodes; s++) {
                values[(size_t) s * facets->stride] = 0;
                for (uint32_t v = 1; v < facets->stride; v++) {
                        size_t i = (size_t) s * facets->stride + v;

                        values[i] = FACET_UNIT;
                        if (!facets->free_values[i]) {
                                values[i] = (int32_t) lround(FACET_UNIT * glp_get_col_prim(lp, facets->column[i]));
                                kept += values[i] * shares[i];
                        }
                }
        }
        return kept;
}

/* The way is among those known from `first` on. */
static bool is_known(const struct facets *facets, uint32_t j, uint32_t first) {
        const struct ways *ways = &facets->ways[j];
        size_t nodes = facets->problem->n_nodes;

        while (first < ways->n && memcmp(ways->amounts + first * nodes, facets->way, nodes * sizeof(*facets->way)) != 0)
                first++;
        return first < ways->n;
}

/* After least_way(): of the ways with each value looked for, those that weigh least, where that is less than the right side. */
static void add_more_ways(struct facets *facets, uint32_t j, const int32_t *values, int64_t right_side, glp_prob *lp) {
        uint32_t first = facets->ways[j].n - 1, full = facets->problem->jobs[j].full;

        look_back(facets, j, values);
        for (uint32_t s = 0; s < facets->problem->n_nodes; s++) {
                const int64_t *before = before_of(facets, s), *after = after_of(facets, s + 1);

                for (uint32_t v = 1; v < facets->stride; v++) {
                        size_t i = (size_t) s * facets->stride + v;
                        int64_t least = never;
                        uint32_t best = 0;

                        for (uint32_t x = 0; x + v <= full && !facets->free_values[i]; x++)
                                if (before[x] + after[x + v] < least) {
                                        least = before[x] + after[x + v];
                                        best = x;
                                }
                        if (facets->free_values[i] || least + values[i] >= right_side || facets->ways[j].n == MAX_WAYS)
                                continue;
                        trace_before(facets, j, values, s, best);
                        facets->way[s] = (uint16_t) v;
                        trace_after(facets, j, values, s + 1, best + v);
                        if (!is_known(facets, j, first) && keep_way(facets, j))
                                add_way(facets, lp, facets->way);
                }
        }
}

static bool find(struct facets *facets, uint32_t job, const double *shares, glp_prob *lp, int32_t *ret_values, int64_t *ret_least) {
        for (int i = 0; i < MAX_ROUNDS && facets->ways[job].n < MAX_WAYS; i++) {
                double kept, hoped;

                facets->simplex.meth = i == 0 ? GLP_PRIMAL : GLP_DUALP;
                if (glp_simplex(lp, &facets->simplex) != 0 || glp_get_status(lp) != GLP_OPT)
                        return false;
                hoped = glp_get_obj_val(lp);
                if (hoped < least_lack)
                        return false;
                kept = read_values(facets, lp, shares, ret_values);
                *ret_least = least_way(facets, job, ret_values);
                if (*ret_least == INT64_MAX || !keep_way(facets, job))
                        return false;
                if (((double) *ret_least - kept) / FACET_UNIT > fmax(least_lack, hoped * enough)) {
                        lower_values(facets, job, ret_values, *ret_least, -2 * FACET_UNIT);
                        *ret_least = least_way(facets, job, ret_values);
                        return true;
                }
                add_way(facets, lp, facets->way);
                add_more_ways(facets, job, ret_values, lround(FACET_UNIT * glp_get_col_prim(lp, 1)), lp);
        }
        return false;
}

bool facets_find(struct facets *facets, uint32_t job, const double *shares, int32_t *ret_values, int64_t *ret_least) {
        struct ways *ways = &facets->ways[job];
        glp_prob *lp;
        bool found;

        if (2 * ways->n > MAX_WAYS)
                ways->n = 0;
        if (ways->n == 0) {
                for (uint32_t i = 0; i < facets->problem->n_nodes * facets->stride; i++)
                        ret_values[i] = i % facets->stride > 0 ? FACET_UNIT : 0;
                if (least_way(facets, job, ret_values) == INT64_MAX || !keep_way(facets, job))
                        return false;
        }
        lp = create_program(facets, job, shares);
        found = find(facets, job, shares, lp, ret_values, ret_least);
        glp_delete_prob(lp);
        return found;
}

bool facets_import(struct facets *facets, uint32_t job, const double *costs, int32_t *ret_values, int64_t *ret_least) {
        uint32_t nodes = facets->problem->n_nodes;
        double most = 0;

        for (uint32_t s = 0; s < nodes; s++) {
                const double *of_cell = costs + problem_cell(facets->problem, job, s)->first;

                for (uint32_t v = low_of(facets, job, s); v <= high_of(facets, job, s); v++)
                        if (of_cell[v] < INFINITY)
                                most = fmax(most, fabs(of_cell[v] - (low_of(facets, job, s) == 0 ? of_cell[0] : 0)));
        }
        if (most <= 0)
                return false;
        for (uint32_t s = 0; s < nodes; s++) {
                const double *of_cell = costs + problem_cell(facets->problem, job, s)->first;
                uint32_t low = low_of(facets, job, s), high = high_of(facets, job, s);

                for (uint32_t v = 0; v < facets->stride; v++) {
                        size_t i = (size_t) s * facets->stride + v;

                        facets->free_values[i] = v >= low && v <= high && !(of_cell[v] < INFINITY);
                        ret_values[i] = FACET_MOST;
                        if (v >= low && v <= high && of_cell[v] < INFINITY)
                                ret_values[i] = (int32_t) lround((of_cell[v] - (low == 0 ? of_cell[0] : 0)) / most * FACET_MOST);
                }
        }
        *ret_least = least_way(facets, job, ret_values);
        if (*ret_least == INT64_MAX)
                return false;
        lower_values(facets, job, ret_values, *ret_least, -FACET_MOST);
        *ret_least = least_way(facets, job, ret_values);
        return true;
}

/* ---- making ---- */

struct facets *facets_create(const struct problem *problem, uint32_t stride, const uint16_t *low, const uint16_t *high) {
        struct facets *facets = calloc(1, sizeof(*facets));
        size_t cells = (size_t) problem->n_jobs * problem->n_nodes, states;

        if (!facets)
                return NULL;
        facets->problem = problem;
        facets->stride = stride;
        facets->n_before = 1;
        for (uint32_t j = 0; j < problem->n_jobs; j++)
                if (problem->jobs[j].full >= facets->n_before)
                        facets->n_before = problem->jobs[j].full + 1;
        states = (size_t) facets->n_before * (problem->n_nodes + 1u);
        glp_init_smcp(&facets->simplex);
        facets->simplex.msg_lev = GLP_MSG_OFF;
        facets->simplex.it_lim = MAX_PIVOTS;
        facets->low = arena_alloc(&facets->arena, cells, sizeof(*facets->low));
        facets->high = arena_alloc(&facets->arena, cells, sizeof(*facets->high));
        facets->ways = arena_alloc(&facets->arena, problem->n_jobs, sizeof(*facets->ways));
        facets->before = arena_alloc(&facets->arena, states, sizeof(*facets->before));
        facets->after = arena_alloc(&facets->arena, states, sizeof(*facets->after));
        facets->way = arena_alloc(&facets->arena, problem->n_nodes, sizeof(*facets->way));
        facets->column = arena_alloc(&facets->arena, (size_t) problem->n_nodes * stride, sizeof(*facets->column));
        facets->free_values = arena_alloc(&facets->arena, (size_t) problem->n_nodes * stride, sizeof(*facets->free_values));
        if (facets->arena.failed) {
                facets_destroy(facets);
                return NULL;
        }
        facets->now_low = low;
        facets->now_high = high;
        memcpy(facets->low, low, cells * sizeof(*low));
        memcpy(facets->high, high, cells * sizeof(*high));
        return facets;
}

/* Ways that are none any more only make cuts weaker, but what they cost is time. */
void facets_narrow(struct facets *facets) {
        for (uint32_t j = 0; j < facets->problem->n_jobs; j++) {
                size_t first = (size_t) j * facets->problem->n_nodes, bytes = facets->problem->n_nodes * sizeof(*facets->low);

                if (memcmp(facets->low + first, facets->now_low + first, bytes) == 0 &&
                    memcmp(facets->high + first, facets->now_high + first, bytes) == 0)
                        continue;
                memcpy(facets->low + first, facets->now_low + first, bytes);
                memcpy(facets->high + first, facets->now_high + first, bytes);
                facets->ways[j].n = 0;
        }
}

void facets_destroy(struct facets *facets) {
        if (!facets)
                return;
        for (uint32_t j = 0; facets->ways && j < facets->problem->n_jobs; j++)
                free(facets->ways[j].amounts);
        arena_finish(&facets->arena);
        free(facets);
}
