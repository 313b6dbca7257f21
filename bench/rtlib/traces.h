/* Programs whose memory changes as that of those which Agarwal et al. 2004 checkpointed, and of
 * others. */
#ifndef RM_BENCH_RTLIB_TRACES_H
#define RM_BENCH_RTLIB_TRACES_H

#include <stddef.h>
#include <stdint.h>

struct trace {
        const char *name, *what;
        size_t bytes; /* of all its arrays, which lie one behind the other */
        int steps; /* between two checkpoints */
        void (*begin)(void *memory); /* of zeros */
        void (*step)(void *memory, int number);
};

extern const struct trace traces[];
extern const size_t n_traces;

#endif
