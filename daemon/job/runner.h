/* This node's capsules: makes, launches and removes them so that they match the cluster's state. Everything here is a
 * reconciliation: it may be called at any time, after any loss, and does what is still to be done. */
#ifndef RM_JOB_RUNNER_H
#define RM_JOB_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/log_rate.h"
#include "daemon/capsule/capsule.h"
#include "daemon/context.h"
#include "daemon/job/core_report.h"
#include "daemon/state/state.h"
#include "proto/peer.pb-c.h"

/* The answer of a group to rank_ends.c. */
struct group_ends {
        bool told;
        struct capsule_rank_ends ends;
};

/* One capsule on this node; one copy, when a move is under way. Belongs to the runner. */
struct resident {
        uint64_t job;
        int32_t index;
        uint64_t incarnation;
        struct capsule *capsule;
        bool ready;       /* answers */
        bool adopted;     /* made by an rmd before this one */
        char *making_again; /* what was left of it goes: its id; NULL: no */
        bool lost;        /* not made, or its PID 1 died */
        char *lost_text;
        bool limited;     /* arrived or adopted, its limits were set anew */
        bool unstarted;   /* lost since its command could not be started */
        bool launching;   /* its command was sent */
        bool exited;
        int wait_status;
        uint64_t end_real_usec; /* when it exited or was lost; 0: it has not */
        char *waiting_line; /* of a group: what its rm-agent wants run, once there is a lease; NULL: nothing */
        char *agent;      /* of a group: rm-agent in the head that asked for its daemon; NULL = not known (yet) */
        struct log_rate refusals; /* lines about requests of rm-agent that came to nothing */
        uint64_t orphan_usec; /* of a group: since when its rm-agent is gone, or its job's end is decided; 0: not yet */
        uint32_t signalled; /* the last one that rmd sent to end it; 0: none */
        uint64_t signal_usec;
        unsigned stalled; /* why its output was not taken, as far as told: a bit for each enum capsule_stall */
        bool reporting;   /* a proposal about it is under way */
        uint32_t *cores;  /* cores.c: that were chosen for it when it was bound last, n_cores */
        size_t n_cores;
        bool bound;          /* cores.c: to `cpus`; else it never was */
        cpu_set_t cpus;
        bool confined;       /* cores.c: by a cpuset, to `confined_cpus` */
        cpu_set_t confined_cpus; /* that were tried last; none: not yet */
        uint64_t bound_usec; /* cores.c: when it was bound; 0: long ago, or never */
        uint64_t lease_usec; /* leases.c: that its PID 1 was told last (now_boot_usec()); 0: none, by this rmd */
        bool captured;     /* transfer/capture.c has frozen it, and opens it again */
        bool rehearsal;    /* only to try a restore in it */
        bool restored;     /* what was captured for a checkpoint is in it, frozen and cut off; its restart opens it */
        bool untracked;    /* the last try to move it away could not track its memory */
        /* Changes with the processes of the capsule, as its PID 1 has told; 0: it has not. */
        uint64_t processes;
        /* Of the refusal in the state that is known here; 0: there is none. */
        uint64_t refused_usec;
        uint64_t refused_processes; /* the processes at that time */
        char *obstacle;    /* that its PID 1 knows of, "": none; NULL: it has not told */
        struct core_report_last core_last; /* core_report.c */
        uint64_t own_state_usec; /* own_state.c: when the log was told last; 0: never */
        bool resize_ordered; /* resizing.c: its PID 1 has `resize` */
        Capsule__ResizeOrder resize;
        bool awake_told; /* that the group runs though it is parked */
        /* rank_loss.c: its PID 1 has the first `ranks_told` ranks that the job has lost, and knows whether any speaks. */
        bool ranks_ordered;
        size_t ranks_told;
        bool speaks_told;
        /* rank_loss.c: of a group, since when its job has ended, and what its ranks have said is awaited; of the head, since when the job has lost all ranks, and mpirun's end is; 0: it has not */
        uint64_t ranks_wait_usec;
        /* ending.c: an order to end its ranks is under way to its PID 1, which is of an rmd that does not know it; of a group, the signal in it. */
        bool ending_asked, ending_unknown;
        uint32_t ending_signal;
        /* ending.c: of the head, since when its ranks are to end; 0: they are not. By group: they have, or had the time for it. */
        uint64_t ending_usec;
        bool *ranks_ended;
        /* rank_ends.c: of the head, since when its groups are asked how their ranks have ended; 0: they are not. By group. */
        uint64_t ends_usec;
        struct group_ends *ends;
        struct sent *sent; /* traffic.c: what it had sent when it was last looked at; NULL = never */
        struct resident *next;
};

/* What the runner tells, and asks, those who move capsules. */
struct runner_ops {
        /* A local capsule answers (error 0), or does not or no more (error < 0). */
        void (*on_capsule)(void *userdata, struct resident *resident, int error, const char *text);
        /* Is this copy, which the state does not name as the capsule, needed all the same? */
        bool (*keeps_copy)(void *userdata, const struct resident *resident);
        /* Is a move about to open this copy, or to end it? Otherwise the runner opens it if it is frozen. */
        bool (*holds)(void *userdata, const struct resident *resident);
        /* A capsule lacks memory (every second), or has all of it now. */
        void (*on_filling)(void *userdata, struct resident *resident);
        /* A capsule that could not be opened for want of a lease can be. */
        void (*on_unfenced)(void *userdata);
};

/* `ops` is borrowed. */
int runner_create(struct rmd *rmd, const struct runner_ops *ops, void *userdata, struct runner **ret, struct rm_error *err);
void runner_destroy(struct runner *runner); /* leaves the capsules running */

/* Look at everything again, soon (from the loop). Cheap to call often. */
void runner_wake(struct runner *runner);
/* Something could not be done now: look again in half a second. */
void runner_retry(struct runner *runner);

/* The node's lease has grown: tell PID 1 of each fenced capsule, see leases.c. */
void runner_renew_leases(struct runner *runner);

/* The copy that the state says is the capsule, or NULL when that is not here. */
struct resident *runner_current(struct runner *runner, uint64_t job, int32_t index);
/* The copy of this incarnation, or NULL. */
struct resident *runner_copy(struct runner *runner, uint64_t job, int32_t index, uint64_t incarnation);

/* Make the destination's copy for a move; on_capsule() is told when it answers. It may use at least `kept`, what it could at the source. */
int runner_make_copy(struct runner *runner, const Rm__Job *job, const Rm__Move *move, const struct capsule_limits *kept,
                     struct resident **ret, struct rm_error *err);
/* Make a copy to try a restore in (capsule_spec.rehearsal); on_capsule() is told when it answers. `incarnation`: one that the state does not give. */
int runner_make_rehearsal(struct runner *runner, const Rm__Job *job, int32_t index, uint64_t incarnation, struct rm_error *err);
/* Kill and forget one copy. `spool`: its output too. */
void runner_drop(struct runner *runner, struct resident *resident, bool spool);

/* rm-agent's traffic between nodes; `node` has sent it. */
void runner_agent_run(struct runner *runner, const Rm__AgentRun *run);
void runner_agent_done(struct runner *runner, const char *node, const Rm__AgentDone *done);
void runner_agent_kill(struct runner *runner, const Rm__AgentKill *kill);
/* A head's node and that of a group, about the end of its ranks: that they are to end; how they have ended. */
void runner_ranks_end(struct runner *runner, const Rm__RanksEnd *order);
void runner_ranks_ended(struct runner *runner, const Rm__RanksEnded *answer);
void runner_ends_get(struct runner *runner, const Rm__EndsGet *get);
void runner_ends(struct runner *runner, const Rm__Ends *ends);
/* Keep the connections to groups whose daemons heads here wait for: if their rmd is started again, they are to be asked again. */
void runner_keep_peers(struct runner *runner);
void runner_peer_connected(struct runner *runner, const char *node);

/* Reports what memory there is on this node, and what its groups take, soon and not at its next time. */
void runner_report_memory(struct runner *runner);

/* A signal from the job's front end, to mpirun; one that ends the job first to its ranks. -ESRCH when the head does not run here; `done` gets -EBUSY while it is frozen. */
int runner_signal_head(struct runner *runner, uint64_t job, int signo, capsule_done_fn done, void *arg);

#endif
