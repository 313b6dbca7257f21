#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/requests/requests.h"

#define RING_SIZE 2000U
/* A reply has at most so many events, and about so many bytes of them. */
#define BATCH 200U
#define BATCH_BYTES (64U << 10)
/* A client that has not read so much gets the rest when it has. */
#define UNREAD_MAX_BYTES (256U << 10)

/* The last events. A position counts events since this daemon started: position p stands at p %
 * RING_SIZE. */
struct event_ring {
        Rm__Event *events[RING_SIZE];
        uint64_t end;
};

struct event_ring *events_create(void) {
        return xcalloc(1, sizeof(struct event_ring));
}

void events_destroy(struct event_ring *ring) {
        for (size_t i = 0; ring && i < RING_SIZE; i++)
                if (ring->events[i])
                        rm__event__free_unpacked(ring->events[i], NULL);
        free(ring);
}

void events_add(struct event_ring *ring, const struct state_result *result) {
        for (size_t i = 0; i < result->n_events; i++) {
                Rm__Event **slot = &ring->events[ring->end++ % RING_SIZE];

                if (*slot)
                        rm__event__free_unpacked(*slot, NULL);
                *slot = (Rm__Event *) message_copy(&result->events[i]->base);
        }
}

static bool visible(const struct client *client, const Rm__Event *event) {
        const Rm__Job *job;

        if (event->job == 0 || client->admin)
                return true;
        job = state_job(cluster_state(client->rmd->cluster), event->job);
        return job && client_may(client, job->spec->uid);
}

/* Sends a reply with events from client->follow_position on; moves that forward. */
static void send_batch(struct client *client, const struct event_ring *ring, uint64_t end) {
        Rm__Event *batch[BATCH];
        Rm__EventList list = RM__EVENT_LIST__INIT;
        size_t bytes = 0;

        list.events = batch;
        for (; client->follow_position < end && list.n_events < BATCH && bytes < BATCH_BYTES; client->follow_position++) {
                Rm__Event *event = ring->events[client->follow_position % RING_SIZE];

                if (event->index <= client->follow_since || !visible(client, event))
                        continue;
                bytes += protobuf_c_message_get_packed_size(&event->base);
                batch[list.n_events++] = event;
        }
        list.end = client->follow_position == client->follow_end;
        if (list.n_events > 0 || list.end)
                client_answer(client, client->follow_id, &list.base);
        client->follows = !list.end;
}

/* Sends as many events as the client reads. */
static void send_events(struct client *client) {
        const struct event_ring *ring = client->rmd->events;
        uint64_t first = ring->end > RING_SIZE ? ring->end - RING_SIZE : 0;

        while (client->follows && client_pending_bytes(client) <= UNREAD_MAX_BYTES) {
                uint64_t end = client->follow_end < ring->end ? client->follow_end : ring->end;

                /* A slow reader loses those that the ring has lost. */
                if (client->follow_position < first)
                        client->follow_position = first < end ? first : end;
                if (client->follow_position >= end && client->follow_end != end)
                        return;
                send_batch(client, ring, end);
        }
}

void request_follow_events(struct client *client, const Rm__LocalRequest *request) {
        client->follows = true;
        client->follow_id = request->id;
        client->follow_since = request->follow_events->since;
        client->follow_position = 0;
        client->follow_end = request->follow_events->follow ? UINT64_MAX : client->rmd->events->end;
        send_events(client);
}

void events_publish(struct client *client) {
        send_events(client);
}

void events_drained(struct client *client) {
        send_events(client);
}
