/* What the ranks in a capsule have said of their progress. Pure. The messages are the user's: any bytes. */
#ifndef RM_DAEMON_CAPSULE_INIT_REPORTS_H
#define RM_DAEMON_CAPSULE_INIT_REPORTS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/capsule.pb-c.h"

/* No node runs more of them in one capsule. */
enum { REPORTS_RANKS_MAX = 4096 };

struct reports;

struct reports *reports_create(void);
void reports_destroy(struct reports *reports); /* NULL ok */

/* A datagram. 0; -EBADMSG: it is none of librmrt's; -EUSERS: of one rank too many. */
int reports_take(struct reports *reports, const void *data, size_t size);

/* What the capsule has done: what the rank has that is furthest behind. `ranks` 0: nothing is known. */
void reports_sum(const struct reports *reports, Capsule__Progress *ret);

#endif
