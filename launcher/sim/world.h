/*
 * The cluster that is simulated: nodes whose cores come and go, jobs that wait, run, are frozen and
 * end, in virtual time. It knows no scheduler: one looks at it and calls world_start(),
 * world_move(), world_resize() and world_kill().
 *
 * How fast a job runs: its slowest node decides, for MPI ranks wait for each other. A node with
 * more ranks than usable cores runs each at cores / ranks of its speed; without cores they are
 * frozen until they have moved. While a group moves, its whole job is frozen. A part of the jobs
 * can have fewer or more ranks than the trace says: their speed is as their ranks are, and while
 * that number changes they are frozen for as long as the memory of the ranks that come or go is on
 * its way.
 */
#ifndef RM_SIM_WORLD_H
#define RM_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sim/capacity.h"
#include "launcher/sim/heap.h"
#include "launcher/sim/swf.h"

#define WORLD_NEVER INT64_MAX

enum sim_state {
        SIM_FUTURE = 0,
        SIM_WAITING,
        SIM_RUNNING,
        SIM_DONE,
        SIM_TOO_LARGE, /* for the whole cluster: never submitted */
};

struct sim_group {
        int32_t node, moving_to; /* -1: not moving */
};

struct sim_job {
        const struct swf_job *trace;
        enum sim_state state;
        uint32_t group_size, n_groups;
        uint32_t least, most; /* of ranks; both 0: it has those of the trace, always */
        uint32_t ranks; /* active, while it runs */
        uint32_t requested; /* by a change that is under way; 0: none is */
        int64_t resized_usec; /* when a change was last begun; -1: never */
        struct sim_group *groups; /* while it runs */
        uint32_t age; /* as in rm_job; the scheduler's to keep */
        uint32_t n_moving;
        uint32_t version; /* of its predicted end */
        double left_usec; /* of its run time, at full speed */
        double speed; /* 1: with the ranks of the trace, each on a core */
        int64_t updated_usec; /* when left_usec was right */
        int64_t first_start_usec, start_usec, end_usec;
        /* for the report */
        uint32_t moves, kills, resizes;
        uint64_t moved_bytes;
        double folded_usec; /* time it ran at less than full speed, or was frozen */
        double lost_usec; /* of run time, done and lost by being killed */
};

struct sim_node {
        uint32_t cores; /* usable now */
        uint32_t load; /* ranks there */
};

struct world_config {
        uint64_t rank_bytes; /* where the trace does not say */
        double bytes_per_usec; /* of one move */
        int64_t freeze_usec; /* that a move takes at least */
        double malleable_share; /* of the jobs: 0 .. 1; which ones follows from their numbers */
        double least_ratio, most_ratio; /* of their ranks in the trace */
};

/* A sample of the load from `time_usec` on: the ranks that run, and those that could. */
struct sim_sample {
        int64_t time_usec;
        double working; /* cores' worth of progress */
        uint64_t usable;
};

struct world {
        const struct rm_snapshot *cluster;
        const struct swf *trace;
        const struct capacity *capacity;
        struct world_config config;
        int64_t now_usec;

        struct sim_node *nodes;
        struct sim_job *jobs; /* in the order of the trace */
        uint32_t *waiting, n_waiting; /* indices, in the order of the trace */
        uint32_t *running, n_running; /* indices, in no order that means anything */
        uint32_t *running_at; /* each job: its place in `running` */
        uint64_t usable; /* cores, of all nodes */
        uint64_t busy; /* ranks, of all jobs */
        uint32_t n_overloaded; /* nodes with more ranks than cores */
        uint32_t n_moving; /* groups */
        double working; /* sum of ranks x speed */

        size_t next_submit, next_change;
        struct heap heap;
        bool touched; /* something has changed that a scheduler would look at */
        bool speeds_stale;

        struct sim_sample *samples;
        size_t n_samples, samples_allocated;
        uint64_t n_moves, n_kills, n_resizes, moved_bytes;
        uint32_t n_malleable; /* jobs that can change */
};

/* All arguments must outlive it. */
struct world *world_create(const struct rm_snapshot *cluster, const struct swf *trace, const struct capacity *capacity,
                           const struct world_config *config);
void world_destroy(struct world *world); /* NULL ok */

/* When something happens next by itself. Without jobs that wait or run, and none to come,
 * WORLD_NEVER. */
int64_t world_next_usec(const struct world *world);
/* Let time pass until `usec` (not before now), and happen what does until then and at that
 * moment. */
void world_advance(struct world *world, int64_t usec);

/* A waiting job begins. `group_node`: n_groups entries for groups of `group_size`. */
void world_start(struct world *world, uint32_t job, uint32_t group_size, const int32_t *group_node);
/* A running job loses all it has done and waits again, in its old place. */
void world_kill(struct world *world, uint32_t job);
/* A group that does not move begins to. */
void world_move(struct world *world, uint32_t job, uint32_t group, int32_t to);

/* A running job of which no group moves is to have that many ranks. `group_node`: entries for the
 * groups that are added; NULL where none is. */
void world_resize(struct world *world, uint32_t job, uint32_t ranks, const int32_t *group_node);
/* A scheduler looks again then, whatever happens. */
void world_wake(struct world *world, int64_t usec);

/* How long the job is frozen when this group moves. */
int64_t world_freeze_usec(const struct world *world, const struct sim_job *job, uint32_t group);

#endif
