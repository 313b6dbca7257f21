/* A checkpoint that leaves the cluster, as bytes that only a holder of the key can read, and only
 * he can make or change.
 *
 * The file is one line of text, SEAL_LINE_BYTES long, and then chunks:
 *
 *   rmd-checkpoint FORMAT CLUSTER FINGERPRINT SALT CHECK
 *
 * FINGERPRINT is that of the cluster's key (tls_key_fingerprint()), for a user who looks for the
 * key; SALT is random. Two keys are derived (HKDF) from the cluster's key and all of the line
 * before CHECK. One is CHECK: it shows that this is the key, and that the line is as it was
 * written, before anything else is read; and as it commits to the key, no file opens with two keys.
 * The other is of this one file.
 *
 * A chunk is SEAL_CHUNK_BYTES of contents, encrypted by AES-256-GCM, and a tag, with its number as
 * the nonce: chunks that are left out, repeated, exchanged, or of another file have another nonce
 * or key (STREAM: Hoang, Reyhanitabar, Rogaway and Vizar 2015). The last chunk is shorter than all
 * others, and may be empty; a tag covers the length of its chunk. So no other chunk can be made the
 * last one, and what comes behind the last one changes that: a file that is cut off anywhere, or
 * goes on, is refused.
 *
 * A reader gives out contents of a chunk only when the chunk is authentic, and in order; only
 * seal_read_end() tells that all of it has come. Blocking; memory for one chunk. */
#ifndef RM_MOVER_SEAL_H
#define RM_MOVER_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/wire/tls.h"

#define SEAL_FORMAT 2U
#define SEAL_LINE_BYTES 256U
#define SEAL_CHUNK_BYTES (256U << 10)
#define SEAL_TAG_BYTES 16U
#define SEAL_KEYS_MAX 2U

struct seal_keys {
        const char *cluster; /* of this node; borrowed */
        /* The keys as they are in their files. The first is written with, all are read with. */
        uint8_t keys[SEAL_KEYS_MAX][TLS_KEY_BYTES];
        size_t n;
        bool any_cluster; /* what was written by another cluster with one of the keys is read as well */
};

/* Both return 0 or a negative errno. */
struct seal_io {
        /* All `size_bytes`. */
        int (*write)(void *ctx, const void *data, size_t size_bytes, struct rm_error *err);
        /* `size_bytes`, or fewer where the stream ends. */
        int (*read)(void *ctx, void *data, size_t size_bytes, size_t *ret_bytes, struct rm_error *err);
        void *ctx;
};

struct seal;

/* Writes the line. What `io` refers to must outlive the seal; `keys` need not. */
int seal_create(const struct seal_keys *keys, const struct seal_io *io, struct seal **ret, struct rm_error *err);
int seal_write(struct seal *s, const void *data, size_t size_bytes, struct rm_error *err);
/* All data is written; only destroy may follow. */
int seal_write_end(struct seal *s, struct rm_error *err);

/* Reads the line. -EBADMSG: it is none, or damaged; -ENOTSUP: of another format; -EACCES: by
 * another cluster, or by a key that is not in `keys`, whose fingerprint is in the text. */
int seal_open(const struct seal_keys *keys, const struct seal_io *io, struct seal **ret, struct rm_error *err);
/* Exactly `size_bytes`. -EBADMSG: damaged, cut off, or there is less; all that follows fails as
 * well. */
int seal_read(struct seal *s, void *data, size_t size_bytes, struct rm_error *err);
/* -EBADMSG: that was not all, or not all of it was read. */
int seal_read_end(struct seal *s, struct rm_error *err);

/* Wipes the key. NULL ok. */
void seal_destroy(struct seal *s);

#endif
