/* A group that is moved or saved: children in place of its processes, and CRIU played as far as it
 * matters. */
#ifndef RM_TESTS_MOVER_GROUP_H
#define RM_TESTS_MOVER_GROUP_H

#include <stddef.h>

#include "../pages/child.h"

/* The pids as in cgroup.procs; malloc'ed. */
char *procs_of(const pid_t *pids, size_t n);

/* Returns when it does. */
void stand_still(pid_t pid);

/* CRIU's part, without pages: an image "inventory.img" with that word in it, and a "files.img" with
 * these entries. Returns when the mover has taken the former: so it has begun with the freeze. */
void group_dump_files(const char *images_dir, const void *entries, size_t size);
/* No entries. */
void group_dump(const char *images_dir);

/* A child with this pid, which another one had before. */
struct child child_with_pid(void (*function)(int link), pid_t pid);

/* The memory of the child is not tracked (any more). */
void check_free(const struct child *child);

#endif
