#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/fault.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/image/known.h"
#include "daemon/mover/gather.h"
#include "daemon/mover/mover.h"
#include "daemon/mover/outgoing.h"
#include "daemon/mover/postcopy.h"
#include "daemon/mover/precopy.h"
#include "daemon/mover/rounds.h"

/* While it waits rmd hears of it at least so often. */
#define WAIT_MSEC 250
/* rmd has a control group ready at once, or not at all. */
#define SLOW_WAIT_USEC 500000U
/* From the end of what goes ahead to when the freeze has surely begun, which threads without
 * processor time would hold up. */
#define SLOW_AFTER_MSEC 5

struct sender {
        struct control *control;
        struct outgoing out;
        struct gather gather;
        struct image_known *known;
        uint64_t connect_usec;
};

static void figures_fill(struct sender *s, Rm__MoverFigures *f) {
        gather_figures(&s->gather, f);
        f->connect_usec = s->connect_usec;
}

static int tree_poll(void *ctx, const char *path, struct rm_error *err) {
        struct sender *s = ctx;
        int r = control_check(s->control, err);

        if (r < 0)
                return r;
        gather_progress(&s->gather, path);
        return outgoing_check(&s->out, err);
}

/* As tree_poll(), and not before more may be sent. */
static int ahead_poll(void *ctx, const char *what, struct rm_error *err) {
        struct sender *s = ctx;
        int r = tree_poll(s, what, err);

        return r == 0 ? outgoing_hold(&s->out, err) : r;
}

static int idle(void *ctx, struct rm_error *err) {
        struct sender *s = ctx;

        return outgoing_idle(&s->out, err);
}

static int link_readable(void *ctx, struct rm_error *err) {
        struct gather *g = ctx;
        struct sender *s = g->hooks_trees.ctx;

        return outgoing_refusal(&s->out, err);
}

static int prepare(struct sender *s, const Rm__MoverSend *m, struct rm_error *err) {
        struct link_config config = {
                .key_file = m->key_file,
                .second_key_file = "",
                .cluster = m->cluster,
                .token = m->token.data,
                .token_bytes = m->token.len,
                .timeout_msec = m->timeout_msec,
        };
        uint64_t start_usec = now_usec();
        int r;

        r = fault_wait("mover.send.connect", err);
        if (r == 0)
                r = outgoing_connect(&s->out, config, m->host, m->port, err);
        if (r == 0)
                r = capture_listen(m->images_dir, m->criu_uid, &s->gather.capture, err);
        if (r < 0)
                return r;
        s->connect_usec = now_usec() - start_usec;
        s->gather.hooks_capture.link_fd = link_fd(s->out.link);
        s->known = image_known_create();
        r = outgoing_open(&s->out, m->codec, image_known_delta(s->known), err);
        s->gather.writer = s->out.writer;
        if (r == 0)
                control_send_ready(s->control);
        return r;
}

/* The group that rmd has for it, or an empty name. */
static int slow_ask(struct sender *s, const char **ret_dir, unsigned *ret_cores, struct rm_error *err) {
        uint64_t end_usec = now_usec() + SLOW_WAIT_USEC, bytes, usec;
        int r = 0;

        pages_last_round(s->gather.pages, &bytes, &usec);
        control_send_wants_slow(s->control, bytes, usec);
        while (r >= 0 && !s->control->slow && now_usec() < end_usec) {
                struct pollfd fds[1];

                r = control_poll(s->control, fds, 1, WAIT_MSEC, err);
        }
        if (r < 0)
                return r;
        *ret_dir = s->control->slow ? s->control->slow->slow->group_dir : "";
        *ret_cores = s->control->slow ? s->control->slow->slow->cores : 1;
        return 0;
}

/* A program that writes its memory faster than the link carries it. */
static int send_slowly(struct sender *s, uint64_t limit_usec, struct rm_error *err) {
        struct slow *slow = NULL;
        const char *dir;
        unsigned cores;
        int r;

        if (limit_usec == 0 || !pages_slow_pays(s->gather.pages, limit_usec))
                return 0;
        r = slow_ask(s, &dir, &cores, err);
        if (r < 0 || !*dir)
                return r;
        r = slow_open(dir, cores, &slow);
        if (r < 0) {
                log_warn("the processes cannot be slowed down: %s: %s", dir, strerror(-r));
                return 0;
        }
        return pages_slow_rounds(s->gather.pages, slow, limit_usec, err);
}

/* Sends as many rounds as are worth it; or the memory is left here, to follow when the group runs
 * at the destination. */
static int send_pages(struct sender *s, bool postcopy, bool *ret_left, struct rm_error *err) {
        uint64_t usec;
        int r = postcopy ? pages_probe(s->gather.pages, ret_left, err) : 0;

        if (r == 0 && !*ret_left)
                r = pages_rounds(s->gather.pages, err);
        if (*ret_left)
                pages_last_round(s->gather.pages, &s->gather.later_bytes, &usec);
        return r;
}

/* Ends pre-copy after the last round. */
static int end_rounds(struct sender *s, const Rm__MoverPrecopy *m, struct rm_error *err) {
        uint64_t bytes, usec;
        int r = 0;

        pages_last_round(s->gather.pages, &bytes, &usec);
        if (!m->postcopy || !rounds_too_long(bytes, usec))
                r = pages_rounds(s->gather.pages, err);
        if (r < 0)
                return r;
        pages_last_round(s->gather.pages, &bytes, &usec);
        if (!m->postcopy || !rounds_too_long(bytes, usec))
                return send_slowly(s, m->slow_usec, err);
        pages_postpone(s->gather.pages);
        s->gather.later_bytes = bytes;
        return 0;
}

/* Everything that CRIU would have in its images may go ahead by hashes; what is tracked needs
 * none. */
static int send_ahead(struct sender *s, struct rm_error *err) {
        const Rm__MoverPrecopy *m = s->control->precopy->precopy;
        bool left = false;
        int r = 0;

        if (m->pages)
                r = pages_begin(&(struct pages_group) { m->procs_file, m->scan_dir }, s->control->setup->send->images_dir,
                                s->out.writer, &s->gather.hooks_ahead, &s->gather.pages, &s->gather.untracked, err);
        if (s->gather.untracked.code < 0)
                log_info("private memory is not tracked: %s", error_text(&s->gather.untracked));
        if (r == 0)
                r = fault_wait("mover.send.tracked", err);
        if (r == 0 && s->gather.pages)
                r = send_pages(s, m->postcopy, &left, err);
        if (r == 0 && link_peer_files_ahead(s->out.link))
                r = gather_files_ahead(&s->gather, m, err);
        if (r == 0)
                r = precopy_run(m->procs_file, s->gather.pages != NULL, s->gather.files, s->out.writer, s->known,
                                &s->gather.hooks_ahead, &s->gather.ahead.rounds, err);
        if (r == 0)
                r = gather_announce(&s->gather, m, err);
        if (r < 0 || !s->gather.pages)
                return r;
        r = pages_save_flags(s->gather.pages, err);
        if (r == 0 && !left)
                r = end_rounds(s, m, err);
        s->gather.ahead.rounds = pages_figures(s->gather.pages)->rounds;
        return r;
}

static int precopy(struct sender *s, struct rm_error *err) {
        const struct image_figures begin = *image_writer_figures(s->out.writer);
        Rm__MoverFigures figures = RM__MOVER_FIGURES__INIT;
        uint64_t begin_usec = now_usec();
        int r = fault_wait("mover.send.precopy", err);

        s->out.pace.bytes_per_sec = s->control->precopy->precopy->bytes_per_sec;
        compress_limit(s->out.compress, s->out.pace.bytes_per_sec);
        if (r == 0)
                r = send_ahead(s, err);
        compress_limit(s->out.compress, 0);
        if (r < 0)
                return error_prefix(err, "pre-copy memory");
        gather_count_ahead(&s->gather, &begin, begin_usec);
        gather_figures_ahead(&s->gather, &figures);
        control_send_precopied(s->control, &figures);
        return 0;
}

/* Between READY and START the other side has nothing to say. */
static int wait_start(struct sender *s, struct rm_error *err) {
        bool ahead = false, slow = true;

        while (!s->control->started) {
                struct pollfd fds[2] = { { .fd = -1 }, { .fd = link_fd(s->out.link), .events = POLLIN } };
                int r;

                if (s->control->precopy && !ahead) {
                        ahead = true;
                        r = precopy(s, err);
                } else {
                        r = control_poll(s->control, fds, 2, ahead && slow ? SLOW_AFTER_MSEC : -1, err);
                        if (ahead && slow && s->gather.pages)
                                pages_slow_end(s->gather.pages);
                        slow = slow && !ahead;
                        if (r > 0)
                                r = outgoing_refusal(&s->out, err);
                }
                if (r < 0)
                        return r;
        }
        s->gather.start_usec = now_usec();
        return fault_wait("mover.send.start", err);
}

static int capture(struct sender *s, struct rm_error *err) {
        int r = gather_images(&s->gather, err);

        if (r == 0)
                r = fault_wait("mover.send.images", err);
        if (r < 0 || !s->gather.pages)
                return r;
        r = gather_memory(&s->gather, err);
        return r < 0 ? r : fault_wait("mover.send.pages", err);
}

static int send_trees(struct sender *s, const Rm__MoverDumpDone *m, struct rm_error *err) {
        int r = gather_trees(&s->gather, m, err);

        return r < 0 ? r : fault_wait("mover.send.trees", err);
}

static int send_end(struct sender *s, struct rm_error *err) {
        Rm__MoverFigures figures = RM__MOVER_FIGURES__INIT;
        int r = outgoing_end(&s->out, "mover.send.end", err);

        if (r < 0)
                return r;
        figures_fill(s, &figures);
        control_send_sent(s->control, &figures);
        return fault_wait("mover.send.sent", err);
}

static int wait_ack(struct sender *s, struct rm_error *err) {
        Rm__MoverFigures figures = RM__MOVER_FIGURES__INIT;
        int r = outgoing_wait_ack(&s->out, err);

        if (r < 0)
                return r;
        figures_fill(s, &figures);
        figures.end_usec = now_usec() - s->out.end_at_usec;
        figures.total_usec = now_usec() - s->gather.start_usec;
        control_send_acknowledged(s->control, &figures);
        return 0;
}

static int run(struct sender *s, struct rm_error *err) {
        int r = control_wait_setup(s->control, RM__MOVER_COMMAND__BODY_SEND, err);

        if (r == 0)
                r = prepare(s, s->control->setup->send, err);
        if (r == 0)
                r = wait_start(s, err);
        if (r == 0)
                r = capture(s, err);
        if (r == 0)
                r = send_trees(s, s->control->dump_done->dump_done, err);
        if (r == 0)
                r = send_end(s, err);
        return r < 0 ? r : wait_ack(s, err);
}

/* All else has arrived; if this fails, the other side hears it by the end of the connection. */
static void send_later(struct sender *s) {
        struct postcopy_figures figures;
        struct rm_error err = { 0 };
        int r = postcopy_send(s->control, s->out.link, s->gather.pages, &figures, &err);

        if (r < 0)
                log_error("post-copy: %s", error_text(&err));
        else
                log_info("post-copy: %" PRIu64 " MiB sent in %" PRIu64 " ms, %" PRIu64 " pages were waited for",
                         figures.bytes >> 20, figures.usec / 1000, figures.requested);
}

int mover_send(struct control *control) {
        struct sender s = { .control = control, .out = { .control = control } };
        struct mover_hooks hooks = { .ctx = &s, .poll = tree_poll, .idle = idle };
        struct rm_error err = { 0 };
        int r;

        gather_prepare(&s.gather, control, &hooks);
        s.gather.hooks_frozen.sums = getenv("RM_COMPARE_PAGES") != NULL;
        s.gather.hooks_ahead = (struct mover_hooks) { .ctx = &s, .poll = ahead_poll, .idle = idle, .deadline = &control->deadline };
        s.gather.hooks_capture.link_readable = link_readable;
        r = run(&s, &err);
        if (r < 0) {
                outgoing_last_words(&s.out, &err);
                log_error("send: %s", error_text(&err));
                control_send_failed(control, &err, s.out.end_mark_sent, s.out.by_peer);
        } else if (s.gather.pages && pages_later_bytes(s.gather.pages) > 0) {
                send_later(&s);
        }
        /* Now that rmd knows: the processes that go on here, after a failure, cannot map memory
         * while this lasts. */
        gather_finish(&s.gather);
        outgoing_finish(&s.out);
        image_known_destroy(s.known);
        return r;
}
