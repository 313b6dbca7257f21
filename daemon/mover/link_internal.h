/* Shared by link.c and accept.c. */
#ifndef RM_MOVER_LINK_INTERNAL_H
#define RM_MOVER_LINK_INTERNAL_H

#include <netinet/in.h>

#include "daemon/mover/link.h"

#define LINK_VERSION 1U

struct link {
        struct control *control;
        int fd;
        struct tls *tls;
        SSL *ssl; /* NULL: no TLS */
        uint32_t peer_codecs;
        bool peer_files_ahead;
        bool peer_counts_later;
        struct link_figures figures;
        uint64_t scan_usec; /* when the queue was looked at last */
        uint64_t scan_sent_bytes;
        uint64_t scan_acked_bytes;
        uint64_t waited_usec; /* in all writes */
};

union address {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
};

/* Time limits of a connected socket. */
void link_socket_setup(int fd, unsigned timeout_msec);
/* A link without a connection, with the keys of `config`. Free with link_close(). */
int link_make(struct control *c, const struct link_config *config, struct link **ret_link, struct rm_error *err);
/* A TLS session over `fd`; NULL: no memory. */
SSL *link_session_create(struct tls *tls, bool server, int fd);
/* Makes a step of the TLS handshake. 1: complete; 0: poll for *ret_wait first; or negative
 * errno. */
int link_handshake_some(struct link *l, int *ret_wait, struct rm_error *err);
/* Bytes read; 0: poll for *ret_wait first; -ENODATA: end of the stream. */
ssize_t link_read_some(struct link *l, void *data, size_t size_bytes, int *ret_wait, struct rm_error *err);

#endif
