#include "policies/distrib/ascent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/dp_row.h"

enum {
        PATIENCE = 8,    /* steps without a gain until the step gets shorter */
        SWEEP_EVERY = 6, /* steps */
};

static const double momentum = 0.8, first_length = 0.4, longest = 1, shortest = 0.02;

/* Costs are moved between the two factors of a cell by a price for each unit and one for being used
 * at all. */
struct direction {
        double units, used;
};

struct ascent {
        const struct problem *problem;
        uint32_t *node_pick, *job_pick; /* each cell: the value that the cheapest choice of the factor has there */
        struct direction *direction;    /* each cell */
        uint32_t *node_value, *job_value; /* each cell: what these choices have there, as in the problem */
        uint32_t *node_degree, *job_degree; /* each job: the nodes that it is on, if nodes or it itself could choose */
        struct dual best;
        struct arena arena;
};

struct ascent *ascent_create(const struct problem *problem) {
        struct ascent *ascent = calloc(1, sizeof(*ascent));
        size_t cells = (size_t) problem->n_jobs * problem->n_nodes;

        if (!ascent)
                return NULL;
        ascent->problem = problem;
        ascent->node_pick = arena_alloc(&ascent->arena, cells, sizeof(*ascent->node_pick));
        ascent->job_pick = arena_alloc(&ascent->arena, cells, sizeof(*ascent->job_pick));
        ascent->node_value = arena_alloc(&ascent->arena, cells, sizeof(*ascent->node_value));
        ascent->job_value = arena_alloc(&ascent->arena, cells, sizeof(*ascent->job_value));
        ascent->node_degree = arena_alloc(&ascent->arena, problem->n_jobs, sizeof(*ascent->node_degree));
        ascent->job_degree = arena_alloc(&ascent->arena, problem->n_jobs, sizeof(*ascent->job_degree));
        ascent->direction = arena_alloc(&ascent->arena, cells, sizeof(*ascent->direction));
        if (ascent->arena.failed) {
                ascent_destroy(ascent);
                return NULL;
        }
        return ascent;
}

void ascent_destroy(struct ascent *ascent) {
        if (!ascent)
                return;
        arena_finish(&ascent->arena);
        dual_finish(&ascent->best);
        free(ascent);
}

/* ---- where it stands ---- */

static bool evaluate_row(struct dual *dual, struct dual_work *work, struct dp_row *row, int64_t *stored, uint32_t *pick,
                         uint32_t *degree, uint32_t *value) {
        int64_t least;

        if (!dp_row_least(work, row, &least))
                return false;
        dual->sum += least + row->constant - *stored;
        *stored = least + row->constant;
        dp_row_trace(work, row);
        for (uint32_t i = 0; i < row->n; i++) {
                size_t cell = (size_t) (work->cells[i] - dual->cells);

                pick[cell] = work->picked[i];
                value[cell] = dual->values[dual->cells[cell].first + work->picked[i]].v;
                degree[cell / dual->problem->n_nodes] += work->links[i].values[work->picked[i]].x > 0;
        }
        return true;
}

/* The bound as it is, and the choices that make it. */
static void evaluate(struct ascent *ascent, struct dual *dual, struct dual_work *work) {
        const struct problem *problem = ascent->problem;
        size_t cells = (size_t) problem->n_jobs * problem->n_nodes;
        bool possible = true;
        struct dp_row row;

        /* Cells that hold nothing for certain are in no row. */
        memset(ascent->node_pick, 0, sizeof(*ascent->node_pick) * cells);
        memset(ascent->job_pick, 0, sizeof(*ascent->job_pick) * cells);
        memset(ascent->node_value, 0, sizeof(*ascent->node_value) * cells);
        memset(ascent->job_value, 0, sizeof(*ascent->job_value) * cells);
        memset(ascent->node_degree, 0, sizeof(*ascent->node_degree) * problem->n_jobs);
        memset(ascent->job_degree, 0, sizeof(*ascent->job_degree) * problem->n_jobs);
        for (uint32_t s = 0; s < problem->n_nodes && possible; s++) {
                dp_row_of_node(dual, work, s, &row);
                possible = evaluate_row(dual, work, &row, &dual->node_least[s], ascent->node_pick, ascent->node_degree,
                                        ascent->node_value);
        }
        for (uint32_t j = 0; j < problem->n_jobs && possible; j++) {
                dp_row_of_job(dual, work, j, &row);
                possible = evaluate_row(dual, work, &row, &dual->job_least[j], ascent->job_pick, ascent->job_degree,
                                        ascent->job_value);
        }
        if (!possible)
                dual_fail(dual);
}

/* ---- one step ---- */

/* Where the factors of a cell disagree: the one that has more there than the other is asked more
 * for it. Returns the square of the length. */
static double turn(struct ascent *ascent, const struct dual *dual) {
        size_t cells = (size_t) ascent->problem->n_jobs * ascent->problem->n_nodes;
        double square = 0;

        for (size_t i = 0; i < cells; i++) {
                const struct dual_value *values = dual->values + dual->cells[i].first;
                const struct dual_value *node = &values[ascent->node_pick[i]], *job = &values[ascent->job_pick[i]];
                struct direction *direction = &ascent->direction[i];
                double weight = 1.0 / (values[dual->cells[i].n - 1].units + 1);

                direction->units = momentum * direction->units + ((double) node->units - (double) job->units) * weight;
                direction->used = momentum * direction->used + (node->units > 0) - (job->units > 0);
                square += direction->units * direction->units + direction->used * direction->used;
        }
        return square;
}

/* After it, the bound is not known until the next evaluation. */
static void step(const struct ascent *ascent, struct dual *dual, double length) {
        uint32_t nodes = ascent->problem->n_nodes;

        for (size_t i = 0; i < (size_t) ascent->problem->n_jobs * nodes; i++) {
                const struct dual_cell *cell = &dual->cells[i];
                struct dual_value *values = dual->values + cell->first;
                double used = ascent->direction[i].used * length;
                double units = ascent->direction[i].units * length / (values[cell->n - 1].units + 1);

                if (cell->n < 2 || (used == 0 && units == 0))
                        continue;
                for (uint32_t k = 0; k < cell->n; k++) {
                        int64_t cost = (int64_t) (units * values[k].units + (values[k].units > 0 ? used : 0));

                        if (llabs(values[k].node_cost + cost) > cell->reach || llabs(values[k].job_cost - cost) > cell->reach)
                                continue;
                        values[k].node_cost += (int32_t) cost;
                        values[k].job_cost -= (int32_t) cost;
                }
                dual->node_changed[i % nodes] = dual->job_changed[i / nodes] = true;
        }
}

int ascent_run(struct ascent *ascent, struct dual *dual, struct dual_work *work, const struct deadline *deadline, uint32_t steps) {
        size_t cells = (size_t) ascent->problem->n_jobs * ascent->problem->n_nodes;
        int64_t best = INT64_MIN;
        double length = first_length;
        int idle = 0, r = 0;

        memset(ascent->direction, 0, sizeof(*ascent->direction) * cells);
        for (uint32_t i = 0; i < steps && length > shortest && r == 0; i++) {
                double square;

                evaluate(ascent, dual, work);
                if (i % SWEEP_EVERY == SWEEP_EVERY - 1 && dual_sweep(dual, work))
                        evaluate(ascent, dual, work);
                if (dual_is_over(dual) || deadline_left_usec(deadline) <= 0)
                        break;
                if (dual->base + dual->sum > best) {
                        best = dual->base + dual->sum;
                        r = dual_copy(&ascent->best, dual);
                        length = length * 1.1 < longest ? length * 1.1 : longest;
                        idle = 0;
                } else if (++idle > PATIENCE) {
                        length *= 0.6;
                        idle = 0;
                        r = dual_copy(dual, &ascent->best);
                        memset(ascent->direction, 0, sizeof(*ascent->direction) * cells);
                        evaluate(ascent, dual, work);
                }
                square = turn(ascent, dual);
                if (square <= 0)
                        break;
                step(ascent, dual, length * (double) (dual_gap(dual) + 1) / square);
        }
        if (r == 0 && best > INT64_MIN && !dual_is_over(dual))
                r = dual_copy(dual, &ascent->best);
        return r;
}

void ascent_degrees(const struct ascent *ascent, uint32_t job, uint32_t *ret_by_nodes, uint32_t *ret_by_job) {
        *ret_by_nodes = ascent->node_degree[job];
        *ret_by_job = ascent->job_degree[job];
}

void ascent_values(const struct ascent *ascent, size_t cell, uint32_t *ret_by_node, uint32_t *ret_by_job) {
        *ret_by_node = ascent->node_value[cell];
        *ret_by_job = ascent->job_value[cell];
}
