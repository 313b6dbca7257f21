#include "tests/sim/client.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "tests/sim/workload.h"

/* Between an answer and the next operation. */
#define THINK_MAX_USEC 400000U
/* It asks again when it heard nothing for so long, and after a refusal. */
#define SILENCE_USEC 1000000U
#define REFUSED_USEC 100000U

struct client {
        struct timeline *timeline;
        struct checks *checks;
        struct host *host;
        struct network *network;
        struct replica *const *voters;
        unsigned n_voters;
        uint32_t operation; /* under way; 0: none */
        unsigned tries;
        uint8_t *packet;
        size_t packet_bytes;
        uint64_t begin_usec, answered_begin_usec, answered;
};

/* A time to look again at the operation, after so many tries. */
struct deadline {
        struct client *client;
        uint32_t operation;
        unsigned tries;
};

static void on_deadline(void *userdata);

static void look_again(struct client *c, uint64_t delay_usec) {
        struct deadline *deadline = xcalloc(1, sizeof(*deadline));

        *deadline = (struct deadline) { c, c->operation, c->tries };
        host_after(c->host, delay_usec, on_deadline, free, deadline);
}

static void send_request(struct client *c) {
        unsigned to = (unsigned) timeline_random(c->timeline, c->n_voters);

        c->tries++;
        timeline_trace(c->timeline, host_name(c->host), "asks v%u for operation %u, try %u", to, c->operation, c->tries);
        network_send(c->network, host_number(c->host), to, c->packet, c->packet_bytes);
        look_again(c, SILENCE_USEC);
}

/* What it knows it has from any voter that runs; without one it waits. */
static const Rm__State *some_state(struct client *c) {
        const struct replica *v = c->voters[timeline_random(c->timeline, c->n_voters)];

        return replica_state(v);
}

static void begin_operation(struct client *c) {
        struct request_packet head = { .kind = PACKET_REQUEST, .client = host_number(c->host) };
        const Rm__State *state = some_state(c);
        uint8_t *command;
        size_t command_bytes;

        if (!state) {
                look_again(c, REFUSED_USEC);
                return;
        }
        command = workload_command(c->timeline, c->checks, state, &c->operation, &command_bytes);
        head.operation = c->operation;
        free(c->packet);
        c->packet_bytes = sizeof(head) + command_bytes;
        c->packet = xcalloc(1, c->packet_bytes);
        memcpy(c->packet, &head, sizeof(head));
        memcpy(c->packet + sizeof(head), command, command_bytes);
        free(command);
        c->begin_usec = timeline_now_usec(c->timeline);
        c->tries = 0;
        send_request(c);
}

static void on_deadline(void *userdata) {
        struct deadline deadline = *(struct deadline *) userdata;
        struct client *c = deadline.client;

        free(userdata);
        if (deadline.operation != c->operation || deadline.tries != c->tries)
                return;
        if (c->operation == 0)
                begin_operation(c);
        else
                send_request(c);
}

static void on_packet(void *userdata, unsigned from, const void *data, size_t size_bytes) {
        struct client *c = userdata;
        struct answer_packet answer;

        memcpy(&answer, data, sizeof(answer));
        if (answer.outcome == OUTCOME_DONE)
                checks_acknowledged(c->checks, answer.operation, answer.index, answer.code, answer.created);
        if (answer.operation != c->operation)
                return;
        if (answer.outcome != OUTCOME_DONE) {
                look_again(c, REFUSED_USEC);
                return;
        }
        timeline_trace(c->timeline, host_name(c->host), "is answered: operation %u gave %d at %llu", c->operation, answer.code,
                       (unsigned long long) answer.index);
        c->answered++;
        c->answered_begin_usec = c->begin_usec;
        c->operation = 0;
        c->tries = 0;
        look_again(c, timeline_random(c->timeline, THINK_MAX_USEC));
}

static void on_start(void *userdata) {
        struct client *c = userdata;

        look_again(c, THINK_MAX_USEC);
}

struct client *client_create(struct timeline *t, struct checks *checks, unsigned number, struct replica *const *voters,
                             unsigned n_voters) {
        static const struct host_ops ops = { .on_start = on_start, .on_packet = on_packet };
        struct client *c = xcalloc(1, sizeof(*c));
        cleanup_free char *name = xasprintf("c%u", number - n_voters);

        c->timeline = t;
        c->checks = checks;
        c->voters = voters;
        c->n_voters = n_voters;
        c->host = host_create(t, number, name, &ops, c);
        return c;
}

void client_connect(struct client *c, struct network *network) {
        c->network = network;
}

void client_destroy(struct client *c) {
        if (!c)
                return;
        host_kill(c->host);
        host_destroy(c->host);
        free(c->packet);
        free(c);
}

struct host *client_host(const struct client *c) {
        return c->host;
}

uint64_t client_answered_begin_usec(const struct client *c) {
        return c->answered_begin_usec;
}

uint64_t client_answered(const struct client *c) {
        return c->answered;
}
