#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/frame.h"
#include "common/util.h"
#include "launcher/client/attachment.h"

#define SECOND UINT64_C(1000000)

static struct attachment *begin(bool input, bool wait_set, uint64_t wait_usec) {
        struct attachment_config config = { .program = "rm-mpirun",
                                            .job = 7,
                                            .input = input,
                                            .submitted = true,
                                            .release = true,
                                            .wait_set = wait_set,
                                            .wait_usec = wait_usec,
                                            .away_usec = 60 * SECOND };

        return attachment_create(&config, 0);
}

/* The next request the attachment wants to send; freed by the caller. NULL: none. */
static Rm__LocalRequest *next_request(struct attachment *s) {
        struct buffer *b = attachment_requests(s);
        uint32_t size = 0;
        Rm__LocalRequest *request;

        if (b->used == 0)
                return NULL;
        assert_int_equal(frame_header_read(buffer_data(b), FRAME_MAGIC_LOCAL, FRAME_MAX_LOCAL_BYTES, &size), 0);
        request = rm__local_request__unpack(NULL, size, buffer_data(b) + FRAME_HEADER_BYTES);
        assert_non_null(request);
        buffer_drop(b, FRAME_HEADER_BYTES + size);
        return request;
}

/* The next request must be this one; returns its id. */
static uint32_t expect(struct attachment *s, Rm__LocalRequest__BodyCase body) {
        Rm__LocalRequest *request = next_request(s);
        uint32_t id;

        assert_non_null(request);
        assert_int_equal(request->body_case, body);
        id = request->id;
        rm__local_request__free_unpacked(request, NULL);
        return id;
}

static void expect_none(struct attachment *s) {
        assert_int_equal(attachment_requests(s)->used, 0);
}

static uint32_t expect_attach(struct attachment *s, uint64_t out, uint64_t err) {
        Rm__LocalRequest *request;
        uint32_t id;

        (void) expect(s, RM__LOCAL_REQUEST__BODY_HELLO);
        request = next_request(s);
        assert_int_equal(request->body_case, RM__LOCAL_REQUEST__BODY_ATTACH_JOB);
        assert_int_equal(request->attach_job->job, 7);
        assert_int_equal(request->attach_job->stdout_offset, out);
        assert_int_equal(request->attach_job->stderr_offset, err);
        id = request->id;
        rm__local_request__free_unpacked(request, NULL);
        return id;
}

static uint32_t expect_input(struct attachment *s, uint64_t offset, const char *data, bool eof) {
        Rm__LocalRequest *request = next_request(s);
        uint32_t id;

        assert_non_null(request);
        assert_int_equal(request->body_case, RM__LOCAL_REQUEST__BODY_JOB_INPUT);
        assert_int_equal(request->job_input->offset, offset);
        assert_int_equal(request->job_input->data.len, strlen(data));
        assert_memory_equal(request->job_input->data.data, data, strlen(data));
        assert_int_equal(request->job_input->eof, eof);
        id = request->id;
        rm__local_request__free_unpacked(request, NULL);
        return id;
}

static void expect_control(struct attachment *s, bool cancel, uint32_t signo) {
        Rm__LocalRequest *request = next_request(s);

        assert_non_null(request);
        if (cancel) {
                assert_int_equal(request->body_case, RM__LOCAL_REQUEST__BODY_CANCEL_JOB);
                assert_int_equal(request->cancel_job->signal, signo);
        } else {
                assert_int_equal(request->body_case, RM__LOCAL_REQUEST__BODY_SIGNAL_JOB);
                assert_int_equal(request->signal_job->signal, signo);
        }
        rm__local_request__free_unpacked(request, NULL);
}

static void report_output_of(struct attachment *s, uint32_t attempt, uint32_t stream, uint64_t offset, const char *text) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__JobOutput output = RM__JOB_OUTPUT__INIT;

        output.attempt = attempt;
        output.stream = stream;
        output.offset = offset;
        output.data.data = (uint8_t *) text;
        output.data.len = strlen(text);
        reply.body_case = RM__LOCAL_REPLY__BODY_JOB_OUTPUT;
        reply.job_output = &output;
        attachment_reply(s, &reply, 0);
}

static void report_output(struct attachment *s, uint32_t stream, uint64_t offset, const char *text) {
        report_output_of(s, 0, stream, offset, text);
}

static void report_ack(struct attachment *s, uint64_t offset) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__JobInputAck ack = RM__JOB_INPUT_ACK__INIT;

        ack.offset = offset;
        reply.body_case = RM__LOCAL_REPLY__BODY_JOB_INPUT_ACK;
        reply.job_input_ack = &ack;
        attachment_reply(s, &reply, 0);
}

static void report_error(struct attachment *s, uint32_t id, int code, const char *text, uint64_t now) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__Error error = RM__ERROR__INIT;

        error.code = code;
        error.text = (char *) text;
        reply.id = id;
        reply.body_case = RM__LOCAL_REPLY__BODY_ERROR;
        reply.error = &error;
        attachment_reply(s, &reply, now);
}

/* `attempt` 0: of a job that has none yet, or that never restarts. */
static void report_attempt(struct attachment *s, uint32_t attempt, Rm__JobState state, const char *reason, int exit_code,
                           bool final, uint64_t now) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__JobUpdate update = RM__JOB_UPDATE__INIT;
        Rm__JobView view = RM__JOB_VIEW__INIT;
        Rm__Job job = RM__JOB__INIT;
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;

        spec.on_node_loss = attempt > 0;
        spec.restarts = 3;
        job.spec = &spec;
        job.attempt = attempt;
        job.restart_reason = (char *) (attempt > 1 ? "node n3 is down" : "");
        job.id = 7;
        job.state = state;
        job.reason = (char *) reason;
        job.exit_code = exit_code;
        job.start_usec = state == RM__JOB_STATE__JOB_PENDING ? 0 : 1;
        view.job = &job;
        update.job = &view;
        update.final = final;
        reply.body_case = RM__LOCAL_REPLY__BODY_JOB_UPDATE;
        reply.job_update = &update;
        attachment_reply(s, &reply, now);
}

/* A job of 8 ranks that has lost `n` of these. */
static void report_lost(struct attachment *s, uint32_t attempt, Rm__JobState state, Rm__JobState final_state, size_t n,
                        uint64_t now) {
        uint32_t lost[] = { 5, 2, 7, 0, 1, 3, 4, 6 };
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__JobUpdate update = RM__JOB_UPDATE__INIT;
        Rm__JobView view = RM__JOB_VIEW__INIT;
        Rm__Job job = RM__JOB__INIT;
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__RankLosses losses = RM__RANK_LOSSES__INIT;

        losses.lost = lost;
        losses.n_lost = n;
        spec.ranks = ARRAY_SIZE(lost);
        spec.restarts = 3;
        job.spec = &spec;
        job.rank_losses = &losses;
        job.attempt = attempt;
        job.restart_reason = (char *) (attempt > 1 ? "node n3 is down" : "");
        job.state = state;
        job.final_state = final_state;
        job.start_usec = 1;
        view.job = &job;
        update.job = &view;
        reply.body_case = RM__LOCAL_REPLY__BODY_JOB_UPDATE;
        reply.job_update = &update;
        attachment_reply(s, &reply, now);
}

static void report_state(struct attachment *s, Rm__JobState state, const char *reason, int exit_code, bool final, uint64_t now) {
        report_attempt(s, 0, state, reason, exit_code, final, now);
}

static void expect_text(struct attachment *s, unsigned stream, const char *text) {
        struct buffer *b = attachment_output(s, stream);
        cleanup_free char *got = strndup(b->used ? (const char *) buffer_data(b) : "", b->used);

        assert_string_equal(got, text);
        buffer_drop(b, b->used);
}

static void expect_done(struct attachment *s, int code) {
        int got = -1;

        assert_true(attachment_done(s, &got));
        assert_int_equal(got, code);
}

static void report_ok(struct attachment *s, uint32_t id, uint64_t now) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__Ok ok = RM__OK__INIT;

        reply.id = id;
        reply.body_case = RM__LOCAL_REPLY__BODY_OK;
        reply.ok = &ok;
        attachment_reply(s, &reply, now);
}

/* The front end says that it has all of the output. */
static uint32_t expect_release(struct attachment *s) {
        Rm__LocalRequest *request = next_request(s);
        uint32_t id;
        int code;

        assert_non_null(request);
        assert_int_equal(request->body_case, RM__LOCAL_REQUEST__BODY_OUTPUT_ACK);
        assert_int_equal(request->output_ack->job, 7);
        assert_true(request->output_ack->done);
        assert_false(attachment_done(s, &code));
        id = request->id;
        rm__local_request__free_unpacked(request, NULL);
        return id;
}

static struct attachment *begin_running(bool input) {
        struct attachment *s = begin(input, false, 0);

        attachment_connected(s, 0);
        (void) expect_attach(s, 0, 0);
        report_state(s, RM__JOB_STATE__JOB_RUNNING, "", 0, false, 0);
        return s;
}

/* ---- tests ---- */

static void output_is_neither_lost_nor_repeated(void **state) {
        struct attachment *s = begin_running(false);

        (void) state;
        report_output(s, 1, 0, "hello ");
        report_output(s, 2, 0, "oops");
        report_output(s, 1, 6, "world");
        attachment_lost(s, 1);
        assert_true(attachment_wants_connection(s));
        attachment_connected(s, 2);
        (void) expect_attach(s, 11, 4);
        /* More than asked for: the part we have is cut off. */
        report_output(s, 1, 6, "world again");
        report_output(s, 1, 0, "hello");
        report_output(s, 1, 17, "!");
        expect_text(s, 1, "hello world again!");
        expect_text(s, 2, "oops");
        report_state(s, RM__JOB_STATE__JOB_COMPLETED, "", 0, true, 3);
        report_ok(s, expect_release(s), 3);
        expect_done(s, 0);
        attachment_destroy(s);
}

static void a_hole_in_the_output_is_told(void **state) {
        struct attachment *s = begin_running(false);

        (void) state;
        report_output(s, 1, 100, "tail");
        expect_text(s, 1, "tail");
        assert_true(attachment_output(s, 2)->used > 0);
        attachment_destroy(s);
}

static void output_that_nobody_reads_is_dropped(void **state) {
        struct attachment *s = begin_running(false);
        int code;

        (void) state;
        attachment_output_closed(s, 1);
        report_output(s, 1, 0, "hello");
        assert_int_equal(attachment_output(s, 1)->used, 0);
        assert_false(attachment_done(s, &code));
        attachment_lost(s, 1);
        attachment_connected(s, 2);
        (void) expect_attach(s, 5, 0);
        attachment_destroy(s);
}

/* The job ends like mpirun with "SIGPIPE detected": `rm-mpirun ... | head` comes to its end. */
static void a_reader_that_goes_ends_the_job(void **state) {
        struct attachment_config config = { .program = "rm-mpirun", .job = 7, .submitted = true, .cancel_unread = true };
        static const struct {
                Rm__JobState state;
                int exit_code, code;
        } ends[] = {
                { RM__JOB_STATE__JOB_CANCELLED, 143, 141 },
                { RM__JOB_STATE__JOB_CANCELLED, 0, 141 },
                { RM__JOB_STATE__JOB_COMPLETED, 0, 0 }, /* it was faster */
                { RM__JOB_STATE__JOB_FAILED, 3, 3 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
                struct attachment *s;

                config.away_usec = 60 * SECOND;
                s = attachment_create(&config, 0);
                attachment_connected(s, 1);
                (void) expect_attach(s, 0, 0);
                report_state(s, RM__JOB_STATE__JOB_RUNNING, "", 0, false, 2);
                expect_none(s);
                attachment_output_unread(s, 2); /* that of standard error does not matter */
                expect_none(s);
                attachment_output_unread(s, 1);
                expect_control(s, true, SIGTERM);
                attachment_output_unread(s, 1);
                expect_none(s);
                report_state(s, ends[i].state, "", ends[i].exit_code, true, 3);
                expect_done(s, ends[i].code);
                attachment_destroy(s);
        }
        config.cancel_unread = false; /* rmctl attach-job */
        {
                struct attachment *s = attachment_create(&config, 0);

                attachment_connected(s, 1);
                (void) expect_attach(s, 0, 0);
                attachment_output_unread(s, 1);
                expect_none(s);
                attachment_destroy(s);
        }
}

/* A reader of the output is told that some is missing, and a script by the exit code. */
static void output_that_cannot_be_written_is_told(void **state) {
        static const struct {
                int exit_code, code;
        } ends[] = { { 0, 1 }, { 3, 3 } };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
                struct attachment *s = begin_running(false);

                report_output(s, 1, 0, "hello");
                buffer_drop(attachment_output(s, 1), 2);
                assert_true(attachment_output_failed(s, 1, ENOSPC)); /* while it runs */
                expect_text(s, 2, "");
                assert_false(attachment_output_failed(s, 1, EIO));
                expect_text(s, 2,
                            "rm-mpirun: standard output cannot be written: Input/output error: what job 7 has written there "
                            "after its first 2 bytes is lost\n");
                report_output(s, 1, 5, "more");
                expect_text(s, 1, "");
                expect_text(s, 2, "");
                report_state(s, ends[i].exit_code == 0 ? RM__JOB_STATE__JOB_COMPLETED : RM__JOB_STATE__JOB_FAILED, "",
                             ends[i].exit_code, true, 3);
                report_ok(s, expect_release(s), 3);
                expect_done(s, ends[i].code);
                attachment_destroy(s);
        }
}

static void input_is_sent_again_from_the_last_acknowledged_byte(void **state) {
        struct attachment *s = begin_running(true);

        (void) state;
        attachment_input(s, "abcdef", 6);
        (void) expect_input(s, 0, "abcdef", false);
        report_ack(s, 2);
        attachment_input(s, "ghi", 3);
        (void) expect_input(s, 6, "ghi", false);
        attachment_lost(s, 1);
        attachment_input(s, "jk", 2);
        attachment_input_eof(s);
        attachment_connected(s, 2);
        (void) expect_attach(s, 0, 0);
        expect_none(s);
        report_state(s, RM__JOB_STATE__JOB_RUNNING, "", 0, false, 2);
        (void) expect_input(s, 2, "cdefghijk", true);
        expect_none(s);
        /* The end of input is told again on each connection, for its acknowledgement cannot be
         * seen. */
        report_ack(s, 11);
        attachment_lost(s, 3);
        attachment_connected(s, 4);
        (void) expect_attach(s, 0, 0);
        report_state(s, RM__JOB_STATE__JOB_RUNNING, "", 0, false, 4);
        (void) expect_input(s, 11, "", true);
        attachment_destroy(s);
}

static void input_waits_until_the_job_runs(void **state) {
        struct attachment *s = begin(true, false, 0);
        uint32_t id;

        (void) state;
        attachment_connected(s, 0);
        (void) expect_attach(s, 0, 0);
        attachment_input(s, "abc", 3);
        expect_none(s);
        report_state(s, RM__JOB_STATE__JOB_PENDING, "full", 0, false, 0);
        expect_none(s);
        report_state(s, RM__JOB_STATE__JOB_RUNNING, "", 0, false, 0);
        id = expect_input(s, 0, "abc", false);
        /* rmd cannot take it now: the same again a little later. */
        report_error(s, id, EAGAIN, "moving", 10 * SECOND);
        expect_none(s);
        attachment_tick(s, attachment_due_usec(s));
        (void) expect_input(s, 0, "abc", false);
        attachment_destroy(s);
}

static void input_is_bounded_and_ends_when_refused(void **state) {
        struct attachment *s = begin_running(true);
        static uint8_t chunk[65536];
        size_t total = 0;
        uint32_t id = 0;

        (void) state;
        while (attachment_input_space(s) >= sizeof(chunk)) {
                attachment_input(s, chunk, sizeof(chunk));
                total += sizeof(chunk);
        }
        assert_true(total >= sizeof(chunk) && total <= 4U << 20);
        while (attachment_requests(s)->used > 0)
                id = expect(s, RM__LOCAL_REQUEST__BODY_JOB_INPUT);
        report_ack(s, total);
        assert_true(attachment_input_space(s) > 0);
        attachment_input(s, "x", 1);
        id = expect(s, RM__LOCAL_REQUEST__BODY_JOB_INPUT);
        report_error(s, id, EPIPE, "closed", 0);
        assert_int_equal(attachment_input_space(s), 0);
        attachment_destroy(s);
}

static void an_attached_front_end_learns_where_input_stands(void **state) {
        struct attachment_config config = { .program = "rmctl", .job = 7, .input = true, .away_usec = SECOND };
        struct attachment *s = attachment_create(&config, 0);

        (void) state;
        attachment_connected(s, 0);
        (void) expect_attach(s, 0, 0);
        report_state(s, RM__JOB_STATE__JOB_RUNNING, "", 0, false, 0);
        assert_int_equal(attachment_input_space(s), 0);
        report_ack(s, 1000);
        assert_true(attachment_input_space(s) > 0);
        attachment_input(s, "abc", 3);
        (void) expect_input(s, 1000, "abc", false);
        attachment_destroy(s);
}

static void interrupts_grow_stronger(void **state) {
        struct attachment *s = begin_running(false);

        (void) state;
        attachment_signal(s, SIGINT, 0);
        expect_control(s, false, SIGINT);
        attachment_signal(s, SIGINT, 0);
        expect_control(s, true, SIGKILL);
        attachment_signal(s, SIGINT, 0);
        expect_done(s, 130);
        attachment_destroy(s);
}

static void a_waiting_job_is_cancelled_by_an_interrupt(void **state) {
        struct attachment *s = begin(false, false, 0);

        (void) state;
        attachment_connected(s, 0);
        (void) expect_attach(s, 0, 0);
        report_state(s, RM__JOB_STATE__JOB_PENDING, "full", 0, false, 0);
        attachment_signal(s, SIGUSR1, 0);
        expect_none(s);
        attachment_signal(s, SIGINT, 0);
        expect_control(s, true, SIGINT);
        report_state(s, RM__JOB_STATE__JOB_CANCELLED, "by alice", 0, true, 0);
        report_ok(s, expect_release(s), 0);
        expect_done(s, 130);
        expect_text(s, 2, "");
        attachment_destroy(s);
}

static void unconfirmed_signals_are_sent_again(void **state) {
        struct attachment *s = begin_running(false);
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__Ok ok = RM__OK__INIT;

        (void) state;
        attachment_signal(s, SIGUSR1, 0);
        reply.id = expect(s, RM__LOCAL_REQUEST__BODY_SIGNAL_JOB);
        reply.body_case = RM__LOCAL_REPLY__BODY_OK;
        reply.ok = &ok;
        attachment_reply(s, &reply, 0);
        attachment_signal(s, SIGUSR2, 0);
        (void) expect(s, RM__LOCAL_REQUEST__BODY_SIGNAL_JOB);
        attachment_lost(s, 1);
        attachment_signal(s, SIGTERM, 1);
        attachment_connected(s, 2);
        (void) expect_attach(s, 0, 0);
        expect_control(s, false, SIGUSR2);
        expect_control(s, false, SIGTERM);
        expect_none(s);
        attachment_destroy(s);
}

static void a_signal_that_nobody_confirms_becomes_a_cancel_and_then_our_end(void **state) {
        struct attachment *s = begin_running(false);

        (void) state;
        attachment_signal(s, SIGTERM, SECOND);
        expect_control(s, false, SIGTERM);
        assert_int_equal(attachment_due_usec(s), 11 * SECOND);
        attachment_tick(s, 11 * SECOND);
        expect_control(s, true, SIGTERM);
        assert_int_equal(attachment_due_usec(s), 21 * SECOND);
        attachment_tick(s, 21 * SECOND - 1);
        expect_none(s);
        attachment_tick(s, 21 * SECOND);
        expect_done(s, 128 + SIGTERM);
        attachment_destroy(s);
}

static void a_signal_that_is_confirmed_is_all_we_do(void **state) {
        struct attachment *s = begin_running(false);

        (void) state;
        attachment_signal(s, SIGTERM, SECOND);
        report_ok(s, expect(s, RM__LOCAL_REQUEST__BODY_SIGNAL_JOB), SECOND);
        attachment_tick(s, 100 * SECOND);
        expect_none(s);
        assert_int_equal(attachment_due_usec(s), ATTACHMENT_NEVER_USEC);
        attachment_destroy(s);
}

/* Neither is there a connection: the same, and no longer. */
static void an_interrupt_without_a_connection_ends_us(void **state) {
        struct attachment *s = begin_running(false);

        (void) state;
        attachment_lost(s, SECOND);
        attachment_signal(s, SIGINT, 2 * SECOND);
        attachment_tick(s, 12 * SECOND);
        attachment_tick(s, 22 * SECOND);
        expect_done(s, 128 + SIGINT);
        attachment_destroy(s);
}

static void a_signal_that_cannot_be_taken_now_is_sent_again(void **state) {
        struct attachment *s = begin_running(false);
        uint32_t id;

        (void) state;
        attachment_signal(s, SIGINT, 0);
        id = expect(s, RM__LOCAL_REQUEST__BODY_SIGNAL_JOB);
        report_error(s, id, EAGAIN, "moving", SECOND);
        expect_none(s);
        assert_true(attachment_due_usec(s) < 2 * SECOND);
        attachment_tick(s, attachment_due_usec(s));
        id = expect(s, RM__LOCAL_REQUEST__BODY_SIGNAL_JOB);
        report_error(s, id, EPERM, "not yours", 2 * SECOND);
        expect_text(s, 2, "rm-mpirun: not yours\n");
        assert_int_equal(attachment_due_usec(s), ATTACHMENT_NEVER_USEC);
        attachment_destroy(s);
}

/* Refuses the signal that comes next, and says how it was called. */
static void refuse_control(struct attachment *s, uint64_t now) {
        report_error(s, expect(s, RM__LOCAL_REQUEST__BODY_SIGNAL_JOB), EAGAIN, "moving", now);
}

static void a_stop_does_not_come_after_what_undoes_it(void **state) {
        static const int signals[][2] = { { SIGTSTP, SIGCONT }, { SIGCONT, SIGTSTP } };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
                struct attachment *s = begin_running(false);
                uint32_t id;

                /* The first signal was refused, and waits. */
                attachment_signal(s, signals[i][0], 0);
                refuse_control(s, 0);
                assert_int_equal(attachment_stop_waits(s), signals[i][0] == SIGTSTP);
                attachment_signal(s, signals[i][1], 0);
                report_ok(s, expect(s, RM__LOCAL_REQUEST__BODY_SIGNAL_JOB), 0);
                assert_false(attachment_stop_waits(s));
                assert_int_equal(attachment_due_usec(s), ATTACHMENT_NEVER_USEC);
                attachment_tick(s, SECOND);
                expect_none(s);
                /* The first signal was on its way. */
                attachment_signal(s, signals[i][0], SECOND);
                id = expect(s, RM__LOCAL_REQUEST__BODY_SIGNAL_JOB);
                attachment_signal(s, signals[i][1], SECOND);
                report_error(s, id, EAGAIN, "moving", SECOND);
                report_ok(s, expect(s, RM__LOCAL_REQUEST__BODY_SIGNAL_JOB), SECOND);
                attachment_tick(s, 2 * SECOND);
                expect_none(s);
                /* There was no connection. */
                attachment_lost(s, 2 * SECOND);
                attachment_signal(s, signals[i][0], 2 * SECOND);
                assert_false(attachment_stop_waits(s));
                attachment_signal(s, signals[i][1], 2 * SECOND);
                attachment_connected(s, 3 * SECOND);
                (void) expect_attach(s, 0, 0);
                expect_control(s, false, (uint32_t) signals[i][1]);
                expect_none(s);
                /* The connection was lost before the answer. */
                attachment_signal(s, signals[i][0], 3 * SECOND);
                (void) expect(s, RM__LOCAL_REQUEST__BODY_SIGNAL_JOB);
                attachment_signal(s, signals[i][1], 3 * SECOND);
                attachment_lost(s, 3 * SECOND);
                attachment_connected(s, 4 * SECOND);
                (void) expect_attach(s, 0, 0);
                expect_control(s, false, (uint32_t) signals[i][1]);
                expect_none(s);
                attachment_destroy(s);
        }
}

static void signals_that_wait_leave_room_for_the_end(void **state) {
        struct attachment *s = begin_running(false);

        (void) state;
        attachment_lost(s, SECOND);
        for (unsigned i = 0; i < 50; i++) {
                attachment_signal(s, SIGUSR1, SECOND);
                attachment_signal(s, SIGALRM, SECOND);
                attachment_signal(s, SIGHUP, SECOND);
        }
        attachment_signal(s, SIGINT, SECOND);
        attachment_connected(s, 2 * SECOND);
        (void) expect_attach(s, 0, 0);
        expect_control(s, false, SIGUSR1);
        expect_control(s, false, SIGALRM);
        expect_control(s, false, SIGHUP);
        expect_control(s, false, SIGINT);
        expect_none(s);
        attachment_destroy(s);
}

static void waiting_is_told_after_a_second_and_when_it_changes(void **state) {
        struct attachment *s = begin(false, false, 0);

        (void) state;
        attachment_connected(s, 0);
        (void) expect_attach(s, 0, 0);
        report_state(s, RM__JOB_STATE__JOB_PENDING, "no cores", 0, false, 0);
        expect_text(s, 2, "");
        assert_int_equal(attachment_due_usec(s), SECOND);
        attachment_tick(s, SECOND);
        expect_text(s, 2, "rm-mpirun: job 7 waits: no cores\n");
        report_state(s, RM__JOB_STATE__JOB_PENDING, "no cores", 0, false, 2 * SECOND);
        expect_text(s, 2, "");
        report_state(s, RM__JOB_STATE__JOB_PENDING, "no nodes", 0, false, 3 * SECOND);
        expect_text(s, 2, "rm-mpirun: job 7 waits: no nodes\n");
        report_state(s, RM__JOB_STATE__JOB_RUNNING, "", 0, false, 4 * SECOND);
        expect_text(s, 2, "rm-mpirun: job 7 starts\n");
        assert_int_equal(attachment_due_usec(s), ATTACHMENT_NEVER_USEC);
        attachment_destroy(s);
}

static void a_quick_start_is_silent(void **state) {
        struct attachment *s = begin(false, true, 5 * SECOND);

        (void) state;
        attachment_connected(s, 0);
        (void) expect_attach(s, 0, 0);
        report_state(s, RM__JOB_STATE__JOB_PENDING, "no cores", 0, false, 0);
        report_state(s, RM__JOB_STATE__JOB_RUNNING, "", 0, false, SECOND / 2);
        attachment_tick(s, 100 * SECOND);
        expect_none(s);
        expect_text(s, 2, "");
        attachment_destroy(s);
}

static void waiting_is_given_up(void **state) {
        struct attachment *s = begin(false, true, 5 * SECOND);

        (void) state;
        attachment_connected(s, 0);
        (void) expect_attach(s, 0, 0);
        report_state(s, RM__JOB_STATE__JOB_PENDING, "no cores", 0, false, 0);
        attachment_tick(s, SECOND);
        assert_int_equal(attachment_due_usec(s), 5 * SECOND);
        attachment_tick(s, 5 * SECOND);
        expect_control(s, true, SIGTERM);
        report_state(s, RM__JOB_STATE__JOB_CANCELLED, "", 0, true, 5 * SECOND);
        expect_text(s, 2,
                    "rm-mpirun: job 7 waits: no cores\n"
                    "rm-mpirun: job 7 has not started within 5 s: cancelled: no cores\n");
        attachment_tick(s, 5 * SECOND);
        report_ok(s, expect_release(s), 5 * SECOND);
        expect_done(s, 1);
        attachment_destroy(s);
}

static void not_waiting_at_all(void **state) {
        struct attachment *s = begin(false, true, 0);

        (void) state;
        attachment_connected(s, 0);
        (void) expect_attach(s, 0, 0);
        report_state(s, RM__JOB_STATE__JOB_PENDING, "", 0, false, 10);
        expect_none(s);
        report_state(s, RM__JOB_STATE__JOB_PENDING, "no cores", 0, false, 20);
        expect_control(s, true, SIGTERM);
        attachment_destroy(s);
}

static void the_way_it_ended_is_told(void **state) {
        static const struct {
                Rm__JobState state;
                int exit_code;
                int code;
                const char *reason;
                const char *text;
        } examples[] = {
                { RM__JOB_STATE__JOB_COMPLETED, 0, 0, "", "" },
                { RM__JOB_STATE__JOB_FAILED, 3, 3, "", "" },
                { RM__JOB_STATE__JOB_FAILED, 139, 139, "", "" },
                { RM__JOB_STATE__JOB_FAILED, 137, 137, "why", "rm-mpirun: job 7 failed: why\n" },
                { RM__JOB_STATE__JOB_CANCELLED, 143, 143, "why", "rm-mpirun: job 7 was cancelled: why\n" },
                { RM__JOB_STATE__JOB_CANCELLED, 0, 1, "why", "rm-mpirun: job 7 was cancelled: why\n" },
                { RM__JOB_STATE__JOB_TIMEOUT, 143, 143, "why", "rm-mpirun: job 7 reached its time limit: why\n" },
                { RM__JOB_STATE__JOB_NODE_FAIL, 0, 1, "why", "rm-mpirun: job 7 lost a node: why\n" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
                struct attachment *s = begin_running(false);

                report_state(s, examples[i].state, examples[i].reason, examples[i].exit_code, true, 0);
                report_ok(s, expect_release(s), 0);
                expect_done(s, examples[i].code);
                expect_text(s, 2, examples[i].text);
                attachment_destroy(s);
        }
}

static void lost_ranks_are_told_once_and_together(void **state) {
        struct attachment *s = begin_running(false);
        uint64_t now = SECOND;

        (void) state;
        report_lost(s, 1, RM__JOB_STATE__JOB_RUNNING, 0, 0, now);
        report_lost(s, 1, RM__JOB_STATE__JOB_RUNNING, 0, 1, now);
        expect_text(s, 2, "");
        assert_true(attachment_due_usec(s) <= now + SECOND / 2);
        now = attachment_due_usec(s);
        attachment_tick(s, now);
        expect_text(s, 2, "rm-mpirun: rank 5 was lost: job 7 goes on with 7 of 8\n");
        attachment_tick(s, now + SECOND);
        expect_text(s, 2, "");
        report_lost(s, 1, RM__JOB_STATE__JOB_RUNNING, 0, 2, now);
        report_lost(s, 1, RM__JOB_STATE__JOB_RUNNING, 0, 3, now + 1);
        attachment_tick(s, now + SECOND);
        expect_text(s, 2, "rm-mpirun: ranks 2 7 were lost: job 7 goes on with 5 of 8\n");
        report_lost(s, 1, RM__JOB_STATE__JOB_RUNNING, 0, 8, now + SECOND);
        attachment_tick(s, now + 2 * SECOND);
        expect_text(s, 2, "rm-mpirun: ranks 0 1 3 4 6 were lost: none of job 7 is left\n");
        attachment_destroy(s);
}

/* Ranks that end because their job ends are no news. */
static void ranks_that_end_with_the_job_are_not_told(void **state) {
        struct attachment *s = begin_running(false);

        (void) state;
        report_lost(s, 1, RM__JOB_STATE__JOB_RUNNING, 0, 3, 0);
        report_lost(s, 1, RM__JOB_STATE__JOB_COMPLETING, RM__JOB_STATE__JOB_FAILED, 8, 1);
        attachment_tick(s, SECOND);
        expect_text(s, 2, "");
        attachment_destroy(s);
}

static void ranks_lost_by_a_restart_are_not_told(void **state) {
        struct attachment *s = begin_running(false);

        (void) state;
        report_lost(s, 1, RM__JOB_STATE__JOB_RUNNING, 0, 0, 0);
        report_lost(s, 1, RM__JOB_STATE__JOB_RUNNING, 0, 3, 0);
        report_lost(s, 2, RM__JOB_STATE__JOB_RECOVERING, 0, 0, 1);
        expect_text(
                s, 2,
                "rm-mpirun: job 7: node n3 is down; it starts again from its beginning, attempt 2 of 4; the output so far is of "
                "attempt 1\n");
        attachment_tick(s, SECOND);
        expect_text(s, 2, "");
        attachment_destroy(s);
}

static void a_passing_refusal_is_tried_again(void **state) {
        struct attachment *s = begin(false, false, 0);
        uint32_t id;

        (void) state;
        attachment_connected(s, 0);
        id = expect_attach(s, 0, 0);
        report_error(s, id, EAGAIN, "moving", SECOND);
        expect_none(s);
        attachment_tick(s, attachment_due_usec(s));
        id = expect(s, RM__LOCAL_REQUEST__BODY_ATTACH_JOB);
        /* We have just submitted it, so it is only unheard of yet; but not for ever. */
        report_error(s, id, ENOENT, "no job 7", 2 * SECOND);
        attachment_tick(s, attachment_due_usec(s));
        id = expect(s, RM__LOCAL_REQUEST__BODY_ATTACH_JOB);
        report_error(s, id, ENOENT, "no job 7", 20 * SECOND);
        expect_done(s, 1);
        expect_text(s, 2, "rm-mpirun: job 7: no job 7\n");
        attachment_destroy(s);
}

static void an_end_that_rmd_has_forgotten_is_remembered(void **state) {
        struct attachment *s = begin_running(false);
        uint32_t id;

        (void) state;
        report_state(s, RM__JOB_STATE__JOB_FAILED, "", 3, false, 0);
        attachment_lost(s, 1);
        attachment_connected(s, 2);
        id = expect_attach(s, 0, 0);
        report_error(s, id, ENOENT, "no job 7", 2);
        expect_done(s, 3);
        attachment_destroy(s);
}

static void the_end_waits_until_the_output_is_written_and_rmd_knows(void **state) {
        struct attachment *s = begin_running(false);
        int code;

        (void) state;
        report_output(s, 1, 0, "last words");
        report_state(s, RM__JOB_STATE__JOB_COMPLETED, "", 4, true, 0);
        expect_none(s);
        assert_false(attachment_done(s, &code));
        expect_text(s, 1, "last words");
        attachment_tick(s, SECOND);
        report_ok(s, expect_release(s), SECOND);
        expect_done(s, 4);
        attachment_destroy(s);
}

static void rmd_is_told_again_when_it_died_before_it_answered(void **state) {
        struct attachment *s = begin_running(false);
        uint32_t id;

        (void) state;
        report_output(s, 1, 0, "all");
        expect_text(s, 1, "all");
        report_state(s, RM__JOB_STATE__JOB_COMPLETED, "", 0, true, 0);
        (void) expect_release(s);
        attachment_lost(s, SECOND);
        assert_true(attachment_wants_connection(s));
        attachment_connected(s, 2 * SECOND);
        id = expect_attach(s, 3, 0);
        expect_none(s);
        report_error(s, id, EAGAIN, "not yet", 2 * SECOND);
        attachment_tick(s, attachment_due_usec(s));
        (void) expect(s, RM__LOCAL_REQUEST__BODY_ATTACH_JOB);
        report_state(s, RM__JOB_STATE__JOB_COMPLETED, "", 0, false, 3 * SECOND);
        expect_none(s);
        report_state(s, RM__JOB_STATE__JOB_COMPLETED, "", 0, true, 3 * SECOND);
        /* The node that keeps the log is away, too. */
        report_error(s, expect_release(s), EHOSTUNREACH, "no leader", 3 * SECOND);
        expect_none(s);
        assert_int_equal(attachment_due_usec(s), 3 * SECOND + SECOND / 10);
        attachment_tick(s, attachment_due_usec(s));
        report_ok(s, expect_release(s), 4 * SECOND);
        expect_done(s, 0);
        attachment_destroy(s);
}

/* The node keeps the output then, which is no reason to stay. */
static void the_end_does_not_wait_for_ever(void **state) {
        struct attachment *s[3];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(s); i++) {
                uint32_t id;

                s[i] = begin_running(false);
                report_state(s[i], RM__JOB_STATE__JOB_FAILED, "", 3, true, 0);
                id = expect_release(s[i]);
                if (i == 0) {
                        attachment_lost(s[i], SECOND);
                        assert_int_equal(attachment_due_usec(s[i]), 5 * SECOND);
                        attachment_tick(s[i], 5 * SECOND);
                } else if (i == 1) {
                        report_error(s[i], id, ENOENT, "no such job", SECOND);
                } else {
                        attachment_signal(s[i], SIGINT, SECOND);
                }
                expect_done(s[i], 3);
                expect_text(s[i], 2, "");
                attachment_destroy(s[i]);
        }
}

static void who_only_looks_on_leaves_the_output(void **state) {
        struct attachment_config config = { .program = "rmctl", .job = 7, .away_usec = 60 * SECOND };
        struct attachment *s = attachment_create(&config, 0);

        (void) state;
        attachment_connected(s, 0);
        (void) expect_attach(s, 0, 0);
        report_state(s, RM__JOB_STATE__JOB_COMPLETED, "", 0, true, 0);
        expect_none(s);
        expect_done(s, 0);
        attachment_destroy(s);
}

static void rmd_may_be_away_for_some_time(void **state) {
        struct attachment *s = begin_running(false);
        int code;

        (void) state;
        attachment_lost(s, 10 * SECOND);
        attachment_tick(s, 14 * SECOND);
        expect_text(s, 2, "");
        attachment_tick(s, 16 * SECOND);
        assert_true(attachment_output(s, 2)->used > 0);
        assert_false(attachment_done(s, &code));
        attachment_lost(s, 69 * SECOND); /* one more try that failed does not count anew */
        attachment_tick(s, 70 * SECOND);
        expect_done(s, 3);
        attachment_destroy(s);
}

static void report_needs_leader(struct attachment *s, Rm__JobState state, const char *word, bool needs_leader, uint64_t now) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__JobUpdate update = RM__JOB_UPDATE__INIT;
        Rm__JobView view = RM__JOB_VIEW__INIT;
        Rm__Job job = RM__JOB__INIT;

        job.id = 7;
        job.state = state;
        view.job = &job;
        view.state = (char *) word;
        update.job = &view;
        update.needs_leader = needs_leader;
        reply.body_case = RM__LOCAL_REPLY__BODY_JOB_UPDATE;
        reply.job_update = &update;
        attachment_reply(s, &reply, now);
}

static void a_job_that_waits_for_a_leader_says_so(void **state) {
        static const char again[] = "rm-mpirun: job 7: there is a leader again\n";
        struct attachment *s = begin(false, false, 0);

        (void) state;
        attachment_connected(s, 0);
        (void) expect_attach(s, 0, 0);
        report_needs_leader(s, RM__JOB_STATE__JOB_PENDING, "PENDING", false, 0);
        attachment_tick(s, SECOND);
        expect_text(s, 2, "rm-mpirun: job 7 waits to be placed\n");
        /* An election: nobody needs to know. */
        report_needs_leader(s, RM__JOB_STATE__JOB_PENDING, "PENDING", true, 2 * SECOND);
        report_needs_leader(s, RM__JOB_STATE__JOB_PENDING, "PENDING", false, 3 * SECOND);
        attachment_tick(s, 19 * SECOND);
        report_needs_leader(s, RM__JOB_STATE__JOB_PENDING, "PENDING", true, 20 * SECOND);
        assert_int_equal(attachment_due_usec(s), 30 * SECOND);
        attachment_tick(s, 29 * SECOND);
        expect_text(s, 2, "");
        attachment_tick(s, 30 * SECOND);
        expect_text(s, 2, "rm-mpirun: job 7 is PENDING, but no leader can be reached; still waiting\n");
        assert_int_equal(attachment_due_usec(s), ATTACHMENT_NEVER_USEC);
        report_needs_leader(s, RM__JOB_STATE__JOB_PENDING, "PENDING", true, 50 * SECOND);
        expect_text(s, 2, "");
        report_needs_leader(s, RM__JOB_STATE__JOB_PENDING, "PENDING", false, 60 * SECOND);
        expect_text(s, 2, again);
        report_needs_leader(s, RM__JOB_STATE__JOB_STARTING, "STARTING", false, 60 * SECOND);
        expect_text(s, 2, "rm-mpirun: job 7 starts\n");
        /* mpirun has ended, and the log cannot say so. */
        report_needs_leader(s, RM__JOB_STATE__JOB_RUNNING, "RUNNING", false, 61 * SECOND);
        expect_text(s, 2, "");
        report_needs_leader(s, RM__JOB_STATE__JOB_RUNNING, "RUNNING", true, 62 * SECOND);
        attachment_tick(s, 72 * SECOND);
        expect_text(s, 2, "rm-mpirun: the program of job 7 has ended, but no leader can be reached; still waiting\n");
        report_state(s, RM__JOB_STATE__JOB_COMPLETED, "", 0, true, 80 * SECOND);
        expect_text(s, 2, again);
        attachment_destroy(s);
}

static void who_interrupts_is_not_told_of_the_leader_too(void **state) {
        struct attachment *s = begin(false, false, 0);

        (void) state;
        attachment_connected(s, 0);
        (void) expect_attach(s, 0, 0);
        report_needs_leader(s, RM__JOB_STATE__JOB_STARTING, "STARTING", true, 0);
        attachment_signal(s, SIGTERM, SECOND);
        attachment_tick(s, 15 * SECOND);
        expect_text(s, 2, "");
        attachment_destroy(s);
}

/* mpirun has got the signal and ended, which the log cannot hear. */
static void a_signal_ends_us_when_the_end_of_the_job_cannot_be_recorded(void **state) {
        struct attachment *s = begin_running(false);
        int code;

        (void) state;
        attachment_signal(s, SIGINT, SECOND);
        report_ok(s, expect(s, RM__LOCAL_REQUEST__BODY_SIGNAL_JOB), SECOND);
        attachment_tick(s, 30 * SECOND);
        assert_int_equal(attachment_due_usec(s), ATTACHMENT_NEVER_USEC); /* the program takes its time */
        report_needs_leader(s, RM__JOB_STATE__JOB_RUNNING, "RUNNING", true, 31 * SECOND);
        assert_int_equal(attachment_due_usec(s), 41 * SECOND);
        attachment_tick(s, 40 * SECOND);
        expect_text(s, 2, "");
        assert_false(attachment_done(s, &code));
        attachment_tick(s, 41 * SECOND);
        expect_text(s, 2,
                    "rm-mpirun: the program of job 7 has ended, but no leader can be reached\n"
                    "rm-mpirun: job 7 is left to itself: 'rmctl attach-job 7' gets it back, 'rmctl cancel-job 7' ends it\n");
        expect_done(s, 128 + SIGINT);
        attachment_destroy(s);
}

/* The signal comes when that is known already. */
static void a_late_signal_ends_us_as_well(void **state) {
        struct attachment *s = begin_running(false);
        int code;

        (void) state;
        report_needs_leader(s, RM__JOB_STATE__JOB_RUNNING, "RUNNING", true, 0);
        attachment_tick(s, 10 * SECOND);
        attachment_signal(s, SIGTERM, 50 * SECOND);
        report_error(s, expect(s, RM__LOCAL_REQUEST__BODY_SIGNAL_JOB), ESRCH, "it has ended", 50 * SECOND);
        assert_int_equal(attachment_due_usec(s), 60 * SECOND);
        attachment_tick(s, 59 * SECOND);
        assert_false(attachment_done(s, &code));
        attachment_tick(s, 60 * SECOND);
        expect_done(s, 128 + SIGTERM);
        attachment_destroy(s);
}

/* ---- a job that starts again ---- */

#define AGAIN                                                                                                                      \
        "rm-mpirun: job 7: node n3 is down; it starts again from its beginning, attempt 2 of 4; the output so far is of "          \
        "attempt 1\n"

/* RUNNING, in its first attempt. */
static struct attachment *begin_restartable(bool input, bool wait_set) {
        struct attachment *s = begin(input, wait_set, 5 * SECOND);

        attachment_connected(s, 0);
        (void) expect_attach(s, 0, 0);
        report_attempt(s, 1, RM__JOB_STATE__JOB_RUNNING, "", 0, false, 0);
        return s;
}

static void output_of_a_next_attempt_begins_anew(void **state) {
        struct attachment *s = begin_restartable(false, true);

        (void) state;
        report_output_of(s, 1, 1, 0, "one two ");
        report_attempt(s, 2, RM__JOB_STATE__JOB_RECOVERING, "gone", 0, false, 100 * SECOND);
        expect_text(s, 1, "one two ");
        expect_text(s, 2, AGAIN);
        report_output_of(s, 1, 1, 8, "late"); /* of the one before */
        expect_text(s, 1, "");
        /* The job waits for a moment, of which --wait says nothing. */
        report_attempt(s, 2, RM__JOB_STATE__JOB_PENDING, "waits", 0, false, 100 * SECOND);
        report_attempt(s, 2, RM__JOB_STATE__JOB_RUNNING, "", 0, false, 100 * SECOND + 1000);
        report_output_of(s, 2, 1, 0, "one ");
        /* The node's rmd was restarted, and goes by its last state. */
        attachment_lost(s, 101 * SECOND);
        attachment_connected(s, 101 * SECOND);
        (void) expect_attach(s, 4, 0);
        report_attempt(s, 1, RM__JOB_STATE__JOB_RUNNING, "", 0, false, 101 * SECOND);
        report_attempt(s, 2, RM__JOB_STATE__JOB_RUNNING, "", 0, false, 101 * SECOND);
        report_output_of(s, 2, 1, 4, "two ");
        expect_text(s, 1, "one two ");
        expect_text(s, 2, "");
        expect_none(s);
        attachment_destroy(s);
}

static void a_next_attempt_that_waits_says_so(void **state) {
        struct attachment *s = begin_restartable(false, true);

        (void) state;
        report_attempt(s, 2, RM__JOB_STATE__JOB_PENDING, "waits for 4 cores", 0, false, 100 * SECOND);
        expect_text(s, 2, AGAIN);
        assert_int_equal(attachment_due_usec(s), 101 * SECOND);
        attachment_tick(s, 101 * SECOND);
        expect_text(s, 2, "rm-mpirun: job 7 waits for 4 cores\n");
        attachment_tick(s, 200 * SECOND);
        expect_none(s);
        attachment_destroy(s);
}

/* Nothing takes signals between two attempts. */
static void an_interrupt_between_two_attempts_cancels(void **state) {
        struct attachment *s = begin_restartable(false, false);

        (void) state;
        report_attempt(s, 2, RM__JOB_STATE__JOB_RECOVERING, "gone", 0, false, 0);
        attachment_signal(s, SIGINT, 0);
        expect_control(s, true, SIGINT);
        attachment_destroy(s);
}

static void a_next_attempt_gets_the_same_input(void **state) {
        struct attachment *s = begin_restartable(true, false);

        (void) state;
        attachment_input(s, "abc", 3);
        expect_input(s, 0, "abc", false);
        report_ack(s, 3);
        attachment_input(s, "de", 2);
        attachment_input_eof(s);
        expect_input(s, 3, "de", false);
        expect_input(s, 5, "", true);
        report_ack(s, 5);
        report_attempt(s, 2, RM__JOB_STATE__JOB_RECOVERING, "gone", 0, false, 0);
        expect_none(s);
        report_attempt(s, 2, RM__JOB_STATE__JOB_RUNNING, "", 0, false, 0);
        expect_input(s, 0, "abcde", true);
        attachment_destroy(s);
}

/* 9 MiB have been taken: more than is kept. */
static void input_that_is_not_kept_ends_the_job(void **state) {
        struct attachment *s = begin_restartable(true, false);
        static char chunk[65536];
        int code;

        (void) state;
        for (uint64_t taken = 0; taken < (UINT64_C(9) << 20); taken += sizeof(chunk)) {
                assert_true(attachment_input_space(s) >= sizeof(chunk));
                attachment_input(s, chunk, sizeof(chunk));
                (void) expect(s, RM__LOCAL_REQUEST__BODY_JOB_INPUT);
                report_ack(s, taken + sizeof(chunk));
        }
        report_attempt(s, 2, RM__JOB_STATE__JOB_RECOVERING, "gone", 0, false, 0);
        expect_control(s, true, SIGTERM);
        expect_text(s, 2,
                    AGAIN
                    "rm-mpirun: job 7 is cancelled: it cannot start again, as rm-mpirun does not have all of its standard input "
                    "any more\n");
        report_attempt(s, 2, RM__JOB_STATE__JOB_CANCELLED, "cancelled by alice", 143, true, 0);
        report_ok(s, expect_release(s), 0);
        assert_true(attachment_done(s, &code));
        assert_int_equal(code, 1);
        attachment_destroy(s);
}

/* The kept input is more than rmd takes at once. */
static void much_input_is_repeated_in_parts(void **state) {
        struct attachment *s = begin_restartable(true, false);
        static char chunk[65536];
        uint64_t sent = 0;

        (void) state;
        for (uint64_t taken = 0; taken < (UINT64_C(2) << 20); taken += sizeof(chunk)) {
                attachment_input(s, chunk, sizeof(chunk));
                (void) expect(s, RM__LOCAL_REQUEST__BODY_JOB_INPUT);
                report_ack(s, taken + sizeof(chunk));
        }
        report_attempt(s, 2, RM__JOB_STATE__JOB_RUNNING, "", 0, false, 0);
        while (attachment_requests(s)->used > 0) {
                (void) expect(s, RM__LOCAL_REQUEST__BODY_JOB_INPUT);
                sent += sizeof(chunk);
        }
        assert_int_equal(sent, 512 << 10);
        report_ack(s, 65536);
        (void) expect(s, RM__LOCAL_REQUEST__BODY_JOB_INPUT);
        expect_none(s);
        attachment_destroy(s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(output_is_neither_lost_nor_repeated),
                cmocka_unit_test(a_hole_in_the_output_is_told),
                cmocka_unit_test(output_that_nobody_reads_is_dropped),
                cmocka_unit_test(a_reader_that_goes_ends_the_job),
                cmocka_unit_test(output_that_cannot_be_written_is_told),
                cmocka_unit_test(input_is_sent_again_from_the_last_acknowledged_byte),
                cmocka_unit_test(input_waits_until_the_job_runs),
                cmocka_unit_test(input_is_bounded_and_ends_when_refused),
                cmocka_unit_test(an_attached_front_end_learns_where_input_stands),
                cmocka_unit_test(interrupts_grow_stronger),
                cmocka_unit_test(a_waiting_job_is_cancelled_by_an_interrupt),
                cmocka_unit_test(unconfirmed_signals_are_sent_again),
                cmocka_unit_test(a_signal_that_nobody_confirms_becomes_a_cancel_and_then_our_end),
                cmocka_unit_test(a_signal_that_is_confirmed_is_all_we_do),
                cmocka_unit_test(an_interrupt_without_a_connection_ends_us),
                cmocka_unit_test(a_signal_that_cannot_be_taken_now_is_sent_again),
                cmocka_unit_test(a_stop_does_not_come_after_what_undoes_it),
                cmocka_unit_test(signals_that_wait_leave_room_for_the_end),
                cmocka_unit_test(waiting_is_told_after_a_second_and_when_it_changes),
                cmocka_unit_test(a_quick_start_is_silent),
                cmocka_unit_test(waiting_is_given_up),
                cmocka_unit_test(not_waiting_at_all),
                cmocka_unit_test(the_way_it_ended_is_told),
                cmocka_unit_test(lost_ranks_are_told_once_and_together),
                cmocka_unit_test(ranks_lost_by_a_restart_are_not_told),
                cmocka_unit_test(ranks_that_end_with_the_job_are_not_told),
                cmocka_unit_test(a_passing_refusal_is_tried_again),
                cmocka_unit_test(an_end_that_rmd_has_forgotten_is_remembered),
                cmocka_unit_test(the_end_waits_until_the_output_is_written_and_rmd_knows),
                cmocka_unit_test(rmd_is_told_again_when_it_died_before_it_answered),
                cmocka_unit_test(the_end_does_not_wait_for_ever),
                cmocka_unit_test(who_only_looks_on_leaves_the_output),
                cmocka_unit_test(rmd_may_be_away_for_some_time),
                cmocka_unit_test(a_job_that_waits_for_a_leader_says_so),
                cmocka_unit_test(who_interrupts_is_not_told_of_the_leader_too),
                cmocka_unit_test(a_signal_ends_us_when_the_end_of_the_job_cannot_be_recorded),
                cmocka_unit_test(a_late_signal_ends_us_as_well),
                cmocka_unit_test(output_of_a_next_attempt_begins_anew),
                cmocka_unit_test(a_next_attempt_that_waits_says_so),
                cmocka_unit_test(an_interrupt_between_two_attempts_cancels),
                cmocka_unit_test(a_next_attempt_gets_the_same_input),
                cmocka_unit_test(input_that_is_not_kept_ends_the_job),
                cmocka_unit_test(much_input_is_repeated_in_parts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
