/* [web] listen says where rmd's HTTP server listens. */
#ifndef RM_CONFIG_LISTEN_H
#define RM_CONFIG_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define LISTEN_NONE "none" /* nowhere */
#define LISTENS_MAX 4U

/* A place where rmd listens. */
struct listen_at {
        char path[108];   /* of a Unix socket; empty: TCP */
        char address[16]; /* IPv4, of the loopback network */
        uint16_t port;
};

/* "/run/rmd/web.sock 127.0.0.1:7701". -EINVAL: a place is neither the absolute path of a socket
 * nor a loopback address with a port, or there are more than LISTENS_MAX of them; the text says
 * which. */
int listens_parse(const char *text, struct listen_at ret[static LISTENS_MAX], size_t *ret_n, struct rm_error *err);

#endif
