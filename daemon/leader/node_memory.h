/*
 * Memory as a resource: what nodes report of theirs and of what groups take, and what jobs have
 * asked for. Only the leader has the reports, they are in no log, and after a change of leaders
 * they come again by themselves. Pure: knows no clock.
 *
 * A group counts as what it was last seen to take, which falls slowly when it takes less, and at
 * least as what its job has asked for. A node's memory is free as far as no group counts that is
 * there or comes there; one that moves needs more until it runs at its destination. How much more
 * is one number for all destinations, so tracked memory counts as such only where every node that
 * reports can take it.
 */
#ifndef RM_LEADER_NODE_MEMORY_H
#define RM_LEADER_NODE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sched/snapshot.h"
#include "daemon/state/state.h"
#include "daemon/state/state_index.h"
#include "proto/peer.pb-c.h"

/* So much more free than at the last round is worth another one, where something waits for
 * memory. */
#define NODE_MEMORY_STEP_BYTES (UINT64_C(16) << 20)

struct node_memory;

struct node_memory *node_memory_create(void);
void node_memory_destroy(struct node_memory *memory); /* NULL ok */

/* Takes a report. What does not fit the state (a group that is not on that node) is dropped. */
void node_memory_add(struct node_memory *memory, const Rm__State *state, const char *name, const Rm__NodeMemory *report);
/* Has that node reported? */
bool node_memory_knows(const struct node_memory *memory, const char *name);
/* Forget what has ended. */
void node_memory_forget(struct node_memory *memory, const Rm__State *state);

/* Has some node got more room since node_memory_mark(), or does a move of some group need less? */
bool node_memory_grown(const struct node_memory *memory);
/* This is what a round sees. */
void node_memory_mark(struct node_memory *memory);

/* Into the nodes of the snapshot, which are those of the state in its order. `memory` NULL: nothing
 * was reported. */
void node_memory_fill(const struct node_memory *memory, const struct state_index *index, struct snapshot *snapshot);

/* Into the groups of job `index` of the snapshot, which are those of `job`, or will be: groups of
 * so many ranks, of which the last one in the snapshot may show fewer. */
void node_memory_fill_job(const struct node_memory *memory, const Rm__Job *job, uint32_t group_size, struct snapshot *snapshot,
                          uint32_t index);

#endif
