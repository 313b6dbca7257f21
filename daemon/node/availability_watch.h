/* Watches an availability file: tells what stands in it whenever that changes, and what is wrong
 * with it.
 *
 * A change is seen by inotify on the file and on its directory (editors and `mv` put a new file in
 * place), and for network file systems and directories that are not there yet by a look every
 * `poll_usec`. Directory and file may vanish, come back and be replaced at any time.
 *
 * A file that is still being written must change nothing:
 * - What was closed by its writer, or renamed into place, is taken 20 ms later if it is good and
 *   ends in a newline.
 * - All else is taken, or reported as wrong, only after nothing has happened to the file for 200
 *   ms: a file still open for writing, a last line without newline, every error.
 * - A file that became empty (or blanks only) in its place is an error: so looks a write that has
 *   begun, or failed for want of space, and it must not set all nodes free. An empty file that was
 *   renamed into place where another one was, or that was there before anything was ever taken, is
 *   good and restricts nothing, as is one that has only comments.
 * - A file that was never there is no error and restricts nothing; one that vanishes is an error.
 * - A file whose file system does not answer within 5 s (file_reader.h) is an error until it does;
 *   the loop never waits for it. After an error, what was last told as content stays in force; that
 *   is the caller's to do. */
#ifndef RM_NODE_AVAILABILITY_WATCH_H
#define RM_NODE_AVAILABILITY_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <event2/event.h>

#include "common/error.h"
#include "daemon/node/availability.h"
#include "daemon/node/file_reader.h"
#include "daemon/node/user_file.h"

#define AVAILABILITY_SETTLE_USEC 200000U /* without a change, before doubtful content is judged */
#define AVAILABILITY_QUICK_USEC 20000U   /* after a change, so that a burst is read once */

struct availability_watch;

/* Copied by availability_watch_create(). */
struct availability_watch_config {
        const char *path;   /* absolute */
        uint64_t poll_usec; /* 0 = 1 s; at least 50 ms is taken */
        uid_t uid;          /* whose rights the file is read with; USER_NONE = ours */
        gid_t gid;
        struct file_reader *reader; /* of the same loop; outlives the watch */
        bool was_taken; /* content of this file is in force already, from before this watch: to have no file is an error */
};

/* Called from the loop only. The callbacks may destroy the watch; what they were given is gone
 * then. */
struct availability_watch_ops {
        availability_find_fn find; /* which names are nodes; NULL = all are */
        /* Once, when it is first known what the file says, or that it is missing, wrong or out of
         * reach; before the others. NULL ok. It may not destroy the watch. */
        void (*on_judged)(void *userdata);
        /* The file's content: at first, then each time it differs from what was last told, and
         * after an error that is over. */
        void (*on_content)(void *userdata, const struct availability *availability);
        /* "PATH:LINE: what" or "PATH: what". Not repeated while it stays the same. */
        void (*on_error)(void *userdata, const char *text);
};

/* Nothing is read before the loop runs. -EINVAL: the path is not absolute or too long. Where
 * inotify is not to be had (limits of the kernel), and for the file of a user, polling does
 * alone. */
int availability_watch_create(struct event_base *base, const struct availability_watch_config *config,
                              const struct availability_watch_ops *ops, void *userdata, struct availability_watch **ret_watch,
                              struct rm_error *err);
/* The answers of `find` may have changed: look at the file again, soon. */
void availability_watch_recheck(struct availability_watch *watch);
void availability_watch_destroy(struct availability_watch *watch); /* NULL ok */

#endif
