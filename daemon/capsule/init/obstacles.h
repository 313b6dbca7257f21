/* Looks for what keeps a capsule's processes from being moved: what CRIU cannot carry, would carry wrongly, or would wait for. */
#ifndef RM_DAEMON_CAPSULE_INIT_OBSTACLES_H
#define RM_DAEMON_CAPSULE_INIT_OBSTACLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/capsule/init/obstacle.h"
#include "proto/capsule.pb-c.h"

struct init;
struct rm_error;

/* Whose processes they are, and where to look. */
struct obstacles_scope {
        int proc;               /* /proc of the capsule */
        const Capsule__Spec *spec;
        const dev_t *own;       /* file systems that no other node sees: a lock there is nobody else's */
        size_t n_own;
        bool mappings;          /* in memory maps as well: while the processes run, that holds them up */
        size_t budget;          /* of threads and descriptors: looks at no more */
};

/* The first obstacle that stays, or else the first that will pass, of these processes; kind OBSTACLE_NONE without any. What ends
 * meanwhile has none. */
/* Pure but for /proc. */
void obstacles_of_processes(const struct obstacles_scope *scope, const pid_t *pids, size_t n, struct obstacle *ret);

enum { OBSTACLES_BUDGET = 20000 }; /* some 60 ms, for a program that has that many */

/* The same for the payload as it runs, within the budget above, and of the capsule as a whole. */
void obstacles_look(const struct init *init, struct obstacle *ret);

/* While the payload is frozen: 0 when it may be dumped, else with the text -EOPNOTSUPP, or -EAGAIN when that may soon be otherwise. */
int obstacles_refuse(const struct init *init, struct rm_error *error);
/* The same for one that runs, of what will not pass only; what it says may change. 0 or -EOPNOTSUPP. */
int obstacles_warn(const struct init *init, struct rm_error *error);

#endif
