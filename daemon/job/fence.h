/* Which capsules run only while this node has a lease (daemon/cluster/lease.h), and when PID 1 of
 * one is to get a later end of it. Pure. */
#ifndef RM_JOB_FENCE_H
#define RM_JOB_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/state.pb-c.h"

/* Only what may be started again elsewhere is fenced. A job that ends with its node never has a
 * second copy, so it runs on without rmd. */
bool fence_applies(const Rm__JobSpec *spec);

/* The MAC of a capsule with this address (host byte order): 02:72 and the address, with the job's
 * epoch in the 14 bits of the first two bytes that say neither "multicast" nor "given by the
 * vendor". So no two capsules of a network have the same one, the capsules of a job agree in
 * FILTER_EPOCH_BYTES (daemon/capsule/init/net/filter.h), and two placements do so only if there
 * were a multiple of 16,384 between them. */
void fence_mac(uint64_t epoch, uint32_t address, uint8_t ret_mac[static 6]);

/* The facts about one fenced capsule that tell whether its lease is to be renewed. */
struct fence_view {
        bool synced; /* the state is known to be current */
        bool belongs; /* by the state it is the capsule, or a copy that a move makes, of a job that has not ended */
        uint64_t lease_usec; /* when this node's lease ends */
        uint64_t reported_usec; /* what its PID 1 was told last; 0: nothing yet, by this rmd */
};

/* PID 1 is to be told lease_usec. Without a current state nothing is renewed: what stands still
 * here may already run elsewhere. */
bool fence_due(const struct fence_view *view);

#endif
