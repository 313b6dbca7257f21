/* The invariants of checkpoints in every history. By the log: one that is done is a consistent cut,
 * with the output that its job had written then; it goes only when it may, no attempt goes back
 * behind it while nodes that are up have each part of it, nor begins anew while any has, also one
 * that is away; what a node says that it has is on its disk, also after a loss of power, and what
 * it says that it has lost is not; a checkpoint that fails leaves its job as it was. On the disks:
 * no node removes what by the log it has. */
#ifndef RM_TESTS_SIM_KEPT_H
#define RM_TESTS_SIM_KEPT_H

#include "tests/sim/checks.h"
#include "tests/sim/host.h"
#include "tests/sim/saved.h"

struct kept;

struct kept *kept_create(struct timeline *t, struct checks *checks);
void kept_destroy(struct kept *k); /* NULL ok */
/* In the order of their numbers; to be known before anything happens. */
void kept_add_host(struct kept *k, struct host *host);

/* A node has applied the command to `state`; the first one that does tells what the log says. */
void kept_applied(struct kept *k, const Rm__State *state, const Rm__Command *command, const struct state_result *result);

/* A capsule stands still and is cut off from now on: the number of this standstill, and its end. */
uint64_t kept_cut(struct kept *k);
void kept_open(struct kept *k, uint64_t cut);
/* Saved processes run again, for the job as it is by the log. */
void kept_runs(struct kept *k, const struct saved *saved, const char *host);

/* NULL: what nodes have by the log of checkpoints that are done is whole on their disks; else what
 * is not so. */
const char *kept_unsettled(const struct kept *k);

/* ---- disks ---- */

/* The disk of the host was damaged, or is another one now. */
void kept_disk_lost(const struct host *host);
/* Around each removal of files of stores, by rmd or rm-mover: `what` names it. */
void kept_before(const struct host *host);
void kept_after(const struct host *host, const char *what);

/* The counts of the whole history. */
struct kept_counts {
        uint64_t done, drilled; /* checkpoints; parts of drills that could be restored */
        uint64_t restored; /* times that a job was placed to go on from one */
        uint64_t back; /* and that it was not its last one, which could not be had */
        uint64_t lost; /* copies that are no good */
};
void kept_count(const struct kept *k, struct kept_counts *ret);

#endif
