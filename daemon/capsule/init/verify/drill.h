/* A restore that is only tried, on the node where the processes that it is made of run on: what it
 * would change of what both share is looked at, and not done. */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_DRILL_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_DRILL_H

#include "proto/capsule.pb-c.h"

struct image_sockets;
struct rm_error;

/* Checks, before CRIU restores it, an image that has these `sockets`, and that `inventory` was
 * taken of. ROLLBACK_OTHER_FILE and the like: files would not be as a restart needs them, as
 * rollback_files() would say. -EOPNOTSUPP: CRIU would take something away from the processes that
 * run: data of a named pipe, or the name of a Unix socket, on a file system that is not the
 * capsule's own. Each with a text that names the file. */
int drill_check(const Capsule__Inventory *inventory, const Capsule__Spec *spec, const struct image_sockets *sockets, int copies_fd,
                struct rm_error *error);

#endif
