/* The common functions of the tests of the cluster's state: two states that are given the same
 * commands, and one function a command. */
#ifndef RM_TESTS_STATE_TEST_H
#define RM_TESTS_STATE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/state/state_index.h"

struct world {
        Rm__State *state;
        struct state_index *indexed;
        Rm__State *twin;
        struct state_index *twin_indexed;
        uint64_t index;
        uint64_t time_usec;
        uint64_t created; /* by the last command */
        uint32_t boot;    /* that nodes say at their join that they run since */
        char error[RM_ERROR_TEXT_BYTES];
        char events[1024]; /* kinds of the last command's events, "job-ended node-drained " */
        char event[256]; /* text of the last one */
        bool thorough;     /* after each command: both states packed and compared, refusals change nothing */
};

struct packed {
        uint8_t *data;
        size_t bytes;
};

void world_init(struct world *w);
/* A thorough one at the level of today, as the state of a group of tests: n1 ... of so many cores
 * have joined. */
int world_start(void **state, unsigned nodes, uint32_t cores);
int world_tear_down(void **state);
void world_finish(struct world *w);

/* Applies a command; also checks the invariants after every single command, see state_check().
 * Returns the code of the command. */
int apply_command(struct world *w, const Rm__Command *command);

struct packed pack_state(const Rm__State *state);
void packed_finish(struct packed *packed);
bool packed_equal(const struct packed *a, const struct packed *b);

/* Checks the invariants of every state that commands can lead to; fails the test otherwise. */
void state_check(const struct state_index *indexed);
/* The index says what a walk over its state finds, and what one made of the state now says; fails
 * the test otherwise. */
void index_check(const struct state_index *indexed);
/* Each of the addresses too, which takes its time. */
void index_check_addresses(const struct state_index *indexed);

/* All return the code of the command; submit() the id or the (negative) code. Ids are in
 * w->created. */
int join(struct world *w, const char *name, uint32_t cores);
int health(struct world *w, const char *node, int value);
int drain(struct world *w, const char *node, const char *reason, bool update);
/* Nothing is to be on it by then. */
int drain_until(struct world *w, const char *node, uint64_t deadline_usec, bool update);
int overdue(struct world *w, const char *node, uint64_t deadline_usec);
int condition(struct world *w, const char *node, const char *source, int value, const char *reason);
int resume(struct world *w, const char *node);
int remove_node(struct world *w, const char *node);
/* These are the voters. */
int keep_log(struct world *w, const char *const *nodes, size_t n);
int available(struct world *w, const char *const *nodes, const uint32_t *cores, size_t n);
int available_error(struct world *w, const char *error);
int submit(struct world *w, uint32_t ranks);
/* Submits a job of which so many ranks are active at first, and never fewer than `least`. */
int submit_resizable(struct world *w, uint32_t ranks, uint32_t active, uint32_t least);
int resize(struct world *w, uint64_t job, uint32_t ranks);
/* Resizes as rmd does it by itself. */
int resize_auto(struct world *w, uint64_t job, uint32_t ranks);
/* By rank 0 of the attempt that there is, which listens. */
int resize_reported(struct world *w, uint64_t job, uint64_t begun, uint64_t done, uint32_t ranks, bool ending);
/* Submits a job that goes on without ranks that are lost; the id or the (negative) code. */
int submit_enduring(struct world *w, uint32_t ranks);
/* Submits such a job, of whose ranks the last are spare. */
int submit_critical(struct world *w, uint32_t ranks, uint32_t spare, const char *critical);
/* The ranks of the job report: all that are not lost have finished, or not. */
int ranks_reported(struct world *w, uint64_t job, int32_t group, const char *node, const uint32_t *lost, size_t n_lost,
                   bool finished);
int job_available(struct world *w, uint64_t job, const char *node, uint32_t cores, const char *error);
int job_wait(struct world *w, uint64_t job, const char *reason, bool lost_round);
/* Reports the cores of a single group. */
int job_cores(struct world *w, uint64_t job, int32_t group, const char *node, const uint32_t *cores, size_t n);
int spares(struct world *w, uint64_t job, const char *const *nodes, size_t n);
int place(struct world *w, uint64_t job, const char *head, const char *const *nodes, const uint32_t *ranks, size_t n);
int ready(struct world *w, uint64_t job, int32_t capsule, const char *node);
int blocker(struct world *w, uint64_t job, int32_t capsule, const char *node, const char *text);
int gone(struct world *w, uint64_t job, int32_t capsule, const char *node);
int gone_of(struct world *w, uint64_t job, int32_t capsule, uint64_t incarnation, const char *node);
/* The job may be restarted so often. */
void let_restart(struct world *w, uint64_t job, uint32_t restarts);
/* down_since 0: since whenever; it is by nobody. */
int node_fence(struct world *w, const char *node, uint64_t down_since, bool fenced, const char *text);
int restart(struct world *w, uint64_t job, uint32_t attempt, const char *node, bool down);
int running(struct world *w, uint64_t job);
/* The job is placed with its head on n1 and so many ranks on these nodes, all capsules are ready,
 * and it is RUNNING. */
void start_job(struct world *w, uint64_t job, const char *const *nodes, const uint32_t *ranks, size_t n);
Rm__Job *job_of(const struct world *w, uint64_t job);
/* The last command was refused by a limit of its user, with this in its text. */
void expect_refused(struct world *w, int code, const char *text);
int cancel(struct world *w, uint64_t job, uint32_t signal, bool timeout);
int ends(struct world *w, uint64_t job, int32_t exit_code, int final_state, const char *reason);
enum end_way { BY_ITSELF, KILLED, LOST };
int group_end(struct world *w, uint64_t job, int32_t group, const char *node, int32_t exit_code, enum end_way way,
              uint64_t end_usec, const char *reason);
int forget(struct world *w, uint64_t job);
int output_done(struct world *w, uint64_t job);
int move_start(struct world *w, uint64_t job, int32_t capsule, const char *to);
int move_commit(struct world *w, uint64_t move);
/* While so much of its memory is still at the source. */
int move_commit_early(struct world *w, uint64_t move, uint64_t later_bytes);
int move_abort(struct world *w, uint64_t move, const char *error);
int move_done(struct world *w, uint64_t move, uint64_t memory_bytes, uint64_t freeze_usec);
/* So long before the deadline of its source. */
int move_done_hurried(struct world *w, uint64_t move, uint64_t expedite_usec);
int move_waiting(struct world *w, uint64_t move, const char *text);
int move_filled(struct world *w, uint64_t move, uint64_t fill_usec);
/* "leaf1:n1,n2:1 ...": each switch with its nodes and the number of the one above, counted from 1,
 * 0 for none. */
int topology(struct world *w, const char *text);
int topology_error(struct world *w, const char *error);
int scheduling(struct world *w, const char *warning);
int note(struct world *w, const char *text);

#endif
