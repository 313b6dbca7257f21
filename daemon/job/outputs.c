#include "daemon/job/outputs.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/openat.h"
#include "common/util.h"
#include "daemon/capsule/spool.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/job/launch.h"
#include "daemon/job/runner.h"

/* So many bytes are on the way to one front end at most; a piece has so many at most. */
#define WINDOW_BYTES (1U << 20)
#define PIECE_BYTES (64U << 10)

static const char *const stream_names[] = { "stdin", "stdout", "stderr" };

/* A front end that reads one job's output. */
struct reader {
        struct client *client;
        uint32_t request_id;
        uint64_t job;
        uint32_t attempt; /* that the offsets are of */
        uint64_t sent[3];
        uint64_t acked[3];
        bool eof[3];
        bool awaits_input_offset; /* it has not been told yet how much input the head has taken */
        struct reader *next;
};

struct outputs {
        struct rmd *rmd;
        struct reader *readers;
};

struct outputs *outputs_create(struct rmd *rmd) {
        struct outputs *outputs = xcalloc(1, sizeof(*outputs));

        outputs->rmd = rmd;
        return outputs;
}

void outputs_destroy(struct outputs *outputs) {
        if (!outputs)
                return;
        while (outputs->readers) {
                struct reader *reader = outputs->readers;

                outputs->readers = reader->next;
                free(reader);
        }
        free(outputs);
}

/* The head's spool directory on this node, or -1. */
static int open_spool(struct outputs *outputs, const Rm__Job *job) {
        const Rm__Capsule *head = job_capsule(job, STATE_HEAD);
        cleanup_free char *dir = NULL;
        char id[64];

        if (!head || strcmp(head->node, cluster_self(outputs->rmd->cluster)) != 0)
                return -1;
        launch_capsule_id(id, job->id, STATE_HEAD, head->incarnation);
        dir = launch_spool_dir(outputs->rmd->config, id);
        return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* No more output will come: mpirun has ended and all it wrote is in the spool. */
static bool output_complete(struct outputs *outputs, const Rm__Job *job) {
        const struct resident *head = runner_current(outputs->rmd->runner, job->id, STATE_HEAD);

        if (job->state >= RM__JOB_STATE__JOB_COMPLETING)
                return true;
        return head && resident_phase(head) == RESIDENT_EXITED;
}

static void send_piece(struct reader *reader, int stream, const void *data, size_t size_bytes, bool eof) {
        Rm__JobOutput output = RM__JOB_OUTPUT__INIT;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;

        output.job = reader->job;
        output.stream = (uint32_t) stream;
        output.offset = reader->sent[stream];
        output.data.data = (uint8_t *) data;
        output.data.len = size_bytes;
        output.eof = eof;
        output.attempt = reader->attempt;
        reply.body_case = RM__LOCAL_REPLY__BODY_JOB_OUTPUT;
        reply.job_output = &output;
        client_reply(reader->client, reader->request_id, &reply);
}

/* Reads stored output. Output that was taken is dropped; in an attempt that goes on from a
 * checkpoint, so is what was taken before that. Who asks for it, as one who attaches later does,
 * gets what there is: the offsets tell how much is missing. */
static ssize_t read_stored(struct reader *reader, int dir_fd, int stream, uint8_t *buffer, size_t size_bytes) {
        ssize_t n = spool_read(dir_fd, stream_names[stream], reader->sent[stream], buffer, size_bytes);
        uint64_t begin = 0;

        if (n != -ERANGE || spool_next(dir_fd, stream_names[stream], reader->sent[stream], &begin) < 0)
                return n;
        reader->sent[stream] = reader->acked[stream] = begin;
        return spool_read(dir_fd, stream_names[stream], begin, buffer, size_bytes);
}

static void pump_stream(struct outputs *outputs, struct reader *reader, const Rm__Job *job, int dir_fd, int stream) {
        uint8_t buffer[PIECE_BYTES];

        while (!reader->eof[stream] && reader->sent[stream] - reader->acked[stream] < WINDOW_BYTES) {
                bool complete = output_complete(outputs, job);
                ssize_t n = dir_fd < 0 ? 0 : read_stored(reader, dir_fd, stream, buffer, sizeof(buffer));

                if (n < 0 && n != -ENOENT) {
                        log_warn("job %" PRIu64 ": reading %s at %" PRIu64 ": %s", job->id, stream_names[stream],
                                 reader->sent[stream], strerror((int) -n));
                        n = 0;
                }
                if (n <= 0) {
                        if (!complete)
                                return;
                        reader->eof[stream] = true;
                        send_piece(reader, stream, NULL, 0, true);
                        return;
                }
                send_piece(reader, stream, buffer, (size_t) n, false);
                reader->sent[stream] += (uint64_t) n;
        }
}

static const Rm__Job *job_of(const struct outputs *outputs, uint64_t job) {
        return state_job(cluster_state(outputs->rmd->cluster), job);
}

/* A front end that has not heard yet that the job starts again is about to leave. */
static bool reads(const struct reader *reader, const Rm__Job *job) {
        return job && reader->attempt == job->attempt && job->state != RM__JOB_STATE__JOB_RECOVERING;
}

/* Tells a front end where to go on with the input, when it attaches later, or to an attempt that
 * goes on from a checkpoint. Nothing is told before this rmd has taken over the head, which it may
 * not have yet after a restart. */
static void report_input_offset(struct outputs *outputs, struct reader *reader) {
        struct resident *head = runner_current(outputs->rmd->runner, reader->job, STATE_HEAD);
        Rm__JobInputAck ack = RM__JOB_INPUT_ACK__INIT;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        struct capsule_status status;

        if (!reader->awaits_input_offset || !head || !resident_answers(head))
                return;
        reader->awaits_input_offset = false;
        capsule_get_status(resident_capsule(head), &status);
        ack.job = reader->job;
        ack.offset = status.stdin_offset;
        reply.body_case = RM__LOCAL_REPLY__BODY_JOB_INPUT_ACK;
        reply.job_input_ack = &ack;
        client_reply(reader->client, reader->request_id, &reply);
}

static void pump_reader(struct outputs *outputs, struct reader *reader) {
        const Rm__Job *job = job_of(outputs, reader->job);
        cleanup_close int dir_fd = job ? open_spool(outputs, job) : -1;

        if (!reads(reader, job))
                return;
        report_input_offset(outputs, reader);
        if (dir_fd < 0 && !output_complete(outputs, job))
                return; /* not made yet, or on its way */
        pump_stream(outputs, reader, job, dir_fd, CAPSULE_STDOUT);
        pump_stream(outputs, reader, job, dir_fd, CAPSULE_STDERR);
}

void outputs_pump(struct outputs *outputs, uint64_t job) {
        struct reader *next;

        for (struct reader *reader = outputs->readers; reader; reader = next) {
                next = reader->next;
                if (reader->job == job)
                        pump_reader(outputs, reader);
        }
}

/* Is the head here, by the state that this node knows? That may be older than the one the front
 * end's node goes by: entries of the log do not arrive everywhere at once. */
static bool head_is_here(const struct outputs *outputs, const Rm__Job *job, uint32_t attempt) {
        const Rm__Capsule *head = job ? job_capsule(job, STATE_HEAD) : NULL;

        return head && attempt <= job->attempt && strcmp(head->node, cluster_self(outputs->rmd->cluster)) == 0;
}

static void ask_again(struct client *client, uint32_t request_id, uint64_t job) {
        client_error(client, request_id, -EAGAIN, "the head of job %" PRIu64 " is not here, or not yet", job);
}

void outputs_attach(struct outputs *outputs, struct client *client, uint32_t request_id, const Rm__AttachJob *attach) {
        const Rm__Job *job = job_of(outputs, attach->job);
        struct reader *reader;

        outputs_detach(outputs, client);
        if (!head_is_here(outputs, job, attach->attempt)) {
                ask_again(client, request_id, attach->job);
                return;
        }
        reader = xcalloc(1, sizeof(*reader));
        reader->client = client;
        reader->request_id = request_id;
        reader->job = attach->job;
        reader->attempt = attach->attempt == 0 ? job->attempt : attach->attempt;
        reader->sent[CAPSULE_STDOUT] = reader->acked[CAPSULE_STDOUT] = attach->stdout_offset;
        reader->sent[CAPSULE_STDERR] = reader->acked[CAPSULE_STDERR] = attach->stderr_offset;
        reader->next = outputs->readers;
        outputs->readers = reader;
        reader->awaits_input_offset = attach->input;
        pump_reader(outputs, reader);
}

void outputs_detach(struct outputs *outputs, struct client *client) {
        for (struct reader **p = &outputs->readers; *p;) {
                struct reader *reader = *p;

                if (reader->client != client) {
                        p = &reader->next;
                        continue;
                }
                *p = reader->next;
                free(reader);
        }
}

void outputs_ack(struct outputs *outputs, struct client *client, const Rm__OutputAck *ack) {
        struct resident *head = runner_current(outputs->rmd->runner, ack->job, STATE_HEAD);

        for (struct reader *reader = outputs->readers; reader; reader = reader->next) {
                if (reader->client != client || reader->job != ack->job || !reads(reader, job_of(outputs, ack->job)))
                        continue;
                if (ack->stdout_offset > reader->acked[CAPSULE_STDOUT] && ack->stdout_offset <= reader->sent[CAPSULE_STDOUT])
                        reader->acked[CAPSULE_STDOUT] = ack->stdout_offset;
                if (ack->stderr_offset > reader->acked[CAPSULE_STDERR] && ack->stderr_offset <= reader->sent[CAPSULE_STDERR])
                        reader->acked[CAPSULE_STDERR] = ack->stderr_offset;
                /* Output that is within a window of the end may have been lost with a daemon on the
                 * way: it is kept. */
                for (int stream = CAPSULE_STDOUT; head && resident_answers(head) && stream <= CAPSULE_STDERR; stream++)
                        if (reader->acked[stream] > 4 * WINDOW_BYTES)
                                (void) capsule_output_ack(resident_capsule(head), stream, reader->acked[stream] - 4 * WINDOW_BYTES);
                pump_reader(outputs, reader);
                return;
        }
}

/* ---- input ---- */

struct input {
        struct outputs *outputs;
        struct client *client;
        uint32_t request_id;
        uint64_t job;
        uint64_t end;
};

static bool client_reads(const struct outputs *outputs, const struct client *client) {
        for (const struct reader *r = outputs->readers; r; r = r->next)
                if (r->client == client)
                        return true;
        return false;
}

/* The program reads no more, or has ended. */
static bool never_taken(int error) {
        return error == -EPIPE || error == -ESRCH || error == -ECANCELED;
}

static void on_input_taken(struct capsule *capsule, int error, const char *text, void *arg) {
        struct input *input = arg;
        Rm__JobInputAck ack = RM__JOB_INPUT_ACK__INIT;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;

        if (!client_reads(input->outputs, input->client)) {
                free(input); /* the client is gone */
                return;
        }
        if (error < 0 && !never_taken(error))
                ask_again(input->client, input->request_id, input->job);
        if (error == 0) {
                ack.job = input->job;
                ack.offset = input->end;
                reply.body_case = RM__LOCAL_REPLY__BODY_JOB_INPUT_ACK;
                reply.job_input_ack = &ack;
                client_reply(input->client, input->request_id, &reply);
        }
        free(input);
}

void outputs_input(struct outputs *outputs, struct client *client, uint32_t request_id, const Rm__JobInput *in) {
        struct resident *head = runner_current(outputs->rmd->runner, in->job, STATE_HEAD);
        const Rm__Job *job = job_of(outputs, in->job);
        struct input *input;
        int r = 0;

        if (job && in->attempt && in->attempt < job->attempt)
                return; /* sent before its front end heard of the next attempt */
        if (!head_is_here(outputs, job, in->attempt) || !head || !resident_answers(head)) {
                ask_again(client, request_id, in->job);
                return;
        }
        input = xcalloc(1, sizeof(*input));
        *input = (struct input) { outputs, client, request_id, in->job, in->offset + in->data.len };
        if (in->data.len > 0)
                r = capsule_input(resident_capsule(head), in->offset, in->data.data, in->data.len, in->eof ? NULL : on_input_taken,
                                  input);
        if (r == 0 && in->eof)
                r = capsule_input(resident_capsule(head), in->offset + in->data.len, NULL, 0, on_input_taken, input);
        if (r < 0) {
                free(input);
                ask_again(client, request_id, in->job);
        }
}

/* ---- clean-up ---- */

/* Is this the output of an attempt which is lost? Nobody is given it any more. */
static bool is_of_before(const Rm__Job *job, int32_t index, uint64_t incarnation) {
        const Rm__Capsule *capsule = job_capsule(job, index);

        return job->attempt > 1 && (!capsule || incarnation < capsule->incarnation);
}

/* Is this the output of a copy to which the state gave no number: a drill's, of which this node did
 * not see the end? */
static bool is_of_drill(const Rm__State *state, uint64_t incarnation) {
        return incarnation >= state->next_incarnation;
}

void outputs_clean(struct outputs *outputs) {
        const Rm__State *state = cluster_state(outputs->rmd->cluster);
        cleanup_free char *root = xasprintf("%s/spool", outputs->rmd->config->state_dir);
        cleanup_dir DIR *dir = NULL;
        const char *name;

        if (!cluster_synced(outputs->rmd->cluster))
                return;
        dir = opendir(root);
        while ((name = next_name(dir))) {
                uint64_t job_id, incarnation;
                int32_t index;
                const Rm__Job *job;
                cleanup_free char *path = NULL;

                if (!launch_parse_id(name, &job_id, &index, &incarnation))
                        continue;
                job = state_job(state, job_id);
                if (job && (!job_ended(job) || !job->output_done) && !is_of_before(job, index, incarnation) &&
                    !is_of_drill(state, incarnation))
                        continue;
                if (capsule_find(outputs->rmd->capsules, name))
                        continue;
                path = xasprintf("%s/%s", root, name);
                (void) remove_tree(path);
        }
}
