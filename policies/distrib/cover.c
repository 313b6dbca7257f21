#include "policies/distrib/cover.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
        SIZES = 64, /* that are tried, for a job */
        MAX_WEIGHT = 8,
};

static const double least_lack = 0.02;

struct covers {
        const struct problem *problem;
        struct cover **of_job;
        uint32_t *n_of_job;
        uint32_t *least; /* by groups: the least weight of nodes that hold them */
        struct arena arena;
};

static uint32_t room_of(const struct covers *covers, const uint16_t *high, uint32_t j, uint32_t s) {
        uint32_t room = high[(size_t) j * covers->problem->n_nodes + s], full = covers->problem->jobs[j].full;

        return room < full ? room : full;
}

/* The least weight of nodes that together hold the job; UINT32_MAX: none do. */
static uint32_t least_weight(struct covers *covers, const uint16_t *high, uint32_t j, const uint8_t *weight) {
        uint32_t full = covers->problem->jobs[j].full, *least = covers->least;

        for (uint32_t x = 1; x <= full; x++)
                least[x] = UINT32_MAX;
        least[0] = 0;
        for (uint32_t s = 0; s < covers->problem->n_nodes; s++) {
                uint32_t room = room_of(covers, high, j, s);

                for (uint32_t x = full; x > 0 && room > 0; x--) {
                        uint32_t before = least[x > room ? x - room : 0];

                        if (before != UINT32_MAX && before + weight[s] < least[x])
                                least[x] = before + weight[s];
                }
        }
        return least[full];
}

/* Nodes weigh by how many parts of `size` groups they hold, begun ones too; or 1, those for `size` groups 2. */
static bool weigh_nodes(const struct covers *covers, const uint16_t *high, uint32_t j, uint32_t size, bool parts,
                        uint8_t *ret_weight) {
        for (uint32_t s = 0; s < covers->problem->n_nodes; s++) {
                uint32_t room = room_of(covers, high, j, s);
                uint32_t weight = parts ? (room + size - 1) / size : room == 0 ? 0 : room >= size ? 2 : 1;

                if (weight > MAX_WEIGHT)
                        return false;
                ret_weight[s] = (uint8_t) weight;
        }
        return true;
}

static void list_covers(struct covers *covers, const uint16_t *high, uint32_t j) {
        uint32_t full = covers->problem->jobs[j].full, sizes = full < SIZES ? full : SIZES, nodes = covers->problem->n_nodes, n = 0;
        struct cover *list = arena_alloc(&covers->arena, 2 * (size_t) sizes, sizeof(*list));
        uint8_t *weights = arena_alloc(&covers->arena, 2 * (size_t) sizes, nodes);

        if (!list || !weights)
                return;
        for (uint32_t i = 0; i < 2 * sizes; i++) {
                uint8_t *weight = weights + (size_t) n * nodes;
                bool known = !weigh_nodes(covers, high, j, (i / 2 + 1) * full / sizes, i % 2, weight);

                for (uint32_t k = 0; k < n && !known; k++)
                        known = memcmp(list[k].weight, weight, nodes) == 0;
                if (!known && (list[n].low = least_weight(covers, high, j, weight)) != UINT32_MAX)
                        list[n++].weight = weight;
        }
        covers->of_job[j] = list;
        covers->n_of_job[j] = n;
}

struct covers *covers_create(const struct problem *problem, const uint16_t *high) {
        struct covers *covers = calloc(1, sizeof(*covers));
        uint32_t most = 0;

        if (!covers)
                return NULL;
        covers->problem = problem;
        for (uint32_t j = 0; j < problem->n_jobs; j++)
                most = problem->jobs[j].full > most ? problem->jobs[j].full : most;
        covers->of_job = arena_alloc(&covers->arena, problem->n_jobs, sizeof(struct cover *));
        covers->n_of_job = arena_alloc(&covers->arena, problem->n_jobs, sizeof(*covers->n_of_job));
        covers->least = arena_alloc(&covers->arena, most + 1u, sizeof(*covers->least));
        for (uint32_t j = 0; j < problem->n_jobs && !covers->arena.failed; j++)
                list_covers(covers, high, j);
        if (covers->arena.failed) {
                covers_destroy(covers);
                return NULL;
        }
        return covers;
}

void covers_destroy(struct covers *covers) {
        if (!covers)
                return;
        arena_finish(&covers->arena);
        free(covers);
}

const struct cover *covers_find(const struct covers *covers, uint32_t job, const double *used) {
        const struct cover *best = NULL;
        double most = least_lack;

        for (uint32_t k = 0; k < covers->n_of_job[job]; k++) {
                const struct cover *cover = &covers->of_job[job][k];
                double sum = 0;

                for (uint32_t s = 0; s < covers->problem->n_nodes; s++)
                        sum += cover->weight[s] * used[(size_t) job * covers->problem->n_nodes + s];
                if (1 - sum / cover->low > most) {
                        most = 1 - sum / cover->low;
                        best = cover;
                }
        }
        return best;
}
