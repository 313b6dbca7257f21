/* An image stream into a store of checkpoints: while the group runs what comes is stored soon, and
 * while it is frozen it is kept in memory, which is faster. */
#ifndef RM_MOVER_STORE_STREAM_H
#define RM_MOVER_STORE_STREAM_H

#include "daemon/image/writer.h"
#include "daemon/store/store.h"
#include "proto/mover.pb-c.h"

struct store_stream;

/* Opens the store that rmd names. `m` NULL: -EPROTO. */
int store_stream_open(const Rm__MoverStore *m, struct store **ret, struct rm_error *err);

struct store_stream_limits {
        uint64_t memory_bytes; /* what is kept in memory at most */
        uint64_t disk_bytes; /* what may be added to the disk; 0: no limit */
};

/* Begins that checkpoint. `level` as of store_save_begin(). `store` must outlive it. */
int store_stream_begin(struct store *store, uint64_t checkpoint, int level, const struct store_stream_limits *limits,
                       struct store_stream **ret, struct rm_error *err);
/* NULL ok. Nothing is left of a checkpoint that was not committed. */
void store_stream_destroy(struct store_stream *s);

const struct image_sink *store_stream_sink(struct store_stream *s);
/* To be called before the first object of that process. */
int store_stream_continue(struct store_stream *s, uint32_t pid, struct rm_error *err);

/* From here on, or no longer, what comes stays in memory. */
void store_stream_keep(struct store_stream *s, bool keep);
/* Stores what is in memory. */
int store_stream_flush(struct store_stream *s, struct rm_error *err);
/* Some of it. */
int store_stream_step(struct store_stream *s, struct rm_error *err);

/* So much came; so much of it waits in memory. */
uint64_t store_stream_bytes(const struct store_stream *s);
uint64_t store_stream_waiting_bytes(const struct store_stream *s);

/* Commits the checkpoint after the end mark: with the data that rmd stores with it, under the name
 * STORE_STREAM_SAVED_STATE. */
#define STORE_STREAM_SAVED_STATE "carry"
int store_stream_commit(struct store_stream *s, const void *saved_state, size_t saved_state_bytes,
                        struct store_figures *ret_figures, struct rm_error *err);

#endif
