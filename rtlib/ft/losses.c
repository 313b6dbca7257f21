#include "rtlib/ft/losses.h"

#include "common/util.h"

void losses_init(struct losses *l, uint32_t ranks) {
        *l = (struct losses) { .ranks = ranks };
        l->order = xcalloc(ranks, sizeof(*l->order));
        l->place = xcalloc(ranks, sizeof(*l->place));
}

void losses_finish(struct losses *l) {
        free(l->order);
        free(l->place);
        *l = (struct losses) { 0 };
}

uint32_t losses_add(struct losses *l, uint32_t from, const uint32_t *ranks, size_t n) {
        uint32_t count = l->count;

        for (size_t i = count > from ? count - from : 0; i < n && from + i == count; i++) {
                if (ranks[i] >= l->ranks || l->place[ranks[i]] > 0)
                        break;
                l->order[count] = ranks[i];
                atomic_store_explicit(&l->place[ranks[i]], ++count, memory_order_release);
        }
        atomic_store_explicit(&l->count, count, memory_order_release);
        return count;
}
