/* The system calls that the payload's threads wait in, when it is frozen: so that none is
 * interrupted by it. */
#ifndef RM_DAEMON_CAPSULE_INIT_CRIU_WAITING_H
#define RM_DAEMON_CAPSULE_INIT_CRIU_WAITING_H

#include <stddef.h>
#include <sys/types.h>

#include "proto/capsule.pb-c.h"

struct waiting;

enum { WAITING_SAVED_STATE_MAX = 2048 };

/* Creates the notes of where threads wait. Never fails; they live as long as the process. */
struct waiting *waiting_create(void);

/* Looks where all threads of these processes, which are frozen, wait. */
void waiting_note(struct waiting *waiting, const pid_t *pids, size_t n);

/* Puts into the carry what was noted and the image does not tell: the number of a call that the
 * kernel has already begun again, by restart_syscall(). waiting_saved_state() fills `carry`, which
 * borrows it until waiting_saved_state_finish(). */
void waiting_saved_state(const struct waiting *waiting, Capsule__SavedState *saved_state);
void waiting_saved_state_finish(Capsule__SavedState *saved_state);
void waiting_set_saved_state(struct waiting *waiting, const Capsule__SavedState *saved_state);
/* The number of the call that this thread has begun again; -1: not known. Of type
 * image_fixup_again_fn, with the `struct waiting`. */
long waiting_again(void *waiting, pid_t tid);

/* The payload is to go on where it is. Threads that the freeze, or CRIU, left with an interrupted
 * call get it back: hold before it is thawed, let go after. That takes half a second at most,
 * however many threads there are. */
void waiting_hold(struct waiting *waiting);
void waiting_let_go(struct waiting *waiting);
/* To be called for each thread that wait(2) reports as stopped: one that was not let go in that
 * time, as it was in the kernel. */
void waiting_stopped(struct waiting *waiting, pid_t tid, int wait_status);

#endif
