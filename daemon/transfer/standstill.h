/* A group that was frozen and cut off, and cannot be dumped just now: it runs for a moment, and is
 * frozen again. Shared by moves and checkpoints. */
#ifndef RM_TRANSFER_STANDSTILL_H
#define RM_TRANSFER_STANDSTILL_H

#include <stdbool.h>
#include <sys/types.h>

/* The attempts so far; zero-initialised. */
struct standstill {
        unsigned reopens; /* for connections that no program has accepted yet */
        unsigned lock_tries; /* since it held a lock */
};

/* How the cut ended (`error` of capsule_cut()), of the capsule whose PID 1 is `init`. True: it is
 * to run for `*ret_usec`, and then to be frozen and cut off again. False: as `error` says; after 0
 * it can be dumped, or CRIU will say why not. */
bool standstill_again(struct standstill *s, int error, pid_t init, unsigned *ret_usec);

#endif
