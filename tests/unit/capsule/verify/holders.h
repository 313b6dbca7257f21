/* Processes that hold something, for the tests of what the look for blockers sees of them. */
#ifndef RM_TESTS_UNIT_CAPSULE_VERIFY_HOLDERS_H
#define RM_TESTS_UNIT_CAPSULE_VERIFY_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/capsule/init/verify/blocker_scan.h"

enum { NOTHING_LIKE_THAT = 77 }; /* exit status of a holder on a kernel without it */

/* ---- in a holder ---- */

/* Ends the holder unless `good`, with NOTHING_LIKE_THAT if errno says that the kernel knows no such
 * thing. */
void must(bool good);
/* Both stay until they are killed, and fit for pthread_create(3); the second one first says that
 * the holder has what it holds. */
void *stay(void *arg);
void *say_and_stay(void *arg);
/* Sets the soft limit. */
void limit(int resource, unsigned long soft);
/* Makes a TCP socket that listens, `ret_ends[0]`, and one that is connected with it and not
 * accepted. */
void connect_inet(int ret_ends[2]);

/* ---- in the test ---- */

struct holder {
        const char *name;
        void (*hold)(void); /* in a process of its own, which stays afterwards */
        enum blocker_kind kind; /* that is seen; BLOCKER_NONE: it is carried */
        bool only_frozen;
};

/* Starts each, and looks at it, as if it was frozen and as if it ran. */
void check_holders(const struct holder *holders, size_t n);
/* Returns the process, which holds it by then, or if it has ended, its negative number. */
pid_t start_holder(void (*hold)(void));
/* Looks at the process, again and again for some seconds if it is not what is expected: a thread
 * that ends is seen a moment after it has said something. `messages`: NULL ok. */
void scan_holder(pid_t pid, enum blocker_kind expected, bool frozen, struct empty_messages *messages, struct blocker *ret);

#endif
