/* An open store: what the parts of this folder share.
 *
 * Several processes may have it open. A process that saves or loads holds a shared lock of the
 * directory, and so should one that copies files into it; packs and what is unfinished are removed
 * only under an exclusive one, and stay for later when that cannot be had at once. */
#ifndef RM_STORE_INTERNAL_H
#define RM_STORE_INTERNAL_H

#include "daemon/store/checkpoint.h"
#include "daemon/store/directory.h"
#include "daemon/store/pack.h"

struct store_head; /* of a manifest that was authenticated */

struct store {
        char *path;
        int dir_fd;
        struct store_keys keys;
        struct store_origin origin;
        struct packs packs;
        struct store_head *heads;
        struct checkpoint *last; /* saved through this store: only its PAGES; NULL: none */
        unsigned users;          /* savings and loadings, which hold the lock */
        bool saving;
};

/* Counts one more user, and brings the index up to date with the directory. 0 or negative errno,
 * after which nothing is to be undone. */
int store_use(struct store *s, struct rm_error *err);
void store_unuse(struct store *s);

/* Removes what no manifest needs, unless the directory is in use. */
void store_sweep(struct store *s);

/* Opens a manifest that was made with one of the keys; `f` is at its begin. -ENOENT with a text;
 * -EBADMSG. */
int store_manifest_open(struct store *s, uint64_t number, FILE **ret_f, uint64_t *ret_size_bytes, struct rm_error *err);
/* Is it what its name and its directory say? -EBADMSG, with the name of the file. */
int store_head_check(const struct store *s, const struct checkpoint *head, uint64_t number, struct rm_error *err);

/* Has blocks that the last checkpoint needs in the packs become few, they go into the one that is
 * made: of packs that are less than half in use, at most as much as is new, or a quarter of all.
 * `used`: a bit for each block. Errors as of packs_take_over(), but for damage, which is left. */
int compact(struct packs *p, const uint8_t *used, uint64_t *ret_moved_blocks, struct rm_error *err);

static inline bool compact_bit(const uint8_t *used, uint32_t block) {
        return (used[block / 8] >> (block % 8) & 1) != 0;
}

#endif
