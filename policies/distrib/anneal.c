#include "policies/distrib/anneal.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/rng.h"

enum {
        DRAWS = 1024,     /* entries of the table of logarithms */
        SAMPLES = 256,    /* moves looked at to find the temperature */
        STEPS = 64,       /* of temperature in a run */
};

/* Groups of one size of one job: the full ones, or the smaller last one. */
struct kind {
        uint32_t job, units;
        bool rest;
};

/* Groups of a kind that are on a node. */
struct stock {
        uint32_t kind, node;
};

/* Groups of `a` go from s to t, of `b` from t to s. */
struct move {
        uint32_t a, b, s, t;
        uint32_t a_count, b_count;
        uint32_t value[4]; /* of a on s, a on t, b on s, b on t */
        int64_t delta;
};

struct anneal {
        const struct problem *problem;
        struct kind *kinds;
        uint32_t n_kinds;
        struct stock *stocks; /* those that are not empty */
        uint32_t n_stocks;
        uint32_t *place; /* kinds x nodes: 1 + index into stocks, 0: empty */
        uint32_t *values, *best;
        int64_t *free_units;
        int64_t cost, best_cost;
        double draw[DRAWS]; /* -log of numbers evenly between 0 and 1 */
        double heat;        /* how much dearer moves are, typically */
        uint64_t random;
        uint32_t runs;
        bool running; /* jobs run somewhere already */
        struct arena arena;
};

static uint32_t random_below(struct anneal *anneal, uint32_t n) {
        return rng_below(&anneal->random, n);
}

static size_t cell_index(const struct anneal *anneal, uint32_t job, uint32_t node) {
        return (size_t) job * anneal->problem->n_nodes + node;
}

static uint32_t amount(const struct anneal *anneal, uint32_t kind, uint32_t node) {
        size_t i = cell_index(anneal, anneal->kinds[kind].job, node);
        uint32_t n_x = anneal->problem->cells[i].n_x;

        return anneal->kinds[kind].rest ? anneal->values[i] / n_x : anneal->values[i] % n_x;
}

static uint32_t amount_limit(const struct anneal *anneal, uint32_t kind, uint32_t node) {
        const struct cell *cell = problem_cell(anneal->problem, anneal->kinds[kind].job, node);

        return anneal->kinds[kind].rest ? cell->n > cell->n_x : cell->n_x - 1;
}

/* The amount that one more group of the kind adds to the value of a cell. */
static uint32_t value_step(const struct anneal *anneal, uint32_t kind, uint32_t node) {
        return anneal->kinds[kind].rest ? problem_cell(anneal->problem, anneal->kinds[kind].job, node)->n_x : 1;
}

/* ---- the lists ---- */

static void mark(struct anneal *anneal, uint32_t kind, uint32_t node) {
        uint32_t *place = &anneal->place[(size_t) kind * anneal->problem->n_nodes + node];
        bool filled = amount(anneal, kind, node) > 0;

        if (filled && *place == 0) {
                anneal->stocks[anneal->n_stocks++] = (struct stock) { kind, node };
                *place = anneal->n_stocks;
        } else if (!filled && *place > 0) {
                struct stock last = anneal->stocks[--anneal->n_stocks];

                anneal->stocks[*place - 1] = last;
                anneal->place[(size_t) last.kind * anneal->problem->n_nodes + last.node] = *place;
                *place = 0;
        }
}

static void load_best(struct anneal *anneal) {
        const struct problem *problem = anneal->problem;

        memcpy(anneal->values, anneal->best, sizeof(*anneal->values) * problem->n_jobs * problem->n_nodes);
        anneal->cost = anneal->best_cost;
        for (uint32_t s = 0; s < problem->n_nodes; s++)
                anneal->free_units[s] = problem->nodes[s].capacity;
        for (uint32_t k = 0; k < anneal->n_kinds; k++)
                for (uint32_t s = 0; s < problem->n_nodes; s++) {
                        anneal->free_units[s] -= (int64_t) amount(anneal, k, s) * anneal->kinds[k].units;
                        mark(anneal, k, s);
                }
}

static void list_kinds(struct anneal *anneal) {
        for (uint32_t j = 0; j < anneal->problem->n_jobs; j++) {
                const struct problem_job *job = &anneal->problem->jobs[j];

                if (job->full > 0)
                        anneal->kinds[anneal->n_kinds++] = (struct kind) { .job = j, .units = job->size };
                if (job->rest > 0)
                        anneal->kinds[anneal->n_kinds++] = (struct kind) { .job = j, .units = job->rest, .rest = true };
        }
}

struct anneal *anneal_create(const struct problem *problem, const uint32_t *values) {
        struct anneal *anneal = calloc(1, sizeof(*anneal));
        size_t cells = (size_t) problem->n_jobs * problem->n_nodes;

        if (!anneal)
                return NULL;
        anneal->problem = problem;
        anneal->random = RNG_BEGIN;
        anneal->kinds = arena_alloc(&anneal->arena, 2u * problem->n_jobs, sizeof(*anneal->kinds));
        anneal->stocks = arena_alloc(&anneal->arena, 2 * cells, sizeof(*anneal->stocks));
        anneal->place = arena_alloc(&anneal->arena, 2 * cells, sizeof(*anneal->place));
        anneal->values = arena_alloc(&anneal->arena, cells, sizeof(*anneal->values));
        anneal->best = arena_alloc(&anneal->arena, cells, sizeof(*anneal->best));
        anneal->free_units = arena_alloc(&anneal->arena, problem->n_nodes, sizeof(*anneal->free_units));
        if (anneal->arena.failed) {
                anneal_destroy(anneal);
                return NULL;
        }
        for (int i = 0; i < DRAWS; i++)
                anneal->draw[i] = -log((i + 0.5) / DRAWS);
        anneal->running = problem_is_running(problem);
        memcpy(anneal->best, values, sizeof(*values) * cells);
        anneal->best_cost = problem_judge(problem, values);
        list_kinds(anneal);
        return anneal;
}

void anneal_destroy(struct anneal *anneal) {
        if (!anneal)
                return;
        arena_finish(&anneal->arena);
        free(anneal);
}

const uint32_t *anneal_best(const struct anneal *anneal) {
        return anneal->best;
}

/* ---- one move ---- */

static uint32_t least_of(int64_t a, int64_t b) {
        return (uint32_t) (a < b ? a : b);
}

/* How many of kind k fit into `units` more on the node. */
static uint32_t fitting(const struct anneal *anneal, uint32_t k, uint32_t node, int64_t units) {
        int64_t free_units = anneal->free_units[node] + units,
                space = amount_limit(anneal, k, node) - (int64_t) amount(anneal, k, node);

        if (free_units < 0 || space <= 0)
                return 0;
        return least_of(free_units / anneal->kinds[k].units, space);
}

/* Limits `most` groups that could go from s to t to those that s has beyond the ones that run
 * there, but no more than t has lost. */
static uint32_t away_from_home(const struct anneal *anneal, uint32_t k, uint32_t s, uint32_t t, uint32_t most) {
        uint32_t job = anneal->kinds[k].job, here = amount(anneal, k, s), there = amount(anneal, k, t);
        uint32_t home_here = problem_cell(anneal->problem, job, s)->here, home_there = problem_cell(anneal->problem, job, t)->here;
        uint32_t count = most;

        if (anneal->kinds[k].rest)
                return most;
        if (here > home_here && count > here - home_here)
                count = here - home_here;
        if (home_there > there && count > home_there - there)
                count = home_there - there;
        return count;
}

/* Groups of `a` from s to t as many as fit, or some. */
static bool draw_shift(struct anneal *anneal, struct move *move) {
        uint32_t most = least_of(amount(anneal, move->a, move->s), fitting(anneal, move->a, move->t, 0));

        if (most == 0)
                return false;
        move->b_count = 0;
        switch (random_below(anneal, 6)) {
        case 0:
                move->a_count = 1 + random_below(anneal, most);
                break;
        case 1: /* as many as ran there before, or as do not run here: what was moved needlessly goes back */
                move->a_count = away_from_home(anneal, move->a, move->s, move->t, most);
                break;
        default:
                move->a_count = most;
        }
        return true;
}

/* The smallest number of groups of `size` units that makes room for `units` where some are free. */
static uint32_t make_space(int64_t units, int64_t free_units, int64_t size) {
        int64_t need = units - free_units;

        return need > 0 ? (uint32_t) ((need + size - 1) / size) : 0;
}

static bool draw_exchange(struct anneal *anneal, struct move *move) {
        int64_t a_units = anneal->kinds[move->a].units, b_units = anneal->kinds[move->b].units;
        uint32_t a_here = amount(anneal, move->a, move->s), b_here = amount(anneal, move->b, move->t);

        switch (random_below(anneal, anneal->running ? 7 : 4)) {
        case 4: /* what does not run here of a, or some, and as few of b as must make room */
        case 5:
                move->a_count = random_below(anneal, 2) ? 1 + random_below(anneal, a_here)
                                                        : away_from_home(anneal, move->a, move->s, move->t, a_here);
                move->b_count = make_space(move->a_count * a_units, anneal->free_units[move->t], b_units);
                break;
        case 6: /* the same of both, so that all that has been free stays free */
                move->a_count = away_from_home(anneal, move->a, move->s, move->t, a_here);
                move->b_count = (uint32_t) (move->a_count * a_units / b_units);
                break;
        case 0: /* all of a, and as few of b as must make room */
                move->a_count = a_here;
                move->b_count = make_space(a_here * a_units, anneal->free_units[move->t], b_units);
                break;
        case 1: /* the other way round */
                move->b_count = b_here;
                move->a_count = make_space(b_here * b_units, anneal->free_units[move->s], a_units);
                break;
        case 2: /* all of a, and as many of b as then fit */
                move->a_count = a_here;
                move->b_count = least_of(b_here, fitting(anneal, move->b, move->s, a_here * a_units));
                break;
        default:
                move->a_count = a_here;
                move->b_count = b_here;
        }
        return move->a_count <= a_here && move->b_count <= b_here && move->a_count + move->b_count > 0 &&
               move->a_count <= fitting(anneal, move->a, move->t, move->b_count * b_units) &&
               move->b_count <= fitting(anneal, move->b, move->s, move->a_count * a_units);
}

static int64_t price_at(const struct anneal *anneal, uint32_t job, uint32_t node, uint32_t value) {
        const struct cell *cell = problem_cell(anneal->problem, job, node);

        return value < cell->n ? anneal->problem->prices[cell->first + value] : PRICE_NEVER;
}

/* Adds to `delta` the change of the price of cell (job, node) when its value becomes `value`.
 * False: that value is impossible. */
static bool add_delta(const struct anneal *anneal, uint32_t job, uint32_t node, uint32_t value, int64_t *delta) {
        int64_t price = price_at(anneal, job, node, value);

        *delta += price - price_at(anneal, job, node, anneal->values[cell_index(anneal, job, node)]);
        return price < PRICE_NEVER;
}

static bool weigh(const struct anneal *anneal, struct move *move) {
        uint32_t a = anneal->kinds[move->a].job, b = anneal->kinds[move->b].job;
        uint32_t a_on_s = anneal->values[cell_index(anneal, a, move->s)], a_on_t = anneal->values[cell_index(anneal, a, move->t)];

        move->value[0] = a_on_s - move->a_count * value_step(anneal, move->a, move->s);
        move->value[1] = a_on_t + move->a_count * value_step(anneal, move->a, move->t);
        move->delta = 0;
        if (move->b_count == 0)
                return add_delta(anneal, a, move->s, move->value[0], &move->delta) &&
                       add_delta(anneal, a, move->t, move->value[1], &move->delta);
        if (a == b) {
                move->value[0] += move->b_count * value_step(anneal, move->b, move->s);
                move->value[1] -= move->b_count * value_step(anneal, move->b, move->t);
                move->value[2] = move->value[0];
                move->value[3] = move->value[1];
        } else {
                move->value[2] =
                        anneal->values[cell_index(anneal, b, move->s)] + move->b_count * value_step(anneal, move->b, move->s);
                move->value[3] =
                        anneal->values[cell_index(anneal, b, move->t)] - move->b_count * value_step(anneal, move->b, move->t);
                if (!add_delta(anneal, b, move->s, move->value[2], &move->delta) ||
                    !add_delta(anneal, b, move->t, move->value[3], &move->delta))
                        return false;
        }
        return add_delta(anneal, a, move->s, move->value[0], &move->delta) &&
               add_delta(anneal, a, move->t, move->value[1], &move->delta);
}

/* False: not a possible move. */
static bool draw_move(struct anneal *anneal, struct move *move) {
        struct stock from = anneal->stocks[random_below(anneal, anneal->n_stocks)];

        move->a = move->b = from.kind;
        move->s = from.node;
        if (random_below(anneal, 4) == 0) {
                move->t = random_below(anneal, anneal->problem->n_nodes);
                return move->t != move->s && draw_shift(anneal, move) && weigh(anneal, move);
        } else {
                struct stock other = anneal->stocks[random_below(anneal, anneal->n_stocks)];

                move->b = other.kind;
                move->t = other.node;
                if (move->t == move->s)
                        return false;
                return (move->a == move->b ? draw_shift(anneal, move) : draw_exchange(anneal, move)) && weigh(anneal, move);
        }
}

static void make_move(struct anneal *anneal, const struct move *move) {
        int64_t units = (int64_t) move->a_count * anneal->kinds[move->a].units;

        if (move->b_count > 0) {
                units -= (int64_t) move->b_count * anneal->kinds[move->b].units;
                anneal->values[cell_index(anneal, anneal->kinds[move->b].job, move->s)] = move->value[2];
                anneal->values[cell_index(anneal, anneal->kinds[move->b].job, move->t)] = move->value[3];
        }
        anneal->values[cell_index(anneal, anneal->kinds[move->a].job, move->s)] = move->value[0];
        anneal->values[cell_index(anneal, anneal->kinds[move->a].job, move->t)] = move->value[1];
        anneal->free_units[move->s] += units;
        anneal->free_units[move->t] -= units;
        anneal->cost += move->delta;
        mark(anneal, move->a, move->s);
        mark(anneal, move->a, move->t);
        mark(anneal, move->b, move->s);
        mark(anneal, move->b, move->t);
}

/* ---- runs ---- */

static double find_heat(struct anneal *anneal) {
        double sum = 0;
        int n = 0;

        for (int i = 0; i < SAMPLES; i++) {
                struct move move;

                if (!draw_move(anneal, &move) || move.delta <= 0)
                        continue;
                sum += (double) move.delta;
                n++;
        }
        return n > 0 ? sum / n : 0;
}

int64_t anneal_run(struct anneal *anneal, uint64_t moves) {
        size_t cells = (size_t) anneal->problem->n_jobs * anneal->problem->n_nodes;
        /* Now and then hotter or colder than usual: what one leaves alone, another may find. */
        static const double heats[] = { 0.1, 0.2, 0.05, 0.1, 0.3 };
        double heat, cooling = exp(log(0.1) / STEPS);

        load_best(anneal);
        if (anneal->n_stocks == 0)
                return anneal->best_cost;
        if (anneal->heat <= 0)
                anneal->heat = find_heat(anneal);
        heat = heats[anneal->runs++ % (sizeof(heats) / sizeof(heats[0]))] * anneal->heat;
        for (int step = 0; step < STEPS; step++) {
                for (uint64_t i = 0; i < moves / STEPS + 1; i++) {
                        struct move move;

                        if (!draw_move(anneal, &move) ||
                            (move.delta > 0 && (double) move.delta > heat * anneal->draw[random_below(anneal, DRAWS)]))
                                continue;
                        make_move(anneal, &move);
                        if (anneal->cost < anneal->best_cost) {
                                anneal->best_cost = anneal->cost;
                                memcpy(anneal->best, anneal->values, sizeof(*anneal->best) * cells);
                        }
                }
                heat *= cooling;
        }
        return anneal->best_cost;
}
