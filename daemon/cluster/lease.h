/* Leases: how long a node may let a capsule run that the leader would start again elsewhere if the node were lost.
 *
 * No two clocks have to agree. A node that does not lead writes its own time into each heartbeat that it sends; the leader's next heartbeat
 * repeats the latest that it has got, and the lease lasts for lease_usec from that time, by the clock of the node that holds it. When the
 * leader's heartbeat arrives does not matter, so one that is late gives nothing. The leader counts from when it heard from the node
 * last, which is after the node sent what it may have repeated. Clocks are only trusted to go at the same speed, within a percent.
 *
 * The holder's time is CLOCK_BOOTTIME: a node that was suspended wakes up without a lease. The leader's is CLOCK_MONOTONIC, for the same
 * reason: time that it has slept through does not count. A hypervisor that stops a guest and its clocks cannot be seen from inside; the
 * guest's lease then lasts longer by as much. */
#ifndef RM_CLUSTER_LEASE_H
#define RM_CLUSTER_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* From the end of the lease until PID 1 of every capsule has it frozen and cut off. PID 1 gives the processes 100 ms to stand still; the rest is for
 * a busy node to run it. */
#define LEASE_FENCE_USEC UINT64_C(250000)

/* When the lease ends whose holder wrote `sent_usec`; UINT64_MAX if that is beyond. */
uint64_t lease_end_usec(uint64_t sent_usec, uint64_t lease_usec);

/* When, by the clock of `heard_usec`, a node has surely fenced its capsules that was heard last then. */
uint64_t lease_safe_usec(uint64_t heard_usec, uint64_t lease_usec);

/* The lease of this node, and those that it gives while it leads. */
struct leases;

struct leases *leases_create(const char *state_dir, uint64_t lease_usec);
void leases_destroy(struct leases *leases); /* NULL ok */

/* The leader says that this node's lease lasts until then. True: so it does, and did not before; one that is late gives less than there is. */
bool leases_take(struct leases *leases, uint64_t end_boot_usec);
/* 0: it never had one. */
uint64_t leases_end_usec(const struct leases *leases);

/* Before this node leads for the first time. It, in an earlier life, may have given longer leases; the file "lease" in its state directory says so.
 * It has the longest, on disk, when this returns. */
int leases_load(struct leases *leases, struct rm_error *err);
/* This node begins to lead. */
void leases_lead(struct leases *leases, uint64_t now_usec);
/* From time to time while leading: leases from before have ended some time. */
void leases_beat(struct leases *leases, uint64_t now_usec);
/* While leading: as lease_safe_usec(), of a node that was heard last then (0: never), with what it may have from before. */
uint64_t leases_safe_usec(const struct leases *leases, uint64_t heard_usec);

#endif
