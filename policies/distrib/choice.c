#include "policies/distrib/choice.h"

#include <stdlib.h>

/* Added to what a choice scores less: cells are split between nothing and something first. */
static const int64_t later = (int64_t) 1 << 48;

/* How much dearer the cell gets at least without values below (from) `split`, as far as the two
 * factors know. */
static void cell_gains(const struct dual *dual, const struct dual_cell *cell, uint32_t split, int64_t *ret_low, int64_t *ret_high) {
        int64_t low = INT64_MAX, high = INT64_MAX;

        for (uint32_t i = 0; i < cell->n; i++) {
                const struct dual_value *v = &dual->values[cell->first + i];
                int64_t cost = (int64_t) v->node_cost + v->job_cost;

                if (v->v < split && cost < low)
                        low = cost;
                if (v->v >= split && cost < high)
                        high = cost;
        }
        *ret_low = low;
        *ret_high = high;
}

/* Is the cell open, and where would it be split: between nothing and something first. */
static bool cell_split(const struct dual *dual, const struct dual_cell *cell, uint32_t *ret_split) {
        const struct dual_value *v = dual->values + cell->first;

        if (cell->n < 2)
                return false;
        *ret_split = v[0].v == 0 ? v[1].v : v[cell->n / 2].v;
        return true;
}

/* Among the `n` best so far, at most `max`, best first; the older one first of two alike. Returns
 * how many there are now. */
static uint32_t choice_keep(struct choice *choices, uint32_t n, uint32_t max, const struct choice *choice) {
        uint32_t at;

        for (at = n; at > 0 && choices[at - 1].score < choice->score; at--)
                if (at < max)
                        choices[at] = choices[at - 1];
        if (at >= max)
                return n;
        choices[at] = *choice;
        return n < max ? n + 1 : max;
}

uint32_t choices_of_cells(const struct ascent *ascent, const struct dual *dual, struct choice *ret_choices, uint32_t max) {
        const struct problem *problem = dual->problem;
        uint32_t n = 0;

        for (uint32_t j = 0; j < problem->n_jobs; j++)
                for (uint32_t s = 0; s < problem->n_nodes; s++) {
                        const struct dual_cell *cell = &dual->cells[(size_t) j * problem->n_nodes + s];
                        struct choice choice = { .job = j, .node = (int32_t) s };
                        int64_t low, high;
                        uint32_t by_node, by_job;

                        if (!cell_split(dual, cell, &choice.split))
                                continue;
                        cell_gains(dual, cell, choice.split, &low, &high);
                        choice.score = -llabs(low - high);
                        if (choice.split != dual->values[cell->first + 1].v || dual->values[cell->first].v != 0)
                                choice.score -= later;
                        ascent_values(ascent, (size_t) j * problem->n_nodes + s, &by_node, &by_job);
                        if ((by_node == 0) != (by_job == 0))
                                choice.score += later / 256;
                        choice.score = choice.score * 16 + (int64_t) problem->jobs[j].priority;
                        n = choice_keep(ret_choices, n, max, &choice);
                }
        return n;
}

uint32_t choices_of_degrees(const struct ascent *ascent, const struct dual *dual, struct choice *ret_choices, uint32_t max) {
        uint32_t layers = dual_most_layers(dual->problem), n = 0;

        for (uint32_t j = 0; j < dual->problem->n_jobs && n < max; j++) {
                struct choice choice = { .job = j, .node = RM_NO_NODE };
                uint32_t by_nodes, by_job;

                ascent_degrees(ascent, j, &by_nodes, &by_job);
                choice.split = (by_nodes < by_job ? by_nodes : by_job) + 1;
                if (dual->problem->jobs[j].rest > 0 || by_nodes == by_job || choice.split >= layers ||
                    choice.split <= dual->least_degree[j] || choice.split > dual->most_degree[j])
                        continue;
                ret_choices[n++] = choice;
        }
        return n;
}

uint32_t choices_of_amounts(const struct ascent *ascent, const struct dual *dual, struct choice *ret_choices, uint32_t max) {
        const struct problem *problem = dual->problem;
        uint32_t n = 0;

        for (uint32_t j = 0; j < problem->n_jobs; j++)
                for (uint32_t s = 0; s < problem->n_nodes; s++) {
                        size_t i = (size_t) j * problem->n_nodes + s;
                        const struct dual_cell *cell = &dual->cells[i];
                        const struct dual_value *values = dual->values + cell->first;
                        struct choice choice = { .job = j, .node = (int32_t) s };
                        uint32_t by_node, by_job;

                        ascent_values(ascent, i, &by_node, &by_job);
                        choice.split = (by_node + by_job + 1) / 2;
                        choice.score =
                                llabs((int64_t) by_node - (int64_t) by_job) * problem->jobs[j].size * problem->jobs[j].priority;
                        if (by_node == by_job || choice.split <= values[0].v || choice.split > values[cell->n - 1].v)
                                continue;
                        n = choice_keep(ret_choices, n, max, &choice);
                }
        return n;
}

bool choice_is_of_amount(const struct choice *choice) {
        return choice->score < -later / 2;
}

void choice_take(struct dual *dual, const struct choice *choice, bool low) {
        uint32_t from = low ? 0 : choice->split, to = low ? choice->split - 1 : UINT32_MAX;

        if (choice->node < 0)
                dual_restrict_degree(dual, choice->job, from, to);
        else
                dual_restrict(dual, choice->job, (uint32_t) choice->node, from, to);
}
