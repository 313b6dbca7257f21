/* The one context of rm-capsule, PID 1 of a capsule. */
#ifndef RM_DAEMON_CAPSULE_INIT_INIT_H
#define RM_DAEMON_CAPSULE_INIT_INIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/capsule/init/link.h"
#include "daemon/capsule/init/loop.h"
#include "proto/capsule.pb-c.h"

struct agents;
struct announce;
struct criu;
struct ctl;
struct door;
struct ending;
struct fencing;
struct fill;
struct ops;
struct park;
struct rank_watch;
struct stdio;
struct waiting;
struct written;
struct watch;

enum { LIMIT_GROUPS_MAX = 3 }; /* hierarchies with a controller that are not the freezer's */

/* What must be open before the node's mounts are left. Paths of the node are reached through `node_root` for ever. */
struct node_fds {
        int root;
        int runtime;
        int criu; /* directory "criu" in it, which the owner's CRIU may enter: options and logs */
        int spool;
        int cgroup_init;
        int cgroup_payload;
        int limit_groups[LIMIT_GROUPS_MAX][2]; /* by enum leaf; -1: none. See groups.h */
        int listen;
};

struct init {
        Capsule__Spec *spec;
        struct node_fds node;
        struct link link;
        int epoll_fd;
        struct source signals;
        struct source cgroup_events; /* fd -1: not available */
        Capsule__Phase phase;
        pid_t payload_pid; /* 0: none */
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
        struct door *door;
        struct ending *ending;
        struct fencing *fencing;
        struct fill *fill;
        struct ops *ops;
        struct park *park;
        struct rank_watch *rank_watch;
        struct waiting *waiting;
        struct watch *watch;
        struct written *written;
};

#endif
