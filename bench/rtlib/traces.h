/* Programs whose memory changes as that of those which Agarwal et al. 2004 and Cores 2015
 * checkpointed, with as much of it, and others. */
#ifndef RM_BENCH_RTLIB_TRACES_H
#define RM_BENCH_RTLIB_TRACES_H

#include <stddef.h>

/* A grid's extent in two directions is the kernel's own; the third decides how much memory it
 * has. */
struct kernel {
        const char *what;
        size_t plane_bytes;
        int steps; /* between two checkpoints */
        void (*begin)(void *memory, int planes); /* of zeros */
        void (*step)(void *memory, int planes, int number);
};

enum text { AGARWAL_2004, CORES_2015 };

struct trace {
        const char *name; /* with the class of NPB */
        enum text text;
        int planes; /* as many as give the memory of a process there */
        const struct kernel *kernel;
};

extern const struct trace traces[];
extern const size_t n_traces;

size_t trace_bytes(const struct trace *trace);
void trace_begin(const struct trace *trace, void *memory);
/* The program computes from one checkpoint to the next. `*number`: of its next step, counted on. */
void trace_run(const struct trace *trace, void *memory, int *number);

/* Reads `[--sizes agarwal|cores] [KERNEL]`, the beginning of a name. Exits with 2 on other
 * arguments. */
struct selection {
        enum text text;
        const char *name; /* NULL: all */
};
struct selection selection_read(int argc, char **argv);
/* Runs what was selected, one after the other; the exit code of main(). */
int selection_run(const struct selection *selection, void (*run)(void *ctx, const struct trace *trace), void *ctx);

#endif
