#include <string.h>

#include "common/fault.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/image/tree.h"
#include "daemon/mover/mover.h"
#include "daemon/mover/outgoing.h"
#include "daemon/mover/store_stream.h"

struct loader {
        struct control *control;
        const Rm__MoverLoad *setup;
        struct store *store;
        struct store_load *load;
        struct outgoing out;
        struct image_tree_figures files; /* with files_only */
        uint64_t connect_usec;
        uint64_t start_usec;
};

static void figures_fill(const struct loader *l, Rm__MoverFigures *f) {
        const struct image_figures *i = image_writer_figures(l->out.writer);

        f->objects = i->objects;
        f->raw_bytes = i->raw_bytes;
        f->read_bytes = l->files.read_bytes;
        f->zero_bytes = i->zero_bytes;
        f->wire_bytes = i->wire_bytes;
        f->saved_bytes = i->saved_bytes;
        f->lz4_bytes = i->coded_bytes[IMAGE_CODEC_LZ4];
        f->zstd_bytes = i->coded_bytes[IMAGE_CODEC_ZSTD];
        f->connect_usec = l->connect_usec;
        f->total_usec = now_usec() - l->start_usec;
}

static int poll_load(void *ctx, const char *what, struct rm_error *err) {
        struct loader *l = ctx;
        const struct image_figures *i = image_writer_figures(l->out.writer);

        control_send_progress(l->control, i->raw_bytes, i->wire_bytes, now_usec() - l->start_usec, what);
        return outgoing_hold(&l->out, err);
}

/* ---- the checkpoint ---- */

static int load_open(struct loader *l, struct rm_error *err) {
        const Rm__MoverLoad *m = l->setup;
        int r = fault_wait("mover.load.open", err);

        if (r == 0)
                r = store_stream_open(m->store, &l->store, err);
        return r < 0 ? r : store_load_begin(l->store, m->checkpoint, &l->load, err);
}

/* Sends the data that rmd had stored with the checkpoint before all else: it may have to make
 * room. */
static void loading(struct loader *l) {
        const void *saved_state = NULL;
        size_t saved_state_bytes = 0;

        if (store_load_meta(l->load, STORE_STREAM_SAVED_STATE, &saved_state, &saved_state_bytes) < 0)
                saved_state_bytes = 0;
        control_send_loading(l->control, saved_state, saved_state_bytes, store_load_raw_bytes(l->load));
}

static int connect_out(struct loader *l, struct rm_error *err) {
        const Rm__MoverLoad *m = l->setup;
        struct link_config config = {
                .key_file = m->store->key_file,
                .second_key_file = "",
                .cluster = m->store->cluster,
                .token = m->token.data,
                .token_bytes = m->token.len,
                .timeout_msec = m->timeout_msec,
        };
        int r = fault_wait("mover.load.connect", err);

        if (r == 0)
                r = outgoing_connect(&l->out, config, m->host, m->port, err);
        if (r == 0)
                r = outgoing_open(&l->out, m->codec, NULL, err);
        if (r < 0)
                return r;
        l->connect_usec = now_usec() - l->start_usec;
        l->out.pace.bytes_per_sec = m->bytes_per_sec;
        compress_limit(l->out.compress, m->bytes_per_sec);
        return 0;
}

/* ---- only its files ---- */

/* The manifest is the last of them, and means nothing at the other side without the others. */
static int file_send(void *ctx, const char *name, int fd, bool manifest, struct rm_error *err) {
        const struct image_tree_options options = { .poll = poll_load, .ctx = ctx };
        struct loader *l = ctx;

        if (names_have(l->setup->have, l->setup->n_have, name))
                return 0;
        return image_spool_write(l->out.writer, name, fd, 0, &options, &l->files, err);
}

/* ---- the whole ---- */

static int send_end(struct loader *l, struct rm_error *err) {
        Rm__MoverFigures figures = RM__MOVER_FIGURES__INIT;
        int r = outgoing_end(&l->out, "mover.load.end", err);

        if (r < 0)
                return r;
        figures_fill(l, &figures);
        control_send_sent(l->control, &figures);
        r = outgoing_wait_ack(&l->out, err);
        if (r < 0)
                return r;
        figures_fill(l, &figures);
        figures.end_usec = now_usec() - l->out.end_at_usec;
        control_send_acknowledged(l->control, &figures);
        return 0;
}

static int run(struct loader *l, struct rm_error *err) {
        int r = control_wait_setup(l->control, RM__MOVER_COMMAND__BODY_LOAD, err);

        if (r < 0)
                return r;
        l->setup = l->control->setup->load;
        l->start_usec = now_usec();
        r = load_open(l, err);
        if (r < 0)
                return r;
        loading(l);
        r = connect_out(l, err);
        if (r == 0)
                r = fault_wait("mover.load.data", err);
        if (r == 0 && l->setup->files_only)
                r = store_each_file(l->store, l->setup->checkpoint, file_send, l, err);
        else if (r == 0)
                r = store_load_write(l->load, l->out.writer, poll_load, l, err);
        return r < 0 ? r : send_end(l, err);
}

int mover_load(struct control *control) {
        struct loader l = { .control = control, .out = { .control = control } };
        struct rm_error err = { 0 };
        int r = run(&l, &err);

        if (r < 0) {
                outgoing_last_words(&l.out, &err);
                log_error("load: %s", error_text(&err));
                control_send_failed(control, &err, l.out.end_mark_sent, l.out.by_peer);
        }
        store_load_end(l.load);
        store_close(l.store);
        outgoing_finish(&l.out);
        return r;
}
