/* The connection between two movers: TCP, TLS 1.3 with the cluster's key, hello and welcome. Every
 * wait listens to rmd as well, and a peer that is silent for longer than the time limit is gone. */
#ifndef RM_MOVER_LINK_H
#define RM_MOVER_LINK_H

#include "daemon/mover/control.h"
#include "daemon/wire/tls.h"

struct link_config {
        const char *key_file;        /* "": no TLS */
        const char *second_key_file; /* "": none; that of a sender is not used */
        const char *cluster;
        const uint8_t *token;
        size_t token_bytes;
        unsigned timeout_msec;
};

struct link;

/* Connects, shakes hands, and is welcomed. -EACCES: another key or token. */
int link_connect(struct control *c, const struct link_config *config, const char *host, uint16_t port, struct link **ret_link,
                 struct rm_error *err);

/* A listening socket on the first free port of the range (0..0: any). */
int link_listen(const char *address, uint16_t port_min, uint16_t port_max, int *ret_fd, uint16_t *ret_port, struct rm_error *err);
/* The one peer with the right key and token; all others are refused and logged, and do not hold it
 * up. -ETIMEDOUT: no such peer came. */
int link_accept(struct control *c, const struct link_config *config, int listen_fd, unsigned accept_timeout_msec,
                struct link **ret_link, struct rm_error *err);
void link_close(struct link *l); /* NULL ok */

/* Codecs that the peer can decode: IMAGE_CODEC_BIT of each. Of a link that was connected. */
uint32_t link_peer_codecs(const struct link *l);
/* Does it understand files that go ahead? Of a link that was connected. */
bool link_peer_files_ahead(const struct link *l);
/* Does it say how much of the pages that come later it has passed on? Of a link that was
 * connected. */
bool link_peer_counts_later(const struct link *l);

/* The cost of writing, and the rate at which the network, or the peer, takes the data. Counted from
 * the beginning. */
struct link_figures {
        uint64_t sent_bytes;
        uint64_t send_nsec;      /* of the processor */
        uint64_t send_wall_nsec; /* the time that took, without waits */
        uint64_t busy_bytes;     /* left the socket's queue while that was never empty... */
        uint64_t busy_usec;      /* ...which was the case for so long */
        uint64_t idle_bytes;     /* when the queue was found empty, so much had been written since the look before */
};
/* The figures as of now. */
struct link_figures link_figures(struct link *l);

/* Sent, and not acknowledged yet by the other host, or not sent yet. */
size_t link_queued_bytes(const struct link *l);

/* Writes all of the data, or returns an error. */
int link_write(struct link *l, const void *data, size_t size_bytes, struct rm_error *err);
/* Exactly `size_bytes`; -ENODATA when the stream ends before the first, -EPIPE when it ends
 * inside. */
int link_read(struct link *l, void *ret_data, size_t size_bytes, struct rm_error *err);

/* Sends a message as a frame. */
int link_send(struct link *l, const ProtobufCMessage *body, struct rm_error *err);
int link_receive(struct link *l, Rm__MoverPeerMessage **ret_message, struct rm_error *err);

/* A descriptor for callers that wait themselves, and a check: has the peer said something (or
 * gone)? link_receive() then. */
int link_fd(const struct link *l);
bool link_peer_speaks(struct link *l);

/* No more is sent; what still comes is thrown away, until the peer has closed or `timeout_msec` are
 * over: so that the last words arrive, which a reset would overtake. */
void link_drain(struct link *l, unsigned timeout_msec);

#endif
