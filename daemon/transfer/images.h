/* Where images wait, and sockets for CRIU: a directory of rmd's with memory of its own. */
#ifndef RM_TRANSFER_IMAGES_H
#define RM_TRANSFER_IMAGES_H

#include "common/error.h"
#include "daemon/transfer/remover.h"

/* A new tmpfs on `dir`. /run is small on many machines. Small pages, also where the machine's
 * default is others: with large ones each page of the sparse files of processes' memory would take
 * up 2 MiB. What a previous rmd left goes. Blocks for some milliseconds. 0 or negative errno. */
int images_mount(const char *dir, struct rm_error *err);
/* Unmounts the directory of images, with all that is in it. */
void images_unmount(const char *dir);

/* Makes an empty directory (0700) of that name; what has it is removed. 0 or negative errno. */
int images_directory(struct remover *remover, const char *dir, struct rm_error *err);

#endif
