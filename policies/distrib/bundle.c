#include "policies/distrib/bundle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/dp_row.h"

enum {
        MAX_CELLS = 10 * 1000,
        CHOICES = 24, /* remembered of a factor */
        PASSES = 30,  /* over all factors, to find the top of the model */
        IDLE = 4,     /* steps without a gain until they get shorter */
};

static const double first_length = 3, longer = 2, shorter = 0.7;
static const double worth = 0.1, fine = 0.3; /* gains, in parts of what the model promises: to go there, and to go farther */
static const double own = 0.05; /* how much a value is charged for itself, besides what it has in common with others of the cell */
static const double done = 0.001; /* when less than this part of the gap is promised */

/* A choice of a factor: for each of its cells a value, as an index into those of the dual; and the
 * cost of the choice besides. */
struct choice_seen {
        double weight, besides;
        uint32_t *values;
};

struct factor_seen {
        struct choice_seen choices[CHOICES]; /* those without weight, the older ones first */
        uint32_t n, n_cells;
        double sign; /* of what nodes are charged in its costs: 1 for a node, -1 for a job */
};

/* The traits of a value that have a price: each unit, that there is any, each unit beyond those
 * that run there. */
struct trait {
        double units, used, beyond;
};

/*
 * A bundle method. The center is the part of the prices that factors of nodes are charged for
 * values; those of jobs have the rest. The model of a factor is the set of choices seen: the factor
 * costs the least of them. The model less the square of the distance from the center has its
 * maximum where the mixtures of choices that nodes and jobs have made differ least in their traits,
 * and the remaining difference is the direction to it. So the method looks for mixtures, by moving
 * weight from the dearest choice of a factor to its cheapest.
 */
struct bundle {
        const struct problem *problem;
        struct factor_seen *factors; /* nodes, then jobs */
        double *center, *price; /* each value of the dual */
        double *apart; /* each value: by how much nodes have chosen it more than jobs */
        struct trait *traits, *traits_apart; /* each value; each cell, as `apart` */
        uint32_t *cell; /* each value */
        int64_t *least, sum; /* of each factor, and of all, at the center */
        struct arena arena;
};

static uint32_t n_chains(const struct bundle *bundle) {
        return bundle->problem->n_nodes + bundle->problem->n_jobs;
}

static size_t n_cells(const struct bundle *bundle) {
        return (size_t) bundle->problem->n_nodes * bundle->problem->n_jobs;
}

struct bundle *bundle_create(const struct problem *problem, bool *ret_none) {
        struct bundle *bundle;

        *ret_none = (size_t) problem->n_nodes * problem->n_jobs > MAX_CELLS;
        if (*ret_none)
                return NULL;
        bundle = calloc(1, sizeof(*bundle));
        if (!bundle)
                return NULL;
        bundle->problem = problem;
        bundle->factors = arena_alloc(&bundle->arena, n_chains(bundle), sizeof(*bundle->factors));
        bundle->center = arena_alloc(&bundle->arena, problem->n_prices, sizeof(*bundle->center));
        bundle->price = arena_alloc(&bundle->arena, problem->n_prices, sizeof(*bundle->price));
        bundle->apart = arena_alloc(&bundle->arena, problem->n_prices, sizeof(*bundle->apart));
        bundle->traits = arena_alloc(&bundle->arena, problem->n_prices, sizeof(*bundle->traits));
        bundle->traits_apart = arena_alloc(&bundle->arena, n_cells(bundle), sizeof(*bundle->traits_apart));
        bundle->cell = arena_alloc(&bundle->arena, problem->n_prices, sizeof(*bundle->cell));
        bundle->least = arena_alloc(&bundle->arena, n_chains(bundle), sizeof(*bundle->least));
        for (uint32_t c = 0; c < n_chains(bundle) && !bundle->arena.failed; c++) {
                uint32_t cells = c < problem->n_nodes ? problem->n_jobs : problem->n_nodes;

                bundle->factors[c].sign = c < problem->n_nodes ? 1 : -1;
                for (uint32_t i = 0; i < CHOICES; i++)
                        bundle->factors[c].choices[i].values = arena_alloc(&bundle->arena, cells, sizeof(uint32_t));
        }
        if (bundle->arena.failed) {
                bundle_destroy(bundle);
                return NULL;
        }
        return bundle;
}

void bundle_destroy(struct bundle *bundle) {
        if (!bundle)
                return;
        arena_finish(&bundle->arena);
        free(bundle);
}

/* ---- choices ---- */

/* Room for another one: the oldest without weight gives way. NULL: all have weight. */
static struct choice_seen *add_choice(struct factor_seen *factor) {
        uint32_t i = 0;
        struct choice_seen old;

        if (factor->n < CHOICES)
                return &factor->choices[factor->n++];
        while (i < factor->n && factor->choices[i].weight > 0)
                i++;
        if (i == factor->n)
                return NULL;
        old = factor->choices[i];
        memmove(&factor->choices[i], &factor->choices[i + 1], sizeof(old) * (factor->n - 1 - i));
        factor->choices[factor->n - 1] = old;
        return &factor->choices[factor->n - 1];
}

static void remember(const struct dual_work *work, const struct dp_row *row, int64_t least, struct factor_seen *factor) {
        struct choice_seen *choice = add_choice(factor);

        if (!choice)
                return;
        factor->n_cells = row->n;
        choice->weight = 0;
        choice->besides = (double) (least + row->constant);
        for (uint32_t i = 0; i < row->n; i++) {
                choice->values[i] = (uint32_t) (work->cells[i]->first + work->picked[i]);
                choice->besides -= work->links[i].values[work->picked[i]].cost;
        }
        for (uint32_t i = 0; i + 1 < factor->n; i++)
                if (memcmp(factor->choices[i].values, choice->values, sizeof(*choice->values) * row->n) == 0) {
                        factor->n--; /* it is known */
                        break;
                }
}

/* The bound at the costs that the dual has, and the choices that make it. */
static void look(struct bundle *bundle, struct dual *dual, struct dual_work *work) {
        uint32_t nodes = bundle->problem->n_nodes;

        for (uint32_t c = 0; c < n_chains(bundle); c++) {
                int64_t least, *stored = c < nodes ? &dual->node_least[c] : &dual->job_least[c - nodes];
                struct dp_row row;

                if (c < nodes)
                        dp_row_of_node(dual, work, c, &row);
                else
                        dp_row_of_job(dual, work, c - nodes, &row);
                if (!dp_row_least(work, &row, &least)) {
                        dual_fail(dual);
                        return;
                }
                dual->sum += least + row.constant - *stored;
                *stored = least + row.constant;
                dp_row_trace(work, &row);
                remember(work, &row, least, &bundle->factors[c]);
        }
}

/* ---- the model ---- */

static double product(const struct trait *a, const struct trait *b) {
        return a->units * b->units + a->used * b->used + a->beyond * b->beyond;
}

/* In which direction, and how fast, the charge of value k goes from the center. */
static double slope(const struct bundle *bundle, uint32_t k) {
        return product(&bundle->traits[k], &bundle->traits_apart[bundle->cell[k]]) + own * bundle->apart[k];
}

static void set_apart(struct bundle *bundle, uint32_t k, double weight) {
        const struct trait *from = &bundle->traits[k];
        struct trait *to = &bundle->traits_apart[bundle->cell[k]];

        bundle->apart[k] += weight;
        to->units += weight * from->units;
        to->used += weight * from->used;
        to->beyond += weight * from->beyond;
}

static double cost_of(const struct bundle *bundle, const struct factor_seen *factor, const struct choice_seen *choice,
                      double length) {
        double charged = 0, prices = 0;

        for (uint32_t i = 0; i < factor->n_cells; i++) {
                uint32_t k = choice->values[i];

                charged += bundle->center[k] + length * slope(bundle, k);
                prices += bundle->price[k];
        }
        return choice->besides + (factor->sign > 0 ? charged : prices - charged);
}

/* The square of how far it is from one choice to another. */
static double distance(const struct bundle *bundle, const struct factor_seen *factor, const struct choice_seen *a,
                       const struct choice_seen *b) {
        double sum = 0;

        for (uint32_t i = 0; i < factor->n_cells; i++) {
                const struct trait *x = &bundle->traits[a->values[i]], *y = &bundle->traits[b->values[i]];
                struct trait apart = { x->units - y->units, x->used - y->used, x->beyond - y->beyond };

                if (a->values[i] != b->values[i])
                        sum += product(&apart, &apart) + 2 * own;
        }
        return sum;
}

/* Weight goes from the dearest choice that has any to the cheapest, as much as is best. False:
 * there is nothing to gain. */
static bool mix(struct bundle *bundle, struct factor_seen *factor, double length) {
        struct choice_seen *best = NULL, *worst = NULL;
        double least = INFINITY, most = -INFINITY, weight;

        for (uint32_t i = 0; i < factor->n; i++) {
                struct choice_seen *choice = &factor->choices[i];
                double cost = cost_of(bundle, factor, choice, length);

                if (cost < least) {
                        least = cost;
                        best = choice;
                }
                if (choice->weight > 0 && cost > most) {
                        most = cost;
                        worst = choice;
                }
        }
        if (!best || !worst || most - least < 1)
                return false;
        weight = fmin(worst->weight, (most - least) / (length * distance(bundle, factor, best, worst)));
        best->weight += weight;
        worst->weight -= weight;
        for (uint32_t i = 0; i < factor->n_cells; i++)
                if (best->values[i] != worst->values[i]) {
                        set_apart(bundle, best->values[i], factor->sign * weight);
                        set_apart(bundle, worst->values[i], -factor->sign * weight);
                }
        return true;
}

/* Climbs to the top of the model; returns its value there, less the square. */
static double climb(struct bundle *bundle, double length) {
        bool any = true;
        double sum = 0, square = 0;

        for (int pass = 0; pass < PASSES && any; pass++) {
                any = false;
                for (uint32_t c = 0; c < n_chains(bundle); c++)
                        any |= mix(bundle, &bundle->factors[c], length);
        }
        for (uint32_t c = 0; c < n_chains(bundle); c++)
                for (uint32_t i = 0; i < bundle->factors[c].n; i++) {
                        const struct choice_seen *choice = &bundle->factors[c].choices[i];

                        if (choice->weight > 0)
                                sum += choice->weight * cost_of(bundle, &bundle->factors[c], choice, 0);
                }
        for (size_t i = 0; i < n_cells(bundle); i++)
                square += product(&bundle->traits_apart[i], &bundle->traits_apart[i]);
        for (size_t k = 0; k < bundle->problem->n_prices; k++)
                square += own * bundle->apart[k] * bundle->apart[k];
        return sum + length * square / 2;
}

/* ---- steps ---- */

/* The dual is where it is best so far. */
static void set_center(struct bundle *bundle, const struct dual *dual) {
        uint32_t nodes = bundle->problem->n_nodes, jobs = bundle->problem->n_jobs;

        for (size_t i = 0; i < n_cells(bundle); i++)
                for (size_t k = dual->cells[i].first; k < dual->cells[i].first + dual->cells[i].n; k++)
                        bundle->center[k] = dual->values[k].node_cost;
        memcpy(bundle->least, dual->node_least, sizeof(*bundle->least) * nodes);
        memcpy(bundle->least + nodes, dual->job_least, sizeof(*bundle->least) * jobs);
        bundle->sum = dual->sum;
}

/* Moves the dual so far from the center. What nodes are charged more, jobs are charged less, so
 * whatever comes of it bounds the same plans. */
static void go(const struct bundle *bundle, struct dual *dual, double length) {
        for (size_t i = 0; i < n_cells(bundle); i++)
                for (size_t k = dual->cells[i].first; k < dual->cells[i].first + dual->cells[i].n; k++) {
                        struct dual_value *value = &dual->values[k];
                        int64_t price = (int64_t) value->node_cost + value->job_cost;
                        double charge = round(bundle->center[k] + length * slope(bundle, (uint32_t) k));

                        if (fabs(charge) > dual->cells[i].reach || fabs((double) price - charge) > dual->cells[i].reach)
                                charge = bundle->center[k];
                        value->node_cost = (int32_t) charge;
                        value->job_cost = (int32_t) (price - value->node_cost);
                }
}

static void go_back(const struct bundle *bundle, struct dual *dual) {
        uint32_t nodes = bundle->problem->n_nodes, jobs = bundle->problem->n_jobs;

        go(bundle, dual, 0);
        memcpy(dual->node_least, bundle->least, sizeof(*bundle->least) * nodes);
        memcpy(dual->job_least, bundle->least + nodes, sizeof(*bundle->least) * jobs);
        dual->sum = bundle->sum;
        for (uint32_t s = 0; s < nodes; s++)
                dual->node_changed[s] = true;
        for (uint32_t j = 0; j < jobs; j++)
                dual->job_changed[j] = true;
}

/* Sets the traits of all values, and the largest difference that the cell can have. */
static void set_traits(struct bundle *bundle, const struct dual *dual) {
        memset(bundle->apart, 0, sizeof(*bundle->apart) * bundle->problem->n_prices);
        memset(bundle->traits_apart, 0, sizeof(*bundle->traits_apart) * n_cells(bundle));
        for (size_t i = 0; i < n_cells(bundle); i++) {
                const struct dual_cell *cell = &dual->cells[i];
                const struct dual_value *values = dual->values + cell->first;
                uint32_t here = bundle->problem->cells[i].here, most = 0, most_beyond = 0;

                for (uint32_t k = 0; k < cell->n; k++) {
                        most = values[k].units > most ? values[k].units : most;
                        most_beyond = values[k].x > here && values[k].x - here > most_beyond ? values[k].x - here : most_beyond;
                }
                for (uint32_t k = 0; k < cell->n; k++) {
                        struct trait *trait = &bundle->traits[cell->first + k];

                        bundle->cell[cell->first + k] = (uint32_t) i;
                        bundle->price[cell->first + k] = (double) values[k].node_cost + values[k].job_cost;
                        *trait = (struct trait) { .units = values[k].units / (most + 1.0), .used = values[k].units > 0 };
                        if (here > 0 && values[k].x > here)
                                trait->beyond = (values[k].x - here) / (most_beyond + 1.0);
                }
        }
}

/* The first choices seen make the mixtures to begin with. Returns how long the first step is; 0:
 * there is nothing to do. */
static double begin(struct bundle *bundle, struct dual *dual, struct dual_work *work) {
        double square = 0;

        set_traits(bundle, dual);
        for (uint32_t c = 0; c < n_chains(bundle); c++)
                bundle->factors[c].n = 0;
        look(bundle, dual, work);
        if (dual_is_over(dual))
                return 0;
        set_center(bundle, dual);
        for (uint32_t c = 0; c < n_chains(bundle); c++) {
                struct factor_seen *factor = &bundle->factors[c];

                factor->choices[0].weight = 1;
                for (uint32_t i = 0; i < factor->n_cells; i++)
                        set_apart(bundle, factor->choices[0].values[i], factor->sign);
        }
        for (size_t i = 0; i < n_cells(bundle); i++)
                square += product(&bundle->traits_apart[i], &bundle->traits_apart[i]);
        return square > 0 ? first_length * (double) (dual_gap(dual) + 1) / square : 0;
}

void bundle_run(struct bundle *bundle, struct dual *dual, struct dual_work *work, const struct deadline *deadline, uint32_t steps) {
        double length = begin(bundle, dual, work);
        uint32_t idle = 0;

        if (dual_is_over(dual))
                return;
        for (uint32_t i = 0; i < steps && length > 0 && deadline_left_usec(deadline) > 0; i++) {
                double promised = climb(bundle, length) - (double) bundle->sum, gain;

                go(bundle, dual, length);
                look(bundle, dual, work);
                if (dual_is_over(dual))
                        return;
                gain = (double) (dual->sum - bundle->sum);
                if (gain > 0 && gain > worth * promised) {
                        set_center(bundle, dual);
                        length *= gain > fine * promised ? longer : 1;
                        idle = 0;
                } else if (gain < -promised || ++idle > IDLE) {
                        length *= shorter;
                        idle = 0;
                }
                if (promised < done * (double) (dual->target - dual->base - bundle->sum))
                        break;
        }
        go_back(bundle, dual);
}
