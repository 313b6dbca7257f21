/* Ranks for tests: threads of this process, which save and restore together. */
#ifndef RM_TESTS_UNIT_RTLIB_RANKS_H
#define RM_TESTS_UNIT_RTLIB_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "rtlib/checkpoint/collective.h"

#define CELLS 60007 /* of the block-distributed array, on all ranks: several blocks of the file each */
#define POINTS 7001
#define RANKS_MAX 13
#define TABLE 5000

struct point {
        float x, y, z;
};

/* The arrays of one rank. */
struct rank {
        struct arrays arrays;
        struct saved saved;
        double *cells;
        struct point *points; /* 12 bytes: some lie in two blocks */
        int32_t *table;       /* replicated */
        uint64_t own;         /* private */
        int64_t step;         /* replicated */
        int result;
        struct rm_error err;
};

struct program {
        int size;
        struct rank ranks[RANKS_MAX];
        const char *nodes[RANKS_MAX]; /* the working directory of a rank, as of one on another node; NULL: that of all */
};

/* All is zero. */
struct program *program_create(int size);
void program_destroy(struct program *p);
/* The program as it would be after so many steps, with any number of ranks. */
void program_compute(struct program *p, int64_t step);
/* All zero again. */
void program_clear(struct program *p);
/* The step of which all of it is; -1: of none. `own` is of this step, too, or if not `with_own`,
 * zero. */
int64_t program_step(const struct program *p, bool with_own);

/* All ranks at once; they must all give the same, with the same text. */
int program_save(struct program *p, const char *directory);
int program_restore(struct program *p, const char *directory);
const char *program_error(const struct program *p);

#endif
