/* Which files the payload has written and closed again, as a program does that adds to a file in each of its steps. They are no part of an image, but a restart takes back what was
 * added to them since (rollback.h). */
#ifndef RM_DAEMON_CAPSULE_INIT_WRITTEN_H
#define RM_DAEMON_CAPSULE_INIT_WRITTEN_H

#include <stdint.h>

#include "proto/capsule.pb-c.h"

struct init;
struct written;

enum {
        WRITTEN_FILES_MAX = 256, /* the ones that were written last */
        WRITTEN_TAIL_BYTES = 4096, /* how much of a file's end ClosedFile.tail_hash is of */
};

/* Never fails; lives as long as the process. A kernel or a file system that cannot tell what is written is left out. */
struct written *written_create(struct init *init);
/* Watches all mounts that the payload may write to and others see; what was watched before stays so. */
void written_watch(struct written *written);

/* As of other parts of the loop: UINT64_MAX without one. */
uint64_t written_deadline(const struct written *written);
void written_timeout(struct written *written);

/* While the payload stands still: adds to `inventory` the files that it alone has written more than once, or made, and has not open. A child looks at them with the rights of the
 * owner; what it cannot do in a third of a second is left out. */
void written_report(struct written *written, Capsule__Inventory *inventory);
/* What is restored has written these. */
void written_load(struct written *written, const Capsule__Inventory *inventory);

/* Of the end of the file `fd`, up to its byte `size_bytes`. 0: it cannot be read, or is shorter. Pure but for the file. */
uint64_t written_tail_hash(int fd, uint64_t size_bytes);

#endif
