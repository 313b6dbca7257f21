#include "daemon/requests/waiting.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "common/timer.h"
#include "common/util.h"
#include "daemon/state/state.h"

/* A request waits for a leader as long as proposals wait (cluster_propose()): voters elect a leader
 * in far less, so that without one by then there is none for long. */
#define PATIENCE_USEC UINT64_C(10000000)
/* The waiting requests are also looked at periodically: waiting_wake() does not report all changes,
 * and time passes. */
#define SCAN_USEC 100000U

struct waiter {
        struct client *client; /* held */
        Rm__LocalRequest *request;
        struct patience patience;
        TAILQ_ENTRY(waiter) entry;
};

TAILQ_HEAD(waiter_list, waiter);

struct waiting {
        struct event *scan;
        void (*dispatch)(struct client *client, const Rm__LocalRequest *request, struct patience patience);
        struct waiter_list list; /* in the order they came */
};

static void waiter_free(struct waiter *waiter) {
        client_release(waiter->client);
        rm__local_request__free_unpacked(waiter->request, NULL);
        free(waiter);
}

/* Requests that have to wait longer come back to the list. */
static void on_scan(evutil_socket_t fd, short what, void *arg) {
        struct waiting *w = arg;
        struct waiter_list list = TAILQ_HEAD_INITIALIZER(list);
        struct waiter *waiter;

        TAILQ_CONCAT(&list, &w->list, entry);
        while ((waiter = TAILQ_FIRST(&list))) {
                TAILQ_REMOVE(&list, waiter, entry);
                if (waiter->client->conn) /* it has not left */
                        w->dispatch(waiter->client, waiter->request, waiter->patience);
                waiter_free(waiter);
        }
        if (!TAILQ_EMPTY(&w->list))
                timer_arm(w->scan, SCAN_USEC);
}

struct patience waiting_begin(void) {
        return (struct patience) { .until_usec = now_usec() + PATIENCE_USEC };
}

bool waiting_over(struct patience patience) {
        return now_usec() >= patience.until_usec;
}

void waiting_add(struct waiting *w, struct client *client, const Rm__LocalRequest *request, struct patience patience) {
        struct waiter *waiter = xcalloc(1, sizeof(*waiter));

        waiter->client = client_hold(client);
        waiter->request = (Rm__LocalRequest *) message_copy(&request->base);
        waiter->patience = patience;
        if (TAILQ_EMPTY(&w->list))
                timer_arm(w->scan, SCAN_USEC);
        TAILQ_INSERT_TAIL(&w->list, waiter, entry);
}

void waiting_wake(struct waiting *w) {
        if (!TAILQ_EMPTY(&w->list))
                event_active(w->scan, EV_TIMEOUT, 0);
}

struct waiting *waiting_create(struct event_base *base,
                               void (*dispatch)(struct client *client, const Rm__LocalRequest *request, struct patience patience)) {
        struct waiting *w = xcalloc(1, sizeof(*w));

        w->dispatch = dispatch;
        TAILQ_INIT(&w->list);
        w->scan = evtimer_new(base, on_scan, w);
        if (!w->scan)
                abort();
        return w;
}

void waiting_destroy(struct waiting *w) {
        struct waiter *waiter;

        if (!w)
                return;
        while ((waiter = TAILQ_FIRST(&w->list))) {
                TAILQ_REMOVE(&w->list, waiter, entry);
                waiter_free(waiter);
        }
        event_free(w->scan);
        free(w);
}
