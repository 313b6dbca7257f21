/* Which connections are needed. The leader needs one to every node, and every node one to the
 * leader: over these go the log and the heartbeats. Any other two nodes are connected when one has
 * something to say to the other, until neither has for idle_usec.
 *
 * No message may be lost when an idle connection ends. So an end that finds it idle says so, and
 * sends nothing more until the other end has closed it, after its own last message, or has answered
 * that it needs it:
 *   finds it idle    IDLE --------->   needs it:  IDLE (keep)
 *                    <-------------    else:      the end of the connection */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/peers/peer_message.h"
#include "daemon/peers/peers_internal.h"
#include "daemon/state/state.h"

/* For one node that is not connected, unless one message alone has more: what users' requests may
 * queue up to a connected one. */
#define POSTED_MAX_BYTES ((size_t) 16 << 20)
/* An attempt takes PEERS_DIAL_USEC at most; a second one is made when the first has met one of the
 * other side. */
#define POSTED_USEC (2 * PEERS_DIAL_USEC)
/* The intervals at which a node without a leader asks another node for it. The nodes of the
 * configuration come first. */
#define ASK_USEC UINT64_C(1000000)
#define ASK_FIRST_USEC UINT64_C(2000000)
#define ASK_MAX_DOUBLINGS 4U

static bool is_up(const struct peer *peer) {
        return peer->link && !peer->link->closing;
}

bool demand_is(const struct peers *peers, const struct peer *peer, uint64_t now) {
        return !peer->forgotten && (peers->leading || peer->led || now < peer->needed_usec);
}

void demand_use(struct peers *peers, struct peer *peer) {
        peer->needed_usec = now_usec() + peers->idle_usec;
}

void peers_keep(struct peers *peers, const char *name) {
        struct peer *peer = peer_find(peers, name);

        if (peer)
                demand_use(peers, peer);
}

/* ---- messages that wait ---- */

static bool has_just_failed(const struct peer *peer) {
        return peer->failures > 0 && !peer->dialling && !peer->accepted && peer->next_dial_usec > now_usec();
}

static int post(struct peers *peers, struct peer *peer, const Rm__PeerMessage *message) {
        size_t size_bytes = rm__peer_message__get_packed_size(message);
        struct posted *posted;

        if (size_bytes > FRAME_MAX_PEER_BYTES)
                return -EMSGSIZE;
        if (peer->posted_bytes > 0 && peer->posted_bytes + size_bytes > POSTED_MAX_BYTES)
                return -ENOBUFS;
        if (STAILQ_EMPTY(&peer->posted))
                peer->posted_usec = now_usec();
        posted = xcalloc(1, sizeof(*posted));
        posted->message = (Rm__PeerMessage *) message_copy(&message->base);
        posted->size_bytes = size_bytes;
        peer->posted_bytes += size_bytes;
        STAILQ_INSERT_TAIL(&peer->posted, posted, entry);
        peers_wake(peers);
        return 0;
}

int peers_post(struct peers *peers, const char *name, const Rm__PeerMessage *message) {
        struct peer *peer = peer_find(peers, name);

        if (!peer)
                return -ENOTCONN;
        demand_use(peers, peer);
        if (is_up(peer))
                return link_send(peer->link, message);
        if (!peer->link && !peer->accepted && (peer->port == 0 || has_just_failed(peer))) {
                /* The connection is tried again, for the next message. */
                peers_wake(peers);
                return -ENOTCONN;
        }
        return post(peers, peer, message);
}

static void posted_free(struct peer *peer, struct posted *posted) {
        STAILQ_REMOVE_HEAD(&peer->posted, entry);
        peer->posted_bytes -= posted->size_bytes;
        rm__peer_message__free_unpacked(posted->message, NULL);
        free(posted);
}

void demand_drop(struct peer *peer) {
        struct posted *posted;

        while ((posted = STAILQ_FIRST(&peer->posted)))
                posted_free(peer, posted);
}

void demand_flush(struct peer *peer) {
        struct posted *posted;

        peer->unreachable = false;
        while (is_up(peer) && (posted = STAILQ_FIRST(&peer->posted))) {
                (void) link_send(peer->link, posted->message);
                posted_free(peer, posted);
        }
}

void demand_failed(struct peers *peers, struct peer *peer) {
        if (STAILQ_EMPTY(&peer->posted))
                return;
        peer->unreachable = true;
        peers_wake(peers);
}

void demand_report(struct peers *peers, uint64_t now) {
        struct peer *peer;

        LIST_FOREACH (peer, &peers->peer_list, entry) {
                if (STAILQ_EMPTY(&peer->posted) || (!peer->unreachable && now - peer->posted_usec < POSTED_USEC))
                        continue;
                log_info("node %s: not connected, what was to be sent to it is dropped", peer->name);
                peer->unreachable = false;
                demand_drop(peer);
                if (peers->ops.on_peer)
                        peers->ops.on_peer(peers->userdata, peer->name, false);
        }
}

/* ---- the end of what is idle ---- */

static void send_idle(struct link *link, bool keep) {
        Rm__PeerIdle idle = RM__PEER_IDLE__INIT;

        idle.keep = keep;
        (void) link_send(link, &PEER_MESSAGE(&idle));
}

void demand_close_idle(struct peers *peers, uint64_t now) {
        struct peer *peer;

        LIST_FOREACH (peer, &peers->peer_list, entry)
                if (is_up(peer) && !demand_is(peers, peer, now)) {
                        send_idle(peer->link, false);
                        peer->link->closing = true;
                }
}

void demand_idle(struct link *link, const Rm__PeerIdle *idle) {
        struct peers *peers = link->peers;
        struct peer *peer = link->peer;

        if (idle->keep) {
                /* The link is not asked again before another idle_usec. */
                link->closing = false;
                demand_use(peers, peer);
                demand_flush(peer);
        } else if (!link->closing && demand_is(peers, peer, now_usec())) {
                send_idle(link, true);
        } else {
                log_debug("node %s: connection closed, it was idle", peer->name);
                link_free(link, true);
                peers_wake(peers);
        }
}

/* ---- the leader ---- */

struct link *demand_leader(const struct peers *peers) {
        struct peer *peer;

        LIST_FOREACH (peer, &peers->peer_list, entry)
                if (peer->link && peer->link->leading)
                        return peer->link;
        return NULL;
}

static void send_leader(struct link *link, const struct peer *leader) {
        Rm__PeerLeader body = RM__PEER_LEADER__INIT;

        body.node = leader->node;
        (void) link_send(link, &PEER_MESSAGE(&body));
}

void demand_report_leader(struct link *link) {
        const struct link *leader = link->peers->leading ? NULL : demand_leader(link->peers);

        if (leader && leader != link)
                send_leader(link, leader->peer);
}

void demand_leader_found(struct link *link) {
        struct peers *peers = link->peers;
        struct peer *peer;

        LIST_FOREACH (peer, &peers->peer_list, entry) {
                peer->led = peer == link->peer;
                if (!peer->led && is_up(peer))
                        send_leader(peer->link, link->peer);
        }
}

void demand_leader_hint(struct peers *peers, const Rm__Node *node) {
        struct peer *peer;

        if (!node || peers->leading || demand_leader(peers))
                return;
        peers_learn(peers, node);
        peer = peer_find(peers, node->name);
        if (!peer || peer->link || has_just_failed(peer))
                return;
        demand_use(peers, peer);
        peers_wake(peers);
}

void demand_leader_lost(struct peers *peers) {
        peers->asked = 0;
        peers->next_ask_usec = now_usec() + ASK_FIRST_USEC;
}

uint64_t demand_next_ask(const struct peers *peers) {
        return peers->leading || demand_leader(peers) ? UINT64_MAX : peers->next_ask_usec;
}

void demand_ask(struct peers *peers, uint64_t now) {
        unsigned doublings = peers->asked < ASK_MAX_DOUBLINGS ? peers->asked : ASK_MAX_DOUBLINGS;
        struct peer *choice = NULL;
        struct peer *peer;
        unsigned n = 0;

        if (now < demand_next_ask(peers))
                return;
        peers->next_ask_usec = now + (ASK_USEC << doublings);
        peers->asked++;
        LIST_FOREACH (peer, &peers->peer_list, entry)
                if (peer->port != 0 && !peer->link && !demand_is(peers, peer, now) && random() % ++n == 0)
                        choice = peer;
        if (choice)
                demand_use(peers, choice);
}
