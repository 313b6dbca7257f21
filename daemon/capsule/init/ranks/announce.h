/* Announcements tell those ranks that want to know what rmd is about to do with the group: before,
 * so that they can do something first, for which rmd waits, and after. */
#ifndef RM_DAEMON_CAPSULE_INIT_RANKS_ANNOUNCE_H
#define RM_DAEMON_CAPSULE_INIT_RANKS_ANNOUNCE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/capsule/init/core.h"
#include "proto/capsule.pb-c.h"

struct announce;
struct park;
struct ranks;

/* Lives as long as the process, and uses `ranks` and `park`. */
struct announce *announce_create(struct core *core, struct ranks *ranks, const struct park *park);

/* Tells the ranks that a capture is near. The reply of `ticket` comes when all have answered, or
 * after `wait_usec`. What was announced before is over, but not that of a checkpoint by its
 * places. */
void announce_near(struct announce *announce, Capsule__Capture capture, uint64_t wait_usec, struct ticket ticket);
/* Tells the ranks that the capture is over, whether it came to pass or not; does nothing if it is
 * not what was announced last. */
void announce_over(struct announce *announce, Capsule__Capture capture);
/* The group goes on here: it has come by a move, or, with `back`, from a checkpoint. */
void announce_arrived(struct announce *announce, bool back);
/* There is another rmd, which knows of nothing that was announced: the capture is over as soon as
 * the group runs. */
void announce_orphan(struct announce *announce);
void announce_runs(struct announce *announce);

/* A rank has said something. */
void announce_scan(struct announce *announce);
/* Returns when announce_timeout() is to be called; UINT64_MAX: nobody is waited for. */
uint64_t announce_deadline(const struct announce *announce);
void announce_timeout(struct announce *announce);

#endif
