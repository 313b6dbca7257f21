/* The common work of rm-mover in exporting and importing a checkpoint. */
#ifndef RM_MOVER_EXCHANGE_H
#define RM_MOVER_EXCHANGE_H

#include "daemon/mover/control.h"
#include "daemon/mover/export_stream.h"
#include "daemon/mover/pace.h"
#include "daemon/store/store.h"

#define EXCHANGE_CHUNK_BYTES (256U << 10)

struct exchange {
        struct control *control;
        const Rm__MoverExchange *setup;
        Rm__ExportHead *head; /* of what is exported, or comes; NULL until it is known. Owned */
        struct seal *seal; /* NULL until it is begun. Owned */
        int fd; /* to the user's program; -1: it has not come yet */
        struct pace pace;
        uint64_t start_usec;
        uint64_t done_bytes; /* read, sent or verified */
        uint8_t *chunk; /* EXCHANGE_CHUNK_BYTES */
};

void exchange_init(struct exchange *e, struct control *control);
void exchange_finish(struct exchange *e);

/* Waits for what rmd wants, which must be `body`. */
int exchange_prepare(struct exchange *e, Rm__MoverCommand__BodyCase body, struct rm_error *err);
/* Lets rmd know that it listens, and waits for the user's program. */
int exchange_meet(struct exchange *e, struct rm_error *err);
/* Begin the file, with the key that rmd has named or those of the cluster. Errors as of
 * seal_create() and seal_open(). */
int exchange_seal_create(struct exchange *e, struct rm_error *err);
int exchange_seal_open(struct exchange *e, struct rm_error *err);

static inline const Rm__Checkpoint *exchange_checkpoint(const struct exchange *e) {
        return e->head->job->checkpoints[0];
}
/* The store of that capsule of the job in the head. */
int exchange_store_open(const struct exchange *e, int32_t capsule, struct store **ret, struct rm_error *err);

/* So much more is done: rmd is told of it now and then, and what follows waits for its time. */
int exchange_step(struct exchange *e, uint64_t bytes, const char *what, struct rm_error *err);
/* For store_verify(), with the exchange as `ctx`. */
int exchange_on_verified(void *ctx, const char *what, struct rm_error *err);

#endif
