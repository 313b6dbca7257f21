/* The needs of a dump: what CRIU has to be told before it dumps a group that has such files open.
 * The look for blockers (blocker_scan.h) finds them. */
#ifndef RM_DAEMON_CAPSULE_INIT_CRIU_DUMP_NEEDS_H
#define RM_DAEMON_CAPSULE_INIT_CRIU_DUMP_NEEDS_H

#include <stdbool.h>
#include <stdlib.h>

#include "daemon/capsule/init/criu/watches.h"

enum {
        DUMP_NAMELESS_MAX_BYTES = 1 << 30
}; /* of a file without a name, which CRIU saves in the freeze; a larger one is a blocker */

struct dump_needs {
        struct watches watches;
        bool remap; /* a file has lost the name that it was opened by, but has others: LINK_REMAP_OPTION (link_remap.h) */
        /* Such a file that is not of the capsule's own file systems, and of which the link is there
         * only until the group goes on: no checkpoint can be restored without it. NULL: none. */
        char *linked;
};

static inline void dump_needs_finish(struct dump_needs *needs) {
        watches_finish(&needs->watches);
        free(needs->linked);
        *needs = (struct dump_needs) { 0 };
}

#endif
