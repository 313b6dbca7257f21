/* Leases: how long a node may let a capsule run that the leader would start again elsewhere if the
 * node were lost.
 *
 * No two clocks have to agree. A node that does not lead writes its own time into each heartbeat
 * that it sends; the leader's next heartbeat repeats the latest that it has got, and the lease
 * lasts for lease_usec from that time, by the clock of the node that holds it. When the leader's
 * heartbeat arrives does not matter, so one that is late gives nothing. The leader counts from when
 * it heard from the node last, which is after the node sent what it may have repeated. Clocks are
 * only trusted to go at the same speed, within a percent.
 *
 * A node that was silent may be heard again when the leader has already decided to start its jobs
 * again, and not know that yet. So a node that is DOWN in the log gets no lease, and one that is UP
 * may use its lease only once its state has come as far as the leader's had when it was given: it
 * then knows of all that was decided while it was DOWN.
 *
 * A leader that was replaced may not know it yet. So it gives leases only as far as the voters have
 * confirmed it: each of its heartbeats has its time, and a voter that takes it for the leader of
 * its term repeats the latest. What more than half of the voters have repeated, itself among them,
 * is Q: a leader that was elected instead was elected after Q, since those voters have voted after
 * that. No lease that this leader gives, nor its own, lasts longer than lease_usec from Q. The next
 * leader waits that long from its election before it counts a node as fenced that it has not heard.
 * (Leases bound to a majority's word, as in Chubby and in Ongaro's thesis, 6.4.1.)
 *
 * The holder's time is CLOCK_BOOTTIME: a node that was suspended wakes up without a lease. The
 * leader's is CLOCK_MONOTONIC where it waits, for the same reason: time that it has slept through
 * does not count. A hypervisor that stops a guest and its clocks cannot be seen from inside; the
 * guest's lease then lasts longer by as much. */
#ifndef RM_CLUSTER_LEASE_H
#define RM_CLUSTER_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The time from the end of the lease until PID 1 of every capsule has it frozen and cut off. PID 1
 * gives the processes 100 ms to freeze; the rest is for a busy node to run it. */
#define LEASE_FENCE_USEC UINT64_C(250000)

/* When the lease ends whose holder wrote `sent_usec`; UINT64_MAX if that is beyond. */
uint64_t lease_end_usec(uint64_t sent_usec, uint64_t lease_usec);

/* When, by the clock of `received_usec`, a node has surely fenced its capsules that was heard last
 * then. */
uint64_t lease_safe_usec(uint64_t received_usec, uint64_t lease_usec);

/* The lease of this node, and those that it gives while it leads. */
struct leases;

/* Leases of `lease_usec` are given while this node leads. */
struct leases *leases_create(uint64_t lease_usec);
void leases_destroy(struct leases *leases); /* NULL ok */

/* This node's lease lasts until then. True: so it does, and did not before; one that is late gives
 * less than there is. */
bool leases_take(struct leases *leases, uint64_t end_boot_usec);
/* The leader gives a lease until then, from when the state has come to `index`. Of several that
 * wait the first is kept, or one of a lower index: so a state that is always a little behind gets
 * one all the same. */
void leases_offer(struct leases *leases, uint64_t end_boot_usec, uint64_t index);
/* The state has come to this index. True: as leases_take(). */
bool leases_reach(struct leases *leases, uint64_t index);
/* 0: it never had one. */
uint64_t leases_end_usec(const struct leases *leases);

/* This node begins to lead, at now_usec(). `longest_usec`: as the log says, no leader before has
 * given longer ones; 0: it does not say. */
void leases_lead(struct leases *leases, uint64_t now_usec, uint64_t longest_usec);
/* A voter has confirmed what this node sent then (now_boot_usec()), while it leads. */
void leases_confirm(struct leases *leases, const char *voter, uint64_t sent_boot_usec);
/* Q. `others`: the voters but this one. Without others it is `now_boot_usec`; 0: fewer than half
 * have confirmed anything. */
uint64_t leases_quorum_usec(const struct leases *leases, const char *const *others, size_t n_others, uint64_t now_boot_usec);
/* When the leases end that this leader gives, and its own, with this Q. `longest_usec`: as the log
 * says. */
uint64_t leases_given_end_usec(const struct leases *leases, uint64_t quorum_usec, uint64_t longest_usec);
/* Returns the longest lease that the log is to name; 0: the log's value is right, or has to stay
 * for now. */
uint64_t leases_to_log_usec(const struct leases *leases, uint64_t now_usec, uint64_t longest_usec);
/* Like lease_safe_usec(), while leading: of a node that was heard last then (0: never), with what
 * it may have from before. */
uint64_t leases_safe_usec(const struct leases *leases, uint64_t received_usec);

#endif
