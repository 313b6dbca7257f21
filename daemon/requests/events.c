#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/requests/requests.h"

#define RING_SIZE 2000U
#define BATCH 200U

/* The last events. A position counts events since this daemon started: position p stands at p % RING_SIZE. */
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

static void send_events(struct client *client, uint32_t request_id, struct event_ring *ring, uint64_t from, uint64_t since,
                        bool end) {
        uint64_t position = ring->end > RING_SIZE && from < ring->end - RING_SIZE ? ring->end - RING_SIZE : from;

        do {
                Rm__Event *batch[BATCH];
                Rm__EventList list = RM__EVENT_LIST__INIT;
                Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;

                list.events = batch;
                for (; position < ring->end && list.n_events < BATCH; position++) {
                        Rm__Event *event = ring->events[position % RING_SIZE];

                        if (event->index > since && visible(client, event))
                                batch[list.n_events++] = event;
                }
                list.end = end && position == ring->end;
                reply.body_case = RM__LOCAL_REPLY__BODY_EVENTS;
                reply.events = &list;
                if (list.n_events > 0 || list.end)
                        client_reply(client, request_id, &reply);
        } while (position < ring->end);
}

void request_follow_events(struct client *client, const Rm__LocalRequest *request) {
        struct event_ring *ring = client->rmd->events;

        send_events(client, request->id, ring, 0, request->follow_events->since, !request->follow_events->follow);
        if (request->follow_events->follow) {
                client->follows = true;
                client->follow_id = request->id;
                client->follow_position = ring->end;
        }
}

void events_publish(struct rmd *rmd, struct client *clients) {
        struct event_ring *ring = rmd->events;

        for (struct client *c = clients; c; c = c->next)
                if (c->follows && c->follow_position < ring->end) {
                        send_events(c, c->follow_id, ring, c->follow_position, 0, false);
                        c->follow_position = ring->end;
                }
}
