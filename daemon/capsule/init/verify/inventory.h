/* An inventory is what the tasks of a frozen group have open. It is taken at the source, carried
 * beside the image, and compared at the destination before anything runs there: a restore puts back
 * what its images say, and these come from memory and names that the job's owner controls. */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_INVENTORY_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_INVENTORY_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "proto/capsule.pb-c.h"

struct file_identity;
struct rm_error;

enum { INVENTORY_SHARED = 8 }; /* in InventoryMapping.protection */

static inline bool inventory_opens_for_writing(const Capsule__InventoryDescriptor *d) {
        return !(d->flags & O_PATH) && (d->flags & O_ACCMODE) != O_RDONLY;
}

static inline bool inventory_maps_for_writing(const Capsule__InventoryMapping *m) {
        return (m->protection & INVENTORY_SHARED) && (m->protection & PROT_WRITE);
}

/* Takes the inventory of all tasks in the control group that `cgroup_fd` names, which must be
 * frozen. Every thread must be the owner of `spec`, with no capability that he does not have at
 * login: -EPERM names the one that is not. -EFBIG: it would not fit beside the image. -ETIMEDOUT: a
 * file system does not answer. Free with capsule__inventory__free_unpacked(). */
int inventory_take(int cgroup_fd, const Capsule__Spec *spec, Capsule__Inventory **ret, struct rm_error *error);

/* Is `now` what `before` was? 0, or -EPERM with the first difference. */
int inventory_compare(const Capsule__Inventory *before, const Capsule__Inventory *now, struct rm_error *error);
/* The files that are open for writing, or mapped so, are the same ones in two inventories that do
 * not differ, and not what a disk of the node has under that name. -EXDEV: one is not. */
int inventory_compare_written(const Capsule__Inventory *before, const Capsule__Inventory *now, struct rm_error *error);

/* Can the owner reach each file of `inventory` himself, by its path and as it is open, and is it
 * the same file? -EPERM names one that he cannot. */
int inventory_reach(const Capsule__Inventory *inventory, const Capsule__Spec *spec, struct rm_error *error);

/* Has the file a path that another process can open? Not: pipes, sockets, memory, deleted files. */
bool inventory_has_path(const Capsule__InventoryFile *file);

/* Is a file of this path in a file system of the capsule's own, which is restored with it? */
bool inventory_is_carried(const char *path);

/* Tells for each of its files whether a task has it open for writing, or mapped so; malloc'ed. */
bool *inventory_find_written(const Capsule__Inventory *inventory);

/* Tells which file it was, for file_identity_same(). */
void inventory_identity(const Capsule__InventoryFile *file, struct file_identity *ret);

/* The other way round; `identity` lends its handle. */
void inventory_set_identity(Capsule__InventoryFile *file, struct file_identity *identity);

/* Returns a hash of what is known of the highest directory of `path` that is this user's; 0: there
 * is none. It differs on another file system, as of a node's disk, or of another cluster. For who
 * has the owner's rights. */
uint64_t inventory_top(const char *path, uint32_t uid);

/* Returns the time as in InventoryFile.mtime_nsec. */
int64_t inventory_mtime_nsec(const struct stat *st);

#endif
