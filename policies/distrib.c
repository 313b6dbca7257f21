/*
 * distrib: the integer program of Reghenzani 2016 (section 5.3), in its tight form, over whole groups, plus what it costs to
 * move groups from where they are. GLPK solves it within the time given; the best plan found so far is the answer.
 *
 *      x[a,s]    groups of full size of job a on node s          0 .. min(groups, room / group size)
 *      y[a,s]    1 when the smaller last group of a is on s      (only for jobs that have one)
 *      phi[a,s]  1 when a uses s
 *      z[g]      1 when group g leaves its node
 *
 *      min   sum p_a (r_s ranks(a,s) + K phi(a,s))  +  sum move_cost(g) z(g)
 *      sum_s x(a,s) = full groups of a     sum_s y(a,s) = 1     sum_a ranks(a,s) <= c_s
 *      ranks(a,s) <= min(n_a, c_s) phi(a,s)          the thesis has M = 1e6 here, which a solver's tolerance takes for 0
 *      groups of a now on s - x(a,s) <= sum z(g)     the cheapest to move leave first, so which ones need not be said
 *
 * Who waits is decided before, by priority and age. Where every group is one rank, x may be continuous: once phi is fixed
 * it is a transportation problem, whose corners are whole numbers.
 */
#include <errno.h>
#include <float.h>
#include <glpk.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/place/cost.h"
#include "policies/place/pack.h"
#include "rm/policy.h"

enum {
        MAX_CELLS = 50000,       /* jobs x nodes; beyond, building the program alone takes the time there is */
        RESERVE_USEC = 20 * 1000, /* kept back to read the answer off */
        MAX_EXACT_COST = 1 << 30, /* above, the solver's relative tolerance is no longer far below one unit of cost */
};

/* Columns of one (job, node) pair; 0: there is none. */
struct cell {
        int x, y, phi;
};

struct program {
        const struct rm_snapshot *snapshot;
        struct rm_plan *plan; /* the best known, to begin with the packing */
        glp_prob *lp;
        struct cell *cells; /* n_jobs x n_nodes; only of placed jobs */
        size_t *first_leave; /* each job: where its groups begin in `leave` */
        int *leave;          /* each group of all jobs: the column that says it leaves its node, 0: none */
        uint8_t *scratch;
        double *values;   /* each column: the best known, as a solution of the program */
        int *entry_col;   /* one row under construction, 1-based */
        double *entry_val;
        int n_entries;
        int64_t best_cost;
        double best_bound; /* proven below; -DBL_MAX when none */
        bool integer_ranks;
        bool offered; /* the packing, to the solver */
        bool stopped_proven;
};

static struct cell *cell_of(const struct program *p, uint32_t job, uint32_t node) {
        return &p->cells[(size_t) job * p->snapshot->n_nodes + node];
}

static void add_entry(struct program *p, int column, double value) {
        p->n_entries++;
        p->entry_col[p->n_entries] = column;
        p->entry_val[p->n_entries] = value;
}

static void add_row(struct program *p, int type, double low, double high) {
        int row = glp_add_rows(p->lp, 1);

        glp_set_row_bnds(p->lp, row, type, low, high);
        glp_set_mat_row(p->lp, row, p->n_entries, p->entry_col, p->entry_val);
        p->n_entries = 0;
}

static int add_column(struct program *p, double high, double cost, bool integer) {
        int column = glp_add_cols(p->lp, 1);

        glp_set_col_bnds(p->lp, column, GLP_DB, 0, high);
        glp_set_obj_coef(p->lp, column, cost);
        if (integer)
                glp_set_col_kind(p->lp, column, GLP_IV);
        return column;
}

/* ---- the program ---- */

static uint32_t pinned_on(const struct rm_job *job, uint32_t node) {
        uint32_t ranks = 0;

        for (uint32_t g = 0; g < job->n_groups; g++)
                if (job->groups[g].node == (int32_t) node && (job->groups[g].flags & RM_GROUP_PINNED))
                        ranks += job->groups[g].ranks;
        return ranks;
}

static uint32_t cell_room(const struct rm_snapshot *snapshot, const struct rm_job *job, uint32_t node) {
        uint32_t room = snapshot->nodes[node].cores, limit = job_node_limit(job, node), pinned = 0;

        if (limit < room)
                room = limit;
        if (room < job->ranks)
                pinned = pinned_on(job, node);
        else
                room = job->ranks;
        return room > pinned ? room : pinned;
}

/* Cores of a node, or what pinned groups hold of it when that is more. */
static uint32_t node_room(const struct program *p, uint32_t node) {
        uint32_t pinned = 0;

        for (uint32_t j = 0; j < p->snapshot->n_jobs; j++)
                pinned += pinned_on(&p->snapshot->jobs[j], node);
        return pinned > p->snapshot->nodes[node].cores ? pinned : p->snapshot->nodes[node].cores;
}

static void add_cell(struct program *p, uint32_t j, uint32_t s) {
        const struct rm_job *job = &p->snapshot->jobs[j];
        struct cell *cell = cell_of(p, j, s);
        uint32_t room = cell_room(p->snapshot, job, s), rest = job_rest_ranks(job);
        uint32_t groups = room / job->group_size, full = job_full_groups(job);
        double penalty = (double) job->priority * (double) p->snapshot->nodes[s].penalty;

        if (groups > full)
                groups = full;
        if (groups > 0)
                cell->x = add_column(p, groups, penalty * job->group_size, p->integer_ranks);
        if (rest > 0 && room >= rest)
                cell->y = add_column(p, 1, penalty * rest, true);
        if (!cell->x && !cell->y)
                return;
        cell->phi = add_column(p, 1, (double) job->priority * (double) p->snapshot->params.distribution_weight, true);
        if (cell->x)
                add_entry(p, cell->x, job->group_size);
        if (cell->y)
                add_entry(p, cell->y, rest);
        add_entry(p, cell->phi, -(double) room);
        add_row(p, GLP_UP, 0, 0);
}

static void add_demand(struct program *p, uint32_t j) {
        const struct rm_job *job = &p->snapshot->jobs[j];
        uint32_t full = job_full_groups(job);

        for (uint32_t s = 0; s < p->snapshot->n_nodes; s++)
                if (cell_of(p, j, s)->x)
                        add_entry(p, cell_of(p, j, s)->x, 1);
        if (p->n_entries > 0)
                add_row(p, GLP_FX, full, full);
        for (uint32_t s = 0; s < p->snapshot->n_nodes; s++)
                if (cell_of(p, j, s)->y)
                        add_entry(p, cell_of(p, j, s)->y, 1);
        if (p->n_entries > 0)
                add_row(p, GLP_FX, 1, 1);
}

static void add_capacity(struct program *p, uint32_t s) {
        for (uint32_t j = 0; j < p->snapshot->n_jobs; j++) {
                const struct cell *cell = cell_of(p, j, s);

                if (cell->x)
                        add_entry(p, cell->x, p->snapshot->jobs[j].group_size);
                if (cell->y)
                        add_entry(p, cell->y, job_rest_ranks(&p->snapshot->jobs[j]));
        }
        if (p->n_entries > 0)
                add_row(p, GLP_UP, 0, node_room(p, s));
}

static int add_leave(struct program *p, uint32_t j, uint32_t g) {
        int column = add_column(p, 1, (double) p->snapshot->jobs[j].groups[g].move_cost, false);

        p->leave[p->first_leave[j] + g] = column;
        return column;
}

/* What it costs when the groups of job j that are on node s leave, and that the pinned ones do not. */
static void add_stay(struct program *p, uint32_t j, uint32_t s) {
        const struct rm_job *job = &p->snapshot->jobs[j];
        const struct cell *cell = cell_of(p, j, s);
        uint32_t full = job_full_groups(job), here = 0, pinned = 0;

        for (uint32_t g = 0; g < full; g++) {
                if (job->groups[g].node != (int32_t) s)
                        continue;
                here++;
                if (job->groups[g].flags & RM_GROUP_PINNED)
                        pinned++;
                else
                        add_entry(p, add_leave(p, j, g), 1);
        }
        if (here > 0) {
                if (cell->x)
                        add_entry(p, cell->x, 1);
                if (p->n_entries > 0)
                        add_row(p, GLP_LO, here, 0);
                if (pinned > 0 && cell->x) {
                        add_entry(p, cell->x, 1);
                        add_row(p, GLP_LO, pinned, 0);
                }
        }
        if (full == job->n_groups || job->groups[full].node != (int32_t) s)
                return;
        if (cell->y)
                add_entry(p, cell->y, 1);
        if (!(job->groups[full].flags & RM_GROUP_PINNED))
                add_entry(p, add_leave(p, j, full), 1);
        add_row(p, GLP_LO, 1, 0);
}

static void build(struct program *p) {
        for (uint32_t j = 0; j < p->snapshot->n_jobs; j++) {
                if (p->plan->jobs[j].decision != RM_PLACE)
                        continue;
                for (uint32_t s = 0; s < p->snapshot->n_nodes; s++)
                        add_cell(p, j, s);
                add_demand(p, j);
        }
        for (uint32_t s = 0; s < p->snapshot->n_nodes; s++)
                add_capacity(p, s);
        for (uint32_t j = 0; j < p->snapshot->n_jobs; j++) {
                if (p->plan->jobs[j].decision != RM_PLACE || !job_runs(&p->snapshot->jobs[j]))
                        continue;
                for (uint32_t s = 0; s < p->snapshot->n_nodes; s++)
                        add_stay(p, j, s);
        }
}

/* ---- answers ---- */

/* Take the solver's solution over into the plan when it is valid and better. False: it is not valid. */
static bool adopt(struct program *p, double (*value)(struct program *p, int column)) {
        const struct rm_snapshot *snapshot = p->snapshot;
        uint32_t n = snapshot->n_nodes;
        uint32_t *count = calloc(n + 1u, sizeof(*count)), *load = calloc(n + 1u, sizeof(*load));
        int32_t **found = calloc(snapshot->n_jobs + 1u, sizeof(*found));
        bool valid = count && load && found;
        int64_t cost = 0;

        for (uint32_t j = 0; j < snapshot->n_jobs && valid; j++) {
                const struct rm_job *job = &snapshot->jobs[j];
                int32_t rest_node = RM_NO_NODE;

                if (p->plan->jobs[j].decision != RM_PLACE)
                        continue;
                found[j] = malloc(sizeof(**found) * job->n_groups);
                for (uint32_t s = 0; s < n; s++) {
                        const struct cell *cell = cell_of(p, j, s);

                        if (cell->x)
                                count[s] = (uint32_t) lround(value(p, cell->x));
                        if (cell->y && value(p, cell->y) > 0.5)
                                rest_node = (int32_t) s;
                        load[s] += count[s] * job->group_size;
                        valid &= count[s] * job->group_size <= cell_room(snapshot, job, s);
                }
                if (rest_node >= 0)
                        load[rest_node] += job_rest_ranks(job);
                valid = valid && found[j] && (job_rest_ranks(job) == 0 || rest_node >= 0) &&
                        pack_name_groups(job, n, count, rest_node, found[j]) == 0;
                if (valid)
                        cost += cost_job(snapshot, job, found[j], p->scratch) + cost_job_moves(job, found[j]);
        }
        for (uint32_t s = 0; s < n && valid; s++)
                valid = load[s] <= node_room(p, s);
        if (valid && cost < p->best_cost) {
                p->best_cost = cost;
                for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                        if (found[j])
                                memcpy(p->plan->jobs[j].group_node, found[j], sizeof(**found) * snapshot->jobs[j].n_groups);
        }
        for (uint32_t j = 0; found && j < snapshot->n_jobs; j++)
                free(found[j]);
        free(found);
        free(count);
        free(load);
        return valid;
}

static double mip_value(struct program *p, int column) {
        return glp_mip_col_val(p->lp, column);
}

/* The plan as a solution of the program, so that the solver can cut off everything dearer from the start. */
static void offer_plan(struct program *p, glp_tree *tree) {
        for (uint32_t j = 0; j < p->snapshot->n_jobs; j++) {
                const struct rm_job *job = &p->snapshot->jobs[j];

                for (uint32_t g = 0; p->plan->jobs[j].decision == RM_PLACE && g < job->n_groups; g++) {
                        int32_t node = p->plan->jobs[j].group_node[g];
                        const struct cell *cell = cell_of(p, j, (uint32_t) node);

                        p->values[job->groups[g].ranks == job->group_size ? cell->x : cell->y] += 1;
                        p->values[cell->phi] = 1;
                        p->values[p->leave[p->first_leave[j] + g]] = job->groups[g].node != node;
                }
        }
        (void) glp_ios_heur_sol(tree, p->values);
}

static void on_tree(glp_tree *tree, void *context) {
        struct program *p = context;
        int node;

        /* Costs are whole numbers: a bound above best - 1 proves the best. */
        node = glp_ios_best_node(tree);
        if (node != 0) {
                double bound = glp_ios_node_bound(tree, node);

                if (bound > p->best_bound)
                        p->best_bound = bound;
                if (p->best_bound > (double) p->best_cost - 1 + 1e-6 * (1 + fabs(p->best_bound))) {
                        p->stopped_proven = true;
                        glp_ios_terminate(tree);
                        return;
                }
        }
        if (glp_ios_reason(tree) == GLP_IBINGO)
                (void) adopt(p, mip_value);
        if (glp_ios_reason(tree) == GLP_IHEUR && !p->offered) {
                p->offered = true;
                offer_plan(p, tree);
        }
}

static int milliseconds_left(const struct rm_policy_run *run) {
        uint64_t left = run->left_usec(run->context);

        if (left <= RESERVE_USEC)
                return 0;
        left = (left - RESERVE_USEC) / 1000;
        return left > 1000u * 3600u ? 1000 * 3600 : (int) left;
}

static void solve(struct program *p, const struct rm_policy_run *run) {
        glp_smcp simplex;
        glp_iocp branch;
        bool exact = p->best_cost <= MAX_EXACT_COST;
        int r;

        glp_init_smcp(&simplex);
        simplex.msg_lev = GLP_MSG_OFF;
        simplex.tm_lim = milliseconds_left(run);
        if (simplex.tm_lim == 0 || glp_simplex(p->lp, &simplex) != 0 || glp_get_status(p->lp) != GLP_OPT)
                return;
        p->best_bound = glp_get_obj_val(p->lp);
        glp_init_iocp(&branch);
        branch.msg_lev = GLP_MSG_OFF;
        branch.tm_lim = milliseconds_left(run);
        branch.br_tech = GLP_BR_DTH;
        branch.bt_tech = GLP_BT_BLB;
        branch.mir_cuts = GLP_ON;
        branch.gmi_cuts = GLP_ON;
        branch.cov_cuts = GLP_ON;
        branch.tol_int = 1e-7;
        branch.tol_obj = 1e-11;
        branch.cb_func = on_tree;
        branch.cb_info = p;
        if (branch.tm_lim == 0)
                return;
        r = glp_intopt(p->lp, &branch);
        if (r == 0 && glp_mip_status(p->lp) == GLP_OPT && adopt(p, mip_value))
                p->plan->proven = exact && p->best_cost <= llround(glp_mip_obj_val(p->lp));
        if (p->stopped_proven)
                p->plan->proven = exact;
        if (p->plan->proven)
                p->plan->bound = p->best_cost;
        else if (exact && p->best_bound > -DBL_MAX)
                p->plan->bound = (int64_t) ceil(p->best_bound - 1e-6 * (1 + fabs(p->best_bound)));
}

static int program_create(struct program *p, const struct rm_snapshot *snapshot, struct rm_plan *plan) {
        size_t cells = (size_t) snapshot->n_jobs * snapshot->n_nodes;
        size_t columns = 3 * cells, row = 2, groups = 0;

        *p = (struct program) { .snapshot = snapshot, .plan = plan, .best_bound = -DBL_MAX };
        p->first_leave = calloc(snapshot->n_jobs + 1u, sizeof(*p->first_leave));
        if (!p->first_leave)
                return -ENOMEM;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                p->first_leave[j] = groups;
                groups += snapshot->jobs[j].n_groups;
        }
        columns += groups;
        row += columns; /* more than any row can need */
        p->leave = calloc(groups + 1, sizeof(*p->leave));
        p->cells = calloc(cells + 1, sizeof(*p->cells));
        p->scratch = calloc(snapshot->n_nodes + 1u, 1);
        p->values = calloc(columns + 1, sizeof(*p->values));
        p->entry_col = calloc(row, sizeof(*p->entry_col));
        p->entry_val = calloc(row, sizeof(*p->entry_val));
        if (!p->leave || !p->cells || !p->scratch || !p->values || !p->entry_col || !p->entry_val)
                return -ENOMEM;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                p->integer_ranks |= snapshot->jobs[j].group_size > 1;
        p->lp = glp_create_prob();
        glp_set_obj_dir(p->lp, GLP_MIN);
        return cost_plan(snapshot, plan, &p->best_cost);
}

static void program_destroy(struct program *p) {
        if (p->lp)
                glp_delete_prob(p->lp);
        free(p->cells);
        free(p->first_leave);
        free(p->leave);
        free(p->scratch);
        free(p->values);
        free(p->entry_col);
        free(p->entry_val);
        (void) glp_free_env();
}

/* Better the packing by the exact method, as far as time allows. */
static int refine(const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        struct program p;
        int64_t packed;
        int r = program_create(&p, snapshot, plan);

        if (r == 0) {
                packed = p.best_cost;
                (void) glp_term_out(GLP_OFF);
                build(&p);
                solve(&p, run);
                (void) snprintf(plan->method, sizeof(plan->method), "%s",
                                p.best_cost < packed ? "branch and cut"
                                : plan->proven       ? "packing, proven by branch and cut"
                                                     : "packing");
        }
        program_destroy(&p);
        return r;
}

static int distrib_place(void *self, const struct rm_snapshot *snapshot, const struct rm_policy_run *run, struct rm_plan *plan) {
        struct pack pack;
        int r = pack_init(&pack, snapshot, plan);

        (void) self;
        if (r == 0)
                r = pack_running(&pack, NULL, NULL);
        if (r == 0)
                r = pack_waiting(&pack, true);
        pack_finish(&pack);
        if (r < 0)
                return r;
        (void) snprintf(plan->method, sizeof(plan->method), "packing");
        if ((uint64_t) snapshot->n_jobs * snapshot->n_nodes > MAX_CELLS || milliseconds_left(run) == 0)
                return 0;
        return refine(snapshot, run, plan);
}

RM_PLUGIN_EXPORT extern const struct rm_policy_plugin rm_plugin;
const struct rm_policy_plugin rm_plugin = {
        .plugin = {
                .abi = RM_PLUGIN_ABI,
                .size = sizeof(struct rm_policy_plugin),
                .name = "distrib",
                .kind = RM_POLICY_KIND,
                .kind_abi = RM_POLICY_ABI,
                .description = "fewest nodes for each job on the least penalised nodes, by integer programming (Reghenzani 2016)",
        },
        .place = distrib_place,
};
