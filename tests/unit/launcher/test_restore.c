/* Attempts that go on from a checkpoint, as their front end sees them: output comes once, input is
 * not lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/frame.h"
#include "common/util.h"
#include "launcher/client/attachment.h"
#include "tests/unit/repeat.h"

#define SECOND UINT64_C(1000000)
#define CHECKPOINTS_MAX 4

/* The state of the job as rmd reports it. */
struct reported {
        uint32_t attempt;
        Rm__JobState state;
        uint64_t restored_from;
        size_t n;
        struct {
                uint64_t id;
                bool captured;
                uint64_t end[2];
        } checkpoints[CHECKPOINTS_MAX];
        bool final;
};

static struct attachment *begin(bool input, bool submitted) {
        struct attachment_config config = { .program = "rm-mpirun",
                                            .job = 7,
                                            .input = input,
                                            .submitted = submitted,
                                            .away_usec = 60 * SECOND,
                                            .real_usec = 1000 * SECOND,
                                            .temporary_directory = "/tmp" };

        return attachment_create(&config, 0);
}

static void report_as(struct attachment *s, const struct reported *reported, uint32_t reply_id, uint64_t now) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__JobUpdate update = RM__JOB_UPDATE__INIT;
        Rm__JobView view = RM__JOB_VIEW__INIT;
        Rm__Job job = RM__JOB__INIT;
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__Checkpoint checkpoints[CHECKPOINTS_MAX], *list[CHECKPOINTS_MAX];
        Rm__Capsule capsule = RM__CAPSULE__INIT, *capsules[] = { &capsule };

        for (size_t k = 0; k < reported->n; k++) {
                rm__checkpoint__init(&checkpoints[k]);
                checkpoints[k].id = reported->checkpoints[k].id;
                checkpoints[k].state = reported->checkpoints[k].captured ? RM__CHECKPOINT_STATE__CHECKPOINT_DONE
                                                                         : RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING;
                checkpoints[k].captured_usec = reported->checkpoints[k].captured ? 1000 * SECOND : 0;
                checkpoints[k].output_end = (uint64_t *) reported->checkpoints[k].end;
                checkpoints[k].n_output_end = reported->checkpoints[k].captured ? 2 : 0;
                list[k] = &checkpoints[k];
        }
        spec.on_node_loss = 1;
        spec.restarts = 3;
        job.spec = &spec;
        job.id = 7;
        job.attempt = reported->attempt;
        job.state = reported->state;
        job.start_usec = 1;
        job.restored_from = reported->restored_from;
        job.restart_reason = (char *) (reported->attempt > 1 ? "node n3 is down" : "");
        job.checkpoints = list;
        job.n_checkpoints = reported->n;
        job.capsules = capsules;
        job.n_capsules = reported->state == RM__JOB_STATE__JOB_PENDING ? 0 : 1;
        view.job = &job;
        update.job = &view;
        update.final = reported->final;
        reply.id = reply_id;
        reply.body_case = RM__LOCAL_REPLY__BODY_JOB_UPDATE;
        reply.job_update = &update;
        attachment_reply(s, &reply, now);
}

static void report(struct attachment *s, const struct reported *reported, uint64_t now) {
        report_as(s, reported, 0, now);
}

static void report_output_as(struct attachment *s, uint32_t reply_id, uint32_t attempt, uint32_t stream, uint64_t offset,
                             const void *data, size_t size_bytes) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__JobOutput output = RM__JOB_OUTPUT__INIT;

        output.attempt = attempt;
        output.stream = stream;
        output.offset = offset;
        output.data.data = (uint8_t *) data;
        output.data.len = size_bytes;
        reply.id = reply_id;
        reply.body_case = RM__LOCAL_REPLY__BODY_JOB_OUTPUT;
        reply.job_output = &output;
        attachment_reply(s, &reply, 0);
}

static void report_output(struct attachment *s, uint32_t attempt, uint32_t stream, uint64_t offset, const char *text) {
        report_output_as(s, 0, attempt, stream, offset, text, strlen(text));
}

static void report_ack(struct attachment *s, uint64_t offset) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__JobInputAck ack = RM__JOB_INPUT_ACK__INIT;

        ack.offset = offset;
        reply.body_case = RM__LOCAL_REPLY__BODY_JOB_INPUT_ACK;
        reply.job_input_ack = &ack;
        attachment_reply(s, &reply, 0);
}

/* The next request that is not a greeting; NULL: none. Freed by the caller. */
static Rm__LocalRequest *next_request(struct attachment *s) {
        struct buffer *b = attachment_requests(s);
        Rm__LocalRequest *request = NULL;

        while (!request && b->used > 0) {
                uint32_t size = 0;

                assert_int_equal(frame_header_read(buffer_data(b), FRAME_MAGIC_LOCAL, FRAME_MAX_LOCAL_BYTES, &size), 0);
                request = rm__local_request__unpack(NULL, size, buffer_data(b) + FRAME_HEADER_BYTES);
                assert_non_null(request);
                buffer_drop(b, FRAME_HEADER_BYTES + size);
                if (request->body_case == RM__LOCAL_REQUEST__BODY_HELLO) {
                        rm__local_request__free_unpacked(request, NULL);
                        request = NULL;
                }
        }
        return request;
}

static uint32_t expect_attach(struct attachment *s, uint32_t attempt, uint64_t out, uint64_t err) {
        Rm__LocalRequest *request = next_request(s);
        uint32_t id;

        assert_non_null(request);
        assert_int_equal(request->body_case, RM__LOCAL_REQUEST__BODY_ATTACH_JOB);
        assert_int_equal(request->attach_job->attempt, attempt);
        assert_int_equal(request->attach_job->stdout_offset, out);
        assert_int_equal(request->attach_job->stderr_offset, err);
        id = request->id;
        rm__local_request__free_unpacked(request, NULL);
        return id;
}

static void expect_input(struct attachment *s, uint32_t attempt, uint64_t offset, const char *data, bool eof) {
        Rm__LocalRequest *request = next_request(s);

        assert_non_null(request);
        assert_int_equal(request->body_case, RM__LOCAL_REQUEST__BODY_JOB_INPUT);
        assert_int_equal(request->job_input->attempt, attempt);
        assert_int_equal(request->job_input->offset, offset);
        assert_int_equal(request->job_input->data.len, strlen(data));
        assert_memory_equal(request->job_input->data.data, data, strlen(data));
        assert_int_equal(request->job_input->eof, eof);
        rm__local_request__free_unpacked(request, NULL);
}

static void expect_none(struct attachment *s) {
        assert_int_equal(attachment_requests(s)->used, 0);
}

static void expect_text(struct attachment *s, unsigned stream, const char *text) {
        struct buffer *b = attachment_output(s, stream);
        cleanup_free char *got = strndup(b->used ? (const char *) buffer_data(b) : "", b->used);

        assert_string_equal(got, text);
        buffer_drop(b, b->used);
}

static struct attachment *begin_running(bool input, struct reported *ret_reported) {
        struct attachment *s = begin(input, true);

        *ret_reported = (struct reported) { .attempt = 1, .state = RM__JOB_STATE__JOB_RUNNING };
        attachment_connected(s, 0);
        (void) expect_attach(s, 0, 0, 0);
        report(s, ret_reported, 0);
        return s;
}

static void add_checkpoint(struct reported *reported, uint64_t id, uint64_t out, uint64_t err) {
        reported->checkpoints[reported->n].id = id;
        reported->checkpoints[reported->n].captured = true;
        reported->checkpoints[reported->n].end[0] = out;
        reported->checkpoints[reported->n++].end[1] = err;
}

/* A node is lost, and the next attempt is placed. */
static void go_back(struct attachment *s, struct reported *reported, uint64_t checkpoint) {
        reported->attempt++;
        reported->state = RM__JOB_STATE__JOB_RECOVERING;
        report(s, reported, 12 * SECOND);
        reported->state = RM__JOB_STATE__JOB_PENDING;
        report(s, reported, 12 * SECOND);
        expect_none(s);
        reported->state = RM__JOB_STATE__JOB_STARTING;
        reported->restored_from = checkpoint;
        report(s, reported, 12 * SECOND);
}

#define GOES_ON "rm-mpirun: job 7: node n3 is down: goes on from checkpoint 7.3 (12 s old)\n"

/* ---- tests ---- */

static void output_that_comes_again_is_swallowed(void **state) {
        struct reported reported;
        struct attachment *s = begin_running(false, &reported);
        uint32_t id;

        (void) state;
        report_output(s, 1, 1, 0, "one two three ");
        report_output(s, 1, 2, 0, "warning ");
        add_checkpoint(&reported, 3, 4, 20);
        report(s, &reported, 1);
        expect_text(s, 1, "one two three ");
        expect_text(s, 2, "warning ");
        go_back(s, &reported, 3);
        expect_text(s, 2, GOES_ON);
        id = expect_attach(s, 2, 4, 8); /* stdout was further than at the checkpoint, stderr was not */
        report_as(s, &reported, id, 12 * SECOND);
        report_output_as(s, id, 2, 1, 4, "two th", 6);
        report_output_as(s, id, 2, 1, 10, "ree four", 8);
        report_output_as(s, id, 2, 2, 8, "and more", 8);
        expect_text(s, 1, "four");
        expect_text(s, 2, "and more");
        attachment_destroy(s);
}

static void from_the_first_difference_on_all_is_delivered(void **state) {
        static const char before[] = "0123456789";

        (void) state;
        for (uint64_t at = 0; at <= 2 * strlen(before); at++) {
                uint64_t cut = at % 3, i = at / 2;
                unsigned stream = at % 2 ? 2 : 1;
                cleanup_free char *again = xasprintf("%sab", before);
                cleanup_free char *want = NULL, *line = NULL;
                struct reported reported;
                struct attachment *s = begin_running(false, &reported);

                report_output(s, 1, stream, 0, before);
                expect_text(s, stream, before);
                add_checkpoint(&reported, 3, cut, cut);
                report(s, &reported, 1);
                go_back(s, &reported, 3);
                expect_text(s, 2, GOES_ON);
                (void) expect_attach(s, 2, stream == 1 ? cut : 0, stream == 2 ? cut : 0);
                again[i] = '!';
                report_output(s, 2, stream, cut, again + cut);
                line = xasprintf("rm-mpirun: job 7: output differs from byte %d of %s on: what follows is of attempt 2, which went "
                                 "on from checkpoint 7.3\n",
                                 (int) i, stream == 1 ? "stdout" : "stderr");
                if (i < cut) /* before the checkpoint: it does not come again */
                        want = xstrdup("ab");
                else if (i >= strlen(before)) /* not delivered before */
                        want = xstrdup("!b");
                else
                        want = xasprintf("%s%s", stream == 2 ? line : "", again + i);
                expect_text(s, stream, want);
                if (stream == 1)
                        expect_text(s, 2, i >= cut && i < strlen(before) ? line : "");
                attachment_destroy(s);
        }
}

/* In each attempt the output may differ anew; what was delivered last is what the next one is
 * compared with. */
static void attempts_follow_each_other(void **state) {
        struct reported reported;
        struct attachment *s = begin_running(false, &reported);

        (void) state;
        report_output(s, 1, 1, 0, "aaaaaaaa");
        add_checkpoint(&reported, 3, 2, 0);
        report(s, &reported, 1);
        go_back(s, &reported, 3);
        (void) expect_attach(s, 2, 2, 0);
        report_output(s, 2, 1, 2, "aab");
        report_output(s, 2, 1, 5, "bbbb");
        expect_text(s, 1, "aaaaaaaabbbbb");
        expect_text(s, 2,
                    GOES_ON
                    "rm-mpirun: job 7: output differs from byte 4 of stdout on: what follows is of attempt 2, which went on "
                    "from checkpoint 7.3\n");
        /* The job goes back to the same checkpoint. */
        go_back(s, &reported, 3);
        (void) expect_attach(s, 3, 2, 0);
        report_output(s, 3, 1, 2, "aabbbbb");
        expect_text(s, 1, "");
        /* The job goes back to one of the third attempt. It was cut while the front end still
         * compared. */
        go_back(s, &reported, 3);
        (void) expect_attach(s, 4, 2, 0);
        report_output(s, 4, 1, 2, "aab");
        add_checkpoint(&reported, 4, 8, 0);
        reported.checkpoints[0] = reported.checkpoints[1];
        reported.n = 1;
        report(s, &reported, 2);
        go_back(s, &reported, 4);
        (void) expect_attach(s, 5, 5, 0);
        report_output(s, 5, 1, 5, "bbbbcc");
        expect_text(s, 1, "cc");
        /* The job has no checkpoint any more. */
        reported.n = 0;
        go_back(s, &reported, 0);
        expect_none(s);
        report_output(s, 6, 1, 0, "aab");
        expect_text(s, 1, "aab");
        attachment_destroy(s);
}

static void what_the_old_attachment_sent_does_not_count(void **state) {
        struct reported reported;
        struct attachment *s = begin(false, true);
        uint32_t old, id;
        int code;

        (void) state;
        reported = (struct reported) { .attempt = 1, .state = RM__JOB_STATE__JOB_RUNNING };
        attachment_connected(s, 0);
        old = expect_attach(s, 0, 0, 0);
        report_as(s, &reported, old, 0);
        report_output_as(s, old, 1, 1, 0, "abcdef", 6);
        add_checkpoint(&reported, 3, 4, 0);
        report_as(s, &reported, old, 1);
        /* The job is two attempts later: the one between may have written anything from the first
         * checkpoint that we knew on. */
        reported.attempt = 3;
        reported.restored_from = 4;
        add_checkpoint(&reported, 4, 6, 0);
        report_as(s, &reported, old, 12 * SECOND);
        id = expect_attach(s, 3, 4, 0);
        report_output_as(s, old, 3, 1, 6, "gh", 2);
        reported.state = RM__JOB_STATE__JOB_COMPLETED;
        reported.final = true;
        report_as(s, &reported, old, 13 * SECOND);
        assert_false(attachment_done(s, &code));
        expect_text(s, 1, "abcdef");
        report_output_as(s, id, 3, 1, 4, "eFgh", 4);
        expect_text(s, 1, "Fgh");
        report_as(s, &reported, id, 13 * SECOND);
        assert_true(attachment_done(s, &code));
        attachment_destroy(s);
}

/* Until it is known where the attempt begins, a connection that breaks changes nothing. */
static void rmd_may_be_restarted_between_attempts(void **state) {
        struct reported reported;
        struct attachment *s = begin_running(false, &reported);

        (void) state;
        report_output(s, 1, 1, 0, "abcdef");
        add_checkpoint(&reported, 3, 4, 0);
        report(s, &reported, 1);
        reported.attempt = 2;
        reported.state = RM__JOB_STATE__JOB_RECOVERING;
        report(s, &reported, 12 * SECOND);
        report_output(s, 1, 1, 6, "late");
        attachment_lost(s, 12 * SECOND);
        attachment_connected(s, 12 * SECOND);
        (void) expect_attach(s, 1, 6, 0);
        reported.state = RM__JOB_STATE__JOB_RUNNING;
        reported.restored_from = 3;
        report(s, &reported, 12 * SECOND);
        (void) expect_attach(s, 2, 4, 0);
        report_output(s, 2, 1, 4, "e");
        attachment_lost(s, 12 * SECOND);
        attachment_connected(s, 12 * SECOND);
        (void) expect_attach(s, 2, 5, 0);
        report(s, &reported, 12 * SECOND);
        report_output(s, 2, 1, 5, "fgh");
        expect_text(s, 1, "abcdefgh");
        expect_text(s, 2, GOES_ON);
        attachment_destroy(s);
}

static void another_checkpoint_than_the_newest_is_told(void **state) {
        struct reported reported;
        struct attachment *s = begin_running(false, &reported);

        (void) state;
        add_checkpoint(&reported, 2, 0, 0);
        add_checkpoint(&reported, 3, 0, 0);
        report(s, &reported, 1);
        go_back(s, &reported, 2);
        expect_text(s, 2, GOES_ON "rm-mpirun: job 7: goes on from checkpoint 7.2 (12 s old)\n");
        (void) expect_attach(s, 2, 0, 0);
        go_back(s, &reported, 0);
        expect_text(s, 2,
                    GOES_ON
                    "rm-mpirun: job 7: node n3 is down; it starts again from its beginning, attempt 3 of 4; the output so far "
                    "is of attempt 2\n");
        expect_none(s);
        attachment_destroy(s);
}

static void an_attempt_that_is_never_placed_leaves_the_output(void **state) {
        struct reported reported;
        struct attachment *s = begin_running(false, &reported);
        int code;

        (void) state;
        report_output(s, 1, 1, 0, "abcdef");
        add_checkpoint(&reported, 3, 4, 0);
        report(s, &reported, 1);
        reported.attempt = 2;
        reported.state = RM__JOB_STATE__JOB_PENDING;
        report(s, &reported, 12 * SECOND);
        expect_text(s, 2, GOES_ON);
        {
                Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
                Rm__JobUpdate update = RM__JOB_UPDATE__INIT;
                Rm__JobView view = RM__JOB_VIEW__INIT;
                Rm__Job job = RM__JOB__INIT;

                job.attempt = 2;
                job.state = RM__JOB_STATE__JOB_CANCELLED;
                job.exit_code = 143;
                job.reason = (char *) "by alice";
                view.job = &job;
                update.job = &view;
                update.final = true;
                reply.body_case = RM__LOCAL_REPLY__BODY_JOB_UPDATE;
                reply.job_update = &update;
                attachment_reply(s, &reply, 13 * SECOND);
        }
        expect_text(s, 2, "rm-mpirun: job 7 was cancelled: by alice\n");
        assert_true(attachment_done(s, &code));
        assert_int_equal(code, 143);
        attachment_destroy(s);
}

static void an_attempt_that_ends_early_is_told(void **state) {
        struct reported reported;
        struct attachment *s = begin_running(false, &reported);

        (void) state;
        report_output(s, 1, 1, 0, "abcdef");
        add_checkpoint(&reported, 3, 4, 0);
        report(s, &reported, 1);
        go_back(s, &reported, 3);
        (void) expect_attach(s, 2, 4, 0);
        reported.state = RM__JOB_STATE__JOB_RUNNING;
        report(s, &reported, 12 * SECOND);
        report_output(s, 2, 1, 4, "e");
        reported.state = RM__JOB_STATE__JOB_COMPLETED;
        reported.final = true;
        report(s, &reported, 13 * SECOND);
        expect_text(s, 2,
                    GOES_ON "rm-mpirun: job 7: what was printed from byte 5 of stdout on is of an attempt before: attempt 2, which "
                            "went on from checkpoint 7.3, ended there\n");
        attachment_destroy(s);
}

/* rmctl attach-job: it has nothing, and the spool begins where all before was taken at the
 * checkpoint. */
static void who_attaches_later_gets_what_there_is(void **state) {
        struct attachment *s = begin(false, false);
        struct reported reported = { .attempt = 2, .state = RM__JOB_STATE__JOB_RUNNING, .restored_from = 3 };

        (void) state;
        add_checkpoint(&reported, 3, 5, 0);
        attachment_connected(s, 0);
        (void) expect_attach(s, 0, 0, 0);
        report(s, &reported, 0);
        expect_none(s);
        report_output(s, 2, 1, 4, "efgh");
        expect_text(s, 1, "efgh");
        expect_text(s, 2, "rm-mpirun: 4 bytes of the job's output are no longer stored\n");
        attachment_destroy(s);
}

/* The first checkpoint was not heard of for long. */
static void what_could_not_be_kept_is_delivered_again(void **state) {
        static char chunk[1 << 20];
        struct reported reported;
        struct attachment *s = begin_running(false, &reported);

        (void) state;
        memset(chunk, 'x', sizeof(chunk));
        for (uint64_t i = 0; i < 6; i++)
                report_output_as(s, 0, 1, 1, i * sizeof(chunk), chunk, sizeof(chunk));
        buffer_drop(attachment_output(s, 1), attachment_output(s, 1)->used);
        add_checkpoint(&reported, 3, 100, 0);
        report(s, &reported, 1);
        go_back(s, &reported, 3);
        (void) expect_attach(s, 2, 100, 0);
        expect_text(s, 2,
                    GOES_ON
                    "rm-mpirun: job 7: output from byte 100 of stdout on is not compared with what was printed before: it may "
                    "come twice\n");
        report_output_as(s, 0, 2, 1, 100, chunk, 1000);
        assert_int_equal(attachment_output(s, 1)->used, 1000);
        attachment_destroy(s);
}

static void a_reader_that_has_gone_is_not_compared_for(void **state) {
        struct reported reported;
        struct attachment *s = begin_running(false, &reported);

        (void) state;
        report_output(s, 1, 1, 0, "abcdef");
        attachment_output_closed(s, 1);
        add_checkpoint(&reported, 3, 2, 0);
        report(s, &reported, 1);
        go_back(s, &reported, 3);
        (void) expect_attach(s, 2, 2, 0);
        report_output(s, 2, 1, 2, "other output");
        expect_text(s, 1, "");
        expect_text(s, 2, GOES_ON);
        attachment_destroy(s);
}

/* ---- input ---- */

static void input_goes_on_where_the_checkpoint_had_it(void **state) {
        struct reported reported;
        struct attachment *s = begin_running(true, &reported);

        (void) state;
        attachment_input(s, "abcdef", 6);
        expect_input(s, 1, 0, "abcdef", false);
        report_ack(s, 6);
        add_checkpoint(&reported, 3, 0, 0);
        report(s, &reported, 1);
        attachment_input(s, "gh", 2);
        attachment_input_eof(s);
        expect_input(s, 1, 6, "gh", false);
        expect_input(s, 1, 8, "", true);
        report_ack(s, 8);
        go_back(s, &reported, 3);
        (void) expect_attach(s, 2, 0, 0);
        reported.state = RM__JOB_STATE__JOB_RUNNING;
        report(s, &reported, 12 * SECOND);
        expect_none(s); /* it is not known yet how much the attempt has */
        report_ack(s, 5);
        expect_input(s, 2, 5, "fgh", true);
        expect_none(s);
        /* The node has gone before the request is taken. */
        go_back(s, &reported, 3);
        (void) expect_attach(s, 3, 0, 0);
        attachment_lost(s, 13 * SECOND);
        attachment_connected(s, 13 * SECOND);
        (void) expect_attach(s, 3, 0, 0);
        reported.state = RM__JOB_STATE__JOB_RUNNING;
        report(s, &reported, 13 * SECOND);
        report_ack(s, 5);
        expect_input(s, 3, 5, "fgh", true);
        attachment_destroy(s);
}

/* A program that had closed its input reads on after it went back. */
static void input_that_was_refused_is_given_again(void **state) {
        struct reported reported;
        struct attachment *s = begin_running(true, &reported);
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__Error error = RM__ERROR__INIT;

        (void) state;
        attachment_input(s, "abcdef", 6);
        expect_input(s, 1, 0, "abcdef", false);
        report_ack(s, 3);
        error.code = 32; /* EPIPE */
        reply.body_case = RM__LOCAL_REPLY__BODY_ERROR;
        reply.id = 999;
        reply.error = &error;
        attachment_reply(s, &reply, 0);
        assert_int_equal(attachment_input_space(s), 0);
        add_checkpoint(&reported, 3, 0, 0);
        go_back(s, &reported, 3);
        (void) expect_attach(s, 2, 0, 0);
        reported.state = RM__JOB_STATE__JOB_RUNNING;
        report(s, &reported, 12 * SECOND);
        report_ack(s, 2);
        expect_input(s, 2, 2, "cdef", false);
        assert_true(attachment_input_space(s) > 0);
        attachment_destroy(s);
}

static void give_input(struct attachment *s, uint64_t size_bytes) {
        static char chunk[65536];

        for (uint64_t taken = 0; taken < size_bytes; taken += sizeof(chunk)) {
                Rm__LocalRequest *request;

                attachment_input(s, chunk, sizeof(chunk));
                request = next_request(s);
                assert_non_null(request);
                rm__local_request__free_unpacked(request, NULL);
                report_ack(s, taken + sizeof(chunk));
        }
}

/* All of the input would be too much, but the end of it is enough. */
static void the_last_of_much_input_is_kept(void **state) {
        (void) state;
        for (int enough = 0; enough < 2; enough++) {
                struct reported reported;
                struct attachment *s = begin_running(true, &reported);
                Rm__LocalRequest *request;

                give_input(s, 10 << 20);
                add_checkpoint(&reported, 3, 0, 0);
                go_back(s, &reported, 3);
                expect_text(s, 2, GOES_ON);
                (void) expect_attach(s, 2, 0, 0);
                reported.state = RM__JOB_STATE__JOB_RUNNING;
                report(s, &reported, 12 * SECOND);
                report_ack(s, enough ? 2 << 20 : (2 << 20) - 1);
                request = next_request(s);
                assert_non_null(request);
                if (enough) {
                        assert_int_equal(request->body_case, RM__LOCAL_REQUEST__BODY_JOB_INPUT);
                        assert_int_equal(request->job_input->offset, 2 << 20);
                        expect_text(s, 2, "");
                } else {
                        assert_int_equal(request->body_case, RM__LOCAL_REQUEST__BODY_CANCEL_JOB);
                        expect_text(s, 2,
                                    "rm-mpirun: job 7 is cancelled: it needs its standard input from byte 2097151 on again, and "
                                    "rm-mpirun has it only from byte 2097152 on\n");
                }
                rm__local_request__free_unpacked(request, NULL);
                attachment_destroy(s);
        }
}

/* ---- any order of things ---- */

#define STREAM_MAX 6000
#define ROUNDS 2000

/* A model of one of the two streams, of the attempt under way and as it was delivered. */
struct model {
        uint8_t source[STREAM_MAX];
        size_t written; /* by the program */
        size_t served;  /* to the front end */
        uint8_t delivered[8 * STREAM_MAX]; /* all that was printed */
        size_t printed;
        uint8_t stream[STREAM_MAX]; /* what of that counts */
        size_t end;
        size_t differences;
};

static void model_take(struct model *m, const uint8_t *data, size_t size_bytes) {
        for (size_t k = 0; k < size_bytes; k++) {
                if (m->served < m->end && m->stream[m->served] != data[k]) {
                        m->end = m->served;
                        m->differences++;
                }
                if (m->served == m->end) {
                        m->stream[m->end++] = data[k];
                        m->delivered[m->printed++] = data[k];
                }
                m->served++;
        }
}

static size_t up_to(size_t n) {
        return n ? (size_t) random() % (n + 1) : 0;
}

static void serve(struct attachment *s, const struct reported *reported, struct model *m, unsigned i) {
        size_t n = up_to(m->written - m->served > 700 ? 700 : m->written - m->served);
        size_t again = random() % 4 ? 0 : up_to(m->served > 50 ? 50 : m->served); /* some that it has */

        report_output_as(s, 0, reported->attempt, i + 1, m->served - again, m->source + m->served - again, n + again);
        model_take(m, m->source + m->served, n);
}

static void cut(struct reported *reported, const struct model m[2], uint64_t id) {
        if (reported->n == 3) {
                memmove(&reported->checkpoints[0], &reported->checkpoints[1], 2 * sizeof(reported->checkpoints[0]));
                reported->n = 2;
        }
        add_checkpoint(reported, id, m[0].written, m[1].written);
}

static void restore(struct attachment *s, struct reported *reported, struct model m[2]) {
        size_t k = reported->n ? (size_t) random() % reported->n : 0;
        uint64_t from = reported->n ? reported->checkpoints[k].id : 0;

        go_back(s, reported, from);
        for (size_t i = 0; i < 2; i++) {
                size_t end = from ? reported->checkpoints[k].end[i] : 0;

                m[i].written = end + up_to(20);
                m[i].served = m[i].served < end ? m[i].served : end;
                if (!from)
                        m[i].end = m[i].served = 0;
                if (random() % 2) /* what it writes from somewhere on is different */
                        for (size_t at = end + up_to(800); at < STREAM_MAX; at++)
                                m[i].source[at] = (uint8_t) ('a' + random() % 3);
        }
        reported->n = from ? k + 1 : 0; /* those that are newer go */
        if (from)
                (void) expect_attach(s, reported->attempt, m[0].served, m[1].served);
        reported->state = RM__JOB_STATE__JOB_RUNNING;
        report(s, reported, 12 * SECOND);
}

/* Our own words are among what was printed on stderr; all else must be there. */
static size_t take_lines(struct buffer *b, uint8_t *ret_rest, size_t *ret_n) {
        size_t said = 0;

        for (*ret_n = 0; b->used > 0;) {
                const uint8_t *data = buffer_data(b);
                size_t n = 1;

                if (*data == 'r') { /* the model writes none */
                        n = (size_t) ((const uint8_t *) memchr(data, '\n', b->used) - data) + 1;
                        said += memmem(data, n, "output differs", 14) != NULL;
                } else {
                        ret_rest[(*ret_n)++] = *data;
                }
                buffer_drop(b, n);
        }
        return said;
}

static void play(unsigned seed) {
        static struct model m[2];
        static uint8_t printed[8 * STREAM_MAX];
        struct reported reported;
        struct attachment *s = begin_running(false, &reported);
        uint64_t id = 1;
        size_t n, said;

        srandom(seed);
        memset(m, 0, sizeof(m));
        for (size_t at = 0; at < 2 * STREAM_MAX; at++)
                m[at % 2].source[at / 2] = (uint8_t) ('a' + random() % 3);
        for (int turn = 0; turn < 60; turn++) {
                unsigned i = (unsigned) random() % 2;
                size_t space = STREAM_MAX - m[i].written;

                switch (random() % 10) {
                case 0:
                        cut(&reported, m, id++);
                        report(s, &reported, 1);
                        break;
                case 1:
                        if (reported.attempt < 8)
                                restore(s, &reported, m);
                        break;
                case 2:
                        attachment_lost(s, 1);
                        attachment_connected(s, 1);
                        (void) expect_attach(s, reported.attempt, m[0].served, m[1].served);
                        report(s, &reported, 1);
                        break;
                case 3:
                case 4:
                case 5:
                        m[i].written += up_to(space > 400 ? 400 : space);
                        break;
                default:
                        serve(s, &reported, &m[i], i);
                }
        }
        assert_int_equal(attachment_output(s, 1)->used, m[0].printed);
        assert_memory_equal(buffer_data(attachment_output(s, 1)), m[0].delivered, m[0].printed);
        said = take_lines(attachment_output(s, 2), printed, &n);
        assert_int_equal(n, m[1].printed);
        assert_memory_equal(printed, m[1].delivered, n);
        assert_int_equal(said, m[0].differences + m[1].differences);
        attachment_destroy(s);
}

static void whatever_happens_output_comes_once(void **state) {
        (void) state;
        for (unsigned seed = 1; seed <= repetitions(ROUNDS); seed++)
                play(seed);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(output_that_comes_again_is_swallowed),
                cmocka_unit_test(from_the_first_difference_on_all_is_delivered),
                cmocka_unit_test(attempts_follow_each_other),
                cmocka_unit_test(what_the_old_attachment_sent_does_not_count),
                cmocka_unit_test(rmd_may_be_restarted_between_attempts),
                cmocka_unit_test(another_checkpoint_than_the_newest_is_told),
                cmocka_unit_test(an_attempt_that_is_never_placed_leaves_the_output),
                cmocka_unit_test(an_attempt_that_ends_early_is_told),
                cmocka_unit_test(who_attaches_later_gets_what_there_is),
                cmocka_unit_test(what_could_not_be_kept_is_delivered_again),
                cmocka_unit_test(a_reader_that_has_gone_is_not_compared_for),
                cmocka_unit_test(input_goes_on_where_the_checkpoint_had_it),
                cmocka_unit_test(input_that_was_refused_is_given_again),
                cmocka_unit_test(the_last_of_much_input_is_kept),
                cmocka_unit_test(whatever_happens_output_comes_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
