/* The cluster's state and the one function that changes it. Pure: no I/O, no clock; the same
 * commands give the same state and the same events on every node. The state is the protobuf message
 * itself (proto/state.proto), so that it can be packed as it is for snapshots and followers. */
#ifndef RM_STATE_STATE_H
#define RM_STATE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/state.pb-c.h"

#define STATE_LEVEL 3U /* the highest feature level that this version knows, see CmdLevel */
#define STATE_LEVEL_REFUSED 2U /* from this one on: why a group was not moved */
#define STATE_LEVEL_RATES 2U /* from this one on: how fast jobs were on which nodes */
#define STATE_LEVEL_AVOIDED 2U /* from this one on: a loss that was foreseen counts as such if nothing was left on the node */
#define STATE_LEVEL_SPARES 2U /* from this one on: spare ranks ask for no cores until they replace others */
#define STATE_LEVEL_PROCESSORS 2U /* from this one on: what instruction sets nodes have */
#define STATE_LEVEL_PARKED 3U /* from this one on: parked ranks of groups that compute ask for no cores */
#define STATE_LEVEL_NICE 3U /* from this one on: jobs have the nice value, I/O priority and scheduling policy of rm-mpirun */
#define STATE_LEVEL_STAYS 3U /* from this one on: that a reason is why groups stay on a node that they should leave */
#define STATE_LEVEL_LEFT 3U /* from this one on: when the last capsule of a job's attempt was gone */
#define STATE_LEVEL_RESIZED 2U /* from this one on: a number of ranks that a job may not have is not taken from its program */
#define STATE_CONDITION_SOURCES_MAX 16U    /* of one node */
#define STATE_CONDITION_REASON_MAX_BYTES 256U
#define STATE_RATES_MAX 4U       /* sets of nodes of one job whose rates are remembered */
#define STATE_RATES_CAPSULES_MAX 1024U /* of a job whose rates are in the log: a name for each of them and each set */
#define STATE_MOVES_KEPT 1000U   /* ended moves that are remembered */
#define STATE_BLOCKER_MAX 255     /* bytes of what is told of a capsule that cannot move */
#define STATE_JOBS_MAX 10000U    /* jobs known at once; a submission over it is refused */
#define STATE_CAPSULES_MAX 65000U /* capsules at once: addresses in a network with a prefix of 16 */
#define STATE_GROUPS_MAX (STATE_CAPSULES_MAX - 1U) /* of one job; its head has an address, too */
#define STATE_SWITCH_DEPTH_MAX 16U /* switches above each other */
#define STATE_MAX_BYTES ((size_t) 512 << 20) /* packed: more is not sent to a follower, nor read from a disk */
#define STATE_DIGEST_BYTES 32U /* of a LaunchBody: SHA-256 */
#define STATE_BODY_MAX_BYTES (1U << 20)               /* of one LaunchBody */
#define STATE_USER_BODIES_MAX_BYTES (UINT64_C(16) << 20) /* of one user's waiting and running jobs; the same body counts once */
#define STATE_BODIES_MAX_BYTES (UINT64_C(1) << 30)       /* of all jobs together */
#define STATE_HEAD (-1)          /* index of a job's head capsule */
#define STATE_LOSS_RESTART 1U    /* JobSpec.on_node_loss: it starts again */
#define STATE_LOSS_FOLD 2U       /* likewise, at once, though ranks may have to share cores */
#define STATE_DRILL_ERROR_MAX 300U /* bytes of CheckpointPart.drill_error */
#define STATE_CHECKPOINT_AUTO UINT64_MAX /* JobSpec.checkpoint_usec */
#define STATE_CHECKPOINTS_MAX 32U  /* of one job */
#define STATE_RESTORES_MAX 3U      /* in a row, from one checkpoint */
#define STATE_USER_HELD_MAX 16384U /* addresses that checkpoints of one user's ended jobs hold */
#define STATE_PARTNERS_MAX 16U     /* of one part of a checkpoint */
#define STATE_STORED_SHARED "*"    /* CheckpointPart.stored: on a file system of all nodes */

/* The user whose job the command is about, if it is in the log because its owner, an administrator
 * in his place, its program or its file wants it; `state`: once it is applied. False: rmd wants it,
 * or it is about no job. */
bool state_command_user(const Rm__State *state, const Rm__Command *command, uint32_t *ret_uid);

/* The result of applying one command. `error.code` 0: applied. Otherwise the command was refused
 * and the state is unchanged but for its index. Owns the events; free with
 * state_result_finish(). */
struct state_result {
        struct rm_error error;
        bool repeated; /* it was applied before: nothing has changed, and this is what came of it then */
        bool unknown; /* this version does not understand it: not applied at all, the index included; nothing may follow */
        uint64_t created; /* id of the job or move that was made, 0 = none */
        Rm__Event **events;
        size_t n_events;
};

struct state_index; /* state_index.h */

/* An empty state, owned by the caller; free with rm__state__free_unpacked(state, NULL). */
Rm__State *state_create(const char *cluster);

/* Does this version know all that is in the command? -ENOTSUP: no. Such a command must not go into
 * the log. */
int state_understands(const Rm__Command *command, struct rm_error *err);
/* Does this version know all that is in the state, and its feature level? -ENOTSUP: no. */
int state_understands_state(const Rm__State *state, struct rm_error *err);
/* The feature level that all nodes of the cluster know; 0: there are none. Nodes that have been
 * DOWN since before `down_usec` (real time; 0: there are none) do not count, unless they are
 * voters. */
uint32_t state_known_level(const Rm__State *state, uint64_t down_usec);

/* Apply one command as entry `entry` of the log. `state` is changed in place, and `index`, which is
 * of this state, with it. */
void state_apply(Rm__State *state, struct state_index *index, uint64_t entry, const Rm__Command *command,
                 struct state_result *ret_result);
void state_result_finish(struct state_result *result);

enum state_effect {
        STATE_EFFECT_CHANGE,
        STATE_EFFECT_NONE, /* all is as the command wants it */
        STATE_EFFECT_REFUSED,
};
/* Returns what the command would do to the state now, without doing it; sets also `error` and
 * `created` of the result, as state_apply() would. Of the commands that users and administrators
 * ask for; others always change something. A command that changes nothing need not be logged. */
enum state_effect state_effect(const Rm__State *state, const struct state_index *index, const Rm__Command *command,
                               uint64_t time_usec, struct state_result *ret_result);

/* Deep copy of any message of ours; the caller frees it with protobuf_c_message_free_unpacked(). */
ProtobufCMessage *message_copy(const ProtobufCMessage *message);
/* Replace a string field of a message that lives in allocated memory. `value` NULL is empty. */
void message_set_string(char **field, const char *value);

/* Is there room for the LaunchBody of one more job? -EINVAL: its digest is none; -EDQUOT: the user,
 * or all users together, have too many that wait or run. */
int state_check_body(const Rm__State *state, const Rm__JobSpec *spec, struct rm_error *err);
/* The job has a LaunchBody, and may still need it. */
bool job_has_body(const Rm__Job *job);

/* ---- reading, by the order of the lists; all return NULL when there is no such thing; what they
 * return belongs to the state ---- */
Rm__Node *state_node(const Rm__State *state, const char *name);
Rm__Job *state_job(const Rm__State *state, uint64_t id);
Rm__Move *state_move(const Rm__State *state, uint64_t id);
bool state_is_voter(const Rm__State *state, const char *node);
Rm__Capsule *job_capsule(const Rm__Job *job, int32_t index);

/* ---- what follows from the state; more is in state_index.h ---- */
/* Cores of the node that work may use now: 0 unless it is UP, and neither drained nor failing; the
 * availability file's number at most. */
uint32_t node_usable_cores(const Rm__Node *node);
/* Instruction sets that what began on `from` may use, and `node` does not have; malloc'ed, NULL:
 * none is known. */
char *node_lacks(const Rm__Node *node, const Rm__Node *from);
/* The worst that a source says, and which one: the first of several; NULL: all is well. */
const Rm__NodeCondition *node_worst(const Rm__Node *node);
Rm__Condition node_condition(const Rm__Node *node);
/* All work is to leave it, since it is drained or, by its condition, fails. */
bool node_to_be_left(const Rm__Node *node);
/* Since when it has been critical; 0: it is not. */
uint64_t node_critical_usec(const Rm__Node *node);
/* How often nodes were lost, and for how long there were some to lose. */
struct state_failures {
        uint64_t losses;
        uint64_t foreseen; /* of them: announced by conditions, and nothing was left on the node any more */
        uint64_t node_usec; /* for how long nodes were UP, all together; 0: not counted */
};
/* Until `now_usec`, by the log's clock; 0: until the last command. */
void state_failures(const Rm__State *state, uint64_t now_usec, struct state_failures *ret_failures);
/* "failing"; "?" of what is none. */
const char *condition_name(Rm__Condition condition);
bool job_ended(const Rm__Job *job); /* in a final state */
bool job_running(
        const Rm__Job
                *job); /* its capsules are placed and it has not come to its end, nor lost a node and is about to start again */
/* If a node is lost under it now: does it start again, or (false) end? */
bool job_may_restart(const Rm__Job *job);
/* Does it start again, or go on from a checkpoint, when a node is lost, as its owner wants? */
bool job_wants_restart(const Rm__JobSpec *spec);
/* The first of its attempts that is not for the loss of a node counts as well: attempts so far, for
 * JobSpec.restarts. */
uint32_t job_counted_attempts(const Rm__Job *job);
/* ---- jobs that grow and shrink, or have spare ranks (state_resize.c); others: all active ---- */
/* So many of its ranks compute, the first ones; of one that waits: would, if it were placed now.
 * Spare ranks do not until they replace others. */
uint32_t job_active_ranks(const Rm__State *state, const Rm__Job *job);
/* A job like this may have groups that ask for no cores. */
bool job_may_park(const Rm__State *state, const Rm__JobSpec *spec);
/* All ranks of the group are to be parked, or spare: it asks for no cores. False of the head. */
bool job_group_parked(const Rm__Job *job, const Rm__Capsule *capsule);
/* All ranks of the group are parked and it may be frozen: the job neither ends nor was told to. */
bool job_group_may_freeze(const Rm__Job *job, const Rm__Capsule *capsule);
/* All ranks of a group of which some compute have cores: the job was placed, or would be, before
 * STATE_LEVEL_PARKED. */
bool job_parked_have_cores(const Rm__State *state, const Rm__Job *job);
/* Cores that the capsule asks for: one for each of its ranks that compute
 * (job_parked_have_cores(): also of those beside them); 0: it is the head, or parked. */
uint32_t job_capsule_cores(const Rm__Job *job, const Rm__Capsule *capsule);
/* The first rank of the group. */
uint32_t job_first_rank(const Rm__Job *job, const Rm__Capsule *capsule);
/* ---- jobs that go on without ranks that are lost (state_rank_loss.c) ---- */
/* The number of ranks of the program: those of the job without the spare ones. */
uint32_t job_program_ranks(const Rm__JobSpec *spec);
/* NULL ok. */
bool rank_losses_has(const Rm__RankLosses *losses, uint32_t rank);
/* All ranks of this group that are not lost have come to their end. */
bool rank_losses_finished(const Rm__RankLosses *losses, int32_t group);
/* NULL: there is none of that number. */
Rm__Checkpoint *job_checkpoint(const Rm__Job *job, uint64_t id);
/* The checkpoint of the job that is being captured or stored; NULL: none. */
Rm__Checkpoint *job_checkpoint_under_way(const Rm__Job *job);
bool checkpoint_is_drill(const Rm__Checkpoint *checkpoint);
Rm__CheckpointPart *checkpoint_part(const Rm__Checkpoint *checkpoint, int32_t capsule);
/* A node that is UP and has the part: `prefer` if it is one of these (NULL ok); NULL: none. */
const Rm__Node *checkpoint_part_holder(const Rm__State *state, const Rm__CheckpointPart *part, const char *prefer);
/* The newest one that is done, and all parts of which are on nodes that are UP; NULL: none, or its
 * program restores itself. */
Rm__Checkpoint *job_newest_checkpoint(const Rm__State *state, const Rm__Job *job);
/* The newest checkpoint of a waiting job that is done, if none is whole on nodes that are up, but
 * all parts of it are on nodes of the cluster, which may be back; NULL: it need not wait for any.
 * `ret_node`: a node that it waits for; the state's. */
const Rm__Checkpoint *job_awaited_checkpoint(const Rm__State *state, const Rm__Job *job, const char **ret_node);
/* "7.3": how people call it; `buf` of at least 48 bytes; returns buf. */
const char *checkpoint_name(uint64_t job, uint64_t checkpoint, char *buf);
/* At its source there is memory without which the group cannot go on: the move is committed, and
 * not all has come. */
bool move_needs_source(const Rm__State *state, const Rm__Move *move);
/* The job's mpirun has ended while this capsule, of a group, is on a node that has not said how its
 * MPI daemon ended: if that node is lost, its loss may be why, and the job starts again. */
bool job_end_may_be_loss(const Rm__Job *job, const Rm__Capsule *capsule);
/* The first node that the job was on, and has lost, that must be fenced before the job starts
 * again; NULL: it does not wait for that. */
const Rm__Node *job_fence_node(const Rm__State *state, const Rm__Job *job);
/* The first node that a job which was placed has a capsule on and that is not UP: nobody knows what
 * the job has there. NULL: none. */
const Rm__Node *job_lost_node(const Rm__State *state, const Rm__Job *job);
/* "attempt 2 of 4 (node n3 is down): waits for cores": why it waits, with what else there is to say
 * of one that starts again; malloc'ed. */
char *job_wait_text(const Rm__Job *job, const char *why);
/* For each node the index of the switch it is plugged into, -1 when not known; malloc'ed. */
int32_t *state_node_switches(const Rm__State *state);
/* Mismatches of the topology file and the cluster: nodes of the file that are not in the cluster,
 * and nodes that are not in the file. One line each, NULL when there are none; malloc'ed. */
void state_topology_mismatches(const Rm__State *state, char **ret_unknown, char **ret_loose);
/* "n1 n2 n4" of all nodes, for messages; malloc'ed. */
char *state_known_nodes(const Rm__State *state);
/* Name of a capsule in messages: "head" or "group 3". `buf` of at least 24 bytes; returns buf. */
const char *capsule_state_name(int32_t index, char *buf);

#endif
