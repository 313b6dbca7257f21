/* Things that will happen, the next one first; equal ones in an order that depends on nothing but
 * what they are. */
#ifndef RM_SIM_HEAP_H
#define RM_SIM_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct heap_entry {
        int64_t time_usec;
        uint32_t kind, a, b, version;
};

/* Zeroed: empty. */
struct heap {
        struct heap_entry *entries;
        size_t n, allocated;
};

void heap_add(struct heap *heap, const struct heap_entry *entry);
/* Only when n > 0. */
struct heap_entry heap_take(struct heap *heap);
void heap_finish(struct heap *heap);

#endif
