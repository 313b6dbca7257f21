/* A resident is one capsule on this node, or one copy of it while a move is under way. The runner
 * owns it, and removes it. */
#ifndef RM_JOB_RESIDENT_H
#define RM_JOB_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/calls.h"
#include "daemon/capsule/capsule.h"
#include "daemon/job/resident_phase.h"

struct resident;
struct runner;

/* The way in which a capsule came to this node. */
enum resident_origin {
        RESIDENT_CREATED,   /* by this rmd, or not at all (MISSING) */
        RESIDENT_ADOPTED,   /* an rmd before this one had made it */
        RESIDENT_DRILL, /* by this rmd, only to try a restore in it */
};

/* `calls`: of all residents of `runner`. */
struct resident *resident_create(struct runner *runner, struct calls *calls, uint64_t job, int32_t index, uint64_t incarnation);
/* Frees its parts, too, but not what they point at, and not its capsule. NULL ok. */
void resident_destroy(struct resident *resident);

uint64_t resident_job(const struct resident *resident);
int32_t resident_index(const struct resident *resident);
uint64_t resident_incarnation(const struct resident *resident);
bool resident_is(const struct resident *resident, uint64_t job, int32_t index, uint64_t incarnation);
struct runner *resident_runner(const struct resident *resident);
/* An operation of its capsule, or a proposal, that may end after the resident: call_done() returns
 * the resident, or NULL. */
struct call *resident_call(const struct resident *resident);
/* NULL in NEW, MISSING and REMAKING; the others have one. */
struct capsule *resident_capsule(const struct resident *resident);
enum resident_origin resident_origin(const struct resident *resident);

/* ---- its life ---- */

enum resident_phase resident_phase(const struct resident *resident);
/* PID 1 answers, whatever has become of the payload. */
bool resident_answers(const struct resident *resident);
/* PID 1 answers, and the payload, if there is one, has not ended. */
bool resident_is_live(const struct resident *resident);
/* PID 1 is dead, or there is no capsule, or its command cannot be started; resident_why_lost() says
 * why. */
bool resident_is_lost(const struct resident *resident);

/* These make an event happen, and return what is to be done. One that cannot be is logged and
 * changes nothing. */
enum resident_action resident_event(struct resident *resident, enum resident_event event);
enum resident_action resident_made(struct resident *resident, struct capsule *capsule, enum resident_origin origin);
enum resident_action resident_exited(struct resident *resident, int wait_status, uint64_t end_real_usec);
/* `event` leads to a phase in which it is lost. `end_real_usec` 0: not known. */
enum resident_action resident_lost(struct resident *resident, enum resident_event event, const char *why, uint64_t end_real_usec);
/* Returns the capsule, which the caller destroys. */
struct capsule *resident_remake(struct resident *resident);

/* The status as of waitpid(2), once the payload has exited. */
int resident_wait_status(const struct resident *resident);
/* When it exited or was lost; 0: it has not, or nobody knows. */
uint64_t resident_end_real_usec(const struct resident *resident);
const char *resident_why_lost(const struct resident *resident); /* NULL: it is not lost */

/* ---- who opens a frozen copy ---- */

/* The runner opens a copy that is frozen and that nobody holds. Only a copy that answers is given
 * to a holder; it may be lost in its hands. A copy that its restart holds may go on to a capture
 * without being free between: without a lease the restart cannot open it yet when the next
 * checkpoint begins. Never the other way round: what is captured runs, and nothing is restored into
 * it. */
enum resident_holder {
        RESIDENT_FREE,
        RESIDENT_CAPTURED, /* transfer/capture.c has frozen it, and opens it again */
        RESIDENT_RESTORED, /* what was captured for a checkpoint is in it, frozen and cut off; its restart opens it */
};
enum resident_holder resident_holder(const struct resident *resident);
void resident_hold(struct resident *resident, enum resident_holder holder);
/* The holder lets go of the copy. Nothing happens if another one holds it. */
void resident_release(struct resident *resident, enum resident_holder holder);

/* ---- what others keep of it ---- */

/* A part is what one file keeps of each capsule. Its type is known in that file only, which also
 * frees what it points at. */
enum resident_part {
        RESIDENT_AGENTS, /* agents.c */
        RESIDENT_BLOCKER, /* blocker.c */
        RESIDENT_CORES, /* cores.c */
        RESIDENT_CORE_REPORT, /* core_report.c */
        RESIDENT_ENDING, /* ending.c */
        RESIDENT_ENDS, /* ends.c */
        RESIDENT_LEASES, /* leases.c */
        RESIDENT_LIMITS, /* runner.c */
        RESIDENT_MEMORY, /* memory_report.c */
        RESIDENT_OWN_STATE, /* own_state.c */
        RESIDENT_RANK_ENDS, /* rank_ends.c */
        RESIDENT_RANK_LOSS, /* rank_loss.c */
        RESIDENT_REPORTS, /* reports.c */
        RESIDENT_RESIZING, /* resizing.c */
        RESIDENT_STALLS, /* stalls.c */
        RESIDENT_TRAFFIC, /* traffic.c */
        RESIDENT_PARTS
};

/* The part of `size_bytes`, zeroed when it is first asked for: nothing is known then. Lives as long
 * as the resident. */
void *resident_part(const struct resident *resident, enum resident_part part, size_t size_bytes);

/* ---- those of one runner ---- */

LIST_HEAD(resident_list, resident);

void resident_list_add(struct resident_list *list, struct resident *resident);
/* The resident is in a list. */
void resident_list_remove(struct resident *resident);
struct resident *resident_next_of(const struct resident *resident);

#endif
