/* Takes an image stream apart. Every chunk is verified as a whole before any of it reaches the
 * target. */
#ifndef RM_IMAGE_READER_H
#define RM_IMAGE_READER_H

#include "daemon/image/delta.h"

/* The source of the bytes. Exactly `size_bytes` or an error; -ENODATA when the stream ends before
 * the first of them. */
struct image_source {
        void *ctx;
        int (*read)(void *ctx, void *ret_data, size_t size_bytes, struct rm_error *err);
};

/* The target of the objects. All calls return 0 or negative errno with `err` set, which ends the
 * reading. */
struct image_target {
        void *ctx;
        /* `ret_handle` is given back in the calls for this object; set for kinds with data only. */
        int (*open)(void *ctx, const struct image_object *object, void **ret_handle, struct rm_error *err);
        int (*data)(void *ctx, void *handle, uint64_t offset, const void *data, size_t size_bytes, struct rm_error *err);
        /* NULL ok: zeros are what is left out. Offsets may come in any order, but an object's bytes
         * come once; those of PAGES and of what image_object_replaces() also again. */
        int (*zero)(void *ctx, void *handle, uint64_t offset, uint64_t size_bytes, struct rm_error *err);
        /* Releases the handle also when it fails. */
        int (*close)(void *ctx, void *handle, uint64_t size_bytes, struct rm_error *err);
        /* Releases the handle of an object that will not become whole. */
        void (*drop)(void *ctx, void *handle);
        /* NULL ok: all has come, and what was placed is used from now on. */
        void (*end)(void *ctx);
};

struct image_reader;

/* `source`, `target`, `delta` must outlive the reader; `delta` NULL ok. Decodes every codec of
 * IMAGE_CODECS_KNOWN. */
int image_reader_create(const struct image_source *source, const struct image_target *target, const struct image_delta *delta,
                        struct image_reader **ret_reader, struct rm_error *err);
void image_reader_destroy(struct image_reader *r); /* NULL ok; drops what is open */

/* Reads a chunk. 1: it was not the last; 0: the end mark was read and all of the stream is whole;
 * -EBADMSG: not our format, or damaged; -EPIPE: the stream ended without end mark; or an error of
 * source or target. After an error, and after 0, only destroy. */
int image_reader_step(struct image_reader *r, struct rm_error *err);
/* Reads the whole stream. 0 or negative errno. */
int image_reader_run(struct image_reader *r, struct rm_error *err);

const struct image_figures *image_reader_figures(const struct image_reader *r);

#endif
