#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/peers/peers_internal.h"

#define BACKOFF_FIRST_USEC UINT64_C(100000)
#define BACKOFF_MAX_USEC UINT64_C(2000000)
#define BACKOFF_REFUSED_USEC UINT64_C(5000000) /* another key, another cluster: that takes a person */
/* Where leader and follower seek each other, the node with the lower name dials; the other one only
 * when that does not happen, for it may not know of us. */
#define HIGHER_WAITS_USEC UINT64_C(300000)
/* A connection that is lost sooner than this is made again with a delay that grows: what ended it
 * may still be there. */
#define FLAP_USEC UINT64_C(5000000)
#define FAILURES_REPORTED 5U /* then one line, and then silence until it works */

static uint64_t backoff(unsigned failures, int code) {
        uint64_t wait = code == -EACCES ? BACKOFF_REFUSED_USEC : BACKOFF_FIRST_USEC << (failures < 6 ? failures : 6);

        if (wait > BACKOFF_MAX_USEC && code != -EACCES)
                wait = BACKOFF_MAX_USEC;
        /* Spread, so that nodes that lost each other together do not come together each time. */
        return wait - wait / 4 + (uint64_t) random() % (wait / 2);
}

/* How long the other side may be before us. */
static uint64_t head_start_usec(const struct peers *peers, const struct peer *peer) {
        return (peers->leading || peer->led) && strcmp(peers->self->name, peer->name) > 0 ? HIGHER_WAITS_USEC : 0;
}

void dial_soon(struct peers *peers, struct peer *peer) {
        uint64_t now = now_usec();

        peer->failures = 0;
        peer->next_dial_usec = now + head_start_usec(peers, peer);
        if (demand_is(peers, peer, now))
                peers_wake(peers);
}

/* An attempt that is under way may have been so for long, and wait for an answer that was lost. */
void dial_again(struct peer *peer) {
        if (peer->dialling)
                link_free(peer->dialling, false);
        peer->failures = 0;
        peer->next_dial_usec = 0;
}

void dial_lost(struct peers *peers, struct peer *peer, uint64_t stood_usec) {
        dial_soon(peers, peer);
        peer->flaps = stood_usec < FLAP_USEC ? peer->flaps + 1 : 0;
        /* A single short connection has no consequence: the other end was started again. */
        if (peer->flaps > 1)
                peer->next_dial_usec += backoff(peer->flaps - 1, 0);
}

static int dial(struct link *link, struct in_addr address, uint16_t port, unsigned failures) {
        struct peers *peers = link->peers;
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = address };
        char text[INET_ADDRSTRLEN] = "?";
        cleanup_free char *name = NULL;
        struct conn_config config = {
                .magic = FRAME_MAGIC_PEER,
                .max_bytes = FRAME_MAX_PEER_BYTES,
                .type = &rm__peer_message__descriptor,
                .ssl = tls_session(peers->tls, false),
                .trust_usec = PEERS_DIAL_USEC,
                .close_log_level = failures > FAILURES_REPORTED ? LOG_DEBUG : LOG_WARNING,
        };

        if (!config.ssl)
                return -ENOMEM;
        (void) inet_ntop(AF_INET, &address, text, sizeof(text));
        name = xasprintf("peer %s (%s:%u)",
                         link->peer   ? link->peer->name
                         : link->seed ? link->seed->host
                                      : "?",
                         text, (unsigned) port);
        config.name = name;
        return conn_dial(peers->base, (struct sockaddr *) &in, sizeof(in), &config, link_conn_ops(), link, &link->conn);
}

static void dial_peer(struct peers *peers, struct peer *peer) {
        struct link *link = link_new(peers, true);
        int r;

        link->peer = peer;
        peer->dialling = link;
        r = dial(link, peer->address, peer->port, peer->failures);
        if (r < 0)
                link_over(link, r, strerror(-r));
}

/* ---- seeds ---- */

int dial_add_seed(struct peers *peers, const char *text, struct rm_error *err) {
        const char *colon = strrchr(text, ':');
        struct seed *seed;
        int64_t port = 0;

        if (!colon || colon == text || parse_i64(colon + 1, 1, UINT16_MAX, &port) < 0)
                return error_set(err, -EINVAL, "peer '%s' is not of the form HOST:PORT", text);
        seed = xcalloc(1, sizeof(*seed));
        seed->peers = peers;
        seed->host = xasprintf("%.*s", (int) (colon - text), text);
        seed->port = (uint16_t) port;
        LIST_INSERT_HEAD(&peers->seeds, seed, entry);
        return 0;
}

void dial_free_seed(struct seed *seed) {
        if (seed->resolving)
                evdns_getaddrinfo_cancel(seed->resolving);
        LIST_REMOVE(seed, entry);
        free(seed->host);
        free(seed->name);
        free(seed->why);
        free(seed);
}

static void seed_failed(struct seed *seed, int code, const char *reason) {
        seed->failures++;
        free(seed->why);
        seed->why = xstrdup(reason);
        seed->refused = code == -EACCES;
        seed->next_dial_usec = now_usec() + backoff(seed->failures, code);
        if (seed->failures == FAILURES_REPORTED)
                log_warn("cannot join through %s:%u: %s; retrying", seed->host, (unsigned) seed->port, reason);
        peers_wake(seed->peers);
}

char *peers_seed_failures(const struct peers *peers, bool only_refused) {
        const struct seed *seed;
        char *text = NULL;

        LIST_FOREACH (seed, &peers->seeds, entry) {
                cleanup_free char *before = text;

                if (seed->self || !seed->why || (only_refused && !seed->refused)) {
                        text = take_ptr(before);
                        continue;
                }
                text = xasprintf("%s:%u: %s%s%s", seed->host, (unsigned) seed->port, seed->why, before ? "; " : "",
                                 before ? before : "");
        }
        return text;
}

static bool is_self(const struct peers *peers, struct in_addr address, uint16_t port) {
        struct in_addr own;

        return port == peers->self->port && inet_pton(AF_INET, peers->self->address, &own) == 1 && own.s_addr == address.s_addr;
}

static void dial_seed_address(struct seed *seed, struct in_addr address) {
        struct link *link;
        int r;

        if (is_self(seed->peers, address, seed->port)) {
                seed->self = true;
                return;
        }
        link = link_new(seed->peers, true);
        link->seed = seed;
        seed->dialling = link;
        r = dial(link, address, seed->port, seed->failures);
        if (r < 0)
                link_over(link, r, strerror(-r));
}

static void on_resolved(int code, struct evutil_addrinfo *found, void *userdata) {
        struct seed *seed = userdata;

        if (code == EVUTIL_EAI_CANCEL)
                return; /* being freed */
        seed->resolving = NULL;
        if (code != 0 || !found) {
                seed_failed(seed, -ENOENT, code ? evutil_gai_strerror(code) : "this name has no IPv4 address");
                return;
        }
        dial_seed_address(seed, ((struct sockaddr_in *) (void *) found->ai_addr)->sin_addr);
        evutil_freeaddrinfo(found);
}

/* Where /etc/resolv.conf names no server libevent makes nothing at all. There is /etc/hosts, and
 * resolv.conf(5) says that the server is on this machine. */
static struct evdns_base *names_create(struct event_base *base) {
        struct evdns_base *names = evdns_base_new(base, EVDNS_BASE_INITIALIZE_NAMESERVERS | EVDNS_BASE_DISABLE_WHEN_INACTIVE);

        if (names)
                return names;
        names = evdns_base_new(base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
        if (!names)
                return NULL;
        (void) evdns_base_load_hosts(names, "/etc/hosts");
        (void) evdns_base_nameserver_ip_add(names, "127.0.0.1");
        return names;
}

static void dial_seed(struct seed *seed) {
        struct peers *peers = seed->peers;
        struct evutil_addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
        struct in_addr address;

        if (inet_pton(AF_INET, seed->host, &address) == 1) {
                dial_seed_address(seed, address);
                return;
        }
        if (!peers->dns)
                peers->dns = names_create(peers->base);
        if (!peers->dns) {
                seed_failed(seed, -ENOMEM, "names cannot be looked up");
                return;
        }
        /* May call back at once; then `resolving` must not be set afterwards. */
        seed->next_dial_usec = UINT64_MAX;
        seed->resolving = evdns_getaddrinfo(peers->dns, seed->host, NULL, &hints, on_resolved, seed);
}

/* The leader seeks the seeds, and other nodes seek the leader through them. */
static bool seed_requested(const struct seed *seed) {
        const struct peer *peer = seed->name ? peer_find(seed->peers, seed->name) : NULL;

        return !seed->self && !seed->dialling && !seed->resolving && !(peer && (peer->link || peer->dialling)) &&
               (seed->peers->leading || !demand_leader(seed->peers));
}

/* A node that was lost is not sought at once under the address of a seed. */
static uint64_t seed_due_usec(const struct seed *seed) {
        const struct peer *peer = seed->name ? peer_find(seed->peers, seed->name) : NULL;

        return peer && peer->flaps > 0 && peer->next_dial_usec > seed->next_dial_usec ? peer->next_dial_usec : seed->next_dial_usec;
}

static bool peer_requested(const struct peers *peers, const struct peer *peer, uint64_t now) {
        return peer->port != 0 && !peer->link && !peer->dialling && !peer->accepted && demand_is(peers, peer, now);
}

/* ---- time ---- */

void dial_due(struct peers *peers, uint64_t now) {
        struct peer *peer;
        struct seed *seed;

        LIST_FOREACH (peer, &peers->peer_list, entry)
                if (peer->next_dial_usec <= now && peer_requested(peers, peer, now))
                        dial_peer(peers, peer);
        LIST_FOREACH (seed, &peers->seeds, entry)
                if (seed_requested(seed) && seed_due_usec(seed) <= now)
                        dial_seed(seed);
}

uint64_t dial_next(const struct peers *peers) {
        const struct peer *peer;
        const struct seed *seed;
        uint64_t next = UINT64_MAX;
        uint64_t now = now_usec();

        LIST_FOREACH (peer, &peers->peer_list, entry)
                if (peer->next_dial_usec < next && peer_requested(peers, peer, now))
                        next = peer->next_dial_usec;
        LIST_FOREACH (seed, &peers->seeds, entry)
                if (seed_requested(seed) && seed_due_usec(seed) < next)
                        next = seed_due_usec(seed);
        return next;
}

void dial_failed(struct link *link, int code, const char *reason) {
        struct peer *peer = link->peer;

        if (link->seed)
                seed_failed(link->seed, code, reason);
        if (!peer || peer->link)
                return;
        peer->failures++;
        peer->next_dial_usec = now_usec() + backoff(peer->failures, code) + head_start_usec(link->peers, peer);
        if (code != 0)
                demand_failed(link->peers, peer); /* else the other side dials */
        if (peer->failures == FAILURES_REPORTED)
                log_warn("node %s cannot be reached: %s; retrying", peer->name, reason);
        peers_wake(link->peers);
}
