/* Looks for files in the images of a directory that no process had open when its group was frozen:
 * see daemon/criu_images/open_files.h. */
#ifndef RM_DAEMON_CAPSULE_INIT_CRIU_IMAGE_FILES_H
#define RM_DAEMON_CAPSULE_INIT_CRIU_IMAGE_FILES_H

#include "proto/capsule.pb-c.h"

struct rm_error;

/* 0, or as open_files_check(), or -errno. */
int image_files_check(int images_fd, const Capsule__Inventory *inventory, struct rm_error *error);

#endif
