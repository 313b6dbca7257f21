/* rm-prrte writes down how the ranks end that an MPI daemon starts, for the capsule's PID 1. The
 * file is the user's: PID 1 trusts nothing in it. */
#ifndef RM_DAEMON_CAPSULE_RANK_END_H
#define RM_DAEMON_CAPSULE_RANK_END_H

#include <stdint.h>

/* The file of records, which PID 1 makes with the capsule. Records are appended, each by one
 * write(2). */
#define RANK_END_PATH "/run/rm/ends"
/* Nothing is known of a group with more: some 4000 ranks, or fewer that start others again and
 * again. */
#define RANK_END_MAX_BYTES 196608U

enum rank_end_kind {
        RANK_BEGUN = 1,
        RANK_ENDED, /* by itself */
        RANK_KILLED, /* after the daemon had begun to kill the ranks */
};

struct rank_end_record {
        uint32_t kind;
        int32_t pid; /* in the capsule */
        int32_t status; /* as of waitpid(2), when it has ended */
        uint32_t zero;
        uint64_t real_usec;
};

#endif
