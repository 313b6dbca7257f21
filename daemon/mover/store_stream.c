#include "daemon/mover/store_stream.h"

#include <string.h>

#include "common/util.h"
#include "daemon/mover/chunk_queue.h"
#include "daemon/mover/priority.h"
#include "daemon/wire/tls.h"

/* Chunks of few pages wait for others up to here. */
#define RUNNING_BYTES (1U << 20)

struct store_stream {
        struct store_save *save; /* NULL once committed */
        struct chunk_queue *queue;
        struct image_reader *reader;
        struct priority priority;
        uint64_t memory_bytes;
        uint64_t stored_bytes;
        bool keep;
        bool ended;
};

_Static_assert(STORE_KEY_BYTES == TLS_KEY_BYTES, "keys of one size");

static int keys_read(const char *cluster, const char *key_file, const char *second_key_file, struct store_keys *ret,
                     struct rm_error *err) {
        int r;

        memset(ret, 0, sizeof(*ret));
        r = tls_checkpoint_key(cluster, key_file, ret->key.bytes, err);
        ret->has_second = r == 0 && *second_key_file;
        if (ret->has_second)
                r = tls_checkpoint_key(cluster, second_key_file, ret->second.bytes, err);
        return r;
}

int store_stream_open(const Rm__MoverStore *m, struct store **ret, struct rm_error *err) {
        struct store_origin o;
        struct store_keys keys;
        int r;

        if (!m)
                return error_set(err, -EPROTO, "no store, from rmd");
        o = (struct store_origin) { .job = m->job, .capsule = m->capsule, .uid = m->uid };
        r = keys_read(m->cluster, m->key_file, m->second_key_file, &keys, err);
        if (r == 0)
                r = store_open(m->dir, &keys, &o, ret, err);
        explicit_bzero(&keys, sizeof(keys));
        return r;
}

static int chunk_store(struct store_stream *s, struct rm_error *err) {
        uint64_t before_bytes = chunk_queue_bytes(s->queue);
        int r = image_reader_step(s->reader, err);

        s->stored_bytes += before_bytes - chunk_queue_bytes(s->queue);
        s->ended = r == 0;
        return r;
}

/* Until no more than that is in memory. */
static int store_down_to(struct store_stream *s, uint64_t limit_bytes, struct rm_error *err) {
        int r = 1;

        if (!s->keep)
                priority_lower(&s->priority);
        while (r > 0 && chunk_queue_bytes(s->queue) > limit_bytes)
                r = chunk_store(s, err);
        priority_restore(&s->priority);
        return r < 0 ? r : 0;
}

static int chunk_added(void *ctx, struct rm_error *err) {
        struct store_stream *s = ctx;
        uint64_t bytes = chunk_queue_bytes(s->queue);

        if (s->keep)
                return bytes > s->memory_bytes ? store_down_to(s, s->memory_bytes, err) : 0;
        return bytes >= RUNNING_BYTES ? store_down_to(s, 0, err) : 0;
}

int store_stream_begin(struct store *store, uint64_t checkpoint, int level, const struct store_stream_limits *limits,
                       struct store_stream **ret, struct rm_error *err) {
        struct store_stream *s = xcalloc(1, sizeof(*s));
        int r;

        s->memory_bytes = limits->memory_bytes;
        s->queue = chunk_queue_create(chunk_added, s);
        r = store_save_begin(store, checkpoint, level, &s->save, err);
        if (r == 0)
                store_save_limit(s->save, limits->disk_bytes);
        if (r == 0)
                r = image_reader_create(chunk_queue_source(s->queue), store_save_target(s->save), NULL, &s->reader, err);
        if (r < 0) {
                store_stream_destroy(s);
                return r;
        }
        *ret = s;
        return 0;
}

void store_stream_destroy(struct store_stream *s) {
        if (!s)
                return;
        image_reader_destroy(s->reader);
        store_save_abort(s->save);
        chunk_queue_destroy(s->queue);
        free(s);
}

const struct image_sink *store_stream_sink(struct store_stream *s) {
        return chunk_queue_sink(s->queue);
}

int store_stream_continue(struct store_stream *s, uint32_t pid, struct rm_error *err) {
        int r = store_save_continue(s->save, pid);

        return r < 0 ? error_sys(err, r, "go on with the pages of process %u as they were stored last", pid) : 0;
}

void store_stream_keep(struct store_stream *s, bool keep) {
        s->keep = keep;
}

int store_stream_flush(struct store_stream *s, struct rm_error *err) {
        return store_down_to(s, 0, err);
}

int store_stream_step(struct store_stream *s, struct rm_error *err) {
        int r = 0;

        for (uint64_t end_bytes = s->stored_bytes + RUNNING_BYTES;
             r >= 0 && s->stored_bytes < end_bytes && chunk_queue_bytes(s->queue) > 0;) {
                priority_lower(&s->priority);
                r = chunk_store(s, err);
        }
        priority_restore(&s->priority);
        return r < 0 ? r : 0;
}

uint64_t store_stream_bytes(const struct store_stream *s) {
        return s->stored_bytes + chunk_queue_bytes(s->queue);
}

uint64_t store_stream_waiting_bytes(const struct store_stream *s) {
        return chunk_queue_bytes(s->queue);
}

int store_stream_commit(struct store_stream *s, const void *saved_state, size_t saved_state_bytes,
                        struct store_figures *ret_figures, struct rm_error *err) {
        int r;

        if (!s->ended)
                return error_set(err, -EBUSY, "the stream has not ended");
        priority_lower(&s->priority);
        r = store_save_meta(s->save, STORE_STREAM_SAVED_STATE, saved_state_bytes > 0 ? saved_state : "", saved_state_bytes, err);
        /* The reader has no object open after the end mark, so the target keeps none of its own. */
        image_reader_destroy(take_ptr(s->reader));
        if (r == 0)
                r = store_save_commit(take_ptr(s->save), ret_figures, err);
        priority_restore(&s->priority);
        return r;
}
