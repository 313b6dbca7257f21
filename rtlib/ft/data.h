/* Data of a program, as MPI describes it, in plain bytes. */
#ifndef RM_RTLIB_FT_DATA_H
#define RM_RTLIB_FT_DATA_H

#include <stddef.h>

#include "rtlib/ft/calls.h"

size_t data_bytes(int count, MPI_Datatype type);  /* packed */
size_t data_extent(MPI_Datatype type);
void data_pack(const void *data, int count, MPI_Datatype type, unsigned char *ret);
void data_unpack(const unsigned char *packed, size_t bytes, void *ret, int count, MPI_Datatype type);

/* The span of the data as it lies in memory, with its holes: from so many bytes behind its address
 * on. */
size_t data_span(int count, MPI_Datatype type, ptrdiff_t *ret_first);

#endif
