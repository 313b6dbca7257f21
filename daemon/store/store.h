/* Checkpoints of one capsule, as they lie on the disk of one node: contents in blocks of
 * IMAGE_BLOCK_BYTES, each stored once for all checkpoints that have it (Agarwal et al. 2004), and
 * for each checkpoint a manifest, written last, so that half of a checkpoint is none.
 *
 * In the directory:
 *   pack-N        blocks that came with checkpoint N: frames of up to STORE_FRAME_BLOCKS,
 *                 compressed together, each with the SHA-256 of its blocks
 *   manifest-N    what checkpoint N consists of: its objects, and by which hashes their blocks are
 *                 found; which packs it needs; a MAC over all of it
 * Both only grow while N is made, and never change after that: so a copy on another node is a copy
 * of the files that are not there yet.
 *
 * Only rmd writes there, and a manifest counts only with the MAC of the cluster's key, and as a
 * checkpoint of the capsule that it names: its hashes then authenticate every block. What was read
 * is checked before it is used; an error names the file.
 *
 * Blocking; no event loop, no threads. */
#ifndef RM_STORE_STORE_H
#define RM_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/image/reader.h"
#include "daemon/image/writer.h"

#define STORE_KEY_BYTES 32U
#define STORE_MAC_BYTES 32U /* at the end of a manifest */
#define STORE_FRAME_BLOCKS 64U
#define STORE_RESERVE_SHARE 20U /* of a file system stays free: a 20th */
#define STORE_META_MAX_BYTES (16U << 20)

/* Derived from the cluster's key, for this purpose alone. */
struct store_key {
        uint8_t bytes[STORE_KEY_BYTES];
};

struct store_keys {
        struct store_key key; /* that manifests are made with, and may have */
        struct store_key second; /* that they may have as well */
        bool has_second;
};

/* The job and owner of checkpoints. The origin stands in each manifest, under the MAC: so no
 * checkpoint can be passed off as another job's, although one key makes them all. */
struct store_origin {
        uint64_t job;
        int32_t capsule;
        uint32_t uid; /* of the job's owner */
};

struct store;

/* Makes the directory (0700) if there is none; its parent must be there. What an unfinished
 * checkpoint has left is removed. Manifests of another origin count for nothing. `keys` and
 * `origin` are copied. -EPERM: the directory is another user's, or others may write there; -EFBIG:
 * too many blocks; or another negative errno. */
int store_open(const char *dir, const struct store_keys *keys, const struct store_origin *origin, struct store **ret,
               struct rm_error *err);
void store_close(struct store *s); /* NULL ok */

/* ---- saving ---- */

struct store_figures {
        uint64_t raw_bytes; /* of all contents, zeros left out */
        uint64_t blocks; /* looked up */
        uint64_t new_blocks; /* of these, not there before */
        uint64_t packed_bytes; /* the new pack, compressed */
        uint64_t manifest_bytes;
        uint64_t moved_blocks; /* of new_blocks: taken over from packs of which little was still in use */
};

struct store_save;

/* Begins checkpoint `checkpoint`, a number above that of any here. One at a time. `level`: of zstd;
 * 0: lz4; negative: no compression. -EBUSY: another one has begun; -EINVAL: the number is not above
 * all; -EEXIST: its pack is there; or another negative errno. */
int store_save_begin(struct store *s, uint64_t checkpoint, int level, struct store_save **ret, struct rm_error *err);

/* The save may add so many bytes to the disk, its manifest apart: more fails with -EDQUOT; a write
 * that would take of the reserve fails with -ENOSPC. 0: no limit, and no reserve. */
void store_save_limit(struct store_save *save, uint64_t bytes);

/* Takes the objects of one image stream, as image_place_target() does. Of the memory of a process
 * (PAGES) only what has been written since the checkpoint saved last through this very `struct
 * store` need come, if `continues` was set for its pid: the rest is what that had. PRESENT selects,
 * of both, which pages there are; a process without PRESENT has none. Objects of kind AHEAD and
 * regular files that name one are understood; BLOCKS and LATER are refused. */
const struct image_target *store_save_target(struct store_save *save);
/* To be called before the first object of that pid: its pages of the last checkpoint stay until
 * they are replaced. -ENOENT: that has none, or has turned out to be damaged, or was removed: all
 * of its pages must come. */
int store_save_continue(struct store_save *save, uint32_t pid);

/* Stores data that belongs to the checkpoint beside the stream: at most 8 pieces, of
 * STORE_META_MAX_BYTES in all; a name as name_valid() allows. -EINVAL: another name, or the same
 * one twice; -EFBIG: too much. */
int store_save_meta(struct store_save *save, const char *name, const void *data, size_t size_bytes, struct rm_error *err);

/* All is on the disk, the manifest last; then packs that no manifest needs any more are removed.
 * Frees `save` also when it fails: then nothing of it is left. -EBUSY: an object is open; the first
 * error of the save; or another negative errno. */
int store_save_commit(struct store_save *save, struct store_figures *ret_figures, struct rm_error *err);
void store_save_abort(struct store_save *save); /* NULL ok */

/* ---- loading ---- */

struct store_load;

/* Reads and checks the manifest. -ENOENT: there is no such checkpoint; -EBADMSG: damaged, not made
 * with the keys, or of another origin; -ENODATA: a pack is missing. */
int store_load_begin(struct store *s, uint64_t checkpoint, struct store_load **ret, struct rm_error *err);
/* Owned by `load`. -ENOENT. */
int store_load_meta(const struct store_load *load, const char *name, const void **ret_data, size_t *ret_size_bytes);
uint64_t store_load_raw_bytes(const struct store_load *load);
/* All objects into `w`, in an order that image_place_target() takes, without the end mark. `poll`
 * is called now and then, at least for each MiB; nonzero ends it with that value. -EBADMSG: a block
 * is damaged: the text names file and object. */
int store_load_write(struct store_load *load, struct image_writer *w,
                     int (*poll)(void *ctx, const char *what, struct rm_error *err), void *ctx, struct rm_error *err);
void store_load_end(struct store_load *load); /* NULL ok */

/* ---- keeping ---- */

/* Numbers of the checkpoints here, ascending; malloc'ed. Manifests are only found, not checked. 0
 * or negative errno. */
int store_list(const struct store *s, uint64_t **ret_numbers, size_t *ret_n, struct rm_error *err);
/* Removes the checkpoint's manifest, and packs that no other checkpoint needs. 0 also when there
 * was no such checkpoint, or negative errno. */
int store_remove(struct store *s, uint64_t checkpoint, struct rm_error *err);
/* Reads all of it: manifest, packs, each block. `poll` as above, NULL ok. Errors as of
 * store_load_begin() and store_load_write(). */
int store_verify(struct store *s, uint64_t checkpoint, int (*poll)(void *ctx, const char *what, struct rm_error *err), void *ctx,
                 struct rm_error *err);
/* Calls `fn` for each file of a checkpoint, with its name in the directory and open for reading,
 * the manifest last; what is not 0 ends it, and is returned. For copying. -ENOENT: the checkpoint,
 * or a pack of it, is not there; -EPERM: a file is not ours; -EBADMSG: the manifest is damaged. */
typedef int (*store_file_fn)(void *ctx, const char *name, int fd, bool manifest, struct rm_error *err);
int store_each_file(struct store *s, uint64_t checkpoint, store_file_fn fn, void *ctx, struct rm_error *err);
/* Puts a MAC, by the first key, at the end of a manifest that has come without one. The caller has
 * authenticated the manifest in another way, and calls this once. -ENOENT: there is none. */
int store_sign(struct store *s, uint64_t checkpoint, struct rm_error *err);
/* Bytes of all files in the directory. */
uint64_t store_used_bytes(const struct store *s);

#endif
