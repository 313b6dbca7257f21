/* A local client attached to a job: follows the job wherever its head goes, so that the front end need not know. */
#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/timer.h"
#include "common/util.h"
#include "daemon/client/proxies.h"
#include "daemon/cluster/commands.h"
#include "daemon/job/outputs.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/views.h"

#define RETRY_USEC 200000
#define CLIENT_PENDING_MAX (256U << 10)
#define INPUT_PENDING_MAX (1U << 20) /* a client that sends more before it is taken is refused */

/* Input the capsule has not confirmed. */
struct piece {
        uint64_t offset;
        uint8_t *data;
        size_t size_bytes;
        bool eof;
        struct piece *next;
};

struct front {
        struct client *client;
        uint32_t request_id;
        uint64_t job;
        bool input;
        uint32_t channel; /* to the head's node, 0 = none now */
        char *node;       /* where that is */
        uint64_t incarnation; /* of the head there */
        uint64_t taken[3]; /* output passed on to the client */
        uint64_t acked[3];
        bool eof[3];
        struct piece *pieces;
        size_t pieces_bytes;
        uint32_t input_request_id;
        char *told; /* what the client was told of the job last */
        bool final;
        struct event *retry;
};

/* An empty piece takes memory too. */
static size_t piece_bytes(const struct piece *piece) {
        return sizeof(*piece) + piece->size_bytes;
}

static void front_update(struct front *front);

static const Rm__Job *job_of(const struct front *front) {
        return state_job(cluster_state(front->client->rmd->cluster), front->job);
}

static void retry_later(struct front *front) {
        timer_arm(front->retry, RETRY_USEC);
}

static void on_retry(evutil_socket_t fd, short what, void *arg) {
        front_update(arg);
}

static void disconnect(struct front *front) {
        if (front->channel)
                proxies_close(front->client->rmd->proxies, front->channel);
        front->channel = 0;
        free(front->node);
        front->node = NULL;
}

void front_leave(struct client *client) {
        struct front *front = client->front;

        if (!front)
                return;
        disconnect(front);
        while (front->pieces) {
                struct piece *piece = front->pieces;

                front->pieces = piece->next;
                conn_charge(client->conn, -(ssize_t) piece_bytes(piece));
                free(piece->data);
                free(piece);
        }
        event_free(front->retry);
        free(front->told);
        free(front);
        client->front = NULL;
}

/* ---- towards the head ---- */

static int send_to_head(struct front *front, Rm__LocalRequest *request) {
        if (!front->channel)
                return -ENOTCONN;
        return proxies_send(front->client->rmd->proxies, front->channel, request);
}

static void send_piece(struct front *front, const struct piece *piece) {
        Rm__JobInput input = RM__JOB_INPUT__INIT;
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;

        input.job = front->job;
        input.offset = piece->offset;
        input.data.data = piece->data;
        input.data.len = piece->size_bytes;
        input.eof = piece->eof;
        request.id = front->request_id;
        request.body_case = RM__LOCAL_REQUEST__BODY_JOB_INPUT;
        request.job_input = &input;
        (void) send_to_head(front, &request);
}

static void acknowledge(struct front *front) {
        Rm__OutputAck ack = RM__OUTPUT_ACK__INIT;
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;

        if (client_pending_bytes(front->client) > CLIENT_PENDING_MAX ||
            (front->acked[1] == front->taken[1] && front->acked[2] == front->taken[2]))
                return;
        ack.job = front->job;
        ack.stdout_offset = front->taken[1];
        ack.stderr_offset = front->taken[2];
        request.id = front->request_id;
        request.body_case = RM__LOCAL_REQUEST__BODY_OUTPUT_ACK;
        request.output_ack = &ack;
        if (send_to_head(front, &request) == 0)
                memcpy(front->acked, front->taken, sizeof(front->acked));
}

void front_drained(struct client *client) {
        if (client->front)
                acknowledge(client->front);
}

static void forget_input(struct front *front, uint64_t offset) {
        /* The end of input has no byte whose taking could be told: it is kept, and said again to every new place of the head. */
        while (front->pieces && !front->pieces->eof && front->pieces->offset + front->pieces->size_bytes <= offset) {
                struct piece *piece = front->pieces;

                front->pieces = piece->next;
                front->pieces_bytes -= piece_bytes(piece);
                conn_charge(front->client->conn, -(ssize_t) piece_bytes(piece));
                free(piece->data);
                free(piece);
        }
}

/* ---- from the head ---- */

static void on_output(struct front *front, Rm__LocalReply *reply) {
        const Rm__JobOutput *output = reply->job_output;

        if (output->stream < 1 || output->stream > 2 || output->offset != front->taken[output->stream])
                return; /* of before a reconnection: what is missing comes again */
        front->taken[output->stream] += output->data.len;
        if (output->eof)
                front->eof[output->stream] = true;
        if (output->data.len > 0)
                client_reply(front->client, front->request_id, reply);
        acknowledge(front);
        if (output->eof)
                front_update(front);
}

static void on_head_reply(void *userdata, uint32_t channel, Rm__LocalReply *reply) {
        struct front *front = userdata;

        if (!reply) {
                front->channel = 0;
                disconnect(front);
                retry_later(front);
                return;
        }
        switch (reply->body_case) {
        case RM__LOCAL_REPLY__BODY_JOB_OUTPUT:
                on_output(front, reply);
                break;
        case RM__LOCAL_REPLY__BODY_JOB_INPUT_ACK:
                forget_input(front, reply->job_input_ack->offset);
                client_reply(front->client, front->input_request_id ? front->input_request_id : front->request_id, reply);
                break;
        default:
                disconnect(front); /* the head is elsewhere, or not there yet */
                retry_later(front);
        }
}

static void connect_head(struct front *front, const Rm__Capsule *head) {
        struct client *client = front->client;
        Rm__AttachJob attach = RM__ATTACH_JOB__INIT;
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;

        if (front->channel && front->incarnation == head->incarnation && strcmp(front->node, head->node) == 0)
                return;
        disconnect(front);
        front->node = xstrdup(head->node);
        front->incarnation = head->incarnation;
        front->channel = proxies_open(client->rmd->proxies, head->node, client, on_head_reply, front);
        memcpy(front->acked, front->taken, sizeof(front->acked));
        attach.job = front->job;
        attach.stdout_offset = front->taken[1];
        attach.stderr_offset = front->taken[2];
        attach.input = front->input;
        request.id = front->request_id;
        request.body_case = RM__LOCAL_REQUEST__BODY_ATTACH_JOB;
        request.attach_job = &attach;
        if (send_to_head(front, &request) < 0) {
                disconnect(front);
                retry_later(front);
                return;
        }
        for (const struct piece *piece = front->pieces; piece; piece = piece->next)
                send_piece(front, piece);
}

/* ---- towards the client ---- */

static void tell(struct front *front, const Rm__Job *job, bool final) {
        const struct state_index *index = cluster_index(front->client->rmd->cluster);
        Rm__JobUpdate update = RM__JOB_UPDATE__INIT;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        char *now = xasprintf("%s\n%s\n%u", state_job_word(index, job), job->reason, job->moves);

        if (!final && front->told && strcmp(front->told, now) == 0) {
                free(now);
                return;
        }
        free(front->told);
        front->told = now;
        update.job = job_view(front->client, index, job, VIEW_LISTED_BYTES);
        update.final = final;
        reply.body_case = RM__LOCAL_REPLY__BODY_JOB_UPDATE;
        reply.job_update = &update;
        client_reply(front->client, front->request_id, &reply);
        rm__job_view__free_unpacked(update.job, NULL);
}

static void finish(struct front *front, const Rm__Job *job) {
        front->final = true;
        disconnect(front);
        (void) evtimer_del(front->retry);
        tell(front, job, true);
}

static bool head_reachable(const struct front *front, const Rm__Capsule *head) {
        const Rm__Node *node = state_node(cluster_state(front->client->rmd->cluster), head->node);

        return node && node->health != RM__NODE_HEALTH__NODE_HEALTH_DOWN;
}

static void front_update(struct front *front) {
        const Rm__Job *job = job_of(front);
        const Rm__Capsule *head = job ? job_capsule(job, STATE_HEAD) : NULL;

        if (front->final)
                return;
        if (!job) {
                if (cluster_synced(front->client->rmd->cluster)) {
                        front->final = true;
                        client_error(front->client, front->request_id, -ENOENT, "job %" PRIu64 " is no longer known", front->job);
                }
                return;
        }
        tell(front, job, false);
        if (job_ended(job) && (!head || job->output_done || !head_reachable(front, head) || (front->eof[1] && front->eof[2]))) {
                finish(front, job);
                return;
        }
        if (head && (head->state == RM__CAPSULE_STATE__CAPSULE_READY || job->state >= RM__JOB_STATE__JOB_COMPLETING) &&
            !(front->eof[1] && front->eof[2]))
                connect_head(front, head);
}

void front_state_changed(struct client *client) {
        if (client->front)
                front_update(client->front);
}

/* ---- requests ---- */

void request_attach_job(struct client *client, const Rm__LocalRequest *request) {
        const Rm__AttachJob *in = request->attach_job;
        struct front *front;

        if (!request_own_job(client, request->id, "attach-job", in->job))
                return;
        if (!client->conn) {
                outputs_attach(client->rmd->outputs, client, request->id, in);
                return;
        }
        front_leave(client);
        front = xcalloc(1, sizeof(*front));
        front->client = client;
        front->request_id = request->id;
        front->job = in->job;
        front->input = in->input;
        front->taken[1] = in->stdout_offset;
        front->taken[2] = in->stderr_offset;
        front->retry = evtimer_new(client->rmd->base, on_retry, front);
        client->front = front;
        front_update(front);
}

void request_job_input(struct client *client, const Rm__LocalRequest *request) {
        const Rm__JobInput *in = request->job_input;
        struct front *front = client->front;
        struct piece *piece;
        struct piece **end;

        if (!client->conn) {
                if (request_own_job(client, request->id, "job-input", in->job))
                        outputs_input(client->rmd->outputs, client, request->id, in);
                return;
        }
        if (!front || front->job != in->job || front->pieces_bytes + in->data.len > INPUT_PENDING_MAX) {
                client_error(client, request->id, -EINVAL, "job-input: not attached to job %" PRIu64 ", or too much at once",
                             in->job);
                return;
        }
        piece = xcalloc(1, sizeof(*piece));
        piece->offset = in->offset;
        piece->size_bytes = in->data.len;
        piece->eof = in->eof;
        piece->data = xcalloc(1, in->data.len);
        if (in->data.len > 0)
                memcpy(piece->data, in->data.data, in->data.len);
        for (end = &front->pieces; *end; end = &(*end)->next)
                ;
        *end = piece;
        front->pieces_bytes += piece_bytes(piece);
        conn_charge(client->conn, (ssize_t) piece_bytes(piece));
        front->input_request_id = request->id;
        send_piece(front, piece);
}

/* The front end has all of it: the spool may go. */
static void output_done(struct client *client, uint32_t request_id, const Rm__Job *job) {
        struct command c;

        if (!job_ended(job)) {
                client_error(client, request_id, -EBUSY, "output-ack: job %" PRIu64 " has not ended", job->id);
                return;
        }
        if (job->output_done) {
                client_ok(client, request_id, job->id, "");
                return;
        }
        request_propose(client, request_id, command_job_output_done(&c, job->id));
}

void request_output_ack(struct client *client, const Rm__LocalRequest *request) {
        const Rm__OutputAck *ack = request->output_ack;
        const Rm__Job *job;

        /* While the job runs, a local client's acknowledgement is implied by its reading: see acknowledge(). */
        if (client->conn && !ack->done)
                return;
        job = request_own_job(client, request->id, "output-ack", ack->job);
        if (job && ack->done)
                output_done(client, request->id, job);
        else if (job)
                outputs_ack(client->rmd->outputs, client, ack);
}
