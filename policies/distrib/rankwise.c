#include "policies/distrib/rankwise.h"

#include <stdlib.h>
#include <string.h>

uint32_t rankwise_ranks(const struct relaxation *classes) {
        uint32_t ranks = 0;

        for (uint32_t t = 0; t < classes->n_demands; t++)
                ranks += classes->demands[t].ranks;
        return ranks;
}

void rankwise_read(const struct relaxation *classes, const struct rm_plan *plan, int32_t *ret_nodes) {
        for (uint32_t t = 0; t < classes->n_demands; ret_nodes += classes->demands[t++].ranks)
                memcpy(ret_nodes, plan->jobs[classes->demands[t].job].group_node, sizeof(*ret_nodes) * classes->demands[t].ranks);
}

void rankwise_write(const struct relaxation *classes, const int32_t *nodes, struct rm_plan *plan) {
        for (uint32_t t = 0; t < classes->n_demands; nodes += classes->demands[t++].ranks)
                memcpy(plan->jobs[classes->demands[t].job].group_node, nodes, sizeof(*nodes) * classes->demands[t].ranks);
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
