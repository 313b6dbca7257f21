/* Looks from time to time whether the payload holds what would keep it from being moved, and tells
 * rmd when that changes. */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_WATCH_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_WATCH_H

#include <stdint.h>

struct core;
struct rm_error;
struct watch;

/* Lives as long as the process. */
struct watch *watch_create(struct core *core);
/* Time (now_usec) at which watch_timeout() wants to be called; UINT64_MAX: not. */
uint64_t watch_deadline(const struct watch *watch);
void watch_timeout(struct watch *watch);
/* Tells a new connection what is known. */
void watch_resync(const struct watch *watch);
/* The payload runs, here, from now on. */
void watch_restart(struct watch *watch);
/* As blocker_warn(), with what the last look found. */
int watch_warn(const struct watch *watch, struct rm_error *error);

#endif
