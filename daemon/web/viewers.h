/* Viewers look at the page: each has a stream of server-sent events with the state of the cluster
 * as it changes. A viewer is a client of rmd as rmctl is: it asks with the same requests, of which
 * each gives it what its user may see, and is sent the JSON that "rmctl --json" prints of them.
 *
 * In a pass all lists are asked for, page by page, and what the viewer has not seen as it is now is
 * sent; a change begins a pass, but each viewer has at most four in a second, and all together take
 * at most a tenth of a processor. A viewer who does not read what it was sent is sent no more, so
 * that little is kept for it, and sees less of what lies in between. */
#ifndef RM_WEB_VIEWERS_H
#define RM_WEB_VIEWERS_H

#include <stdint.h>
#include <sys/types.h>

#include "daemon/context.h"
#include "daemon/web/http.h"

struct viewers;

struct viewer_wish {
        uid_t uid;
        uint64_t since; /* the events after this index */
        uint64_t end_usec; /* of the stream (now_usec()); UINT64_MAX: as long as it is read */
};

struct viewers *viewers_create(struct rmd *rmd);
/* Must be called after the HTTP server is destroyed, which closes the streams. NULL ok. */
void viewers_destroy(struct viewers *viewers);

/* Adds a viewer while `http` answers its request. NULL: the user, or all users, have as many as
 * they may. */
struct http_stream *viewers_add(struct viewers *viewers, struct http *http, const struct viewer_wish *wish);
/* Wakes the viewers, since the state may have changed. */
void viewers_wake(struct viewers *viewers);

#endif
