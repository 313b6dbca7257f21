#include "daemon/requests/attachment.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/timer.h"
#include "common/util.h"
#include "daemon/client/forwarding.h"
#include "daemon/cluster/cluster.h"
#include "daemon/job/outputs.h"
#include "daemon/requests/view_source.h"
#include "daemon/view/job.h"

#define RETRY_USEC 200000
#define CLIENT_PENDING_MAX (256U << 10)
/* Input on its way, of which the head has not said that it has it, or not. What front ends send at
 * once is half of it. More of one client would fill the way to that node, which all share. */
#define INPUT_UNCONFIRMED_MAX (1U << 20)

struct attachment {
        struct client *client;
        uint32_t request_id;
        uint64_t job;
        uint32_t attempt; /* of the job, that all offsets are of */
        bool input;
        uint32_t channel; /* to the head's node, 0 = none now */
        char *node;       /* where that is */
        uint64_t incarnation; /* of the head there */
        uint64_t taken[3]; /* output passed on to the client */
        uint64_t acked[3];
        bool eof[3];
        uint32_t input_request_id; /* the last; 0: none in this attempt */
        size_t unconfirmed_bytes;  /* sent since the head answered last, whatever their offsets */
        char *reported; /* what the client was told of the job last */
        bool final;
        struct event *retry;
};

static void attachment_update(struct attachment *attachment);

static const Rm__Job *job_of(const struct attachment *attachment) {
        return state_job(cluster_state(attachment->client->rmd->cluster), attachment->job);
}

static void retry_later(struct attachment *attachment) {
        timer_arm(attachment->retry, RETRY_USEC);
}

static void on_retry(evutil_socket_t fd, short what, void *arg) {
        attachment_update(arg);
}

static void disconnect(struct attachment *attachment) {
        if (attachment->channel)
                forwarding_close(attachment->client->rmd->forwarding, attachment->channel);
        attachment->channel = 0;
        attachment->unconfirmed_bytes = 0;
        free(attachment->node);
        attachment->node = NULL;
}

void attachment_leave(struct client *client) {
        struct attachment *attachment = client->attachment;

        if (!attachment)
                return;
        disconnect(attachment);
        event_free(attachment->retry);
        free(attachment->reported);
        free(attachment);
        client->attachment = NULL;
}

/* ---- towards the head ---- */

static int send_to_head(struct attachment *attachment, const Rm__LocalRequest *request) {
        if (!attachment->channel)
                return -ENOTCONN;
        return forwarding_send(attachment->client->rmd->forwarding, attachment->channel, request);
}

static void acknowledge(struct attachment *attachment) {
        Rm__OutputAck ack = RM__OUTPUT_ACK__INIT;
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;

        if (client_pending_bytes(attachment->client) > CLIENT_PENDING_MAX ||
            (attachment->acked[1] == attachment->taken[1] && attachment->acked[2] == attachment->taken[2]))
                return;
        ack.job = attachment->job;
        ack.stdout_offset = attachment->taken[1];
        ack.stderr_offset = attachment->taken[2];
        request.id = attachment->request_id;
        request.body_case = RM__LOCAL_REQUEST__BODY_OUTPUT_ACK;
        request.output_ack = &ack;
        if (send_to_head(attachment, &request) == 0)
                memcpy(attachment->acked, attachment->taken, sizeof(attachment->acked));
}

void attachment_drained(struct client *client) {
        if (client->attachment)
                acknowledge(client->attachment);
}

/* ---- from the head ---- */

static void on_output(struct attachment *attachment, Rm__LocalReply *reply) {
        const Rm__JobOutput *output = reply->job_output;

        if (output->stream < 1 || output->stream > 2 || (output->attempt && output->attempt != attachment->attempt) ||
            output->offset < attachment->taken[output->stream])
                return; /* of before a reconnection */
        /* If it begins later, what is missing is not stored any more; the client sees that too. */
        attachment->taken[output->stream] = output->offset + output->data.len;
        if (output->eof)
                attachment->eof[output->stream] = true;
        if (output->data.len > 0)
                client_reply(attachment->client, attachment->request_id, reply);
        acknowledge(attachment);
        if (output->eof)
                attachment_update(attachment);
}

static void on_head_reply(void *userdata, uint32_t channel, Rm__LocalReply *reply) {
        struct attachment *attachment = userdata;

        if (!reply) {
                attachment->channel = 0;
                disconnect(attachment);
                retry_later(attachment);
                return;
        }
        if (reply->body_case == RM__LOCAL_REPLY__BODY_JOB_OUTPUT) {
                on_output(attachment, reply);
        } else if (reply->body_case == RM__LOCAL_REPLY__BODY_JOB_INPUT_ACK || reply->id != attachment->request_id) {
                attachment->unconfirmed_bytes = 0;
                client_reply(attachment->client, reply->id, reply);
        } else {
                disconnect(attachment); /* the head is elsewhere, or not there yet */
                retry_later(attachment);
        }
}

/* Input that the head has not confirmed may be lost on the way; the client has it still. */
static void ask_for_input(struct attachment *attachment) {
        if (attachment->input_request_id)
                client_error(attachment->client, attachment->input_request_id, -EAGAIN, "job-input: to be sent again");
}

static void connect_head(struct attachment *attachment, const Rm__Capsule *head) {
        struct client *client = attachment->client;
        Rm__AttachJob attach = RM__ATTACH_JOB__INIT;
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;

        if (attachment->channel && attachment->incarnation == head->incarnation && strcmp(attachment->node, head->node) == 0)
                return;
        disconnect(attachment);
        attachment->node = xstrdup(head->node);
        attachment->incarnation = head->incarnation;
        attachment->channel = forwarding_open(client->rmd->forwarding, head->node, client, on_head_reply, attachment);
        memcpy(attachment->acked, attachment->taken, sizeof(attachment->acked));
        attach.job = attachment->job;
        attach.stdout_offset = attachment->taken[1];
        attach.stderr_offset = attachment->taken[2];
        attach.input = attachment->input;
        attach.attempt = attachment->attempt;
        request.id = attachment->request_id;
        request.body_case = RM__LOCAL_REQUEST__BODY_ATTACH_JOB;
        request.attach_job = &attach;
        if (send_to_head(attachment, &request) < 0) {
                disconnect(attachment);
                retry_later(attachment);
                return;
        }
        ask_for_input(attachment);
}

/* ---- towards the client ---- */

/* No leader can be reached, and the job has not started, or its end is to go into the log. While it
 * runs it needs none. */
static bool needs_leader(const struct attachment *attachment, const Rm__Job *job) {
        if (job_ended(job) || cluster_leader(attachment->client->rmd->cluster))
                return false;
        return job->state != RM__JOB_STATE__JOB_RUNNING || (attachment->eof[1] && attachment->eof[2]);
}

/* "3:2 4:0", their states being what follows the colon. */
static char *checkpoint_words(const Rm__Job *job) {
        char *words = xstrdup("");

        for (size_t k = 0; k < job->n_checkpoints; k++) {
                char *more = xasprintf("%s%" PRIu64 ":%d ", words, job->checkpoints[k]->id, (int) job->checkpoints[k]->state);

                free(words);
                words = more;
        }
        return words;
}

/* The parts of checkpoints are long, and only nodes need them. */
static void drop_checkpoint_parts(Rm__Job *job) {
        if (job->drill)
                rm__checkpoint__free_unpacked(take_ptr(job->drill), NULL);
        for (size_t k = 0; k < job->n_checkpoints; k++) {
                Rm__Checkpoint *checkpoint = job->checkpoints[k];

                for (size_t p = 0; p < checkpoint->n_parts; p++)
                        rm__checkpoint_part__free_unpacked(checkpoint->parts[p], NULL);
                free(take_ptr(checkpoint->parts));
                checkpoint->n_parts = 0;
        }
}

static void report(struct attachment *attachment, const Rm__Job *job, bool final) {
        struct view_source source = request_view_source(attachment->client->rmd);
        struct view_reader reader = request_view_reader(attachment->client);
        Rm__JobUpdate update = RM__JOB_UPDATE__INIT;
        bool lacks = needs_leader(attachment, job);
        cleanup_free char *checkpoints = checkpoint_words(job);
        size_t lost_ranks = job->rank_losses ? job->rank_losses->n_lost : 0;
        char *now = xasprintf("%s\n%s\n%u\n%u\n%d\n%" PRIu64 "\n%zu\n%s", state_job_name(source.index, job), job->reason,
                              job->moves, job->attempt, lacks, job->restored_from, lost_ranks, checkpoints);

        if (!final && attachment->reported && strcmp(attachment->reported, now) == 0) {
                free(now);
                return;
        }
        free(attachment->reported);
        attachment->reported = now;
        update.job = view_job(&source, &reader, job, VIEW_LISTED_BYTES);
        drop_checkpoint_parts(update.job->job);
        update.final = final;
        update.needs_leader = lacks;
        client_answer(attachment->client, attachment->request_id, &update.base);
        rm__job_view__free_unpacked(update.job, NULL);
}

static void finish(struct attachment *attachment, const Rm__Job *job) {
        attachment->final = true;
        disconnect(attachment);
        (void) evtimer_del(attachment->retry);
        report(attachment, job, true);
}

static bool head_reachable(const struct attachment *attachment, const Rm__Capsule *head) {
        const Rm__Node *node = state_node(cluster_state(attachment->client->rmd->cluster), head->node);

        return node && node->health != RM__NODE_HEALTH__NODE_HEALTH_DOWN;
}

/* A job goes back to its beginning or to a checkpoint, and so do its output and its input; to which
 * is known once it is placed. The client hears of it before it gets any of that. From a checkpoint
 * on, it attaches again, as it knows what it has. */
static void follow_attempt(struct attachment *attachment, const Rm__Job *job) {
        if (attachment->attempt == 0 || attachment->attempt == job->attempt) {
                attachment->attempt = job->attempt;
                return;
        }
        disconnect(attachment);
        attachment->input_request_id = 0;
        memset(attachment->eof, 0, sizeof(attachment->eof));
        if (job->n_capsules == 0 || job->state == RM__JOB_STATE__JOB_RECOVERING || job->restored_from)
                return;
        memset(attachment->taken, 0, sizeof(attachment->taken));
        memset(attachment->acked, 0, sizeof(attachment->acked));
        attachment->attempt = job->attempt;
}

/* There is a head to read from, or what is left of the last one. */
static bool head_may_answer(const Rm__Job *job, const Rm__Capsule *head) {
        if (job->state >= RM__JOB_STATE__JOB_COMPLETING)
                return true;
        return head->state == RM__CAPSULE_STATE__CAPSULE_READY && job_running(job);
}

static void attachment_update(struct attachment *attachment) {
        const Rm__Job *job = job_of(attachment);
        const Rm__Capsule *head = job ? job_capsule(job, STATE_HEAD) : NULL;

        if (attachment->final)
                return;
        if (!job) {
                if (cluster_synced(attachment->client->rmd->cluster)) {
                        attachment->final = true;
                        client_error(attachment->client, attachment->request_id, -ENOENT, "job %" PRIu64 " is no longer known",
                                     attachment->job);
                }
                return;
        }
        if (job->attempt < attachment->attempt)
                return; /* what is known here is old */
        follow_attempt(attachment, job);
        report(attachment, job, false);
        if (job_ended(job) &&
            (!head || job->output_done || !head_reachable(attachment, head) || (attachment->eof[1] && attachment->eof[2]))) {
                finish(attachment, job);
                return;
        }
        if (head && attachment->attempt == job->attempt && head_may_answer(job, head) &&
            !(attachment->eof[1] && attachment->eof[2]))
                connect_head(attachment, head);
}

void attachment_state_changed(struct client *client) {
        if (client->attachment)
                attachment_update(client->attachment);
}

/* ---- for requests ---- */

void attachment_begin(struct client *client, uint32_t request_id, const Rm__AttachJob *in) {
        struct attachment *attachment;

        attachment_leave(client);
        attachment = xcalloc(1, sizeof(*attachment));
        attachment->client = client;
        attachment->request_id = request_id;
        attachment->job = in->job;
        attachment->attempt = in->attempt;
        attachment->input = in->input;
        attachment->taken[1] = in->stdout_offset;
        attachment->taken[2] = in->stderr_offset;
        attachment->retry = evtimer_new(client->rmd->base, on_retry, attachment);
        client->attachment = attachment;
        attachment_update(attachment);
}

bool attachment_is_of(const struct attachment *attachment, uint64_t job) {
        return attachment && attachment->job == job;
}

void attachment_put_input(struct attachment *attachment, const Rm__LocalRequest *request) {
        const Rm__JobInput *in = request->job_input;

        if (in->attempt && in->attempt != attachment->attempt)
                return; /* sent before it heard of the new one */
        attachment->input_request_id = request->id;
        if (!attachment->channel)
                return;
        attachment->unconfirmed_bytes += in->data.len;
        if (attachment->unconfirmed_bytes > INPUT_UNCONFIRMED_MAX || send_to_head(attachment, request) < 0) {
                attachment->unconfirmed_bytes -= in->data.len;
                ask_for_input(attachment);
        }
}
