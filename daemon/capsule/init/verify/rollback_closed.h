/* Files that the job had closed when it was saved, and has added to since: a restart takes that
 * back. */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_ROLLBACK_CLOSED_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_ROLLBACK_CLOSED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/util.h"
#include "proto/capsule.pb-c.h"

/* Times of files are those of their file system, which may be a server whose clock differs from
 * those of the nodes. So what it says of a file is compared with what its clock says now, and only
 * how long something has lasted with what the nodes know. */
struct rollback_clock {
        int64_t now_nsec; /* of the file system, since the epoch; 0: the owner cannot ask for it */
        int64_t ahead_nsec; /* of this node's */
};

/* Asks for the time by the file that is open for writing as `fd`, whose times stay as in `st`. */
struct rollback_clock rollback_clock_read(int fd, const struct stat *st);

/* Was a file, last modified at `mtime_nsec`, perhaps written to by others: less than
 * `left_ago_usec` ago, when the last process of the job had ended (0: that is not known, and
 * nothing was)? Pure. */
bool rollback_by_others(const struct rollback_clock *clock, int64_t mtime_nsec, uint64_t left_ago_usec);

/* Was a file made, at `birth_nsec`, not earlier than a time by the clock of a node? Not if that is
 * not known. Pure. */
bool rollback_made_since(const struct rollback_clock *clock, int64_t birth_nsec, int64_t since_nsec);

/* The job had left so long ago `at_usec`, of the monotonic clock; 0: not known. */
struct rollback_left {
        uint64_t ago_usec;
        uint64_t at_usec;
};

static inline uint64_t rollback_left_ago_usec(const struct rollback_left *left) {
        return left->ago_usec > 0 ? left->ago_usec + (now_usec() - left->at_usec) : 0;
}

/* Cuts the file back to its size of then. Its time of modification becomes that of then as well, so
 * that another group of the job that has it open does not take this for somebody else's doing. 0,
 * or a negative errno of ftruncate(2). */
int rollback_cut(int fd, const Capsule__InventoryFile *file);

/* The end of a file that is about to be cut off and may be somebody else's. */
struct rollback_kept {
        char *name; /* FILE.cut-XXXXXX, which holds it; NULL: nothing does */
        int fd;     /* of that one */
        off_t end;  /* of the file: so far it has been copied */
        int error;  /* why it could not be; 0: it could */
};

/* Copies what a file, open for reading as `fd`, has more than `file` says, or than an earlier call
 * has copied, into a file beside it, until nobody adds more. 0 or -errno. */
int rollback_keep_end(int fd, const Capsule__InventoryFile *file, struct rollback_kept *kept);
/* Writes the copy to its disk, and closes it. 0 or -errno. */
int rollback_kept_finish(struct rollback_kept *kept);
/* Removes the copy, if there is one; the error stays. */
void rollback_kept_drop(struct rollback_kept *kept);

/* Cuts the closed files of `inventory` (written.h) back to their sizes of then, by a child with the
 * owner's rights, if they are the same files, only grew since, and were not written to by others.
 * What was added to a file that the job had not made itself, or that was written to after the job
 * had left, is kept beside it, as FILE.cut-XXXXXX, since it may be somebody else's; more than 16
 * MiB of that is left where it is. A file that cannot be judged is left alone. Nothing of this is
 * an error: what a file system has not answered in half a minute is left alone, too, and named.
 *
 * Returns the names, a space between them, of files that may differ from what they were, or of
 * which something was kept; "" if there are none; malloc'ed. */
char *rollback_closed(const Capsule__Inventory *inventory, const Capsule__Spec *spec, uint64_t left_ago_usec);

#endif
