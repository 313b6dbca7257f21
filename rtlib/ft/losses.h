/* Which ranks of MPI_COMM_WORLD were lost, in the order in which rmd's log has them: a number of
 * losses names which. One thread adds, others read. */
#ifndef RM_RTLIB_FT_LOSSES_H
#define RM_RTLIB_FT_LOSSES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct losses {
        _Atomic uint32_t count; /* entries of `order` that can be read */
        uint32_t ranks; /* in MPI_COMM_WORLD */
        uint32_t *order;
        _Atomic uint32_t *place; /* by rank: place in the order, from 1 on; 0: lives */
};

void losses_init(struct losses *l, uint32_t ranks);
void losses_finish(struct losses *l);

/* Takes the new losses of a message that names `n` ranks, from this place in the order on. A
 * message that leaves a gap, and ranks that do not exist, are ignored. Returns the count. */
uint32_t losses_add(struct losses *l, uint32_t from, const uint32_t *ranks, size_t n);

/* Was it lost, if no more than `count` were? */
static inline bool losses_has(const struct losses *l, uint32_t rank, uint32_t count) {
        uint32_t place = rank < l->ranks ? atomic_load_explicit(&l->place[rank], memory_order_acquire) : 0;

        return place > 0 && place <= count;
}

#endif
