/* The index has what follows from the state and is asked for often: which capsules are on a node,
 * which move of a capsule is under way, which addresses are in use. It stands beside the state, is
 * kept by state_apply(), made again for a state that comes whole, and never stored or sent: what it
 * says is always what a walk over the state would find. */
#ifndef RM_STATE_STATE_INDEX_H
#define RM_STATE_STATE_INDEX_H

#include "daemon/state/state.h"

struct state_index;

/* The index is made of the state as it is now, which is borrowed: it must outlive the index and be
 * changed by state_apply() only. */
struct state_index *state_index_create(Rm__State *state);
void state_index_destroy(struct state_index *index); /* NULL ok */
const Rm__State *state_index_state(const struct state_index *index);

/* ---- reading; pointers belong to the state and hold until the next command ---- */

/* A capsule that takes up room on a node, since it is there. */
struct state_placed {
        Rm__Job *job;
        Rm__Capsule *capsule;
};
/* The capsules on the node, in the order of jobs and then of capsules, in an array that the caller
 * frees; NULL when there are none. */
struct state_placed *state_placed_on(const struct state_index *index, const char *node, size_t *ret_n);

/* Moves that are under way (RUNNING, or COMMITTED and not yet DONE), in the order of their ids. */
Rm__Move *const *state_open_moves(const struct state_index *index, size_t *ret_n);
/* The move of this capsule that is under way; NULL: none. */
Rm__Move *state_capsule_move(const struct state_index *index, uint64_t job, int32_t capsule);

/* Ranks and capsules that are on the node, and those on the way to it. */
uint32_t state_node_ranks(const struct state_index *index, const char *node, uint32_t *ret_capsules);
/* How many capsules more it may have, with so many for each of its cores (0: no limit); 0: none, or
 * it is not in the cluster. */
uint32_t state_capsule_space(const struct state_index *index, const char *node, uint32_t per_core);
/* IDLE MIXED ALLOCATED DRAINING DRAINED FAILING DOWN UNKNOWN */
const char *state_node_name(const struct state_index *index, const Rm__Node *node);
/* PENDING ... as in DESIGN.md, MIGRATING and FOLDED included. */
const char *state_job_name(const struct state_index *index, const Rm__Job *job);
/* Among the nodes that the running job is on with more ranks (`ret_ranks`, of all jobs) than usable
 * cores, the one with the fewest cores for each rank; NULL: there is none. */
const Rm__Node *state_job_fold(const struct state_index *index, const Rm__Job *job, uint32_t *ret_ranks);

/* Where the capsule's node, or any node, stands in the list of nodes; -1: it is not in the cluster,
 * or the capsule on none. */
int32_t state_capsule_position(const struct state_index *index, const Rm__Job *job, int32_t capsule);
int32_t state_node_position(const struct state_index *index, const char *node);

/* How many jobs are in the state. */
size_t state_jobs_in(const struct state_index *index, Rm__JobState state);

/* May the checkpoint that was exported come back, the only one of `in`? Negative errno: no, and the
 * text says why, and what to do. */
int state_check_import(const struct state_index *index, const Rm__Job *in, struct rm_error *err);

bool state_address_used(const struct state_index *index, uint32_t address);

/* ---- for state_apply() ---- */

/* A node has come, and is at that place of the state's list. */
void state_index_node(struct state_index *index, size_t at);
/* A node has left the list, with nothing on it. */
void state_index_node_gone(struct state_index *index, const char *name);
/* The node may have another number of usable cores. */
void state_index_cores(struct state_index *index, const char *node);
/* The job has come, or its capsules have, or it has come to its end. */
void state_index_job(struct state_index *index, uint64_t job);
/* The job is in another state, with the same capsules. */
void state_index_job_state(struct state_index *index, uint64_t job);
/* A capsule of the job has changed. */
void state_index_capsule(struct state_index *index, uint64_t job, int32_t capsule);
/* The job is about to be forgotten. */
void state_index_forget(struct state_index *index, uint64_t job);
/* The move has begun, or its state has changed. */
void state_index_move(struct state_index *index, Rm__Move *move);
/* Jobs that may be folded now and were not before, or the other way round: those on nodes where
 * anything has changed since the last call. Each once, into an array that the caller frees. */
Rm__Job **state_index_take_changed(struct state_index *index, size_t *ret_n);

#endif
