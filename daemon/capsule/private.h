/* Inside of the library: the handle and what its files share. */
#ifndef RM_DAEMON_CAPSULE_PRIVATE_H
#define RM_DAEMON_CAPSULE_PRIVATE_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <sys/queue.h>

#include "daemon/capsule/capsule.h"
#include "daemon/capsule/controllers.h"
#include "proto/capsule.pb-c.h"

struct reaper;

struct capsule_ctx {
        struct event_base *base;
        char *runtime_dir;
        char *cgroup_parent;
        char *init_path;
        char *criu_path;
        char *kdat_path;
        char **writable;
        size_t n_writable;
        bool cgroup_v1;
        struct controllers controllers;
        LIST_HEAD(, capsule) capsules;
        LIST_HEAD(, reaper) reapers; /* what is left of destroyed ones */
};

/* The function that is told what PID 1 answers. One of these is set, or none. */
struct answer {
        capsule_done_fn done;
        capsule_saved_state_fn saved_state;
        capsule_flows_fn flows;
        capsule_rank_ends_fn rank_ends;
        void *arg;
};

/* A request that PID 1 has not answered. */
struct pending {
        STAILQ_ENTRY(pending) entry;
        uint64_t seq;
        struct answer answer;
};

struct capsule {
        LIST_ENTRY(capsule) entry;
        struct capsule_ctx *ctx;
        struct capsule_callbacks callbacks;
        void *userdata;
        char *id;
        char *dir; /* runtime directory */
        char *cgroup_dir;
        char *spool_dir;
        char *limit_dirs[CONTROLLER_COUNT]; /* of its groups, by controller; NULL: none */
        struct capsule_limits limits;
        char root[32];
        bool ready;         /* `ready` was called */
        bool exit_reported; /* and `exited` */
        bool gone;          /* destroyed while a callback runs */
        unsigned held;      /* by event handlers on the stack */
        pid_t init_pid;
        struct capsule_status status;
        uint32_t *lost_ranks; /* status.ranks_said.lost */
        struct bufferevent *connection;
        unsigned silent_connections; /* made one after another without a word from PID 1 */
        struct event *report; /* while being created: outcome; while being adopted: next try */
        int report_fd;
        unsigned tries;
        char report_text[1024];
        size_t report_size;
        uint64_t last_seq;
        STAILQ_HEAD(, pending) pendings;
};

/* handle.c */
struct capsule *capsule_new(struct capsule_ctx *ctx, const char *id, const struct capsule_callbacks *callbacks, void *userdata);
void capsule_hold(struct capsule *capsule);
/* True when the capsule still exists. */
bool capsule_release(struct capsule *capsule);
/* Tells that there is no answer. */
void capsule_answer_error(struct capsule *capsule, const struct answer *answer, int error, const char *text);
void capsule_fail_pendings(struct capsule *capsule, int error, const char *text);
/* Detaches it from the context and from all events. */
void capsule_unlink(struct capsule *capsule);

/* connection.c */
/* Connects to PID 1; `ready` follows with its first message. */
int capsule_connect(struct capsule *capsule);
void capsule_disconnect(struct capsule *capsule);
/* Reports to `ready`, once. The capsule may be gone afterwards. */
void capsule_report_ready(struct capsule *capsule, int error, const char *text);
/* PID 1 is dead: what is known of its end is reported. The capsule may be gone afterwards. */
void capsule_report_dead(struct capsule *capsule);

/* spec.c */
int capsule_spec_check(const struct capsule_spec *spec, struct rm_error *error);
/* Writes the file "spec" in the capsule's directory. */
int capsule_spec_write(const struct capsule *capsule, const struct capsule_spec *spec, struct rm_error *error);
/* Reads what an adopted capsule is known by: its directories and limits. -ENOENT, -EBADMSG. */
int capsule_spec_read(struct capsule *capsule);

#endif
