#include "daemon/config/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* A listener binds its socket under a longer name first. */
#define PATH_SUFFIX_BYTES sizeof(".new")

static int parse_tcp(char *text, struct listen_at *at) {
        char *colon = strrchr(text, ':');
        struct in_addr address;
        int64_t port;

        if (!colon || parse_i64(colon + 1, 1, UINT16_MAX, &port) < 0)
                return -EINVAL;
        *colon = 0;
        /* The page may be served on loopback only, since it is neither encrypted nor restricted to
         * users. */
        if (inet_pton(AF_INET, text, &address) != 1 || ntohl(address.s_addr) >> 24 != IN_LOOPBACKNET)
                return -EINVAL;
        (void) inet_ntop(AF_INET, &address, at->address, sizeof(at->address));
        at->port = (uint16_t) port;
        return 0;
}

static int parse_one(const char *word, struct listen_at *at, struct rm_error *err) {
        cleanup_free char *copy = xstrdup(word);

        *at = (struct listen_at) { 0 };
        if (*word == '/') {
                if (strlen(word) + PATH_SUFFIX_BYTES > sizeof(at->path))
                        return error_set(err, -EINVAL, "'%s' is too long for the path of a socket", word);
                (void) strcpy(at->path, word);
                return 0;
        }
        if (parse_tcp(copy, at) == 0)
                return 0;
        return error_set(err, -EINVAL,
                         "'%s' is neither the absolute path of a Unix socket nor a loopback address with a port, such as "
                         "127.0.0.1:7701",
                         word);
}

int listens_parse(const char *text, struct listen_at ret[static LISTENS_MAX], size_t *ret_n, struct rm_error *err) {
        cleanup_free char *copy = xstrdup(text);
        char *saved = NULL;
        size_t n = 0;

        if (strcmp(text, LISTEN_NONE) == 0) {
                *ret_n = 0;
                return 0;
        }
        for (char *word = strtok_r(copy, " \t", &saved); word; word = strtok_r(NULL, " \t", &saved)) {
                int r = n < LISTENS_MAX ? parse_one(word, &ret[n], err)
                                        : error_set(err, -EINVAL, "more than %u places to listen at", LISTENS_MAX);

                if (r < 0)
                        return r;
                n++;
        }
        if (n == 0)
                return error_set(err, -EINVAL, "no place to listen at; " LISTEN_NONE " turns it off");
        *ret_n = n;
        return 0;
}
