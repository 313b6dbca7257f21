/* Zero elision: is there anything in this block? */
#ifndef RM_IMAGE_ZERO_H
#define RM_IMAGE_ZERO_H

#include <stdbool.h>
#include <stddef.h>

bool image_block_is_zero(const void *data, size_t size_bytes);

#endif
