/* A checkpoint as one file (proto/export.proto): records, contents of files between them, and MACs by a key derived from the cluster's, each over all that is before it. What is read
 * counts for nothing before the MAC behind it was right. Blocking; what is below it is the caller's. */
#ifndef RM_MOVER_EXPORT_STREAM_H
#define RM_MOVER_EXPORT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/export.pb-c.h"

#define EXPORT_VERSION 1U
#define EXPORT_KEY_BYTES 32U
#define EXPORT_MAC_BYTES 32U
#define EXPORT_RECORD_MAX_BYTES (1U << 20) /* a head goes between rmd and rm-mover in one frame */

struct export_keys {
        uint8_t key[EXPORT_KEY_BYTES]; /* files are made with it, and may have it */
        uint8_t second[EXPORT_KEY_BYTES]; /* may have it as well */
        bool has_second;
};

/* Both move all `size_bytes`, or fail. -ENODATA from `read`: the stream ends before that. */
struct export_io {
        int (*write)(void *ctx, const void *data, size_t size_bytes, struct rm_error *err);
        int (*read)(void *ctx, void *data, size_t size_bytes, struct rm_error *err);
        void *ctx;
};

struct export_stream;

/* `io` and what it refers to must outlive it. */
int export_stream_create(const struct export_keys *keys, const struct export_io *io, struct export_stream **ret,
                         struct rm_error *err);
void export_stream_destroy(struct export_stream *s); /* NULL ok */

int export_write_record(struct export_stream *s, const Rm__ExportRecord *record, struct rm_error *err);
int export_write_data(struct export_stream *s, const void *data, size_t size_bytes, struct rm_error *err);
int export_write_mac(struct export_stream *s, struct rm_error *err);

/* The caller frees with rm__export_record__free_unpacked(). -EBADMSG: it is none. */
int export_read_record(struct export_stream *s, Rm__ExportRecord **ret, struct rm_error *err);
int export_read_data(struct export_stream *s, void *data, size_t size_bytes, struct rm_error *err);
/* -EBADMSG: what was read was not made with any of the keys, or has changed since. */
int export_read_mac(struct export_stream *s, struct rm_error *err);

/* Is it one job with one checkpoint, of parts that begin with that of mpirun? */
bool export_head_valid(const Rm__ExportHead *head);
/* "head", "g0": where a capsule's store is in the directory of its job; malloc'ed. */
char *export_part_dir(const char *dir, int32_t capsule);

#endif
