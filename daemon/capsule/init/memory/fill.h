/* Processes that are restored without their memory get it while they run, from the uffd handler
 * (uffd_handler.h), which PID 1 starts and watches.
 *
 * Whatever becomes of the uffd handler, no process may run on zeros in place of its memory. So PID
 * 1 holds duplicates of all that the uffd handler needs, with which another uffd handler goes on;
 * where none can, PID 1 kills the payload. If PID 1 dies, all end with it. */
#ifndef RM_DAEMON_CAPSULE_INIT_MEMORY_FILL_H
#define RM_DAEMON_CAPSULE_INIT_MEMORY_FILL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct fill;
struct core;
struct criu;
struct rm_error;

/* Creates the fill of a capsule, which lives as long as the process. Never returns NULL. `criu`
 * must live as long: it is cancelled when there is no uffd handler. */
struct fill *fill_create(struct core *core, struct criu *criu);

/* Returns how much may be missing in all: what came, and what the group may have besides, since a
 * child that it forks has copies of what is missing, which count for no control group. `memory_max`
 * as in the specification, UINT64_MAX: it has no limit. Then a few forks of all of it at once are
 * left. */
static inline uint64_t fill_max_bytes(uint64_t came_bytes, uint64_t memory_max) {
        bool limited = memory_max < UINT64_MAX - came_bytes;

        return came_bytes + (limited ? memory_max : 3 * came_bytes + (UINT64_C(1) << 30));
}

/* Takes the stores out of `images_fd`, directory "pages", before a restore, and starts the uffd
 * handler, to which CRIU, the process `criu_pid`, connects. */
int fill_start(struct fill *fill, int images_fd, pid_t criu_pid, struct rm_error *error);
/* CRIU is done, with `code`. When that is 0, waits (some ms) until the uffd handler knows it too;
 * from then on it is filling. Returns why the restore has failed, where the uffd handler knows more
 * than CRIU. Without fill_start(): `code`. */
int fill_restored(struct fill *fill, int code, struct rm_error *error);
/* The payload has ended, or was killed. */
void fill_end(struct fill *fill);

/* The payload lacks memory. */
bool fill_is_on(const struct fill *fill);
uint64_t fill_bytes(const struct fill *fill);
/* 0; -EBUSY: the payload lacks memory, so it cannot be dumped. */
int fill_refuse(const struct fill *fill, struct rm_error *error);
/* Returns why the payload was killed; empty: it was not, by this. */
const char *fill_why_killed(const struct fill *fill);

/* Tells how often the payload waited for what was at the source of its move, and for how long at
 * most in 99 of 100 cases. */
void fill_waits(const struct fill *fill, uint64_t *ret_faults, uint64_t *ret_p99_usec);
/* Was the payload killed, and cut off before, since what it lacked was at the source of its move,
 * and is lost? */
bool fill_is_broken(const struct fill *fill);

/* PID 1 has reaped `pid`. True when it was the uffd handler. */
bool fill_reaped(struct fill *fill, pid_t pid);
/* Time (now_usec) at which fill_timeout() wants to be called; UINT64_MAX: not. */
uint64_t fill_deadline(const struct fill *fill);
void fill_timeout(struct fill *fill);

#endif
