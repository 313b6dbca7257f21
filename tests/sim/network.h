/* The network of the virtual world: packets between hosts, delayed, lost, duplicated, reordered;
 * links that are cut one way or both. */
#ifndef RM_TESTS_SIM_NETWORK_H
#define RM_TESTS_SIM_NETWORK_H

#include "tests/sim/host.h"

struct network;

/* The faults of packets on one way between two hosts. */
struct link_faults {
        bool cut;
        unsigned loss_per_mille;
        unsigned duplicates_per_mille;
        unsigned late_per_mille; /* come after up to late_usec, behind others that were sent later */
        uint64_t late_usec;
};

/* `hosts` by their numbers, borrowed. */
struct network *network_create(struct timeline *t, struct host *const *hosts, unsigned n_hosts);
void network_destroy(struct network *network); /* NULL ok */

/* `data` is copied. To oneself comes back too. false: it is lost. */
bool network_send(struct network *network, unsigned from, unsigned to, const void *data, size_t size_bytes);

unsigned network_n_hosts(const struct network *network);
const char *network_name(const struct network *network, unsigned host);
/* The faults of a link. Never NULL; to be changed in place. Packets on their way still arrive. */
struct link_faults *network_link(struct network *network, unsigned from, unsigned to);
/* All links are good again. */
void network_heal(struct network *network);

#endif
