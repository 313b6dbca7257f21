#include "tests/sim/network.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* The delays are those of a switched network: mostly tenths of milliseconds. */
#define DELAY_MIN_USEC 50
#define DELAY_MAX_USEC 400

struct network {
        struct timeline *timeline;
        struct host *const *hosts;
        unsigned n_hosts;
        struct link_faults *links; /* n_hosts from each */
};

struct packet {
        struct host *to;
        unsigned from;
        size_t size_bytes;
        uint8_t data[];
};

struct network *network_create(struct timeline *t, struct host *const *hosts, unsigned n_hosts) {
        struct network *network = xcalloc(1, sizeof(*network));

        network->timeline = t;
        network->hosts = hosts;
        network->n_hosts = n_hosts;
        network->links = xcalloc((size_t) n_hosts * n_hosts, sizeof(*network->links));
        for (unsigned i = 0; i < n_hosts; i++)
                host_set_part(hosts[i], HOST_NETWORK, network);
        return network;
}

void network_destroy(struct network *network) {
        if (!network)
                return;
        free(network->links);
        free(network);
}

unsigned network_n_hosts(const struct network *network) {
        return network->n_hosts;
}

const char *network_name(const struct network *network, unsigned host) {
        return host_name(network->hosts[host]);
}

struct link_faults *network_link(struct network *network, unsigned from, unsigned to) {
        return &network->links[from * network->n_hosts + to];
}

void network_heal(struct network *network) {
        memset(network->links, 0, (size_t) network->n_hosts * network->n_hosts * sizeof(*network->links));
}

static void packet_receive(void *userdata) {
        struct packet *packet = userdata;

        host_packet(packet->to, packet->from, packet->data, packet->size_bytes);
        free(packet);
}

static void packet_arrive(void *userdata) {
        struct packet *packet = userdata;

        host_deliver(packet->to, 0, packet_receive, free, packet);
}

static void transmit(struct network *network, unsigned from, unsigned to, const void *data, size_t size_bytes) {
        const struct link_faults *link = network_link(network, from, to);
        uint64_t delay_usec = timeline_between(network->timeline, DELAY_MIN_USEC, DELAY_MAX_USEC);
        struct packet *packet = xcalloc(1, sizeof(*packet) + size_bytes);

        if (timeline_chance(network->timeline, link->late_per_mille))
                delay_usec += timeline_random(network->timeline, link->late_usec + 1);
        packet->to = network->hosts[to];
        packet->from = from;
        packet->size_bytes = size_bytes;
        memcpy(packet->data, data, size_bytes);
        timeline_at(network->timeline, timeline_now_usec(network->timeline) + delay_usec, packet_arrive, free, packet);
}

bool network_send(struct network *network, unsigned from, unsigned to, const void *data, size_t size_bytes) {
        const struct link_faults *link = network_link(network, from, to);

        if (link->cut || timeline_chance(network->timeline, link->loss_per_mille))
                return false;
        transmit(network, from, to, data, size_bytes);
        if (timeline_chance(network->timeline, link->duplicates_per_mille))
                transmit(network, from, to, data, size_bytes);
        return true;
}
