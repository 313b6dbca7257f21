/* What rm-mover has to do whether its owner takes a checkpoint away or brings it back. */
#ifndef RM_MOVER_EXCHANGE_H
#define RM_MOVER_EXCHANGE_H

#include "daemon/mover/control.h"
#include "daemon/mover/export_stream.h"
#include "daemon/mover/pace.h"

#define EXCHANGE_CHUNK_BYTES (256U << 10)

struct exchange {
        struct control *control;
        int fd; /* to the owner's program; -1: it has not come yet */
        struct pace pace;
        uint64_t start_usec;
        uint64_t done_bytes; /* read, sent or verified */
        uint8_t *chunk; /* EXCHANGE_CHUNK_BYTES */
};

void exchange_init(struct exchange *e, struct control *control);
void exchange_finish(struct exchange *e);
int exchange_keys(const Rm__MoverStore *store, struct export_keys *ret, struct rm_error *err);
/* Lets rmd know, and waits for the program of that user at `socket`. */
int exchange_meet(struct exchange *e, const char *socket, uint32_t uid, struct rm_error *err);
/* So much more is done: rmd is told of it now and then, and what follows waits for its time. */
int exchange_step(struct exchange *e, uint64_t bytes, const char *what, struct rm_error *err);
/* For store_verify(), with the exchange as `ctx`. */
int exchange_on_verified(void *ctx, const char *what, struct rm_error *err);

#endif
