#include "policies/distrib/rankwise.h"

#include <stdlib.h>
#include <string.h>

uint32_t rankwise_ranks(const struct staircase *stairs) {
        uint32_t ranks = 0;

        for (uint32_t t = 0; t < stairs->n_treads; t++)
                ranks += stairs->treads[t].ranks;
        return ranks;
}

void rankwise_read(const struct staircase *stairs, const struct rm_plan *plan, int32_t *ret_nodes) {
        for (uint32_t t = 0; t < stairs->n_treads; ret_nodes += stairs->treads[t++].ranks)
                memcpy(ret_nodes, plan->jobs[stairs->treads[t].job].group_node, sizeof(*ret_nodes) * stairs->treads[t].ranks);
}

void rankwise_write(const struct staircase *stairs, const int32_t *nodes, struct rm_plan *plan) {
        for (uint32_t t = 0; t < stairs->n_treads; nodes += stairs->treads[t++].ranks)
                memcpy(plan->jobs[stairs->treads[t].job].group_node, nodes, sizeof(*nodes) * stairs->treads[t].ranks);
}

static int compare_nodes(const void *a, const void *b) {
        const int32_t *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

void rankwise_sort(int32_t *nodes, uint32_t ranks) {
        qsort(nodes, ranks, sizeof(*nodes), compare_nodes);
}

uint32_t rankwise_piece(const int32_t *nodes, uint32_t ranks) {
        uint32_t x = 1;

        while (x < ranks && nodes[x] == nodes[0])
                x++;
        return x;
}
