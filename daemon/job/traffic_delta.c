#include "daemon/job/traffic_delta.h"

#include <arpa/inet.h>
#include <stdlib.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/util.h"
#include "daemon/job/launch.h"

/* A group of the job, by its address. */
struct peer {
        uint32_t address; /* network byte order */
        int32_t index;
        bool known; /* it was there before */
        uint64_t before_bytes;
        UT_hash_handle hh;
};

static struct peer *find(struct peer *peers, uint32_t address) {
        struct peer *peer;

        HASH_FIND(hh, peers, &address, sizeof(address), peer);
        return peer;
}

/* The head talks to everybody, for nobody's sake. */
static struct peer *index_peers(const struct config *config, const Rm__Job *job, struct peer *space) {
        struct peer *peers = NULL;

        for (size_t i = 0; i < job->n_capsules; i++) {
                struct peer *peer = &space[i];

                if (job->capsules[i]->index == STATE_HEAD)
                        continue;
                peer->address = htonl(launch_address(config, job->capsules[i]));
                peer->index = job->capsules[i]->index;
                HASH_ADD(hh, peers, address, sizeof(peer->address), peer);
        }
        return peers;
}

size_t traffic_delta(const struct config *config, const Rm__Job *job, const struct capsule_flow *before, size_t n_before,
                     const struct capsule_flow *now, size_t n_now, struct traffic_sent *ret) {
        cleanup_free struct peer *space = xcalloc(job->n_capsules, sizeof(*space));
        struct peer *peers = index_peers(config, job, space);
        size_t n = 0;

        for (size_t i = 0; i < n_before; i++) {
                struct peer *peer = find(peers, before[i].address);

                if (peer && !peer->known) {
                        peer->known = true;
                        peer->before_bytes = before[i].sent_bytes;
                }
        }
        for (size_t i = 0; i < n_now; i++) {
                const struct peer *peer = find(peers, now[i].address);
                uint64_t bytes = now[i].sent_bytes;

                if (!peer)
                        continue;
                bytes -= bytes >= peer->before_bytes ? peer->before_bytes : 0;
                if (bytes > 0)
                        ret[n++] = (struct traffic_sent) { peer->index, bytes };
        }
        HASH_CLEAR(hh, peers);
        return n;
}
