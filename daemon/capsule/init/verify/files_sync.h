/* Files on file systems of several nodes that a frozen group has open for writing: what it has
 * written may lie in this node's memory only, while another node opens the file, or goes on from a
 * checkpoint after this one was lost. */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_FILES_SYNC_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_FILES_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/capsule.pb-c.h"

struct rm_error;

/* Has such files written to their servers, by a child with the owner's rights. Files of local file
 * systems are left alone: no other node sees them. 0; -ETIMEDOUT: a server has not answered in
 * `limit_usec`; -EIO with the name of a file that cannot be written back. */
int files_sync(const Capsule__Inventory *inventory, const Capsule__Spec *spec, uint64_t limit_usec, struct rm_error *error);

/* Does a mount of this type (as in mountinfo, "nfs4") show what a server or other nodes have?
 * Pure. */
bool files_sync_is_remote(const char *type);

#endif
