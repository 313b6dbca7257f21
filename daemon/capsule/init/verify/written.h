/* The files that the payload has written and closed again, as a program does that adds to a file in
 * each of its steps. These files are no part of an image, but a restart takes back what was added
 * to them since the checkpoint (rollback.h). */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_WRITTEN_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_WRITTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/capsule.pb-c.h"

struct core;
struct written;

enum {
        WRITTEN_FILES_MAX = 256,   /* the files that were written last are known */
        WRITTEN_PART_BYTES = 4096, /* a hash is of so much of a file's begin, and of its end */
};

/* Creation never fails; the result lives as long as the process. Without fanotify(7), or on a file
 * system whose files it cannot name, nothing is noticed, and the log of the capsule says so. */
struct written *written_create(struct core *core);
/* Watches all mounts that the payload may write to and that others see too; a change of the mounts
 * is noticed later, but a restore calls this to be sure. */
void written_watch(struct written *written);

/* The time of the next look at events, as of other parts of the loop; UINT64_MAX without one. */
uint64_t written_deadline(const struct written *written);
void written_timeout(struct written *written);

/* Adds what is known to `inventory`, while the payload stands still. With `look`, as a checkpoint
 * needs it, a child with the owner's rights finds the files and tells their sizes; what it has not
 * told within a third of a second is left out. Without it the files are only named for the other
 * end. */
void written_report(struct written *written, bool scan, Capsule__Inventory *inventory);
/* The files of `inventory` were written by what is being restored. */
void written_load(struct written *written, const Capsule__Inventory *inventory);
/* Forgets events up to now: rmd's own processes have caused them in a restore. */
void written_forget_events(struct written *written);

/* Hashes the begin and the end of a file's first `size_bytes`. Returns 0 when they cannot be read,
 * or are none. Pure but for the file. */
uint64_t written_hash(int fd, uint64_t size_bytes);

#endif
