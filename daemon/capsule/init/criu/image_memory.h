/* Address space that a process has only reserved, as runtimes of languages do, is mapped again by
 * CRIU as if it were to be written to; the kernel refuses that for more than there is of memory.
 * Pure. */
#ifndef RM_DAEMON_CAPSULE_INIT_CRIU_IMAGE_MEMORY_H
#define RM_DAEMON_CAPSULE_INIT_CRIU_IMAGE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Writes a copy of an mm-PID.img to `ret`, of image_memory_bytes(), in which private anonymous
 * mappings of more than `most_bytes` have MAP_NORESERVE (mmap(2)). Returns its size; 0: this is no
 * such image. */
size_t image_memory_unreserve(uint8_t *image, size_t size_bytes, uint64_t most_bytes, uint8_t *ret);
size_t image_memory_bytes(size_t size_bytes);

#endif
