/* Mends what CRIU dumps in a way that it cannot restore. Pure but for mend_images(). */
#ifndef RM_CAPSULE_MEND_H
#define RM_CAPSULE_MEND_H

#include <stddef.h>
#include <stdint.h>

/* A periodic timerfd that has expired and was not read yet is dumped with 0 left, and 0 disarms it for ever: leave it a
 * nanosecond instead. In a file of images of open files, in place. Returns how many; what is no such file is left alone. */
unsigned mend_timerfds(uint8_t *image, size_t size_bytes);

/* All of the above, in the images of this directory before they are restored. */
void mend_images(int images_fd);

#endif
