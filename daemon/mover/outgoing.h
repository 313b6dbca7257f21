/* An image stream to a mover that receives, from the connection to the acknowledgement. What sends
 * a capsule and what sends a checkpoint share it. */
#ifndef RM_MOVER_OUTGOING_H
#define RM_MOVER_OUTGOING_H

#include "daemon/mover/compress.h"
#include "daemon/mover/control.h"
#include "daemon/mover/link.h"
#include "daemon/mover/pace.h"
#include "daemon/mover/sink.h"

/* The fields are for reading. */
struct outgoing {
        struct control *control;
        struct link *link;
        struct sink *sink;
        struct compress *compress;
        struct image_writer *writer;
        struct pace pace; /* of outgoing_hold() */
        bool end_mark_sent;
        bool by_peer; /* what failed was said by the other side */
        uint64_t end_at_usec;
};

/* Strings and token of rmd's command; `config->timeout_msec` 0: the usual one. -EINVAL: port or
 * token cannot be. */
int outgoing_connect(struct outgoing *o, struct link_config config, const char *host, uint32_t port, struct rm_error *err);
/* Makes the writer. `delta` as there. */
int outgoing_open(struct outgoing *o, Rm__MoverCodec codec, const struct image_delta *delta, struct rm_error *err);
void outgoing_finish(struct outgoing *o);

/* Sends the collected data; for hooks: `ctx` is the struct outgoing. */
int outgoing_idle(void *ctx, struct rm_error *err);
/* The other side has spoken while it should listen: it says why it cannot go on. Never 0. */
int outgoing_refusal(void *ctx, struct rm_error *err);
/* Has rmd, or the other side, said that it is to end? */
int outgoing_check(struct outgoing *o, struct rm_error *err);
/* As outgoing_check(), and not before more may be sent. */
int outgoing_hold(struct outgoing *o, struct rm_error *err);

/* From the first byte of the end mark on, the destination may have all there is. `fault`: the point
 * before it. */
int outgoing_end(struct outgoing *o, const char *fault, struct rm_error *err);
/* Waits until the other side has verified it all. */
int outgoing_wait_ack(struct outgoing *o, struct rm_error *err);

/* When the connection broke, the other side may have said why before it did: then that becomes the
 * error. */
void outgoing_last_words(struct outgoing *o, struct rm_error *err);

#endif
