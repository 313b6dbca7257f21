#include "daemon/log/raft_memory.h"

#include <stdlib.h>
#include <string.h>

#include <raft.h>

/* libraft 0.22.1 never sets the eight bytes of a barrier: what was in that memory before would get
 * into the logs of all voters, and one seed of a simulation would be many histories. */
static void *allocate(void *data, size_t size_bytes) {
        return calloc(1, size_bytes);
}

static void release(void *data, void *memory) {
        free(memory);
}

static void *allocate_array(void *data, size_t n, size_t size_bytes) {
        return calloc(n, size_bytes);
}

/* The old length of an array is not known here. Nothing of its new members gets out that libraft
 * 0.22.1 has not set: messages, entries and files are copied there as a whole, of a server it sets
 * all fields, and of an event those of its type, then the time and the capacity. */
static void *resize(void *data, void *memory, size_t size_bytes) {
        return realloc(memory, size_bytes);
}

static void *allocate_aligned(void *data, size_t alignment_bytes, size_t size_bytes) {
        void *memory = aligned_alloc(alignment_bytes, size_bytes);

        if (memory)
                memset(memory, 0, size_bytes);
        return memory;
}

static void release_aligned(void *data, size_t alignment_bytes, void *memory) {
        free(memory);
}

void raft_memory_use(void) {
        /* libraft keeps the address, and changes nothing there. */
        static struct raft_heap heap = { .malloc = allocate,
                                         .free = release,
                                         .calloc = allocate_array,
                                         .realloc = resize,
                                         .aligned_alloc = allocate_aligned,
                                         .aligned_free = release_aligned };

        raft_heap_set(&heap);
}
