#include "common/groups.h"

#include "common/util.h"

uint32_t groups_number(uint32_t ranks, uint32_t group_size) {
        return (ranks - 1) / group_size + 1;
}

uint32_t groups_ranks(uint32_t ranks, uint32_t group_size, uint32_t group) {
        uint32_t left = ranks - group * group_size;

        return left < group_size ? left : group_size;
}

uint32_t *groups_create(uint32_t ranks, uint32_t group_size, uint32_t *ret_n) {
        uint32_t n = groups_number(ranks, group_size);
        uint32_t *array = xcalloc(n, sizeof(*array));

        for (uint32_t g = 0; g < n; g++)
                array[g] = groups_ranks(ranks, group_size, g);
        *ret_n = n;
        return array;
}

uint32_t groups_least_size(uint32_t ranks, uint32_t most) {
        return (ranks - 1) / most + 1;
}
