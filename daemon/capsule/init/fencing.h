/* The lease of a capsule whose job may be started again elsewhere (daemon/cluster/lease.h). When it
 * ends, PID 1 stops the payload and cuts the capsule off, by its own timer, whatever rmd does; when
 * it is renewed, the capsule goes on from there.
 *
 * What a move has frozen or cut off stays so: fencing undoes only what it has done itself. Such a
 * capsule cannot be opened without a lease. */
#ifndef RM_DAEMON_CAPSULE_INIT_FENCING_H
#define RM_DAEMON_CAPSULE_INIT_FENCING_H

#include <stdbool.h>
#include <stdint.h>

struct fencing;
struct init;
struct rm_error;

/* With spec->fenced the capsule begins cut off, without a lease; otherwise nothing here has an
 * effect. Lives as long as the process. */
int fencing_create(struct init *init, struct fencing **ret, struct rm_error *error);
/* The lease lasts until then (now_boot_usec()); UINT64_MAX: until told otherwise. A time does not
 * become an earlier one. */
void fencing_renew(struct fencing *fencing, uint64_t end_usec);
/* Is there no lease? Then nothing may be started, thawed or opened. */
bool fencing_is_on(const struct fencing *fencing);
/* Is the capsule fenced: was everything done that the end of a lease calls for? */
bool fencing_is_done(const struct fencing *fencing);
/* From now on a move holds the payload's freeze, or the cut. */
void fencing_leave_freeze(struct fencing *fencing);
void fencing_leave_cut(struct fencing *fencing);

#endif
