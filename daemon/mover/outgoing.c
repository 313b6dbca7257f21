#include "daemon/mover/outgoing.h"

#include <string.h>

#include "common/fault.h"
#include "common/util.h"
#include "daemon/mover/mover.h"

/* While it waits rmd is heard at least so often. */
#define WAIT_MSEC 250

int outgoing_connect(struct outgoing *o, struct link_config config, const char *host, uint32_t port, struct rm_error *err) {
        if (config.token_bytes < MOVER_TOKEN_MIN_BYTES || config.token_bytes > MOVER_TOKEN_MAX_BYTES)
                return error_set(err, -EINVAL, "a token of %zu bytes", config.token_bytes);
        if (port == 0 || port > UINT16_MAX)
                return error_set(err, -EINVAL, "port %u", port);
        if (config.timeout_msec == 0)
                config.timeout_msec = MOVER_TIMEOUT_MSEC;
        return link_connect(o->control, &config, host, (uint16_t) port, &o->link, err);
}

int outgoing_open(struct outgoing *o, Rm__MoverCodec codec, const struct image_delta *delta, struct rm_error *err) {
        o->sink = sink_create(o->link);
        o->compress = compress_create(o->link, codec);
        return image_writer_create(sink_image(o->sink), delta, compress_encoder(o->compress), &o->writer, err);
}

void outgoing_finish(struct outgoing *o) {
        image_writer_destroy(o->writer);
        compress_destroy(o->compress);
        sink_destroy(o->sink);
        link_close(o->link);
}

int outgoing_idle(void *ctx, struct rm_error *err) {
        struct outgoing *o = ctx;

        return sink_flush(o->sink, err);
}

int outgoing_refusal(void *ctx, struct rm_error *err) {
        struct outgoing *o = ctx;
        Rm__MoverPeerMessage *m = NULL;
        int r;

        r = link_receive(o->link, &m, err);
        if (r < 0)
                return r;
        o->by_peer = true;
        if (m->body_case == RM__MOVER_PEER_MESSAGE__BODY_ACK && m->ack->code < 0)
                r = error_set(err, m->ack->code, "the destination: %s", m->ack->text);
        else
                r = error_set(err, -EPROTO, "unexpected data from the destination");
        rm__mover_peer_message__free_unpacked(m, NULL);
        return r;
}

int outgoing_check(struct outgoing *o, struct rm_error *err) {
        int r = control_check(o->control, err);

        if (r < 0)
                return r;
        return link_peer_speaks(o->link) ? outgoing_refusal(o, err) : 0;
}

int outgoing_hold(struct outgoing *o, struct rm_error *err) {
        int r = outgoing_check(o, err);
        uint64_t wait_usec;

        while (r == 0 && (wait_usec = pace_wait_usec(&o->pace, image_writer_figures(o->writer)->wire_bytes, now_usec())) > 0) {
                struct pollfd fds[2] = { { .fd = -1 }, { .fd = link_fd(o->link), .events = POLLIN } };
                int msec = wait_usec < WAIT_MSEC * 1000 ? (int) (wait_usec / 1000) + 1 : WAIT_MSEC;

                r = sink_flush(o->sink, err);
                if (r == 0)
                        r = control_poll(o->control, fds, 2, msec, err);
                if (r >= 0)
                        r = outgoing_check(o, err);
        }
        return r;
}

int outgoing_end(struct outgoing *o, const char *fault, struct rm_error *err) {
        int r = sink_flush(o->sink, err);

        if (r == 0)
                r = control_check(o->control, err);
        if (r == 0)
                r = fault_wait(fault, err);
        if (r < 0)
                return r;
        o->end_mark_sent = true;
        r = image_writer_end(o->writer, err);
        if (r == 0)
                r = sink_flush(o->sink, err);
        o->end_at_usec = now_usec();
        return r;
}

int outgoing_wait_ack(struct outgoing *o, struct rm_error *err) {
        const struct image_figures *i = image_writer_figures(o->writer);
        Rm__MoverPeerMessage *m = NULL;
        int r;

        r = link_receive(o->link, &m, err);
        if (r < 0)
                return error_prefix(err, "wait for the destination to verify the image");
        if (m->body_case != RM__MOVER_PEER_MESSAGE__BODY_ACK)
                r = error_set(err, -EPROTO, "unexpected reply from the destination");
        else if (m->ack->code != 0)
                r = error_set(err, m->ack->code < 0 ? m->ack->code : -EPROTO, "the destination: %s", m->ack->text);
        else if (m->ack->objects != i->objects || m->ack->raw_bytes != i->raw_bytes)
                r = error_set(err, -EPROTO, "the destination received another image than was sent");
        o->by_peer = r < 0;
        rm__mover_peer_message__free_unpacked(m, NULL);
        return r;
}

void outgoing_last_words(struct outgoing *o, struct rm_error *err) {
        struct rm_error said = { 0 };

        if (!o->link || o->by_peer || o->control->aborted || !link_peer_speaks(o->link))
                return;
        (void) outgoing_refusal(o, &said);
        if (o->by_peer)
                *err = said;
}
