#include "policies/distrib/program.h"

#include <glpk.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* With these no sum of products of scaled prices gets to 2^60. */
enum {
        MAX_COST = 1 << 18,
        MAX_PRICE = 1 << 20,
        MAX_CAPACITY = 1024,
        MAX_FULL = 1024,     /* groups of a job */
        MAX_CUT_PRICE = 1 << 17,
        MAX_BOUND = 1 << 10, /* of a cut */
        MAX_COLUMNS = 6000,
        MANY_COLUMNS = 800,  /* beyond, some are forgotten */
        MAX_IDLE = 4,        /* solutions in which a cut was kept by itself, until it is forgotten */
        TRIAL_PIVOTS = 40,
        MAX_PIVOTS = 3000,   /* the solver may go round in circles */
        NO_NODE = UINT8_MAX, /* of a column that stands for what is missing */
};

static const double hardly = 1e-6;       /* of a pattern */
static const double worthwhile = 1e-3;   /* a cost that a column must save */

struct cut {
        struct program_cut is; /* use NULL: the entry is free */
        uint32_t held, idle;
};

struct column {
        uint16_t amount[PROGRAM_MAX_SIDE]; /* each job */
        uint16_t cut; /* whose lack it stands for, PROGRAM_NO_CUT: of a job or a node */
        uint8_t node;
        bool barred;  /* outside the ranges */
        double share; /* in the last solution */
};

struct program {
        const struct problem *problem;
        struct pricing pricing;
        glp_prob *lp; /* rows: jobs, nodes, cuts; columns as `columns` */
        glp_smcp simplex;
        struct column *columns;
        struct cut cuts[PROGRAM_MAX_CUTS];
        uint16_t order[PROGRAM_MAX_CUTS]; /* each row of a cut: which one */
        uint32_t n_columns, n_rows, max_kept;
        int32_t *weights;    /* of all cuts */
        double penalty, value;
        int64_t paid;        /* by jobs and cuts, at the last prices */
        bool rising;         /* more groups are never cheaper */
        double *used, *amount;
        uint16_t *found;     /* the pattern, each job */
        int64_t *least;      /* each node: what its best pattern costs */
        int *indices;        /* of a row or column */
        double *coefficients;
        uint8_t *row_status, *column_status; /* of a basis */
        double *reduced;     /* costs of columns, to be sorted */
        struct arena arena;
};

/* ---- what it is made for ---- */

/* Possible values are all those from one to another. */
static bool cell_applies(const struct problem *problem, const struct cell *cell) {
        const int64_t *price = problem->prices + cell->first;
        uint32_t v = 0;

        while (v < cell->n && price[v] >= PRICE_NEVER)
                v++;
        if (v == cell->n)
                return false;
        while (v < cell->n && price[v] <= MAX_COST)
                v++;
        while (v < cell->n && price[v] >= PRICE_NEVER)
                v++;
        return v == cell->n;
}

bool program_applies(const struct problem *problem, int64_t cost) {
        size_t cells = (size_t) problem->n_jobs * problem->n_nodes;
        bool applies = cells > 0 && problem->n_jobs <= PROGRAM_MAX_SIDE && problem->n_nodes <= PROGRAM_MAX_SIDE && cost >= 0 &&
                       cost <= MAX_COST;

        for (uint32_t s = 0; s < problem->n_nodes && applies; s++)
                applies = problem->nodes[s].capacity <= MAX_CAPACITY;
        for (uint32_t j = 0; j < problem->n_jobs && applies; j++)
                applies = problem->jobs[j].rest == 0 && problem->jobs[j].size == 1 && problem->jobs[j].full > 0 &&
                          problem->jobs[j].full <= MAX_FULL;
        for (size_t i = 0; i < cells && applies; i++)
                applies = cell_applies(problem, &problem->cells[i]);
        return applies;
}

static void cell_range(const struct problem *problem, const struct cell *cell, uint16_t *ret_low, uint16_t *ret_high) {
        const int64_t *price = problem->prices + cell->first;

        *ret_low = 0;
        *ret_high = (uint16_t) (cell->n - 1);
        while (price[*ret_low] >= PRICE_NEVER)
                ++*ret_low;
        while (price[*ret_high] >= PRICE_NEVER)
                --*ret_high;
}

/* ---- columns ---- */

static int row_of_job(uint32_t j) {
        return (int) j + 1;
}

static int row_of_node(const struct program *program, uint32_t s) {
        return (int) (program->problem->n_jobs + s) + 1;
}

static int row_of_order(const struct program *program, uint32_t i) {
        return (int) (program->problem->n_jobs + program->problem->n_nodes + i) + 1;
}

static size_t cell_of(const struct program *program, uint32_t j, uint32_t s) {
        return (size_t) j * program->problem->n_nodes + s;
}

static int64_t weigh(const struct program *program, const struct program_cut *cut, const struct column *column) {
        int64_t sum = 0;

        if (column->node == NO_NODE)
                return 0;
        for (uint32_t j = 0; j < program->problem->n_jobs; j++)
                sum += column->amount[j] > 0 ? cut->use[cell_of(program, j, column->node)] : 0;
        return sum;
}

static bool is_barred(const struct program *program, const struct column *column) {
        bool barred = false;

        for (uint32_t j = 0; j < program->problem->n_jobs && column->node != NO_NODE && !barred; j++) {
                size_t cell = cell_of(program, j, column->node);

                barred = column->amount[j] < program->pricing.low[cell] || column->amount[j] > program->pricing.high[cell];
        }
        return barred;
}

static void bar(struct program *program, uint32_t k, bool barred) {
        if (barred != program->columns[k].barred)
                glp_set_col_bnds(program->lp, (int) k + 1, barred ? GLP_FX : GLP_LO, 0, 0);
        program->columns[k].barred = barred;
}

static void add_lack(struct program *program, int row, uint32_t cut, double sign) {
        int rows[2] = { 0, row }, column = glp_add_cols(program->lp, 1);
        double coefficients[2] = { 0, sign };

        program->columns[program->n_columns++] = (struct column) { .node = NO_NODE, .cut = (uint16_t) cut };
        glp_set_col_bnds(program->lp, column, GLP_LO, 0, 0);
        glp_set_obj_coef(program->lp, column, program->penalty);
        glp_set_mat_col(program->lp, column, 1, rows, coefficients);
}

/* A pattern of node s: program->found. False: no room. */
static bool add_column(struct program *program, uint32_t s) {
        const struct problem *problem = program->problem;
        struct column *column = &program->columns[program->n_columns];
        int64_t cost = 0;
        int index, n = 0;

        if (program->n_columns >= MAX_COLUMNS)
                return false;
        program->n_columns++;
        *column = (struct column) { .node = (uint8_t) s, .cut = PROGRAM_NO_CUT };
        for (uint32_t j = 0; j < problem->n_jobs; j++) {
                column->amount[j] = program->found[j];
                cost += problem->prices[problem_cell(problem, j, s)->first + column->amount[j]];
                if (column->amount[j] == 0)
                        continue;
                program->indices[++n] = row_of_job(j);
                program->coefficients[n] = column->amount[j];
        }
        program->indices[++n] = row_of_node(program, s);
        program->coefficients[n] = 1;
        for (uint32_t i = 0; i < program->n_rows; i++) {
                const struct program_cut *cut = &program->cuts[program->order[i]].is;
                int64_t weight = weigh(program, cut, column);

                if (weight != 0) {
                        program->indices[++n] = row_of_order(program, i);
                        program->coefficients[n] = (double) weight;
                }
        }
        index = glp_add_cols(program->lp, 1);
        glp_set_col_bnds(program->lp, index, GLP_LO, 0, 0);
        glp_set_obj_coef(program->lp, index, (double) cost);
        glp_set_mat_col(program->lp, index, n, program->indices, program->coefficients);
        bar(program, program->n_columns - 1, is_barred(program, column));
        return true;
}

void program_apply_ranges(struct program *program) {
        for (uint32_t k = 0; k < program->n_columns; k++)
                bar(program, k, is_barred(program, &program->columns[k]));
}

uint16_t *program_low(struct program *program) {
        return program->pricing.low;
}

uint16_t *program_high(struct program *program) {
        return program->pricing.high;
}

/* ---- cuts ---- */

static void set_row(struct program *program, uint32_t i) {
        const struct program_cut *cut = &program->cuts[program->order[i]].is;

        glp_set_row_bnds(program->lp, row_of_order(program, i), cut->low >= cut->high ? GLP_FX : GLP_DB, (double) cut->low,
                         (double) cut->high);
}

static uint32_t row_of_cut(const struct program *program, uint32_t cut) {
        uint32_t i = 0;

        while (program->order[i] != cut)
                i++;
        return i;
}

static void fill_row(struct program *program, uint32_t i) {
        const struct program_cut *cut = &program->cuts[program->order[i]].is;
        int n = 0;

        for (uint32_t k = 0; k < program->n_columns; k++) {
                int64_t weight = weigh(program, cut, &program->columns[k]);

                if (weight != 0) {
                        program->indices[++n] = (int) k + 1;
                        program->coefficients[n] = (double) weight;
                }
        }
        glp_set_mat_row(program->lp, row_of_order(program, i), n, program->indices, program->coefficients);
}

uint32_t program_stride(const struct program *program) {
        return program->pricing.stride;
}

static bool same_use(const struct program_cut *a, const struct program_cut *b, size_t cells) {
        return memcmp(a->use, b->use, cells * sizeof(*a->use)) == 0;
}

/* The room that entry `index` has for its left side. */
static void copy_left(struct program *program, uint32_t index, const struct program_cut *from) {
        size_t cells = (size_t) program->problem->n_jobs * program->problem->n_nodes;
        struct program_cut *to = &program->cuts[index].is;

        *to = *from;
        to->use = program->weights + index * cells;
        memcpy(to->use, from->use, cells * sizeof(*to->use));
}

uint32_t program_find_cut(struct program *program, const struct program_cut *like) {
        size_t cells = (size_t) program->problem->n_jobs * program->problem->n_nodes;
        uint32_t index = 0;

        for (uint32_t i = 0; i < program->n_rows; i++)
                if (same_use(&program->cuts[program->order[i]].is, like, cells))
                        return program->order[i];
        if (program->n_rows == PROGRAM_MAX_CUTS || program->n_columns + 2 > MAX_COLUMNS || llabs(like->low) > MAX_BOUND ||
            llabs(like->high) > MAX_BOUND)
                return PROGRAM_NO_CUT;
        while (program->cuts[index].is.use)
                index++;
        program->cuts[index] = (struct cut) { 0 };
        copy_left(program, index, like);
        program->order[program->n_rows++] = (uint16_t) index;
        glp_add_rows(program->lp, 1);
        fill_row(program, program->n_rows - 1);
        set_row(program, program->n_rows - 1);
        add_lack(program, row_of_order(program, program->n_rows - 1), index, 1);
        add_lack(program, row_of_order(program, program->n_rows - 1), index, -1);
        return index;
}

void program_get_cut(const struct program *program, uint32_t cut, int64_t *ret_low, int64_t *ret_high) {
        *ret_low = program->cuts[cut].is.low;
        *ret_high = program->cuts[cut].is.high;
}

void program_set_cut(struct program *program, uint32_t cut, int64_t low, int64_t high) {
        program->cuts[cut].is.low = low;
        program->cuts[cut].is.high = high;
        program->cuts[cut].idle = 0;
        set_row(program, row_of_cut(program, cut));
}

void program_hold_cut(struct program *program, uint32_t cut, bool hold) {
        program->cuts[cut].held += hold ? 1u : -1u;
}

/* ---- forgetting ---- */

/* Column `k` out of the program, its place taken by the next ones: to be marked first, all at once
 * then. */
static void drop_columns(struct program *program, const bool *drop) {
        uint32_t kept = 0;
        int n = 0;

        for (uint32_t k = 0; k < program->n_columns; k++)
                if (drop[k])
                        program->indices[++n] = (int) k + 1;
                else
                        program->columns[kept++] = program->columns[k];
        program->n_columns = kept;
        if (n > 0)
                glp_del_cols(program->lp, n, program->indices);
}

static int compare_doubles(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return x < y ? -1 : x > y;
}

/* Half of the patterns that are not used, the dearest ones at the prices. */
static void mark_dear(struct program *program, bool *drop) {
        double limit;
        size_t n = 0;

        for (uint32_t k = 0; k < program->n_columns; k++)
                if (program->columns[k].node != NO_NODE && glp_get_col_stat(program->lp, (int) k + 1) != GLP_BS)
                        program->reduced[n++] = glp_get_col_dual(program->lp, (int) k + 1);
        if (program->n_columns < program->max_kept || n == 0)
                return;
        qsort(program->reduced, n, sizeof(*program->reduced), compare_doubles);
        limit = program->reduced[n / 2];
        for (uint32_t k = 0; k < program->n_columns; k++)
                drop[k] = program->columns[k].node != NO_NODE && glp_get_col_stat(program->lp, (int) k + 1) != GLP_BS &&
                          glp_get_col_dual(program->lp, (int) k + 1) > limit;
}

/* Cuts that are not held and that have been kept by themselves for some time. */
static void mark_idle(struct program *program, bool *drop) {
        for (uint32_t i = 0; i < program->n_rows; i++) {
                struct cut *cut = &program->cuts[program->order[i]];

                cut->idle = glp_get_row_stat(program->lp, row_of_order(program, i)) == GLP_BS ? cut->idle + 1 : 0;
                if (cut->held > 0 && cut->idle > 0)
                        cut->idle = 1;
        }
        for (uint32_t k = 0; k < program->n_columns; k++) {
                struct cut *cut = program->columns[k].cut < PROGRAM_NO_CUT ? &program->cuts[program->columns[k].cut] : NULL;

                if (cut && glp_get_col_stat(program->lp, (int) k + 1) == GLP_BS)
                        cut->idle = 0;
        }
        for (uint32_t k = 0; k < program->n_columns; k++)
                if (program->columns[k].cut < PROGRAM_NO_CUT && program->cuts[program->columns[k].cut].idle > MAX_IDLE)
                        drop[k] = true;
}

static void drop_rows(struct program *program) {
        uint32_t kept = 0;
        int n = 0;

        for (uint32_t i = 0; i < program->n_rows; i++) {
                struct cut *cut = &program->cuts[program->order[i]];

                if (cut->idle <= MAX_IDLE) {
                        program->order[kept++] = program->order[i];
                        continue;
                }
                program->indices[++n] = row_of_order(program, i);
                *cut = (struct cut) { 0 };
        }
        program->n_rows = kept;
        if (n > 0)
                glp_del_rows(program->lp, n, program->indices);
}

static void forget(struct program *program) {
        bool drop[MAX_COLUMNS] = { false };

        mark_dear(program, drop);
        mark_idle(program, drop);
        drop_columns(program, drop);
        drop_rows(program);
        if (program->n_columns >= program->max_kept)
                program->max_kept = 2 * program->n_columns;
        if (program->max_kept > MAX_COLUMNS * 3 / 4)
                program->max_kept = MAX_COLUMNS * 3 / 4;
}

/* ---- the bound at the prices, exact ---- */

static int64_t scaled(double price, int64_t most) {
        if (!(fabs(price) < (double) most))
                price = price > 0 ? (double) most : price < 0 ? (double) -most : 0;
        return llround(ldexp(price, PRICING_SHIFT));
}

static void read_cut_price(struct program *program, uint32_t i) {
        const struct program_cut *cut = &program->cuts[program->order[i]].is;
        int64_t price = scaled(glp_get_row_dual(program->lp, row_of_order(program, i)), MAX_CUT_PRICE);
        size_t cells = (size_t) program->problem->n_jobs * program->problem->n_nodes;

        program->paid += price * (price > 0 ? cut->low : cut->high);
        for (size_t cell = 0; cell < cells && price != 0; cell++)
                program->pricing.use_price[cell] += price * cut->use[cell];
}

static void read_prices(struct program *program) {
        const struct problem *problem = program->problem;
        size_t cells = (size_t) problem->n_jobs * problem->n_nodes;

        program->paid = 0;
        for (uint32_t j = 0; j < problem->n_jobs; j++) {
                int64_t price = scaled(glp_get_row_dual(program->lp, row_of_job(j)), MAX_PRICE);

                price = program->rising && price < 0 ? 0 : price;
                program->paid += price * problem->jobs[j].full;
                program->pricing.job_price[j] = price;
        }
        memset(program->pricing.use_price, 0, cells * sizeof(*program->pricing.use_price));
        for (uint32_t i = 0; i < program->n_rows; i++)
                read_cut_price(program, i);
}

/* The reduced cost of program->found on node s by the program's own prices, which prices in whole
 * numbers only approximate. */
static double reduced_cost(const struct program *program, uint32_t s) {
        const struct problem *problem = program->problem;
        struct column column = { .node = (uint8_t) s };
        double cost = -glp_get_row_dual(program->lp, row_of_node(program, s));

        for (uint32_t j = 0; j < problem->n_jobs; j++) {
                column.amount[j] = program->found[j];
                cost += (double) problem->prices[problem_cell(problem, j, s)->first + column.amount[j]] -
                        column.amount[j] * glp_get_row_dual(program->lp, row_of_job(j));
        }
        for (uint32_t i = 0; i < program->n_rows; i++) {
                const struct program_cut *cut = &program->cuts[program->order[i]].is;
                double price = glp_get_row_dual(program->lp, row_of_order(program, i));

                if (price != 0)
                        cost -= price * (double) weigh(program, cut, &column);
        }
        return cost;
}

/* Prices out all nodes, and adds the patterns that the program lacks. INT64_MAX: a node has
 * none. */
static int64_t price_out(struct program *program, uint32_t *ret_added) {
        int64_t bound;

        *ret_added = 0;
        read_prices(program);
        bound = program->paid;
        for (uint32_t s = 0; s < program->problem->n_nodes; s++) {
                int64_t least = pricing_best(&program->pricing, s, program->found);

                if (least >= PRICING_NEVER)
                        return INT64_MAX;
                bound += least;
                if (reduced_cost(program, s) < -worthwhile)
                        *ret_added += add_column(program, s);
        }
        return bound;
}

/* ---- solving ---- */

static double missing(const struct program *program) {
        double sum = 0;

        for (uint32_t k = 0; k < program->n_columns; k++)
                if (program->columns[k].node == NO_NODE)
                        sum += glp_get_col_prim(program->lp, (int) k + 1);
        return sum;
}

static void raise_penalty(struct program *program) {
        program->penalty *= 8;
        for (uint32_t k = 0; k < program->n_columns; k++)
                if (program->columns[k].node == NO_NODE)
                        glp_set_obj_coef(program->lp, (int) k + 1, program->penalty);
}

static bool run_simplex(struct program *program, bool dual, int64_t left_usec) {
        int64_t left = left_usec / 1000;
        int r;

        if (left <= 0)
                return false;
        program->simplex.meth = dual ? GLP_DUALP : GLP_PRIMAL;
        program->simplex.tm_lim = left < 1000000 ? (int) left : 1000000;
        r = glp_simplex(program->lp, &program->simplex);
        if (r != 0 && r != GLP_ETMLIM) { /* the basis may be no good: once more, from the beginning */
                glp_std_basis(program->lp);
                r = glp_simplex(program->lp, &program->simplex);
        }
        return r == 0 && glp_get_status(program->lp) == GLP_OPT;
}

static void keep_solution(struct program *program) {
        const struct problem *problem = program->problem;
        size_t cells = (size_t) problem->n_jobs * problem->n_nodes;

        program->value = glp_get_obj_val(program->lp);
        memset(program->used, 0, sizeof(*program->used) * cells);
        memset(program->amount, 0, sizeof(*program->amount) * cells);
        for (uint32_t k = 0; k < program->n_columns; k++) {
                struct column *column = &program->columns[k];

                column->share = glp_get_col_prim(program->lp, (int) k + 1);
                if (column->node == NO_NODE || column->share < hardly / 100)
                        continue;
                for (uint32_t j = 0; j < problem->n_jobs; j++)
                        if (column->amount[j] > 0) {
                                program->used[cell_of(program, j, column->node)] += column->share;
                                program->amount[cell_of(program, j, column->node)] += column->share * column->amount[j];
                        }
        }
}

static bool cuts_agree(const struct program *program) {
        bool agree = true;

        for (uint32_t i = 0; i < program->n_rows && agree; i++)
                agree = program->cuts[program->order[i]].is.low <= program->cuts[program->order[i]].is.high;
        return agree;
}

enum program_end program_solve(struct program *program, int64_t target, bool to_the_end, const struct program_clock *clock,
                               int64_t *ret_bound) {
        int64_t goal = target * ((int64_t) 1 << PRICING_SHIFT);
        enum program_end end = PROGRAM_FAILED;
        bool dual = true;

        *ret_bound = INT64_MIN;
        if (!cuts_agree(program))
                return PROGRAM_OVER;
        while (program->n_columns + program->problem->n_nodes < MAX_COLUMNS &&
               run_simplex(program, dual, clock->left_usec(clock->context))) {
                double lacks = missing(program), value = glp_get_obj_val(program->lp);
                uint32_t added;
                int64_t bound;

                keep_solution(program);
                bound = price_out(program, &added);
                dual = false;
                *ret_bound = bound > *ret_bound ? bound : *ret_bound;
                if (*ret_bound > goal)
                        end = PROGRAM_OVER;
                else if (added == 0 && lacks > hardly && program->penalty * 8 <= MAX_PRICE)
                        raise_penalty(program);
                else if (added == 0 || (!to_the_end && lacks <= hardly && value <= (double) target))
                        end = PROGRAM_OPEN;
                if (end != PROGRAM_FAILED)
                        break;
        }
        if (end != PROGRAM_FAILED)
                forget(program);
        return end;
}

uint32_t program_fix(struct program *program, int64_t target) {
        uint32_t nodes = program->problem->n_nodes, changed = 0;
        int64_t slack = target * ((int64_t) 1 << PRICING_SHIFT) - program->paid, *least = program->least;

        for (uint32_t s = 0; s < nodes; s++) {
                least[s] = pricing_best(&program->pricing, s, program->found);
                if (least[s] >= PRICING_NEVER)
                        return 0;
                slack -= least[s];
        }
        for (uint32_t s = 0; s < nodes; s++)
                changed += pricing_narrow(&program->pricing, s, least[s] + slack);
        if (changed > 0)
                program_apply_ranges(program);
        return changed;
}

double program_value(const struct program *program) {
        return program->value;
}

const double *program_used(const struct program *program) {
        return program->used;
}

const double *program_amount(const struct program *program) {
        return program->amount;
}

void program_shares(const struct program *program, uint32_t job, double *ret_shares) {
        memset(ret_shares, 0, (size_t) program->problem->n_nodes * program->pricing.stride * sizeof(*ret_shares));
        for (uint32_t k = 0; k < program->n_columns; k++) {
                const struct column *column = &program->columns[k];

                if (column->node != NO_NODE && column->share > 0)
                        ret_shares[(size_t) column->node * program->pricing.stride + column->amount[job]] += column->share;
        }
}

/* ---- trials ---- */

static void save_basis(struct program *program) {
        for (int i = 0; i < glp_get_num_rows(program->lp); i++)
                program->row_status[i] = (uint8_t) glp_get_row_stat(program->lp, i + 1);
        for (int k = 0; k < glp_get_num_cols(program->lp); k++)
                program->column_status[k] = (uint8_t) glp_get_col_stat(program->lp, k + 1);
}

static void load_basis(struct program *program) {
        for (int i = 0; i < glp_get_num_rows(program->lp); i++)
                glp_set_row_stat(program->lp, i + 1, program->row_status[i]);
        for (int k = 0; k < glp_get_num_cols(program->lp); k++)
                glp_set_col_stat(program->lp, k + 1, program->column_status[k]);
}

static double gain_of_pivots(struct program *program) {
        double gain;

        program->simplex.meth = GLP_DUALP;
        program->simplex.it_lim = TRIAL_PIVOTS;
        (void) glp_simplex(program->lp, &program->simplex);
        program->simplex.it_lim = MAX_PIVOTS;
        gain = glp_get_obj_val(program->lp) - program->value;
        return gain > 0 ? gain : 0;
}

static void bar_node(struct program *program, uint32_t node) {
        for (uint32_t k = 0; k < program->n_columns; k++)
                if (program->columns[k].node == node)
                        bar(program, k, is_barred(program, &program->columns[k]));
}

double program_try_cell(struct program *program, uint32_t job, uint32_t node, uint32_t low, uint32_t high) {
        size_t cell = cell_of(program, job, node);
        uint16_t old_low = program->pricing.low[cell], old_high = program->pricing.high[cell];
        double gain;

        save_basis(program);
        program->pricing.low[cell] = (uint16_t) low;
        program->pricing.high[cell] = (uint16_t) high;
        bar_node(program, node);
        gain = gain_of_pivots(program);
        program->pricing.low[cell] = old_low;
        program->pricing.high[cell] = old_high;
        bar_node(program, node);
        load_basis(program);
        return gain;
}

double program_try_cut(struct program *program, uint32_t cut, int64_t low, int64_t high) {
        struct cut before = program->cuts[cut];
        double gain;

        save_basis(program);
        program_set_cut(program, cut, low, high);
        gain = gain_of_pivots(program);
        program->cuts[cut] = before;
        set_row(program, row_of_cut(program, cut));
        load_basis(program);
        return gain;
}

/* ---- making ---- */

static bool never_cheaper(const struct problem *problem) {
        bool rising = true;

        for (size_t i = 0; i < (size_t) problem->n_jobs * problem->n_nodes && rising; i++)
                for (uint32_t v = 1; v < problem->cells[i].n && rising; v++)
                        rising = problem->prices[problem->cells[i].first + v] >= problem->prices[problem->cells[i].first + v - 1];
        return rising;
}

static bool program_alloc(struct program *program) {
        size_t cells = (size_t) program->problem->n_jobs * program->problem->n_nodes;
        struct arena *arena = &program->arena;

        program->columns = arena_alloc(arena, MAX_COLUMNS, sizeof(*program->columns));
        program->used = arena_alloc(arena, cells, sizeof(*program->used));
        program->amount = arena_alloc(arena, cells, sizeof(*program->amount));
        program->found = arena_alloc(arena, program->problem->n_jobs, sizeof(*program->found));
        program->least = arena_alloc(arena, program->problem->n_nodes, sizeof(*program->least));
        program->indices = arena_alloc(arena, MAX_COLUMNS + 1, sizeof(*program->indices));
        program->coefficients = arena_alloc(arena, MAX_COLUMNS + 1, sizeof(*program->coefficients));
        program->row_status = arena_alloc(arena, PROGRAM_MAX_CUTS + 2 * PROGRAM_MAX_SIDE, sizeof(*program->row_status));
        program->column_status = arena_alloc(arena, MAX_COLUMNS, sizeof(*program->column_status));
        program->reduced = arena_alloc(arena, MAX_COLUMNS, sizeof(*program->reduced));
        if (!pricing_init(&program->pricing, program->problem))
                return false;
        program->weights = arena_alloc(arena, PROGRAM_MAX_CUTS * cells, sizeof(*program->weights));
        return !arena->failed;
}

static void set_ranges(struct program *program, const uint32_t *low, const uint32_t *high) {
        for (size_t i = 0; i < (size_t) program->problem->n_jobs * program->problem->n_nodes; i++) {
                uint16_t *of_low = &program->pricing.low[i], *of_high = &program->pricing.high[i];

                cell_range(program->problem, &program->problem->cells[i], of_low, of_high);
                *of_low = low && low[i] > *of_low ? (uint16_t) low[i] : *of_low;
                *of_high = high && high[i] < *of_high ? (uint16_t) high[i] : *of_high;
        }
}

static void build(struct program *program, const uint32_t *values) {
        const struct problem *problem = program->problem;

        (void) glp_term_out(GLP_OFF);
        program->lp = glp_create_prob();
        glp_init_smcp(&program->simplex);
        program->simplex.msg_lev = GLP_MSG_OFF;
        program->simplex.it_lim = MAX_PIVOTS;
        glp_set_obj_dir(program->lp, GLP_MIN);
        glp_add_rows(program->lp, (int) (problem->n_jobs + problem->n_nodes));
        for (uint32_t j = 0; j < problem->n_jobs; j++) {
                double full = problem->jobs[j].full;

                glp_set_row_bnds(program->lp, row_of_job(j), program->rising ? GLP_LO : GLP_FX, full, full);
                add_lack(program, row_of_job(j), PROGRAM_NO_CUT, 1);
                if (!program->rising)
                        add_lack(program, row_of_job(j), PROGRAM_NO_CUT, -1);
        }
        for (uint32_t s = 0; s < problem->n_nodes; s++) {
                glp_set_row_bnds(program->lp, row_of_node(program, s), GLP_FX, 1, 1);
                add_lack(program, row_of_node(program, s), PROGRAM_NO_CUT, 1);
                for (uint32_t j = 0; j < problem->n_jobs; j++)
                        program->found[j] = (uint16_t) values[cell_of(program, j, s)];
                (void) add_column(program, s);
        }
}

struct program *program_create(const struct problem *problem, const uint32_t *values, const uint32_t *low, const uint32_t *high) {
        struct program *program = calloc(1, sizeof(*program));

        if (!program)
                return NULL;
        program->problem = problem;
        program->penalty = 1024;
        program->max_kept = MANY_COLUMNS;
        program->rising = never_cheaper(problem);
        if (!program_alloc(program)) {
                program_destroy(program);
                return NULL;
        }
        set_ranges(program, low, high);
        build(program, values);
        return program;
}

void program_destroy(struct program *program) {
        if (!program)
                return;
        if (program->lp)
                glp_delete_prob(program->lp);
        pricing_finish(&program->pricing);
        arena_finish(&program->arena);
        free(program);
}
