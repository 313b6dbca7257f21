/* Where in memory the bytes of a type lie, so that another process, which does not have that type,
 * finds them. */
#ifndef RM_RTLIB_FT_LAYOUT_H
#define RM_RTLIB_FT_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "rtlib/ft/calls.h"

struct run {
        int64_t at; /* from the address on that the program gives with the type, in bytes */
        uint64_t bytes;
};

struct layout {
        struct run *runs; /* in the order of the packed data */
        size_t n;
        size_t bytes; /* of all */
};

/* The layout of `count` elements, one after the other. */
void layout_init(struct layout *l, int count, MPI_Datatype type);
void layout_finish(struct layout *l);

/* MPI's own type that all of it is made of; MPI_DATATYPE_NULL: there is none. */
MPI_Datatype layout_basic_type(MPI_Datatype type);

#endif
