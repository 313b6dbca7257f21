#include "launcher/sim/heap.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/util.h"

static bool before(const struct heap_entry *x, const struct heap_entry *y) {
        if (x->time_usec != y->time_usec)
                return x->time_usec < y->time_usec;
        if (x->kind != y->kind)
                return x->kind < y->kind;
        if (x->a != y->a)
                return x->a < y->a;
        return x->b != y->b ? x->b < y->b : x->version < y->version;
}

static void swap(struct heap *heap, size_t i, size_t k) {
        struct heap_entry entry = heap->entries[i];

        heap->entries[i] = heap->entries[k];
        heap->entries[k] = entry;
}

void heap_add(struct heap *heap, const struct heap_entry *entry) {
        size_t i = heap->n++;

        if (heap->n > heap->allocated) {
                heap->allocated = heap->allocated ? 2 * heap->allocated : 256;
                heap->entries = xrealloc(heap->entries, heap->allocated * sizeof(*heap->entries));
        }
        heap->entries[i] = *entry;
        for (; i > 0 && before(&heap->entries[i], &heap->entries[(i - 1) / 2]); i = (i - 1) / 2)
                swap(heap, i, (i - 1) / 2);
}

struct heap_entry heap_take(struct heap *heap) {
        struct heap_entry taken = heap->entries[0];
        size_t i = 0;

        heap->entries[0] = heap->entries[--heap->n];
        for (;;) {
                size_t least = i;

                for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < heap->n; k++)
                        if (before(&heap->entries[k], &heap->entries[least]))
                                least = k;
                if (least == i)
                        return taken;
                swap(heap, i, least);
                i = least;
        }
}

void heap_finish(struct heap *heap) {
        free(heap->entries);
        *heap = (struct heap) { 0 };
}
