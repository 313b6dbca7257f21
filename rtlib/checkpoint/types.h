/* Element types of arrays, and their byte order. Pure. */
#ifndef RM_RTLIB_CHECKPOINT_TYPES_H
#define RM_RTLIB_CHECKPOINT_TYPES_H

#include <stdbool.h>

#include "rm/rmrt_checkpoint.h"

#define TYPE_ELEMENT_MAX_BYTES (UINT64_C(1) << 36)

/* Can there be one? */
bool type_valid(const struct rmrt_type *type);
bool type_equal(const struct rmrt_type *a, const struct rmrt_type *b);
/* The size of an element of a valid type. */
uint64_t type_element_bytes(const struct rmrt_type *type);
/* May it be converted to the other byte order? */
bool type_converts(const struct rmrt_type *type);
/* "float64", "3 x int32" */
void type_text(const struct rmrt_type *type, char *ret, size_t size);

/* Whole elements, in place. */
void type_swap(const struct rmrt_type *type, void *data, uint64_t size_bytes);
bool host_is_big_endian(void);

#endif
