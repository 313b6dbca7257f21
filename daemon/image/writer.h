/* Makes an image stream out of objects and their bytes. No I/O of its own: chunks go into memory of
 * a sink. */
#ifndef RM_IMAGE_WRITER_H
#define RM_IMAGE_WRITER_H

#include "daemon/image/delta.h"

/* The sink takes the chunks. Chunks are built in place: the sink lends memory, so that no data is
 * copied between a read(2) and the encryption. */
struct image_sink {
        void *ctx;
        /* `size_bytes` (at most IMAGE_CHUNK_MAX_BYTES) of memory, valid until the next call of
         * reserve or commit. NULL when the sink has failed, with `err` set. */
        uint8_t *(*reserve)(void *ctx, size_t size_bytes, struct rm_error *err);
        /* The first `size_bytes` of what was reserved last are the next bytes of the stream. 0 or
         * negative errno. */
        int (*commit)(void *ctx, size_t size_bytes, struct rm_error *err);
};

/* An encoder makes payloads smaller, and decides how, chunk by chunk. */
struct image_encoder {
        void *ctx;
        /* Into `out`, in fewer than `size_bytes`; or IMAGE_CODEC_NONE: the payload is stored as it
         * is. */
        enum image_codec (*encode)(void *ctx, const void *in, size_t size_bytes, void *out, size_t *ret_size_bytes);
};

struct image_writer;

/* `sink`, `delta` and `encoder` must outlive the writer; `delta` and `encoder` NULL ok. The begin
 * chunk goes out at once. */
int image_writer_create(const struct image_sink *sink, const struct image_delta *delta, const struct image_encoder *encoder,
                        struct image_writer **ret_writer, struct rm_error *err);
void image_writer_destroy(struct image_writer *w); /* NULL ok */

/* Starts an object. `ret_slot` NULL ok for kinds without data (which need no close). -EBADMSG: a
 * name the receiver would refuse; -EMFILE, -EFBIG: over IMAGE_SLOTS_MAX, IMAGE_OBJECTS_MAX. */
int image_writer_open(struct image_writer *w, const struct image_object *object, uint32_t *ret_slot, struct rm_error *err);

/* Room for up to `size_bytes` (at most IMAGE_PAYLOAD_MAX_BYTES) of contents, to be filled and then
 * given to image_writer_data. Nothing else may be called on the writer in between, save another
 * buffer. NULL when the sink has failed. */
void *image_writer_buffer(struct image_writer *w, size_t size_bytes, struct rm_error *err);
/* The first `size_bytes` of the buffer are the object's bytes at `offset`. The buffer is used up. 0
 * bytes ok: gives it back. */
int image_writer_data(struct image_writer *w, uint32_t slot, uint64_t offset, size_t size_bytes, struct rm_error *err);
/* A hole. */
int image_writer_zero(struct image_writer *w, uint32_t slot, uint64_t offset, uint64_t size_bytes, struct rm_error *err);
/* The object is whole; its size is `size_bytes`, whatever was written last. */
int image_writer_close(struct image_writer *w, uint32_t slot, uint64_t size_bytes, struct rm_error *err);

/* The end mark, the only proof of a whole stream. -EBUSY while objects are open. Nothing may
 * follow. */
int image_writer_end(struct image_writer *w, struct rm_error *err);

const struct image_figures *image_writer_figures(const struct image_writer *w);

#endif
