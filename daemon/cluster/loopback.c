#include "daemon/cluster/loopback.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "common/timer.h"
#include "common/util.h"
#include "daemon/state/state.h"

struct item {
        Rm__PeerMessage *message;
        STAILQ_ENTRY(item) entry;
};

struct loopback {
        struct event *event;
        loopback_fn deliver;
        void *userdata;
        STAILQ_HEAD(items, item) items;
};

static void item_free(struct item *item) {
        rm__peer_message__free_unpacked(item->message, NULL);
        free(item);
}

static void on_event(evutil_socket_t fd, short what, void *userdata) {
        struct loopback *loopback = userdata;
        struct items now = STAILQ_HEAD_INITIALIZER(now);
        struct item *item;

        /* Messages that these deliveries send wait for the next round. */
        STAILQ_CONCAT(&now, &loopback->items);
        while ((item = STAILQ_FIRST(&now))) {
                STAILQ_REMOVE_HEAD(&now, entry);
                loopback->deliver(loopback->userdata, item->message);
                item_free(item);
        }
}

void loopback_send(struct loopback *loopback, const Rm__PeerMessage *message) {
        struct item *item = xcalloc(1, sizeof(*item));

        item->message = (Rm__PeerMessage *) message_copy(&message->base);
        STAILQ_INSERT_TAIL(&loopback->items, item, entry);
        /* A timer and not event_active(): a caller that answers itself without end must not keep
         * the loop from its descriptors. */
        timer_arm(loopback->event, 0);
}

struct loopback *loopback_create(struct event_base *base, loopback_fn deliver, void *userdata) {
        struct loopback *loopback = xcalloc(1, sizeof(*loopback));

        loopback->deliver = deliver;
        loopback->userdata = userdata;
        STAILQ_INIT(&loopback->items);
        loopback->event = evtimer_new(base, on_event, loopback);
        if (!loopback->event)
                abort();
        return loopback;
}

void loopback_destroy(struct loopback *loopback) {
        struct item *item;

        if (!loopback)
                return;
        while ((item = STAILQ_FIRST(&loopback->items))) {
                STAILQ_REMOVE_HEAD(&loopback->items, entry);
                item_free(item);
        }
        event_free(loopback->event);
        free(loopback);
}
