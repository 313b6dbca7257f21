/* The options of mpirun itself, as far as finding PROGRAM and the ranks needs them. */
#ifndef RM_LAUNCHER_MPIRUN_NATIVE_H
#define RM_LAUNCHER_MPIRUN_NATIVE_H

#include <stdbool.h>

enum native_kind {
        NATIVE_FLAG,    /* takes nothing */
        NATIVE_VALUE,   /* takes the next word */
        NATIVE_PAIR,    /* takes the next two words, as "--mca KEY VALUE" */
        NATIVE_RANKS,   /* NATIVE_VALUE that gives the number of ranks */
        NATIVE_REFUSED, /* says where to run, which is rmd's to decide */
        NATIVE_UNKNOWN,
        NATIVE_AMBIGUOUS,
};

/* `name` without dashes and value. Long names may be cut as long as it stays clear what they
 * take. */
enum native_kind native_lookup(const char *name);

#endif
