#include "daemon/mover/gather.h"

#include <fcntl.h>

#include "common/util.h"

/* rmd has a limit of its own, [move] callback_wait, which is less. */
#define ANNOUNCE_USEC 15000000U
#define ANNOUNCE_POLL_MSEC 100

/* As the hook, and CRIU need not wait until all is sent that was written last. */
static int frozen_poll(void *ctx, const char *what, struct rm_error *err) {
        struct gather *g = ctx;
        int r = g->hooks_trees.poll(g->hooks_trees.ctx, what, err);

        return r < 0 ? r : capture_try(g->capture, g->control, g->writer, &g->hooks_capture, &g->captured, err);
}

static int frozen_idle(void *ctx, struct rm_error *err) {
        struct gather *g = ctx;

        return g->hooks_trees.idle(g->hooks_trees.ctx, err);
}

static int frozen_continues(void *ctx, uint32_t inner_pid, struct rm_error *err) {
        struct gather *g = ctx;

        return g->hooks_trees.continues(g->hooks_trees.ctx, inner_pid, err);
}

void gather_prepare(struct gather *g, struct control *control, const struct mover_hooks *hooks) {
        g->control = control;
        g->hooks_trees = *hooks;
        g->hooks_frozen = (struct mover_hooks) { .ctx = g, .poll = frozen_poll, .idle = frozen_idle };
        if (hooks->continues)
                g->hooks_frozen.continues = frozen_continues;
        g->hooks_capture = (struct capture_hooks) { .ctx = g, .idle = frozen_idle, .link_fd = -1, .progress = gather_progress };
}

void gather_finish(struct gather *g) {
        pages_destroy(take_ptr(g->pages));
        files_destroy(take_ptr(g->files));
        capture_destroy(take_ptr(g->capture));
}

/* ---- before the freeze ---- */

void gather_count_ahead(struct gather *g, const struct image_figures *begin, uint64_t begin_usec) {
        const struct image_figures *now = image_writer_figures(g->writer);

        g->ahead.raw_bytes = now->raw_bytes - begin->raw_bytes;
        g->ahead.wire_bytes = now->wire_bytes - begin->wire_bytes;
        g->ahead.usec = now_usec() - begin_usec;
}

int gather_files_ahead(struct gather *g, const Rm__MoverPrecopy *m, struct rm_error *err) {
        if (m->n_trees == 0)
                return 0;
        g->files = files_create(g->writer);
        for (size_t i = 0; i < m->n_trees; i++)
                files_add_tree(g->files, m->trees[i]->role, m->trees[i]->path);
        return files_rounds(g->files, &g->hooks_ahead, err);
}

int gather_announce(struct gather *g, const Rm__MoverPrecopy *m, struct rm_error *err) {
        uint64_t end_usec = now_usec() + ANNOUNCE_USEC;
        int r = m->announce ? g->hooks_ahead.idle(g->hooks_ahead.ctx, err) : 0;

        if (r < 0 || !m->announce)
                return r;
        control_send_nearly(g->control);
        while (r == 0 && !g->control->goes_on && now_usec() < end_usec) {
                struct pollfd fds[1];

                r = control_poll(g->control, fds, 1, ANNOUNCE_POLL_MSEC, err);
                if (r == 0)
                        r = g->hooks_ahead.poll(g->hooks_ahead.ctx, "", err);
        }
        return r;
}

/* ---- in the freeze ---- */

int gather_images(struct gather *g, struct rm_error *err) {
        int r = g->pages ? pages_send_last(g->pages, &g->hooks_frozen, err) : 0;

        if (r < 0)
                return error_prefix(err, "transfer memory");
        r = capture_run(g->capture, g->control, g->writer, &g->hooks_capture, &g->captured, err);
        g->captured_at_usec = now_usec();
        g->images_raw_bytes = image_writer_figures(g->writer)->raw_bytes;
        return r < 0 ? error_prefix(err, "transfer CRIU's images") : 0;
}

int gather_memory(struct gather *g, struct rm_error *err) {
        int r = g->pages ? pages_finish(g->pages, err) : 0;

        return r < 0 ? error_prefix(err, "transfer memory") : 0;
}

static int tree_write(struct gather *g, const Rm__MoverTree *t, const struct mover_hooks *hooks, struct rm_error *err) {
        const char **exclude = xcalloc(t->n_exclude + 1, sizeof(*exclude));
        struct image_tree_options options = { .exclude = exclude, .poll = hooks->poll, .ctx = hooks->ctx };
        cleanup_close int fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r;

        if (g->files)
                files_options(g->files, &options);
        for (size_t i = 0; i < t->n_exclude; i++)
                exclude[i] = t->exclude[i];
        if (fd < 0)
                r = error_sys(err, -errno, "open %s", t->path);
        else
                r = image_tree_write(g->writer, t->role, fd, &options, &g->trees, err);
        free(exclude);
        return r;
}

static int file_write(struct gather *g, const Rm__MoverFile *f, struct rm_error *err) {
        struct image_tree_options options = { .poll = g->hooks_trees.poll, .ctx = g->hooks_trees.ctx };
        cleanup_close int fd = open(f->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

        if (fd < 0)
                return error_sys(err, -errno, "open %s", f->path);
        return image_spool_write(g->writer, f->role, fd, f->offset, &options, &g->trees, err);
}

int gather_trees(struct gather *g, const Rm__MoverDumpDone *m, struct rm_error *err) {
        int r = g->files ? files_freeze(g->files, &g->hooks_trees, err) : 0;

        for (size_t i = 0; i < m->n_trees && r == 0; i++)
                r = m->trees[i]->still ? 0 : tree_write(g, m->trees[i], &g->hooks_trees, err);
        for (size_t i = 0; i < m->n_files && r == 0; i++)
                r = file_write(g, m->files[i], err);
        g->trees_at_usec = now_usec();
        return r;
}

int gather_still_trees(struct gather *g, const Rm__MoverDumpDone *m, struct rm_error *err) {
        int r = 0;

        for (size_t i = 0; i < m->n_trees && r == 0; i++)
                r = m->trees[i]->still ? tree_write(g, m->trees[i], &g->hooks_ahead, err) : 0;
        return r;
}

/* ---- figures ---- */

void gather_progress(void *ctx, const char *name) {
        struct gather *g = ctx;
        const struct image_figures *i = image_writer_figures(g->writer);

        control_send_progress(g->control, i->raw_bytes, i->wire_bytes, g->start_usec ? now_usec() - g->start_usec : 0, name);
}

void gather_figures_ahead(struct gather *g, Rm__MoverFigures *f) {
        f->ahead_bytes = g->ahead.wire_bytes;
        f->ahead_usec = g->ahead.usec;
        f->ahead_rounds = g->ahead.rounds;
        f->pages = g->pages != NULL;
        f->later_bytes = g->later_bytes;
        f->expedite_usec = g->control->deadline.cut_usec;
        if (g->pages) {
                f->probe_bytes = pages_figures(g->pages)->probe_bytes;
                f->probe_usec = pages_figures(g->pages)->probe_usec;
        }
        if (g->untracked.code < 0)
                f->untracked = g->untracked.text;
}

void gather_figures(struct gather *g, Rm__MoverFigures *f) {
        const struct image_figures *i = image_writer_figures(g->writer);

        f->objects = i->objects;
        f->raw_bytes = i->raw_bytes - g->ahead.raw_bytes;
        f->read_bytes = g->captured.read_bytes + g->trees.read_bytes;
        f->zero_bytes = i->zero_bytes;
        f->have_bytes = i->have_bytes;
        f->wire_bytes = i->wire_bytes;
        f->images_raw_bytes = g->images_raw_bytes;
        gather_figures_ahead(g, f);
        if (g->pages) {
                f->last_bytes = pages_figures(g->pages)->last_bytes;
                f->last_usec = pages_figures(g->pages)->last_usec;
                f->slow_usec = pages_figures(g->pages)->slow_usec;
        }
        f->capture_usec = g->captured_at_usec - g->start_usec;
        f->dump_wait_usec = g->captured.wait_usec;
        f->trees_usec = g->trees_at_usec - g->captured_at_usec;
        f->sockets_skipped = g->trees.sockets_skipped;
        f->saved_bytes = i->saved_bytes;
        f->lz4_bytes = i->coded_bytes[IMAGE_CODEC_LZ4];
        f->zstd_bytes = i->coded_bytes[IMAGE_CODEC_ZSTD];
}
