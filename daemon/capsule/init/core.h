/* The core of PID 1 gives this to its modules (net, criu, verify, memory, ranks). A module includes
 * no other header of the core. */
#ifndef RM_DAEMON_CAPSULE_INIT_CORE_H
#define RM_DAEMON_CAPSULE_INIT_CORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/capsule.pb-c.h"

struct core;
struct empty_messages;
struct rm_error;

/* Names the request an answer belongs to. Answers to a connection that is gone are dropped. */
struct ticket {
        uint64_t connection;
        uint64_t seq;
};

struct core_ops {
        /* These three send to rmd: an event if it is there; the answer to a request, whose `text`
         * may be NULL; and the status, which has changed. */
        void (*send)(struct core *core, const ProtobufCMessage *body);
        void (*reply)(struct core *core, struct ticket ticket, int error, const char *text);
        void (*send_status)(struct core *core);

        /* Does the payload run, so that neither an order to freeze it nor the end of a lease stops
         * it? */
        bool (*runs_freely)(const struct core *core);
        /* Orders the payload to freeze; it is frozen a moment later. */
        int (*freeze)(struct core *core, struct rm_error *error);
        /* Lets the payload go on as if it had not been stopped, unless it is parked (park.h). Takes
         * up to half a second. */
        int (*thaw)(struct core *core, struct rm_error *error);
        /* Kills the payload, also if it is frozen; with `cut`, no other capsule sees it end. */
        void (*kill)(struct core *core, bool cut);
        /* Was the payload killed since its memory could not be completed (fill.h)? */
        bool (*is_killed)(const struct core *core);

        /* Takes all that the ranks have sent until now. */
        void (*take_messages)(struct core *core);
};

enum { LIMIT_GROUPS_MAX = 3 }; /* hierarchies with a controller that are not the freezer's */

/* The descriptors that must be open before the node's mounts are left. Paths of the node are
 * reached through `root` as long as the process lives. */
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

struct core {
        const struct core_ops *ops;
        Capsule__Spec *spec;
        struct node_fds node;
        int epoll_fd;
        Capsule__Phase phase; /* only the core sets it */
        pid_t payload_pid; /* 0: none */
        struct empty_messages *empty_messages; /* what looks for blockers have seen (blocker_scan.h) */
};

#endif
