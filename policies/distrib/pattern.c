#include "policies/distrib/pattern.h"

#include <errno.h>
#include <glpk.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/arena.h"

/* Prices are scaled by 2^SHIFT and stay within 2^40, as costs do; with the other limits no sum of products gets to 2^62. */
enum {
        SHIFT = 20,
        MAX_COST = 1 << 18,
        MAX_PRICE = 1 << 20,
        MAX_SIDE = 32,        /* jobs, and nodes: bits of a set */
        MAX_CAPACITY = 1024,
        MAX_WEIGHT = 8,
        MAX_FULL = 1024,      /* groups of a job */
        COVER_SIZES = 64,     /* that are tried, for a job */
        MAX_COVERS = 16,      /* of a job */
        MAX_CUTS = 2000,
        MAX_COLUMNS = 20000,
        IMPROVE_EVERY = 16,   /* nodes of the tree */
        TRIALS = 4,           /* choices of which both sides are tried */
        TRIAL_PIVOTS = 40,
        ARTIFICIAL = UINT8_MAX, /* the node of a column that stands for what is missing */
};

static const double hardly = 1e-6;       /* of a pattern */
static const double worthwhile = 1e-3;   /* a cost that a column must save */

/* On how many of some nodes a job is, each counted as often as its weight says: low .. high. */
struct cut {
        uint32_t job;
        uint8_t weight[MAX_SIDE];
        int64_t low, high;
        int64_t price;
};

struct column {
        uint64_t jobs;
        uint8_t node;
};

/* Nodes that hold the job weigh at least this. */
struct cover {
        uint32_t low;
        uint8_t weight[MAX_SIDE];
};

/* low .. split - 1, and split .. high. */
struct branch {
        uint32_t cut;
        int64_t split, low, high;
        bool second;
};

enum outcome { OUTCOME_FAILED, OUTCOME_OVER, OUTCOME_OPEN };

struct pattern {
        const struct problem *problem;
        const struct pattern_host *host;
        glp_prob *lp; /* rows: jobs, nodes, cuts */
        glp_smcp simplex;
        struct column *columns;
        struct cut *cuts;
        struct branch *branches; /* taken now */
        uint32_t n_columns, n_cuts, n_branches;
        uint64_t *alike;    /* each node: those like it */
        struct cover **covers; /* each job's: cuts of it that could be */
        uint32_t *n_covers, *n_taken; /* each job: of these, and of those that are cuts */
        uint32_t *cover;    /* by groups: the least weight of nodes that hold them */
        int64_t *job_price; /* of a group, scaled, >= 0 */
        int64_t *least;     /* by jobs and groups on a node */
        uint32_t *taken;
        uint32_t stride;
        uint32_t *amount;   /* the pattern found, each job */
        double *used;       /* each cell: how much the job is on the node */
        bool *support;
        int *rows;          /* of a column, or columns of a row */
        double *coefficients;
        uint8_t *row_status, *column_status; /* of a basis */
        double penalty;     /* of what is missing */
        int64_t bound;      /* scaled, of the last program solved */
        struct arena arena;
};

/* ---- the form of prices ---- */

static int64_t slope_of(const struct problem *problem, uint32_t j, uint32_t s) {
        const struct cell *cell = problem_cell(problem, j, s);
        const int64_t *price = problem->prices + cell->first;

        return cell->n > 2 ? price[2] - price[1] : 0;
}

static int64_t fixed_of(const struct problem *problem, uint32_t j, uint32_t s) {
        const struct cell *cell = problem_cell(problem, j, s);

        return cell->n > 1 ? problem->prices[cell->first + 1] - slope_of(problem, j, s) : 0;
}

/* Rising, so that more than all groups is never cheaper than all. */
static bool cell_applies(const struct problem *problem, uint32_t j, uint32_t s) {
        const struct cell *cell = problem_cell(problem, j, s);
        const int64_t *price = problem->prices + cell->first;
        int64_t slope = slope_of(problem, j, s);

        if (cell->n == 0 || price[0] != 0)
                return false;
        for (uint32_t v = 1; v < cell->n; v++)
                if (price[v] < price[v - 1] || price[v] > MAX_COST || (v > 1 && price[v] - price[v - 1] != slope))
                        return false;
        return true;
}

bool pattern_applies(const struct problem *problem, int64_t cost) {
        bool applies = problem->n_jobs > 0 && problem->n_nodes > 0 && problem->n_jobs <= MAX_SIDE && problem->n_nodes <= MAX_SIDE &&
                       cost >= 0 && cost <= MAX_COST;

        for (uint32_t s = 0; s < problem->n_nodes && applies; s++)
                applies = problem->nodes[s].capacity <= MAX_CAPACITY;
        for (uint32_t j = 0; j < problem->n_jobs && applies; j++) {
                applies = problem->jobs[j].rest == 0 && problem->jobs[j].size == 1 && problem->jobs[j].full > 0 &&
                          problem->jobs[j].full <= MAX_FULL;
                for (uint32_t s = 0; s < problem->n_nodes && applies; s++)
                        applies = cell_applies(problem, j, s);
        }
        return applies;
}

static bool same_node(const struct problem *problem, uint32_t s, uint32_t t) {
        bool same = problem->nodes[s].capacity == problem->nodes[t].capacity;

        for (uint32_t j = 0; j < problem->n_jobs && same; j++)
                same = problem_cell(problem, j, s)->n == problem_cell(problem, j, t)->n &&
                       slope_of(problem, j, s) == slope_of(problem, j, t) && fixed_of(problem, j, s) == fixed_of(problem, j, t);
        return same;
}

/* ---- the linear program ---- */

static int row_of_node(const struct pattern *pattern, uint32_t s) {
        return (int) (pattern->problem->n_jobs + s) + 1;
}

static int row_of_cut(const struct pattern *pattern, uint32_t i) {
        return (int) (pattern->problem->n_jobs + pattern->problem->n_nodes + i) + 1;
}

static uint32_t weight_of(const struct cut *cut, const struct column *column) {
        return column->node != ARTIFICIAL && (column->jobs >> cut->job & 1) ? cut->weight[column->node] : 0;
}

static void add_artificial(struct pattern *pattern, int row, double sign) {
        int rows[2] = { 0, row }, column = glp_add_cols(pattern->lp, 1);
        double coefficients[2] = { 0, sign };

        pattern->columns[pattern->n_columns++] = (struct column) { .node = ARTIFICIAL };
        glp_set_col_bnds(pattern->lp, column, GLP_LO, 0, 0);
        glp_set_obj_coef(pattern->lp, column, pattern->penalty);
        glp_set_mat_col(pattern->lp, column, 1, rows, coefficients);
}

/* A pattern of node s: pattern->amount. */
static void add_column(struct pattern *pattern, uint32_t s) {
        const struct problem *problem = pattern->problem;
        struct column *column = &pattern->columns[pattern->n_columns];
        int index, n = 0;
        int64_t cost = 0;

        if (pattern->n_columns >= MAX_COLUMNS)
                return;
        pattern->n_columns++;
        *column = (struct column) { .node = (uint8_t) s };
        for (uint32_t j = 0; j < problem->n_jobs; j++) {
                if (pattern->amount[j] == 0)
                        continue;
                column->jobs |= (uint64_t) 1 << j;
                cost += problem->prices[problem_cell(problem, j, s)->first + pattern->amount[j]];
                pattern->rows[++n] = (int) j + 1;
                pattern->coefficients[n] = pattern->amount[j];
        }
        pattern->rows[++n] = row_of_node(pattern, s);
        pattern->coefficients[n] = 1;
        for (uint32_t i = 0; i < pattern->n_cuts; i++)
                if (weight_of(&pattern->cuts[i], column) > 0) {
                        pattern->rows[++n] = row_of_cut(pattern, i);
                        pattern->coefficients[n] = weight_of(&pattern->cuts[i], column);
                }
        index = glp_add_cols(pattern->lp, 1);
        glp_set_col_bnds(pattern->lp, index, GLP_LO, 0, 0);
        glp_set_obj_coef(pattern->lp, index, (double) cost);
        glp_set_mat_col(pattern->lp, index, n, pattern->rows, pattern->coefficients);
}

static void set_cut_bounds(struct pattern *pattern, uint32_t i) {
        const struct cut *cut = &pattern->cuts[i];

        glp_set_row_bnds(pattern->lp, row_of_cut(pattern, i), cut->low == cut->high ? GLP_FX : GLP_DB, (double) cut->low,
                         (double) cut->high);
}

/* A new one, or the same that is there. MAX_CUTS: no more room. */
static uint32_t find_cut(struct pattern *pattern, uint32_t job, const uint8_t *weight) {
        struct cut *cut;
        uint32_t i = 0;
        int n = 0;

        while (i < pattern->n_cuts &&
               (pattern->cuts[i].job != job || memcmp(pattern->cuts[i].weight, weight, sizeof(cut->weight)) != 0))
                i++;
        if (i < pattern->n_cuts || i == MAX_CUTS || pattern->n_columns + 2 > MAX_COLUMNS)
                return i < pattern->n_cuts ? i : MAX_CUTS;
        cut = &pattern->cuts[pattern->n_cuts++];
        *cut = (struct cut) { .job = job };
        memcpy(cut->weight, weight, sizeof(cut->weight));
        for (uint32_t s = 0; s < pattern->problem->n_nodes; s++)
                cut->high += weight[s];
        glp_add_rows(pattern->lp, 1);
        for (uint32_t k = 0; k < pattern->n_columns; k++)
                if (weight_of(cut, &pattern->columns[k]) > 0) {
                        pattern->rows[++n] = (int) k + 1;
                        pattern->coefficients[n] = weight_of(cut, &pattern->columns[k]);
                }
        glp_set_mat_row(pattern->lp, row_of_cut(pattern, i), n, pattern->rows, pattern->coefficients);
        set_cut_bounds(pattern, i);
        add_artificial(pattern, row_of_cut(pattern, i), 1);
        add_artificial(pattern, row_of_cut(pattern, i), -1);
        return i;
}

/* How much of what is missing the program pays for. */
static double missing(const struct pattern *pattern) {
        double sum = 0;

        for (uint32_t k = 0; k < pattern->n_columns; k++)
                if (pattern->columns[k].node == ARTIFICIAL)
                        sum += glp_get_col_prim(pattern->lp, (int) k + 1);
        return sum;
}

static void raise_penalty(struct pattern *pattern) {
        pattern->penalty *= 8;
        for (uint32_t k = 0; k < pattern->n_columns; k++)
                if (pattern->columns[k].node == ARTIFICIAL)
                        glp_set_obj_coef(pattern->lp, (int) k + 1, pattern->penalty);
}

/* ---- the bound at given prices, exact ---- */

static int64_t scaled(double price) {
        if (!(fabs(price) < MAX_PRICE))
                price = price > 0 ? MAX_PRICE : price < 0 ? -MAX_PRICE : 0;
        return llround(ldexp(price, SHIFT));
}

static void read_prices(struct pattern *pattern) {
        for (uint32_t j = 0; j < pattern->problem->n_jobs; j++) {
                double price = glp_get_row_dual(pattern->lp, (int) j + 1);

                pattern->job_price[j] = price > 0 ? scaled(price) : 0;
        }
        for (uint32_t i = 0; i < pattern->n_cuts; i++)
                pattern->cuts[i].price = scaled(glp_get_row_dual(pattern->lp, row_of_cut(pattern, i)));
}

/* What it costs to be on the node with some of the job, the prices of cuts paid. */
static int64_t fixed_now(const struct pattern *pattern, uint32_t j, uint32_t s) {
        int64_t fixed = fixed_of(pattern->problem, j, s) * ((int64_t) 1 << SHIFT);

        for (uint32_t i = 0; i < pattern->n_cuts; i++)
                if (pattern->cuts[i].job == j)
                        fixed -= pattern->cuts[i].price * pattern->cuts[i].weight[s];
        return fixed;
}

/* to[c] = the least of from[c], and of from[c - x] + fixed + slope * x for 1 <= x <= most: a sliding minimum. */
static void take_job(const int64_t *from, int64_t *to, uint32_t *taken, uint32_t capacity, uint32_t most, int64_t fixed,
                     int64_t slope) {
        uint32_t queue[MAX_CAPACITY + 1], head = 0, tail = 0;

        to[0] = from[0];
        taken[0] = 0;
        for (uint32_t c = 1; c <= capacity; c++) {
                int64_t fresh = from[c - 1] - slope * (c - 1), cost;

                while (tail > head && from[queue[tail - 1]] - slope * queue[tail - 1] >= fresh)
                        tail--;
                queue[tail++] = c - 1;
                if (queue[head] + most < c)
                        head++;
                cost = from[queue[head]] + slope * (c - queue[head]) + fixed;
                to[c] = cost < from[c] ? cost : from[c];
                taken[c] = cost < from[c] ? c - queue[head] : 0;
        }
}

/* The cheapest pattern of node s at the prices, into pattern->amount; none is one of them. */
static int64_t best_pattern(struct pattern *pattern, uint32_t s) {
        const struct problem *problem = pattern->problem;
        uint32_t capacity = problem->nodes[s].capacity, left = capacity;
        int64_t *least = pattern->least;

        memset(least, 0, sizeof(*least) * (capacity + 1));
        for (uint32_t j = 0; j < problem->n_jobs; j++) {
                uint32_t most = problem_cell(problem, j, s)->n - 1, *taken = pattern->taken + (size_t) j * pattern->stride;
                int64_t slope = slope_of(problem, j, s) * ((int64_t) 1 << SHIFT) - pattern->job_price[j];

                if (most > 0)
                        take_job(least, least + pattern->stride, taken, capacity, most, fixed_now(pattern, j, s), slope);
                else {
                        memcpy(least + pattern->stride, least, sizeof(*least) * (capacity + 1));
                        memset(taken, 0, sizeof(*taken) * (capacity + 1));
                }
                least += pattern->stride;
        }
        for (uint32_t j = problem->n_jobs; j-- > 0;) {
                pattern->amount[j] = pattern->taken[(size_t) j * pattern->stride + left];
                left -= pattern->amount[j];
        }
        return least[capacity];
}

/* Also adds the patterns that the program lacks. */
static int64_t price_out(struct pattern *pattern, uint32_t *ret_added) {
        const struct problem *problem = pattern->problem;
        int64_t bound = 0;

        *ret_added = 0;
        read_prices(pattern);
        for (uint32_t j = 0; j < problem->n_jobs; j++)
                bound += pattern->job_price[j] * problem->jobs[j].full;
        for (uint32_t i = 0; i < pattern->n_cuts; i++)
                bound += pattern->cuts[i].price * (pattern->cuts[i].price > 0 ? pattern->cuts[i].low : pattern->cuts[i].high);
        for (uint32_t s = 0; s < problem->n_nodes; s++) {
                int64_t least = best_pattern(pattern, s);

                bound += least;
                if (ldexp((double) least, -SHIFT) < glp_get_row_dual(pattern->lp, row_of_node(pattern, s)) - worthwhile) {
                        add_column(pattern, s);
                        ++*ret_added;
                }
        }
        return bound;
}

/* ---- one node of the tree ---- */

static bool solve_program(struct pattern *pattern, bool branched) {
        int64_t left = pattern->host->left_usec(pattern->host->context) / 1000;

        if (left <= 0)
                return false;
        pattern->simplex.meth = branched ? GLP_DUALP : GLP_PRIMAL;
        pattern->simplex.tm_lim = left < 1000000 ? (int) left : 1000000;
        if (glp_simplex(pattern->lp, &pattern->simplex) != 0) { /* the basis may be no good: once more, from the beginning */
                glp_std_basis(pattern->lp);
                if (glp_simplex(pattern->lp, &pattern->simplex) != 0)
                        return false;
        }
        return glp_get_status(pattern->lp) == GLP_OPT;
}

/* More is asked for than may be. */
static bool is_impossible(const struct pattern *pattern) {
        bool impossible = false;

        for (uint32_t i = 0; i < pattern->n_cuts && !impossible; i++)
                impossible = pattern->cuts[i].low > pattern->cuts[i].high;
        return impossible;
}

static bool is_over(const struct pattern *pattern) {
        return pattern->bound > pattern->host->target(pattern->host->context) * ((int64_t) 1 << SHIFT);
}

/* Patterns are added until it is over; or until it cannot get over any more, or there are no better ones: then something is to be chosen.
 * `to_the_end`: for the best bound. */
static enum outcome tighten(struct pattern *pattern, bool to_the_end) {
        bool branched = true;

        pattern->bound = INT64_MIN;
        if (is_impossible(pattern))
                return OUTCOME_OVER;
        for (;;) {
                uint32_t added;
                int64_t bound;
                double lacks, value;

                if (pattern->n_columns >= MAX_COLUMNS || !solve_program(pattern, branched))
                        return OUTCOME_FAILED;
                branched = false;
                lacks = missing(pattern);
                value = glp_get_obj_val(pattern->lp);
                bound = price_out(pattern, &added);
                if (bound > pattern->bound)
                        pattern->bound = bound;
                if (is_over(pattern))
                        return OUTCOME_OVER;
                if (added == 0 && lacks > hardly) {
                        if (pattern->penalty * 8 > MAX_PRICE)
                                return OUTCOME_FAILED;
                        raise_penalty(pattern);
                } else if (added == 0 ||
                           (!to_the_end && lacks <= hardly && value <= (double) pattern->host->target(pattern->host->context)))
                        return OUTCOME_OPEN;
        }
}

/* ---- where the job needs more nodes than the program gives it ---- */

static void count_used(struct pattern *pattern) {
        const struct problem *problem = pattern->problem;

        memset(pattern->used, 0, sizeof(*pattern->used) * problem->n_jobs * problem->n_nodes);
        for (uint32_t k = 0; k < pattern->n_columns; k++) {
                const struct column *column = &pattern->columns[k];
                double share = glp_get_col_prim(pattern->lp, (int) k + 1);

                for (uint32_t j = 0; j < problem->n_jobs && column->node != ARTIFICIAL && share > hardly / 100; j++)
                        if (column->jobs >> j & 1)
                                pattern->used[(size_t) j * problem->n_nodes + column->node] += share;
        }
}

static double weighed_use(const struct pattern *pattern, uint32_t job, const uint8_t *weight) {
        double sum = 0;

        for (uint32_t s = 0; s < pattern->problem->n_nodes; s++)
                sum += weight[s] * pattern->used[(size_t) job * pattern->problem->n_nodes + s];
        return sum;
}

/* The least weight of nodes that together hold the job; UINT32_MAX: none do. */
static uint32_t least_cover(struct pattern *pattern, uint32_t j, const uint8_t *weight) {
        uint32_t full = pattern->problem->jobs[j].full, *cover = pattern->cover;

        for (uint32_t x = 1; x <= full; x++)
                cover[x] = UINT32_MAX;
        cover[0] = 0;
        for (uint32_t s = 0; s < pattern->problem->n_nodes; s++) {
                uint32_t room = problem_cell(pattern->problem, j, s)->n - 1;

                for (uint32_t x = full; x > 0 && room > 0; x--) {
                        uint32_t before = cover[x > room ? x - room : 0];

                        if (before != UINT32_MAX && before + weight[s] < cover[x])
                                cover[x] = before + weight[s];
                }
        }
        return cover[full];
}

/* Nodes weigh by how many parts of `size` groups they hold, begun ones too; or 1, those for `size` groups 2. */
static bool weigh_nodes(const struct pattern *pattern, uint32_t j, uint32_t size, bool parts, uint8_t *ret_weight) {
        uint32_t full = pattern->problem->jobs[j].full;

        memset(ret_weight, 0, MAX_SIDE);
        for (uint32_t s = 0; s < pattern->problem->n_nodes; s++) {
                uint32_t room = problem_cell(pattern->problem, j, s)->n - 1;
                uint32_t weight = parts ? (room + size - 1) / size : room == 0 ? 0 : room >= size ? 2 : 1;

                if (weight > MAX_WEIGHT)
                        return false;
                ret_weight[s] = (uint8_t) weight;
        }
        return size <= full;
}

static bool list_covers(struct pattern *pattern, uint32_t j) {
        uint32_t full = pattern->problem->jobs[j].full, sizes = full < COVER_SIZES ? full : COVER_SIZES, n = 0;
        struct cover *covers = arena_alloc(&pattern->arena, 2 * (size_t) sizes, sizeof(*covers));

        if (!covers)
                return false;
        for (uint32_t i = 0; i < 2 * sizes; i++) {
                bool known = !weigh_nodes(pattern, j, (i / 2 + 1) * full / sizes, i % 2, covers[n].weight);

                for (uint32_t k = 0; k < n && !known; k++)
                        known = memcmp(covers[k].weight, covers[n].weight, MAX_SIDE) == 0;
                if (!known && (covers[n].low = least_cover(pattern, j, covers[n].weight)) != UINT32_MAX)
                        n++;
        }
        pattern->covers[j] = covers;
        pattern->n_covers[j] = n;
        return true;
}

/* The cut that is farthest from being kept. */
static bool add_cover(struct pattern *pattern, uint32_t j) {
        const struct cover *best = NULL;
        double most = 0.02;
        uint32_t i;

        for (uint32_t k = 0; k < pattern->n_covers[j]; k++) {
                const struct cover *cover = &pattern->covers[j][k];
                double lacks = 1 - weighed_use(pattern, j, cover->weight) / cover->low;

                if (lacks > most) {
                        most = lacks;
                        best = cover;
                }
        }
        if (!best || (i = find_cut(pattern, j, best->weight)) == MAX_CUTS || pattern->cuts[i].low >= best->low)
                return false;
        pattern->cuts[i].low = best->low;
        set_cut_bounds(pattern, i);
        pattern->n_taken[j]++;
        return true;
}

static bool add_covers(struct pattern *pattern) {
        bool any = false;

        for (uint32_t j = 0; j < pattern->problem->n_jobs; j++)
                any |= pattern->n_taken[j] < MAX_COVERS && add_cover(pattern, j);
        return any;
}

/* ---- where to branch ---- */

static void weigh_set(const struct pattern *pattern, uint64_t nodes, uint8_t *ret_weight) {
        memset(ret_weight, 0, MAX_SIDE);
        for (uint32_t s = 0; s < pattern->problem->n_nodes; s++)
                ret_weight[s] = nodes >> s & 1;
}

/* A job, and nodes on how many of which it is by `used`. */
struct choice {
        uint32_t job;
        uint64_t nodes;
        double used, score;
};

static void insert_choice(struct choice *choices, uint32_t *n, uint32_t max, struct choice choice) {
        uint32_t at = *n;

        for (; at > 0 && choices[at - 1].score < choice.score; at--)
                if (at < max)
                        choices[at] = choices[at - 1];
        if (at < max) {
                choices[at] = choice;
                *n = *n < max ? *n + 1 : max;
        }
}

/* What is farthest from a whole number, weighed by what a node costs. */
static uint32_t list_choices(const struct pattern *pattern, const uint64_t *sets, uint32_t n_sets, struct choice *ret_choices,
                             uint32_t max) {
        uint32_t n = 0;

        for (uint32_t j = 0; j < pattern->problem->n_jobs; j++)
                for (uint32_t i = 0; i < n_sets; i++) {
                        struct choice choice = { .job = j, .nodes = sets[i] };
                        uint8_t weight[MAX_SIDE];
                        double off;
                        bool twice = false;

                        for (uint32_t k = 0; k < i; k++)
                                twice |= sets[k] == sets[i];
                        if (twice)
                                continue;
                        weigh_set(pattern, sets[i], weight);
                        choice.used = weighed_use(pattern, j, weight);
                        off = fabs(choice.used - round(choice.used));
                        choice.score = off * (double) (fixed_of(pattern->problem, j, 0) + 1);
                        if (off >= 1e-4)
                                insert_choice(ret_choices, &n, max, choice);
                }
        return n;
}

static void save_basis(struct pattern *pattern) {
        for (int i = 0; i < glp_get_num_rows(pattern->lp); i++)
                pattern->row_status[i] = (uint8_t) glp_get_row_stat(pattern->lp, i + 1);
        for (int k = 0; k < glp_get_num_cols(pattern->lp); k++)
                pattern->column_status[k] = (uint8_t) glp_get_col_stat(pattern->lp, k + 1);
}

static void load_basis(struct pattern *pattern) {
        for (int i = 0; i < glp_get_num_rows(pattern->lp); i++)
                glp_set_row_stat(pattern->lp, i + 1, pattern->row_status[i]);
        for (int k = 0; k < glp_get_num_cols(pattern->lp); k++)
                glp_set_col_stat(pattern->lp, k + 1, pattern->column_status[k]);
}

/* How much dearer the program gets, with the patterns that there are, after a few pivots. */
static double try_side(struct pattern *pattern, uint32_t i, int64_t low, int64_t high, double value) {
        struct cut *cut = &pattern->cuts[i], before = *cut;
        double gain;

        cut->low = low;
        cut->high = high;
        set_cut_bounds(pattern, i);
        pattern->simplex.meth = GLP_DUALP;
        pattern->simplex.it_lim = TRIAL_PIVOTS;
        (void) glp_simplex(pattern->lp, &pattern->simplex);
        gain = glp_get_obj_val(pattern->lp) - value;
        pattern->simplex.it_lim = INT32_MAX;
        *cut = before;
        set_cut_bounds(pattern, i);
        load_basis(pattern);
        return gain > 0 ? gain : 0;
}

/* The cut to branch on, by trying. MAX_CUTS: no room. */
static uint32_t choose_by_trial(struct pattern *pattern, const struct choice *choices, uint32_t n, double *ret_used) {
        double value = glp_get_obj_val(pattern->lp), best = -1;
        double most = (double) pattern->host->target(pattern->host->context) + 1 - value;
        uint32_t indices[TRIALS], best_cut = MAX_CUTS;

        for (uint32_t k = 0; k < n; k++) {
                uint8_t weight[MAX_SIDE];

                weigh_set(pattern, choices[k].nodes, weight);
                indices[k] = find_cut(pattern, choices[k].job, weight);
        }
        if (n == 1) {
                *ret_used = choices[0].used;
                return indices[0];
        }
        save_basis(pattern);
        most = most > 1 ? most : 1;
        for (uint32_t k = 0; k < n && indices[k] < MAX_CUTS; k++) {
                const struct cut *cut = &pattern->cuts[indices[k]];
                int64_t split = (int64_t) floor(choices[k].used) + 1;
                double low, high, score;

                if (split <= cut->low || split > cut->high)
                        continue;
                low = fmin(try_side(pattern, indices[k], cut->low, split - 1, value), most);
                high = fmin(try_side(pattern, indices[k], split, cut->high, value), most);
                score = (low + 0.01) * (high + 0.01);
                if (score > best) {
                        best = score;
                        best_cut = indices[k];
                        *ret_used = choices[k].used;
                }
                if (low >= most && high >= most)
                        break;
        }
        return best_cut;
}

static uint32_t list_all(const struct pattern *pattern, struct choice *ret_choices) {
        uint32_t nodes = pattern->problem->n_nodes, n;
        uint64_t all = ((uint64_t) 1 << nodes) - 1, single[MAX_SIDE];

        for (uint32_t s = 0; s < nodes; s++)
                single[s] = (uint64_t) 1 << s;
        n = list_choices(pattern, &all, 1, ret_choices, TRIALS / 2);
        n += list_choices(pattern, pattern->alike, nodes, ret_choices + n, TRIALS - n);
        return n > 0 ? n : list_choices(pattern, single, nodes, ret_choices, TRIALS);
}

/* ---- the tree ---- */

static void take_side(struct pattern *pattern, const struct branch *branch) {
        struct cut *cut = &pattern->cuts[branch->cut];

        cut->low = branch->second ? branch->split : branch->low;
        cut->high = branch->second ? branch->high : branch->split - 1;
        set_cut_bounds(pattern, branch->cut);
}

/* False: cannot. */
static bool push_branch(struct pattern *pattern) {
        struct branch *branch = &pattern->branches[pattern->n_branches];
        struct choice choices[TRIALS];
        uint32_t n = list_all(pattern, choices);
        double used = 0;

        if (n == 0) {
                for (size_t i = 0; i < (size_t) pattern->problem->n_jobs * pattern->problem->n_nodes; i++)
                        pattern->support[i] = pattern->used[i] > 0.5;
                pattern->host->try_support(pattern->host->context, pattern->support);
                return false;
        }
        branch->cut = choose_by_trial(pattern, choices, n, &used);
        if (branch->cut == MAX_CUTS || pattern->n_branches == MAX_CUTS - 1)
                return false;
        branch->split = (int64_t) floor(used) + 1;
        branch->low = pattern->cuts[branch->cut].low;
        branch->high = pattern->cuts[branch->cut].high;
        branch->second = false;
        if (branch->split <= branch->low || branch->split > branch->high)
                return false;
        pattern->n_branches++;
        take_side(pattern, branch);
        return true;
}

/* To the next side that is to be seen. False: there is none. */
static bool next_side(struct pattern *pattern) {
        while (pattern->n_branches > 0) {
                struct branch *branch = &pattern->branches[pattern->n_branches - 1];

                if (!branch->second) {
                        branch->second = true;
                        take_side(pattern, branch);
                        return true;
                }
                pattern->cuts[branch->cut].low = branch->low;
                pattern->cuts[branch->cut].high = branch->high;
                set_cut_bounds(pattern, branch->cut);
                pattern->n_branches--;
        }
        return false;
}

static int walk(struct pattern *pattern, uint64_t max_branches, int64_t *ret_bound, uint64_t *branches) {
        bool root = true;

        for (uint64_t n = 1; n <= max_branches; n++) {
                enum outcome outcome = tighten(pattern, root);
                int64_t target = pattern->host->target(pattern->host->context);

                ++*branches;
                if (n % IMPROVE_EVERY == 0)
                        pattern->host->improve(pattern->host->context);
                if (root && pattern->bound > INT64_MIN)
                        *ret_bound = -(-pattern->bound >> SHIFT); /* rounded up */
                if (outcome == OUTCOME_FAILED)
                        return 0;
                if (outcome == OUTCOME_OPEN) {
                        count_used(pattern);
                        if (add_covers(pattern))
                                continue;
                        root = false;
                }
                if (outcome == OUTCOME_OPEN && !push_branch(pattern)) {
                        if (is_over(pattern))
                                outcome = OUTCOME_OVER; /* a plan has been found that is as good as the bound */
                        else if (pattern->host->target(pattern->host->context) == target)
                                return 0;
                }
                if (outcome == OUTCOME_OVER && !next_side(pattern))
                        return 1;
        }
        return 0;
}

static bool pattern_alloc(struct pattern *pattern) {
        const struct problem *problem = pattern->problem;
        size_t cells = (size_t) problem->n_jobs * problem->n_nodes;
        struct arena *arena = &pattern->arena;

        for (uint32_t s = 0; s < problem->n_nodes; s++)
                if (problem->nodes[s].capacity >= pattern->stride)
                        pattern->stride = problem->nodes[s].capacity + 1;
        pattern->columns = arena_alloc(arena, MAX_COLUMNS, sizeof(*pattern->columns));
        pattern->cuts = arena_alloc(arena, MAX_CUTS, sizeof(*pattern->cuts));
        pattern->branches = arena_alloc(arena, MAX_CUTS, sizeof(*pattern->branches));
        pattern->covers = arena_alloc(arena, problem->n_jobs, sizeof(*pattern->covers));
        pattern->n_covers = arena_alloc(arena, problem->n_jobs, sizeof(*pattern->n_covers));
        pattern->n_taken = arena_alloc(arena, problem->n_jobs, sizeof(*pattern->n_taken));
        pattern->row_status = arena_alloc(arena, MAX_CUTS + 2 * MAX_SIDE, sizeof(*pattern->row_status));
        pattern->column_status = arena_alloc(arena, MAX_COLUMNS, sizeof(*pattern->column_status));
        pattern->cover = arena_alloc(arena, MAX_FULL + 1, sizeof(*pattern->cover));
        pattern->alike = arena_alloc(arena, problem->n_nodes, sizeof(*pattern->alike));
        pattern->job_price = arena_alloc(arena, problem->n_jobs, sizeof(*pattern->job_price));
        pattern->least = arena_alloc(arena, (size_t) (problem->n_jobs + 1) * pattern->stride, sizeof(*pattern->least));
        pattern->taken = arena_alloc(arena, (size_t) problem->n_jobs * pattern->stride, sizeof(*pattern->taken));
        pattern->amount = arena_alloc(arena, problem->n_jobs, sizeof(*pattern->amount));
        pattern->used = arena_alloc(arena, cells, sizeof(*pattern->used));
        pattern->support = arena_alloc(arena, cells, sizeof(*pattern->support));
        pattern->rows = arena_alloc(arena, MAX_COLUMNS + 1, sizeof(*pattern->rows));
        pattern->coefficients = arena_alloc(arena, MAX_COLUMNS + 1, sizeof(*pattern->coefficients));
        for (uint32_t j = 0; j < problem->n_jobs && !arena->failed; j++)
                (void) list_covers(pattern, j);
        return !arena->failed;
}

static void build(struct pattern *pattern, const uint32_t *values) {
        const struct problem *problem = pattern->problem;

        (void) glp_term_out(GLP_OFF);
        pattern->lp = glp_create_prob();
        glp_init_smcp(&pattern->simplex);
        pattern->simplex.msg_lev = GLP_MSG_OFF;
        glp_set_obj_dir(pattern->lp, GLP_MIN);
        glp_add_rows(pattern->lp, (int) (problem->n_jobs + problem->n_nodes));
        for (uint32_t j = 0; j < problem->n_jobs; j++) {
                glp_set_row_bnds(pattern->lp, (int) j + 1, GLP_LO, problem->jobs[j].full, 0);
                add_artificial(pattern, (int) j + 1, 1);
        }
        for (uint32_t s = 0; s < problem->n_nodes; s++) {
                glp_set_row_bnds(pattern->lp, row_of_node(pattern, s), GLP_UP, 0, 1);
                for (uint32_t t = 0; t < problem->n_nodes; t++)
                        pattern->alike[s] |= (uint64_t) same_node(problem, s, t) << t;
                for (uint32_t j = 0; j < problem->n_jobs; j++)
                        pattern->amount[j] = values[(size_t) j * problem->n_nodes + s];
                add_column(pattern, s);
        }
}

int pattern_run(const struct problem *problem, const struct pattern_host *host, const uint32_t *values, uint64_t max_branches,
                int64_t *ret_bound, uint64_t *branches) {
        struct pattern pattern = { .problem = problem, .host = host, .penalty = 1024 };
        int r = -ENOMEM;

        *ret_bound = INT64_MIN;
        if (pattern_alloc(&pattern)) {
                build(&pattern, values);
                r = walk(&pattern, max_branches, ret_bound, branches);
                glp_delete_prob(pattern.lp);
        }
        arena_finish(&pattern.arena);
        return r;
}
