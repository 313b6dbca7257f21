/* Looks for what keeps a capsule's processes from being moved: what CRIU cannot carry, would carry
 * wrongly, or would wait for. */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_BLOCKERS_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_BLOCKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/capsule/init/criu/dump_needs.h"
#include "daemon/capsule/init/verify/blocker.h"
#include "proto/capsule.pb-c.h"

struct core;
struct rm_error;

/* Unix sockets that have had unread messages without data. The kernel shows such a message to one
 * look only that goes through the queue, so who looks again must know of it. */
enum { EMPTY_MESSAGES_MAX = 4096 };

struct empty_messages {
        uint64_t inodes[EMPTY_MESSAGES_MAX];
        size_t n;
};

/* The processes to look at, and where to look. */
struct blocker_scope {
        int proc;               /* /proc of the capsule */
        const Capsule__Spec *spec;
        const dev_t *own;       /* file systems that no other node sees: a lock there is nobody else's */
        size_t n_own;
        /* The processes stand still. Else memory maps are not read, which would hold up the
         * processes, nor what waits for an exec(2) that a user's file system may keep for ever:
         * kcmp(2), pidfd_getfd(2). */
        bool frozen;
        pid_t root; /* the first process of the group, which has all others below it; 0: not looked at */
        bool waits; /* also for threads that cannot be frozen now; in cgroup v1 frozen ones look the same */
        size_t budget; /* of threads and descriptors: looks at no more */
        uint64_t cpu_usec; /* of a processor; what takes longer is a blocker */
        struct empty_messages *empty_messages; /* those of earlier looks; NULL: none */
};

/* Finds the first blocker that stays, or else the first that will pass, of these processes; kind
 * BLOCKER_NONE without any. A process that ends meanwhile has none. `ret_needs` (NULL ok) is
 * complete only if there is no blocker that stays; free it with dump_needs_finish(). Pure but for
 * /proc. */
void blockers_of_processes(const struct blocker_scope *scope, const pid_t *pids, size_t n, struct blocker *ret,
                           struct dump_needs *ret_needs);

enum {
        BLOCKERS_BUDGET = 20000, /* some 60 ms, for a program that has that many */
        BLOCKERS_CPU_USEC = 1000000,
        /* The look at a frozen group may take so long: as many descriptors as proc_count.h lets a
         * group have take a fifth of it. But one of them may show any number of locks. */
        BLOCKERS_FROZEN_CPU_USEC = 5000000,
};

/* Finds blockers of the payload as it runs, within the budget above, and of the capsule as a
 * whole. */
void blocker_scan(const struct core *core, struct blocker *ret);

/* Looks at the payload while it is frozen: 0 when it may be dumped, with what that needs, else with
 * the text -EOPNOTSUPP, or -EAGAIN when that may soon be otherwise. */
int blocker_refuse(const struct core *core, struct dump_needs *ret_needs, struct rm_error *error);
/* Warns of blockers that will not pass, while the payload runs; what it says may change. -EBUSY: a
 * process could not be frozen for some seconds, in the same wait that was found `earlier_usec` ago.
 * 0 or -EOPNOTSUPP otherwise. */
int blocker_warn(const struct core *core, const struct blocker *earlier, uint64_t earlier_usec, struct rm_error *error);

#endif
