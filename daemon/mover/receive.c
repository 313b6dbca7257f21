#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/fault.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/image/place.h"
#include "daemon/mover/link.h"
#include "daemon/mover/mover.h"
#include "daemon/mover/postcopy.h"

/* How long the sender gets to hear why we stopped. */
#define DRAIN_MSEC 2000U

struct receiver {
        struct control *control;
        struct link *link;
        struct image_place *place;
        struct image_reader *reader;
        struct image_source source;
        uint64_t first_usec;
        bool started;
        int later_fd; /* -1: all has come */
};

/* Reads from the link, and listens to rmd meanwhile: a source that never lets us wait would
 * otherwise keep an abort unheard. */
static int source_read(void *ctx, void *ret_data, size_t size_bytes, struct rm_error *err) {
        struct receiver *v = ctx;

        return link_read(v->link, ret_data, size_bytes, err);
}

static void place_setup(struct receiver *v, const Rm__MoverReceive *m) {
        v->place = image_place_create();
        image_place_limit(v->place, m->max_bytes);
        if (*m->images_dir)
                image_place_images(v->place, m->images_dir);
        for (size_t i = 0; i < m->n_trees; i++)
                image_place_tree(v->place, m->trees[i]->role, m->trees[i]->path);
        for (size_t i = 0; i < m->n_files; i++)
                image_place_file(v->place, m->files[i]->role, m->files[i]->path);
}

static int setup_check(const Rm__MoverReceive *m, struct rm_error *err) {
        if (m->token.len < MOVER_TOKEN_MIN_BYTES || m->token.len > MOVER_TOKEN_MAX_BYTES)
                return error_set(err, -EINVAL, "a token of %zu bytes", m->token.len);
        if (m->port_min > UINT16_MAX || m->port_max > UINT16_MAX)
                return error_set(err, -EINVAL, "ports %u to %u", m->port_min, m->port_max);
        return 0;
}

static int prepare(struct receiver *v, const Rm__MoverReceive *m, struct rm_error *err) {
        struct link_config config = {
                .key_file = m->key_file,
                .second_key_file = m->second_key_file,
                .cluster = m->cluster,
                .token = m->token.data,
                .token_bytes = m->token.len,
                .timeout_msec = m->timeout_msec ? m->timeout_msec : MOVER_TIMEOUT_MSEC,
        };
        unsigned accept_timeout_msec = m->accept_timeout_msec ? m->accept_timeout_msec : MOVER_ACCEPT_TIMEOUT_MSEC;
        cleanup_close int fd = -1;
        uint16_t port = 0;
        int r;

        r = setup_check(m, err);
        if (r == 0)
                r = fault_wait("mover.receive.listen", err);
        if (r == 0)
                r = link_listen(m->address, (uint16_t) m->port_min, (uint16_t) m->port_max, &fd, &port, err);
        if (r < 0)
                return r;
        control_send_listening(v->control, port);
        r = link_accept(v->control, &config, fd, accept_timeout_msec, &v->link, err);
        if (r == 0)
                r = fault_wait("mover.receive.accept", err);
        if (r < 0)
                return r;
        place_setup(v, m);
        v->source = (struct image_source) { .ctx = v, .read = source_read };
        r = image_reader_create(&v->source, image_place_target(v->place), image_place_delta(v->place), &v->reader, err);
        if (r == 0)
                control_send_ready(v->control);
        return r;
}

static void progress(struct receiver *v) {
        const struct image_figures *i = image_reader_figures(v->reader);

        control_send_progress(v->control, i->raw_bytes, i->wire_bytes, now_usec() - v->first_usec, "");
}

static int receive(struct receiver *v, struct rm_error *err) {
        int r;

        do {
                r = image_reader_step(v->reader, err);
                if (r < 0)
                        break;
                /* The begin chunk comes with the connection; the clock runs from the first that
                 * carries something. */
                if (image_reader_figures(v->reader)->chunks <= 2)
                        v->first_usec = now_usec();
                progress(v);
                if (image_reader_figures(v->reader)->chunks == 2 && fault_wait("mover.receive.data", err) < 0)
                        r = -EIO;
                else if (control_check(v->control, err) < 0)
                        r = err->code;
        } while (r > 0);
        return r;
}

static int ack(struct receiver *v, const struct rm_error *why) {
        Rm__MoverAck m = RM__MOVER_ACK__INIT;
        struct rm_error err = { 0 };

        if (v->reader) {
                m.objects = image_reader_figures(v->reader)->objects;
                m.raw_bytes = image_reader_figures(v->reader)->raw_bytes;
        }
        m.code = why->code;
        m.text = (char *) (why->code ? error_text(why) : "");
        return link_send(v->link, &m.base, &err);
}

static void report(struct receiver *v) {
        Rm__MoverFigures figures = RM__MOVER_FIGURES__INIT;
        const struct image_figures *i = image_reader_figures(v->reader);
        uint64_t images_done_usec = image_place_images_done_usec(v->place);
        uint64_t now = now_usec();

        figures.objects = i->objects;
        figures.raw_bytes = i->raw_bytes;
        figures.read_bytes = image_place_written_bytes(v->place);
        figures.zero_bytes = i->zero_bytes;
        figures.have_bytes = i->have_bytes;
        figures.wire_bytes = i->wire_bytes;
        figures.pages = image_place_has_pages(v->place);
        figures.later_bytes = image_place_later_bytes(v->place);
        if (images_done_usec > v->first_usec) {
                figures.capture_usec = images_done_usec - v->first_usec;
                figures.trees_usec = now - images_done_usec;
        }
        figures.total_usec = now - v->first_usec;
        control_send_received(v->control, &figures);
}

/* Forces the received files to the disk: some may be missing, if the sender turned out not to have
 * them. */
static int files_sync(const Rm__MoverReceive *m, struct rm_error *err) {
        int r = 0;

        for (size_t i = 0; i < m->n_files && r == 0; i++) {
                const char *path = m->files[i]->path;
                cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

                if (fd < 0 && errno == ENOENT)
                        continue;
                r = fd < 0 || fsync(fd) < 0 ? -errno : sync_name(path);
                if (r < 0)
                        (void) error_sys(err, r, "sync %s", path);
        }
        return r;
}

static int run(struct receiver *v, struct rm_error *err) {
        const struct rm_error fine = { 0 };
        int r;

        r = control_wait_setup(v->control, RM__MOVER_COMMAND__BODY_RECEIVE, err);
        if (r == 0)
                r = prepare(v, v->control->setup->receive, err);
        if (r == 0)
                r = receive(v, err);
        if (r == 0)
                r = fault_wait("mover.receive.end", err);
        if (r == 0 && v->control->setup->receive->sync)
                r = files_sync(v->control->setup->receive, err);
        if (r == 0 && image_place_later_bytes(v->place) > 0)
                r = postcopy_listen(v->control->setup->receive->images_dir, &v->later_fd, err);
        if (r < 0)
                return r;
        /* rmd first: the capsule is frozen until it is restored. That the source hears of it is
         * less urgent, and if it does not, it is rmd's log that settles the move. */
        report(v);
        (void) ack(v, &fine);
        return 0;
}

int mover_receive(struct control *control) {
        struct receiver v = { .control = control, .later_fd = -1 };
        struct rm_error err = { 0 };
        int r;

        r = run(&v, &err);
        if (r < 0) {
                log_error("receive: %s", error_text(&err));
                control_send_failed(control, &err, false, false);
                if (v.link && ack(&v, &err) == 0)
                        link_drain(v.link, DRAIN_MSEC);
        } else if (v.later_fd >= 0 && postcopy_receive(control, v.link, take_fd(&v.later_fd), &err) < 0) {
                log_error("post-copy: %s", error_text(&err));
        }
        cleanup_close_fd(&v.later_fd);
        image_reader_destroy(v.reader);
        image_place_destroy(v.place);
        link_close(v.link);
        return r;
}
