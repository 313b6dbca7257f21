#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/image/known.h"
#include "daemon/image/tree.h"
#include "daemon/mover/capture.h"
#include "daemon/mover/compress.h"
#include "daemon/mover/fault.h"
#include "daemon/mover/files.h"
#include "daemon/mover/mover.h"
#include "daemon/mover/pace.h"
#include "daemon/mover/pages.h"
#include "daemon/mover/postcopy.h"
#include "daemon/mover/precopy.h"
#include "daemon/mover/rounds.h"
#include "daemon/mover/sink.h"

/* While it waits rmd hears of it at least so often. */
#define WAIT_MSEC 250
/* rmd has a control group ready at once, or not at all. */
#define SLOW_WAIT_USEC 500000U
/* From the end of what goes ahead to when the freeze has surely begun, which threads without processor time would hold up. */
#define SLOW_AFTER_MSEC 5

/* What was sent before the freeze. */
struct ahead {
        uint64_t raw_bytes;
        uint64_t wire_bytes;
        uint64_t rounds;
        uint64_t usec;
};

struct sender {
        struct control *control;
        struct link *link;
        struct capture *capture;
        struct sink *sink;
        struct compress *compress;
        struct image_writer *writer;
        struct image_known *known;
        struct pages *pages; /* NULL: private memory is in CRIU's images */
        struct files *files; /* NULL: no files went ahead */
        struct mover_hooks hooks_ahead;
        struct mover_hooks hooks_frozen;
        struct mover_hooks hooks_trees;
        struct capture_hooks hooks_capture;
        struct rm_error untracked; /* why there are no `pages`, though they were asked for */
        struct ahead ahead;
        struct pace pace; /* of what goes ahead */
        uint64_t later_bytes; /* before the freeze: about so much; 0: none */
        struct capture_figures captured;
        struct image_tree_figures trees;
        bool end_mark_sent;
        bool by_peer;

        uint64_t connect_usec;
        uint64_t start_usec; /* the freeze */
        uint64_t captured_at_usec;
        uint64_t trees_at_usec;
        uint64_t dump_done_at_usec;
        uint64_t end_at_usec;
        uint64_t images_raw_bytes;
};

static void figures_fill_ahead(struct sender *s, Rm__MoverFigures *f) {
        f->ahead_bytes = s->ahead.wire_bytes;
        f->ahead_usec = s->ahead.usec;
        f->ahead_rounds = s->ahead.rounds;
        f->pages = s->pages != NULL;
        f->later_bytes = s->later_bytes;
        f->hurry_usec = s->control->deadline.cut_usec;
        if (s->pages) {
                f->probe_bytes = pages_figures(s->pages)->probe_bytes;
                f->probe_usec = pages_figures(s->pages)->probe_usec;
        }
        if (s->untracked.code < 0)
                f->untracked = s->untracked.text;
}

static void figures_fill(struct sender *s, Rm__MoverFigures *f) {
        const struct image_figures *i = image_writer_figures(s->writer);

        f->objects = i->objects;
        f->raw_bytes = i->raw_bytes - s->ahead.raw_bytes;
        f->read_bytes = s->captured.read_bytes + s->trees.read_bytes;
        f->zero_bytes = i->zero_bytes;
        f->have_bytes = i->have_bytes;
        f->wire_bytes = i->wire_bytes;
        f->images_raw_bytes = s->images_raw_bytes;
        figures_fill_ahead(s, f);
        if (s->pages) {
                f->last_bytes = pages_figures(s->pages)->last_bytes;
                f->last_usec = pages_figures(s->pages)->last_usec;
                f->slow_usec = pages_figures(s->pages)->slow_usec;
        }
        f->connect_usec = s->connect_usec;
        f->capture_usec = s->captured_at_usec - s->start_usec;
        f->dump_wait_usec = s->captured.wait_usec;
        f->trees_usec = s->trees_at_usec - s->captured_at_usec;
        f->sockets_skipped = s->trees.sockets_skipped;
        f->saved_bytes = i->saved_bytes;
        f->lz4_bytes = i->coded_bytes[IMAGE_CODEC_LZ4];
        f->zstd_bytes = i->coded_bytes[IMAGE_CODEC_ZSTD];
}

static void progress(void *ctx, const char *name) {
        struct sender *s = ctx;
        const struct image_figures *i = image_writer_figures(s->writer);

        control_send_progress(s->control, i->raw_bytes, i->wire_bytes, s->start_usec ? now_usec() - s->start_usec : 0, name);
}

/* The other side has spoken while it should listen: it says why it cannot go on. */
static int peer_refusal(void *ctx, struct rm_error *err) {
        struct sender *s = ctx;
        Rm__MoverPeerMessage *m = NULL;
        int r;

        r = link_receive(s->link, &m, err);
        if (r < 0)
                return r;
        s->by_peer = true;
        if (m->body_case == RM__MOVER_PEER_MESSAGE__BODY_ACK && m->ack->code < 0)
                r = error_set(err, m->ack->code, "the destination: %s", m->ack->text);
        else
                r = error_set(err, -EPROTO, "unexpected data from the destination");
        rm__mover_peer_message__free_unpacked(m, NULL);
        return r;
}

static int idle(void *ctx, struct rm_error *err) {
        struct sender *s = ctx;

        return sink_flush(s->sink, err);
}

static int tree_poll(void *ctx, const char *path, struct rm_error *err) {
        struct sender *s = ctx;
        int r = control_check(s->control, err);

        if (r < 0)
                return r;
        progress(s, path);
        return link_peer_speaks(s->link) ? peer_refusal(s, err) : 0;
}

/* As tree_poll(), and not before more may be sent. */
static int ahead_poll(void *ctx, const char *what, struct rm_error *err) {
        struct sender *s = ctx;
        int r = tree_poll(s, what, err);
        uint64_t wait_usec;

        while (r == 0 && (wait_usec = pace_wait_usec(&s->pace, image_writer_figures(s->writer)->wire_bytes, now_usec())) > 0) {
                struct pollfd fds[2] = { { .fd = -1 }, { .fd = link_fd(s->link), .events = POLLIN } };
                int msec = wait_usec < WAIT_MSEC * 1000 ? (int) (wait_usec / 1000) + 1 : WAIT_MSEC;

                r = sink_flush(s->sink, err);
                if (r == 0)
                        r = control_poll(s->control, fds, 2, msec, err);
                if (r >= 0)
                        r = tree_poll(s, what, err);
        }
        return r;
}

static int setup_check(const Rm__MoverSend *m, struct rm_error *err) {
        if (m->token.len < MOVER_TOKEN_MIN_BYTES || m->token.len > MOVER_TOKEN_MAX_BYTES)
                return error_set(err, -EINVAL, "a token of %zu bytes", m->token.len);
        if (m->port == 0 || m->port > UINT16_MAX)
                return error_set(err, -EINVAL, "port %u", m->port);
        return 0;
}

static int prepare(struct sender *s, const Rm__MoverSend *m, struct rm_error *err) {
        struct link_config config = {
                .key_file = m->key_file,
                .second_key_file = "",
                .cluster = m->cluster,
                .token = m->token.data,
                .token_bytes = m->token.len,
                .timeout_msec = m->timeout_msec ? m->timeout_msec : MOVER_TIMEOUT_MSEC,
        };
        uint64_t start_usec = now_usec();
        int r;

        r = setup_check(m, err);
        if (r == 0)
                r = fault_point("mover.send.connect", err);
        if (r == 0)
                r = link_connect(s->control, &config, m->host, (uint16_t) m->port, &s->link, err);
        if (r == 0)
                r = capture_listen(m->images_dir, m->criu_uid, &s->capture, err);
        if (r < 0)
                return r;
        s->connect_usec = now_usec() - start_usec;
        s->hooks_capture.link_fd = link_fd(s->link);
        s->sink = sink_create(s->link);
        s->known = image_known_create();
        s->compress = compress_create(s->link, m->codec);
        r = image_writer_create(sink_image(s->sink), image_known_delta(s->known), compress_encoder(s->compress), &s->writer, err);
        if (r == 0)
                control_send_ready(s->control);
        return r;
}

/* The group that rmd has for it, or an empty name. */
static int slow_ask(struct sender *s, const char **ret_dir, unsigned *ret_cores, struct rm_error *err) {
        uint64_t end_usec = now_usec() + SLOW_WAIT_USEC, bytes, usec;
        int r = 0;

        pages_last_round(s->pages, &bytes, &usec);
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

        if (limit_usec == 0 || !pages_slow_pays(s->pages, limit_usec))
                return 0;
        r = slow_ask(s, &dir, &cores, err);
        if (r < 0 || !*dir)
                return r;
        r = slow_open(dir, cores, &slow);
        if (r < 0) {
                log_warn("the processes cannot be slowed down: %s: %s", dir, strerror(-r));
                return 0;
        }
        return pages_slow_rounds(s->pages, slow, limit_usec, err);
}

/* As much as is worth it; or it is left here, to follow when the group runs at the destination. */
static int send_pages(struct sender *s, bool postcopy, bool *ret_left, struct rm_error *err) {
        uint64_t usec;
        int r = postcopy ? pages_probe(s->pages, ret_left, err) : 0;

        if (r == 0 && !*ret_left)
                r = pages_rounds(s->pages, err);
        if (*ret_left)
                pages_last_round(s->pages, &s->later_bytes, &usec);
        return r;
}

/* After the last round. */
static int end_rounds(struct sender *s, const Rm__MoverPrecopy *m, struct rm_error *err) {
        uint64_t bytes, usec;
        int r = 0;

        pages_last_round(s->pages, &bytes, &usec);
        if (!m->postcopy || !rounds_too_long(usec))
                r = pages_rounds(s->pages, err);
        if (r < 0)
                return r;
        pages_last_round(s->pages, &bytes, &usec);
        if (!m->postcopy || !rounds_too_long(usec))
                return send_slowly(s, m->slow_usec, err);
        pages_postpone(s->pages);
        s->later_bytes = bytes;
        return 0;
}

static int send_files(struct sender *s, const Rm__MoverPrecopy *m, struct rm_error *err) {
        if (m->n_trees == 0 || !link_peer_files_ahead(s->link))
                return 0;
        s->files = files_create(s->writer);
        for (size_t i = 0; i < m->n_trees; i++)
                files_add_tree(s->files, m->trees[i]->role, m->trees[i]->path);
        return files_rounds(s->files, &s->hooks_ahead, err);
}

/* Everything that CRIU would have in its images may go ahead by hashes; what is tracked needs none. */
static int send_ahead(struct sender *s, struct rm_error *err) {
        const Rm__MoverPrecopy *m = s->control->precopy->precopy;
        bool left = false;
        int r = 0;

        if (m->pages)
                r = pages_begin(m->procs_file, s->control->setup->send->images_dir, s->writer, &s->hooks_ahead, &s->pages,
                                &s->untracked, err);
        if (s->untracked.code < 0)
                log_info("private memory is not tracked: %s", error_text(&s->untracked));
        if (r == 0 && s->pages)
                r = send_pages(s, m->postcopy, &left, err);
        if (r == 0)
                r = send_files(s, m, err);
        if (r == 0)
                r = precopy_run(m->procs_file, s->pages != NULL, s->files, s->writer, s->known, &s->hooks_ahead, &s->ahead.rounds,
                                err);
        if (r < 0 || !s->pages)
                return r;
        r = pages_save_flags(s->pages, err);
        if (r == 0 && !left)
                r = end_rounds(s, m, err);
        s->ahead.rounds = pages_figures(s->pages)->rounds;
        return r;
}

static int precopy(struct sender *s, struct rm_error *err) {
        const struct image_figures begin = *image_writer_figures(s->writer);
        Rm__MoverFigures figures = RM__MOVER_FIGURES__INIT;
        uint64_t begin_usec = now_usec();
        int r = fault_point("mover.send.precopy", err);

        s->pace.bytes_per_sec = s->control->precopy->precopy->bytes_per_sec;
        compress_limit(s->compress, s->pace.bytes_per_sec);
        if (r == 0)
                r = send_ahead(s, err);
        compress_limit(s->compress, 0);
        if (r < 0)
                return error_prefix(err, "pre-copy memory");
        s->ahead.raw_bytes = image_writer_figures(s->writer)->raw_bytes - begin.raw_bytes;
        s->ahead.wire_bytes = image_writer_figures(s->writer)->wire_bytes - begin.wire_bytes;
        s->ahead.usec = now_usec() - begin_usec;
        figures_fill_ahead(s, &figures);
        control_send_precopied(s->control, &figures);
        return 0;
}

/* Between READY and START the other side has nothing to say. */
static int wait_start(struct sender *s, struct rm_error *err) {
        bool ahead = false, slow = true;

        while (!s->control->started) {
                struct pollfd fds[2] = { { .fd = -1 }, { .fd = link_fd(s->link), .events = POLLIN } };
                int r;

                if (s->control->precopy && !ahead) {
                        ahead = true;
                        r = precopy(s, err);
                } else {
                        r = control_poll(s->control, fds, 2, ahead && slow ? SLOW_AFTER_MSEC : -1, err);
                        if (ahead && slow && s->pages)
                                pages_slow_end(s->pages);
                        slow = slow && !ahead;
                        if (r > 0)
                                r = peer_refusal(s, err);
                }
                if (r < 0)
                        return r;
        }
        s->start_usec = now_usec();
        return fault_point("mover.send.start", err);
}

/* As tree_poll(), and CRIU need not wait until all is sent that was written last. */
static int frozen_poll(void *ctx, const char *what, struct rm_error *err) {
        struct sender *s = ctx;
        int r = tree_poll(s, what, err);

        return r < 0 ? r : capture_try(s->capture, s->control, s->writer, &s->hooks_capture, &s->captured, err);
}

static int capture(struct sender *s, struct rm_error *err) {
        int r = s->pages ? pages_send_last(s->pages, &s->hooks_frozen, err) : 0;

        if (r < 0)
                return error_prefix(err, "transfer memory");
        r = capture_run(s->capture, s->control, s->writer, &s->hooks_capture, &s->captured, err);
        s->captured_at_usec = now_usec();
        s->images_raw_bytes = image_writer_figures(s->writer)->raw_bytes;
        if (r < 0)
                return error_prefix(err, "transfer CRIU's images");
        r = fault_point("mover.send.images", err);
        if (r < 0 || !s->pages)
                return r;
        r = pages_finish(s->pages, err);
        return r < 0 ? error_prefix(err, "transfer memory") : fault_point("mover.send.pages", err);
}

static int tree_send(struct sender *s, const Rm__MoverTree *t, struct rm_error *err) {
        const char **exclude = xcalloc(t->n_exclude + 1, sizeof(*exclude));
        struct image_tree_options options = { .exclude = exclude, .poll = tree_poll, .ctx = s };
        cleanup_close int fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r;

        if (s->files)
                files_options(s->files, &options);
        for (size_t i = 0; i < t->n_exclude; i++)
                exclude[i] = t->exclude[i];
        if (fd < 0)
                r = error_sys(err, -errno, "open %s", t->path);
        else
                r = image_tree_write(s->writer, t->role, fd, &options, &s->trees, err);
        free(exclude);
        return r;
}

static int file_send(struct sender *s, const Rm__MoverFile *f, struct rm_error *err) {
        struct image_tree_options options = { .poll = tree_poll, .ctx = s };
        cleanup_close int fd = open(f->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

        if (fd < 0)
                return error_sys(err, -errno, "open %s", f->path);
        return image_spool_write(s->writer, f->role, fd, f->offset, &options, &s->trees, err);
}

static int send_trees(struct sender *s, const Rm__MoverDumpDone *m, struct rm_error *err) {
        int r = s->files ? files_freeze(s->files, &s->hooks_trees, err) : 0;

        for (size_t i = 0; i < m->n_trees && r == 0; i++)
                r = tree_send(s, m->trees[i], err);
        for (size_t i = 0; i < m->n_files && r == 0; i++)
                r = file_send(s, m->files[i], err);
        s->trees_at_usec = now_usec();
        return r < 0 ? r : fault_point("mover.send.trees", err);
}

/* From the first byte of the end mark on, the destination may have all there is. */
static int send_end(struct sender *s, struct rm_error *err) {
        Rm__MoverFigures figures = RM__MOVER_FIGURES__INIT;
        int r;

        r = sink_flush(s->sink, err);
        if (r == 0)
                r = control_check(s->control, err);
        if (r == 0)
                r = fault_point("mover.send.end", err);
        if (r < 0)
                return r;
        s->end_mark_sent = true;
        r = image_writer_end(s->writer, err);
        if (r == 0)
                r = sink_flush(s->sink, err);
        if (r < 0)
                return r;
        s->end_at_usec = now_usec();
        figures_fill(s, &figures);
        control_send_sent(s->control, &figures);
        return fault_point("mover.send.sent", err);
}

static int wait_ack(struct sender *s, struct rm_error *err) {
        Rm__MoverFigures figures = RM__MOVER_FIGURES__INIT;
        const struct image_figures *i = image_writer_figures(s->writer);
        Rm__MoverPeerMessage *m = NULL;
        int r;

        r = link_receive(s->link, &m, err);
        if (r < 0)
                return error_prefix(err, "wait for the destination to verify the image");
        if (m->body_case != RM__MOVER_PEER_MESSAGE__BODY_ACK)
                r = error_set(err, -EPROTO, "unexpected reply from the destination");
        else if (m->ack->code != 0)
                r = error_set(err, m->ack->code < 0 ? m->ack->code : -EPROTO, "the destination: %s", m->ack->text);
        else if (m->ack->objects != i->objects || m->ack->raw_bytes != i->raw_bytes)
                r = error_set(err, -EPROTO, "the destination received another image than was sent");
        s->by_peer = r < 0;
        rm__mover_peer_message__free_unpacked(m, NULL);
        if (r < 0)
                return r;
        figures_fill(s, &figures);
        figures.end_usec = now_usec() - s->end_at_usec;
        figures.total_usec = now_usec() - s->start_usec;
        control_send_acknowledged(s->control, &figures);
        return 0;
}

static int run(struct sender *s, struct rm_error *err) {
        int r;

        while (!s->control->setup) {
                struct pollfd fds[1];

                r = control_poll(s->control, fds, 1, -1, err);
                if (r < 0)
                        return r;
        }
        if (s->control->setup->body_case != RM__MOVER_COMMAND__BODY_SEND)
                return error_set(err, -EPROTO, "expected 'send' from rmd first");
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
        int r = postcopy_send(s->control, s->link, s->pages, &figures, &err);

        if (r < 0)
                log_error("post-copy: %s", error_text(&err));
        else
                log_info("post-copy: %" PRIu64 " MiB sent in %" PRIu64 " ms, %" PRIu64 " pages were waited for",
                         figures.bytes >> 20, figures.usec / 1000, figures.wanted);
}

/* When the connection broke, the other side may have said why before it did. */
static void last_words(struct sender *s, struct rm_error *err) {
        struct rm_error said = { 0 };

        if (!s->link || s->by_peer || s->control->aborted || !link_peer_speaks(s->link))
                return;
        (void) peer_refusal(s, &said);
        if (s->by_peer)
                *err = said;
}

int mover_send(struct control *control) {
        struct sender s = { .control = control };
        struct rm_error err = { 0 };
        int r;

        s.hooks_ahead = (struct mover_hooks) { .ctx = &s, .poll = ahead_poll, .idle = idle, .deadline = &control->deadline };
        s.hooks_frozen = (struct mover_hooks) { .ctx = &s, .poll = frozen_poll, .idle = idle };
        s.hooks_trees = (struct mover_hooks) { .ctx = &s, .poll = tree_poll, .idle = idle };
        s.hooks_capture = (struct capture_hooks) {
                .ctx = &s, .idle = idle, .link_fd = -1, .link_readable = peer_refusal, .progress = progress
        };
        r = run(&s, &err);
        if (r < 0) {
                last_words(&s, &err);
                log_error("send: %s", error_text(&err));
                control_send_failed(control, &err, s.end_mark_sent, s.by_peer);
        } else if (s.pages && pages_later_bytes(s.pages) > 0) {
                send_later(&s);
        }
        /* Now that rmd knows: the processes that go on here, after a failure, cannot map memory while this lasts. */
        pages_destroy(s.pages);
        files_destroy(s.files);
        image_writer_destroy(s.writer);
        compress_destroy(s.compress);
        image_known_destroy(s.known);
        sink_destroy(s.sink);
        capture_destroy(s.capture);
        link_close(s.link);
        return r;
}
