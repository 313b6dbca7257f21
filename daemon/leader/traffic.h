/*
 * The traffic of jobs: what nodes report of the bytes that groups send to groups of their job, as
 * rates. Only the leader has it, it is in no log, and after a change of leaders it comes again by
 * itself. Pure: knows no clock.
 */
#ifndef RM_LEADER_TRAFFIC_H
#define RM_LEADER_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sched/snapshot.h"
#include "daemon/state/state.h"
#include "proto/peer.pb-c.h"

/* How long it takes until what was seen once counts for a third: rates follow a program's phases,
 * not its single messages. */
#define TRAFFIC_MEMORY_USEC 30000000u
/* This part of what a job sends must go other ways than at the last round until that is worth a
 * round. */
#define TRAFFIC_SHIFT 0.25

struct traffic;

struct traffic *traffic_create(void);
void traffic_destroy(struct traffic *traffic); /* NULL ok */

/* Takes a report. What does not fit the state (a job that has ended, a group that is none) is
 * dropped. */
void traffic_add(struct traffic *traffic, const Rm__State *state, const Rm__Traffic *report);
/* Forget jobs that do not run. */
void traffic_forget_ended(struct traffic *traffic, const Rm__State *state);

/* Has the traffic of this job become known, or shifted, since traffic_mark()? One that sends less
 * than `least` bytes in a second counts as silent. */
bool traffic_shifted(const struct traffic *traffic, uint64_t job_id, double least);
/* This is what a round sees. */
void traffic_mark(struct traffic *traffic);

/* Into job `index` of the snapshot, whose groups are those of the job `job_id`, but for its parked
 * ones: bytes within `usec`, between the first ranks of groups. Nothing, where nothing is known. */
void traffic_fill(const struct traffic *traffic, uint64_t job_id, uint64_t usec, struct snapshot *snapshot, uint32_t index);

#endif
