/* The one context of rm-capsule, PID 1 of a capsule. Only the core includes this; what the modules
 * have of it is core.h. */
#ifndef RM_DAEMON_CAPSULE_INIT_INIT_H
#define RM_DAEMON_CAPSULE_INIT_INIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/capsule/init/base/loop.h"
#include "daemon/capsule/init/core.h"
#include "daemon/capsule/init/net/link.h"
#include "proto/capsule.pb-c.h"

struct agents;
struct announce;
struct criu;
struct ctl;
struct program_socket;
struct ending;
struct fencing;
struct fill;
struct ops;
struct park;
struct rank_watch;
struct ranks;
struct stdio;
struct waiting;
struct written;
struct watch;

struct init {
        struct core core;
        struct link link;
        struct source signals;
        struct source cgroup_events; /* fd -1: not available */
        bool freezing; /* an order to freeze the payload is being carried out */
        int wait_status;
        uint64_t end_real_usec; /* when the payload ended; 0: it has not */
        int op_error; /* of the last dump or restore */
        char op_text[512];
        bool quit;
        struct stdio *stdio;
        struct agents *agents;
        struct announce *announce;
        struct criu *criu;
        struct ctl *ctl;
        struct program_socket *program_socket;
        struct ending *ending;
        struct fencing *fencing;
        struct fill *fill;
        struct ops *ops;
        struct park *park;
        struct rank_watch *rank_watch;
        struct ranks *ranks;
        struct waiting *waiting;
        struct watch *watch;
        struct written *written;
};

/* The whole, of the part that the modules have. */
static inline struct init *init_of(struct core *core) {
        return (struct init *) (void *) ((char *) core - offsetof(struct init, core));
}

#endif
