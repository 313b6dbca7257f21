/* Capsules of jobs that start again when a node is lost: which copies there are on the hosts of the virtual world, and until when the PID 1 of
 * each lets it run (daemon/cluster/lease.h). They stay when the rmd of their node is killed or stopped. Two copies of one capsule that run at
 * the same time are a violation. */
#ifndef RM_TESTS_SIM_CAPSULES_H
#define RM_TESTS_SIM_CAPSULES_H

#include "tests/sim/checks.h"
#include "tests/sim/host.h"

struct capsules;

struct capsules *capsules_create(struct timeline *t, struct checks *checks);
void capsules_destroy(struct capsules *c); /* NULL ok */

/* The rmd of this host has a current state: copies that it does not name are removed, those that it names are made. A new one does not run. */
void capsules_see(struct capsules *c, struct host *host, const Rm__State *state);
/* Its lease lasts until then, by host_monotonic_usec(): the copies that the state, which is current, names are told so. */
void capsules_lease(struct capsules *c, struct host *host, const Rm__State *state, uint64_t end_usec);
/* Is there a copy of that incarnation? */
bool capsules_exist(const struct capsules *c, const struct host *host, uint64_t incarnation);
/* Does the capsule's job start again if its node is lost? Only such capsules have copies here. */
bool capsules_of(const Rm__Job *job);
/* Copies that have run. */
uint64_t capsules_count(const struct capsules *c);

#endif
