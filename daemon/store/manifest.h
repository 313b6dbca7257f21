/* Manifests: a checkpoint as a file, authenticated by a MAC over all of it. Decoding believes
 * nothing, so that it can be tried with any bytes.
 *
 * A row of frames (common/frame.h, FRAME_MAGIC_STORE), each with a StoreRecord (proto/store.proto):
 * the head, metas, objects in the order in which they are placed, each followed by its blocks and
 * by its present pages, and the end; then MANIFEST_MAC_BYTES of HMAC-SHA256. */
#ifndef RM_STORE_MANIFEST_H
#define RM_STORE_MANIFEST_H

#include <stdio.h>

#include "daemon/store/checkpoint.h"
#include "daemon/store/index.h"

#define MANIFEST_VERSION 2U
#define MANIFEST_MAC_BYTES STORE_MAC_BYTES
/* The largest: a meta. */
#define MANIFEST_RECORD_MAX_BYTES (STORE_META_MAX_BYTES + 4096U)
#define MANIFEST_PACKS_MAX 65536U

/* Writes the manifest to the empty file. -EFBIG: a record is too long; or another negative
 * errno. */
int manifest_write(FILE *f, const struct checkpoint *c, const struct index *ix, const struct store_key *key, struct rm_error *err);

/* Puts a MAC behind the `body_bytes` that `f` has, which is open for reading and writing, and at
 * its begin. 0 or negative errno. */
int manifest_sign(FILE *f, uint64_t body_bytes, const struct store_key *key, struct rm_error *err);
/* Was the file of `size_bytes`, which is read from its begin, made with one of the keys? Then `f`
 * stands at its begin again. -EBADMSG: it was not. */
int manifest_authenticate(FILE *f, uint64_t size_bytes, const struct store_keys *keys, struct rm_error *err);

/* The head alone: number, origin, raw_bytes and packs. -EBADMSG: damaged; -EPROTONOSUPPORT: of
 * another version. */
int manifest_read_head(FILE *f, uint64_t size_bytes, struct checkpoint **ret, struct rm_error *err);
/* All `size_bytes` of it (with the MAC, which is not looked at). `find` gives the number of a
 * block, INDEX_NONE: it is not here. Errors as of manifest_read_head(). */
int manifest_read(FILE *f, uint64_t size_bytes, uint32_t (*find)(void *ctx, const uint8_t *hash), void *ctx,
                  struct checkpoint **ret, struct rm_error *err);

#endif
