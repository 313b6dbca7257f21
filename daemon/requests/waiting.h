/* Requests that only a leader can answer, or a node whose state is current, and that came while
 * there was none: dispatched again as soon as that may have changed. */
#ifndef RM_REQUESTS_WAITING_H
#define RM_REQUESTS_WAITING_H

#include "daemon/client/client.h"

struct waiting;

struct patience {
        uint64_t until_usec; /* how long a request may wait (now_usec()) */
        bool unanswered; /* a leader may have got it: it cannot be said that it was not done */
};

/* `dispatch` is called with one of them, and answers it or adds it again; once waiting_over() it
 * answers. Those of clients that have left are dropped. */
struct waiting *waiting_create(struct event_base *base,
                               void (*dispatch)(struct client *client, const Rm__LocalRequest *request, struct patience patience));
/* Requests that still wait are not answered. NULL ok. */
void waiting_destroy(struct waiting *w);

/* The patience of a request that comes now. */
struct patience waiting_begin(void);
bool waiting_over(struct patience patience);
/* Adds a request of a local client. Copies the request. */
void waiting_add(struct waiting *w, struct client *client, const Rm__LocalRequest *request, struct patience patience);
/* There may be a leader. */
void waiting_wake(struct waiting *w);

#endif
