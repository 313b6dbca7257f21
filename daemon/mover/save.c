#include <string.h>

#include "common/fault.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/mover/gather.h"
#include "daemon/mover/mover.h"
#include "daemon/mover/pace.h"
#include "daemon/mover/store_stream.h"

/* While it waits rmd is heard at least so often. */
#define WAIT_MSEC 250
/* Pages that are written again and again are better stored once, in the freeze: each round stores
 * them, and the group is frozen no longer for them than it takes to read them. The last round is
 * behind all else that goes ahead. */
#define ROUNDS_FIRST 2U
#define ROUNDS_LAST 1U
/* So little is read within some milliseconds, and is stored once only if it is left to the
 * freeze. */
#define FEW_BYTES (UINT64_C(32) << 20)

struct saver {
        struct control *control;
        struct store *store;
        struct gather gather;
        bool reported_released;

        /* The checkpoint under way. */
        struct store_stream *stream; /* NULL: there is none */
        struct image_writer *writer;
        struct kept_images *kept;
        struct pace pace; /* of what is stored while the group runs */
        bool captured;
        uint64_t captured_usec;
        Rm__MoverFigures figures; /* of when it was captured; no strings */
};

/* ---- what rmd says meanwhile ---- */

/* As soon as the pages are captured, tracking is not needed. */
static void release(struct saver *s) {
        if (!s->control->released || s->reported_released)
                return;
        pages_destroy(take_ptr(s->gather.pages));
        s->reported_released = true;
        control_send_released(s->control);
}

static int check(struct saver *s, struct rm_error *err) {
        int r = control_check(s->control, err);

        if (r < 0 || !s->control->released)
                return r;
        if (s->stream && !s->captured)
                return error_set(err, -ECANCELED, "released before all was captured");
        release(s);
        return 0;
}

static int wait_for(struct saver *s, int timeout_msec, struct rm_error *err) {
        struct pollfd fds[1];
        int r = control_poll(s->control, fds, 1, timeout_msec, err);

        return r < 0 ? r : check(s, err);
}

/* Waits until more than `bytes` may be stored. */
static int hold(struct saver *s, uint64_t bytes, struct rm_error *err) {
        uint64_t wait_usec;
        int r = 0;

        while (r == 0 && (wait_usec = pace_wait_usec(&s->pace, bytes, now_usec())) > 0)
                r = wait_for(s, wait_usec < WAIT_MSEC * 1000 ? (int) (wait_usec / 1000) + 1 : WAIT_MSEC, err);
        return r;
}

static int poll_frozen(void *ctx, const char *what, struct rm_error *err) {
        struct saver *s = ctx;

        gather_progress(&s->gather, what);
        return check(s, err);
}

static int poll_ahead(void *ctx, const char *what, struct rm_error *err) {
        struct saver *s = ctx;
        int r = poll_frozen(s, what, err);

        return r < 0 ? r : hold(s, store_stream_bytes(s->stream), err);
}

/* Nothing waits for it: what is written next finds room in memory. */
static int idle_frozen(void *ctx, struct rm_error *err) {
        return 0;
}

static int idle_ahead(void *ctx, struct rm_error *err) {
        struct saver *s = ctx;

        return store_stream_flush(s->stream, err);
}

static int continues(void *ctx, uint32_t inner_pid, struct rm_error *err) {
        struct saver *s = ctx;

        return store_stream_continue(s->stream, inner_pid, err);
}

/* ---- while the group runs ---- */

static int level_of(Rm__MoverCodec codec) {
        switch (codec) {
        case RM__MOVER_CODEC__MOVER_CODEC_NONE:
                return -1;
        case RM__MOVER_CODEC__MOVER_CODEC_LZ4:
                return 0;
        case RM__MOVER_CODEC__MOVER_CODEC_ZSTD:
                return 3;
        default:
                return 1;
        }
}

static bool is_kept(const Rm__MoverPrecopy *m, uint64_t checkpoint) {
        for (size_t i = 0; i < m->n_keep; i++)
                if (m->keep[i] == checkpoint)
                        return true;
        return false;
}

/* Removes other checkpoints here and not in rmd, so that no pack goes whose blocks the checkpoint
 * under way counts on. */
static int remove_others(struct saver *s, const Rm__MoverPrecopy *m, struct rm_error *err) {
        cleanup_free uint64_t *numbers = NULL;
        size_t n = 0;
        int r = store_list(s->store, &numbers, &n, err);

        for (size_t i = 0; i < n && r == 0 && m->n_keep > 0; i++)
                if (!is_kept(m, numbers[i]))
                        r = store_remove(s->store, numbers[i], err);
        return r;
}

static int checkpoint_begin(struct saver *s, const Rm__MoverPrecopy *m, struct rm_error *err) {
        const Rm__MoverSave *save = s->control->setup->save;
        const struct store_stream_limits limits = { .memory_bytes = m->memory_bytes, .disk_bytes = m->space_bytes };
        struct gather *g = &s->gather;
        int r = fault_wait("mover.save.begin", err);

        if (r == 0)
                r = remove_others(s, m, err);
        if (r == 0 && !g->capture)
                r = capture_listen(save->images_dir, save->criu_uid, &g->capture, err);
        if (r == 0) {
                s->kept = kept_images_create();
                capture_keep(g->capture, s->kept);
        }
        if (r == 0)
                r = store_stream_begin(s->store, m->checkpoint, level_of(save->codec), &limits, &s->stream, err);
        if (r == 0)
                r = image_writer_create(store_stream_sink(s->stream), NULL, NULL, &s->writer, err);
        g->writer = s->writer;
        s->pace = (struct pace) { .bytes_per_sec = m->bytes_per_sec ? m->bytes_per_sec : save->bytes_per_sec };
        return r;
}

/* Tracked as they were, or from now on, or not at all. */
static int pages_prepare(struct saver *s, const Rm__MoverPrecopy *m, struct rm_error *err) {
        const char *images_dir = s->control->setup->save->images_dir;
        const struct pages_group group = { m->procs_file, m->scan_dir };
        struct gather *g = &s->gather;
        int r;

        if (!m->pages)
                r = 0;
        else if (g->pages)
                r = pages_again(g->pages, &group, s->writer, &g->hooks_ahead, &g->untracked, err);
        else
                r = pages_begin(&group, images_dir, s->writer, &g->hooks_ahead, &g->pages, &g->untracked, err);
        if (g->untracked.code < 0)
                log_info("private memory is not tracked: %s", error_text(&g->untracked));
        if (!m->pages || g->untracked.code < 0)
                pages_destroy(take_ptr(g->pages));
        return r;
}

/* Is another one worth it? Not for what is read in a moment anyway, nor where the one before was so
 * slow that as much was written meanwhile, and would be again: `*vain`. */
static int worth_it(struct gather *g, bool first, bool *vain, bool *ret, struct rm_error *err) {
        uint64_t reported_bytes, usec, written_bytes = UINT64_MAX;
        int r = 0;

        pages_last_round(g->pages, &reported_bytes, &usec);
        if (!first)
                r = pages_written(g->pages, reported_bytes / 2 > FEW_BYTES ? reported_bytes / 2 : FEW_BYTES, &written_bytes, err);
        if (written_bytes > FEW_BYTES)
                *vain |= reported_bytes > 0 && written_bytes > reported_bytes / 2;
        *ret = written_bytes > FEW_BYTES && !*vain;
        return r;
}

/* Makes at most `max` rounds. */
static int rounds(struct gather *g, unsigned max, bool first, bool *vain, struct rm_error *err) {
        bool more = true;
        int r = 0;

        g->hooks_ahead.rounds_max = 1;
        for (unsigned i = 0; r == 0 && more && i < max; i++) {
                r = worth_it(g, first && i == 0, vain, &more, err);
                if (r == 0 && more)
                        r = pages_rounds(g->pages, err);
        }
        return r;
}

static int save_ahead(struct saver *s, const Rm__MoverPrecopy *m, struct rm_error *err) {
        struct gather *g = &s->gather;
        bool first = !g->pages, vain = false;
        int r = pages_prepare(s, m, err);

        if (r == 0 && g->pages)
                r = rounds(g, ROUNDS_FIRST, first, &vain, err);
        if (r == 0)
                r = gather_files_ahead(g, m, err);
        if (r == 0)
                r = gather_announce(g, m, err);
        if (r < 0 || !g->pages)
                return r;
        r = pages_save_flags(g->pages, err);
        if (r == 0)
                r = rounds(g, ROUNDS_LAST, false, &vain, err);
        g->ahead.rounds = pages_figures(g->pages)->rounds;
        return r;
}

static int precopy(struct saver *s, struct rm_error *err) {
        const Rm__MoverPrecopy *m = s->control->precopy->precopy;
        const struct image_figures none = { 0 };
        Rm__MoverFigures figures = RM__MOVER_FIGURES__INIT;
        uint64_t begin_usec = now_usec();
        int r = checkpoint_begin(s, m, err);

        if (r == 0)
                r = fault_wait("mover.save.precopy", err);
        if (r == 0)
                r = save_ahead(s, m, err);
        if (r < 0)
                return error_prefix(err, "save memory of the running group");
        gather_count_ahead(&s->gather, &none, begin_usec);
        gather_figures_ahead(&s->gather, &figures);
        control_send_precopied(s->control, &figures);
        return 0;
}

/* ---- while it is frozen ---- */

static int wait_start(struct saver *s, struct rm_error *err) {
        int r = 0;

        while (r == 0 && !s->control->started)
                r = wait_for(s, -1, err);
        if (r < 0)
                return r;
        s->gather.start_usec = now_usec();
        store_stream_keep(s->stream, true);
        return fault_wait("mover.save.start", err);
}

static int capture(struct saver *s, struct rm_error *err) {
        int r = gather_images(&s->gather, err);

        if (r == 0)
                r = fault_wait("mover.save.images", err);
        if (r == 0)
                r = gather_memory(&s->gather, err);
        if (r == 0)
                r = fault_wait("mover.save.pages", err);
        if (r == 0)
                r = gather_trees(&s->gather, s->control->dump_done->dump_done, err);
        if (r == 0)
                r = fault_wait("mover.save.trees", err);
        return r;
}

/* From here on the group may run, and nothing of it is needed any more. */
static void captured(struct saver *s) {
        uint64_t waiting_bytes = store_stream_waiting_bytes(s->stream);

        s->captured = true;
        s->captured_usec = now_usec();
        s->figures = (Rm__MoverFigures) RM__MOVER_FIGURES__INIT;
        gather_figures(&s->gather, &s->figures);
        s->figures.total_usec = s->captured_usec - s->gather.start_usec;
        control_send_captured(s->control, &s->figures, waiting_bytes);
        store_stream_keep(s->stream, false);
        capture_destroy(take_ptr(s->gather.capture));
        files_destroy(take_ptr(s->gather.files));
}

/* ---- when it runs again ---- */

static uint64_t stored_bytes(const struct saver *s) {
        return store_stream_bytes(s->stream) - store_stream_waiting_bytes(s->stream);
}

/* Stores the data that waits in memory. */
static int store_waiting(struct saver *s, struct rm_error *err) {
        uint64_t all_bytes = store_stream_bytes(s->stream), before_bytes = stored_bytes(s);
        int r = 0;

        s->pace = (struct pace) { .bytes_per_sec = s->pace.bytes_per_sec, .sent_bytes = before_bytes };
        while (r == 0 && store_stream_waiting_bytes(s->stream) > 0) {
                r = store_stream_step(s->stream, err);
                control_send_progress(s->control, all_bytes, stored_bytes(s) - before_bytes, now_usec() - s->captured_usec,
                                      "store");
                if (r == 0)
                        r = check(s, err);
                if (r == 0)
                        r = hold(s, stored_bytes(s), err);
        }
        return r;
}

static int store_rest(struct saver *s, struct rm_error *err) {
        int r = fault_wait("mover.save.captured", err);

        if (r == 0)
                r = store_waiting(s, err);
        if (r == 0)
                r = gather_still_trees(&s->gather, s->control->dump_done->dump_done, err);
        if (r == 0)
                r = image_writer_end(s->writer, err);
        if (r == 0)
                r = store_stream_flush(s->stream, err);
        return r < 0 ? r : fault_wait("mover.save.store", err);
}

static int commit(struct saver *s, struct store_figures *ret_figures, struct rm_error *err) {
        const Rm__MoverDumpDone *m = s->control->dump_done->dump_done;
        int r = fault_wait("mover.save.commit", err);

        if (r == 0)
                r = kept_images_check(s->kept, m->saved_state.data, m->saved_state.len, err);
        return r < 0 ? r : store_stream_commit(s->stream, m->saved_state.data, m->saved_state.len, ret_figures, err);
}

static void stored(struct saver *s, const struct store_figures *figures) {
        Rm__MoverStored m = RM__MOVER_STORED__INIT;

        m.figures = &s->figures;
        m.raw_bytes = figures->raw_bytes;
        m.stored_bytes = figures->packed_bytes + figures->manifest_bytes;
        m.store_usec = now_usec() - s->captured_usec;
        m.used_bytes = store_used_bytes(s->store);
        m.checkpoint = s->control->precopy->precopy->checkpoint;
        /* The next messages of rmd are about another checkpoint. */
        control_again(s->control);
        control_send_stored(s->control, &m);
}

/* Frees the data of one checkpoint; the processes stay tracked. */
static void checkpoint_end(struct saver *s) {
        struct gather *g = &s->gather;

        image_writer_destroy(take_ptr(s->writer));
        store_stream_destroy(take_ptr(s->stream));
        capture_destroy(take_ptr(g->capture));
        kept_images_destroy(take_ptr(s->kept));
        files_destroy(take_ptr(g->files));
        g->writer = NULL;
        g->untracked = (struct rm_error) { 0 };
        g->ahead = (struct gather_ahead) { 0 };
        g->captured = (struct capture_figures) { 0 };
        g->trees = (struct image_tree_figures) { 0 };
        g->start_usec = g->captured_at_usec = g->trees_at_usec = g->images_raw_bytes = 0;
        s->captured = false;
}

static int checkpoint(struct saver *s, struct rm_error *err) {
        struct store_figures figures = { 0 };
        int r = precopy(s, err);

        if (r == 0)
                r = wait_start(s, err);
        if (r == 0)
                r = capture(s, err);
        if (r < 0)
                return r;
        captured(s);
        r = store_rest(s, err);
        if (r == 0)
                r = commit(s, &figures, err);
        if (r < 0)
                return error_prefix(err, "store");
        stored(s, &figures);
        checkpoint_end(s);
        return fault_wait("mover.save.stored", err);
}

/* ---- the whole ---- */

static int prepare(struct saver *s, const Rm__MoverSave *m, struct rm_error *err) {
        int r = fault_wait("mover.save.open", err);

        if (r == 0)
                r = store_stream_open(m->store, &s->store, err);
        if (r == 0)
                r = capture_listen(m->images_dir, m->criu_uid, &s->gather.capture, err);
        if (r == 0)
                control_send_ready(s->control);
        return r;
}

static int run(struct saver *s, struct rm_error *err) {
        int r = control_wait_setup(s->control, RM__MOVER_COMMAND__BODY_SAVE, err);

        if (r == 0)
                r = prepare(s, s->control->setup->save, err);
        while (r == 0 && !s->control->released) {
                if (s->control->started && !s->control->precopy)
                        r = error_set(err, -EPROTO, "'start' from rmd, without a checkpoint");
                else if (s->control->precopy)
                        r = checkpoint(s, err);
                else
                        r = wait_for(s, -1, err);
        }
        if (r == 0)
                release(s);
        return r;
}

int mover_save(struct control *control) {
        struct saver s = { .control = control };
        struct mover_hooks hooks = { .ctx = &s, .poll = poll_frozen, .idle = idle_frozen, .continues = continues };
        struct rm_error err = { 0 };
        int r;

        gather_prepare(&s.gather, control, &hooks);
        s.gather.hooks_ahead = (struct mover_hooks) {
                .ctx = &s, .poll = poll_ahead, .idle = idle_ahead, .continues = continues, .deadline = &control->deadline
        };
        r = run(&s, &err);
        /* The checkpoint ends before rmd hears of it: another rm-mover may use the store then. */
        checkpoint_end(&s);
        store_close(s.store);
        if (r < 0) {
                log_error("save: %s", error_text(&err));
                control_send_failed(control, &err, false, false);
        }
        gather_finish(&s.gather);
        return r;
}
