/* A store in a temporary directory, streams for it that are written object by object, and a target
 * that remembers what it was given. */
#ifndef RM_TESTS_STORE_SCENE_H
#define RM_TESTS_STORE_SCENE_H

#include "daemon/store/store.h"
#include "tests/unit/image/memory.h"

#define PAGE IMAGE_BLOCK_BYTES
/* The addresses where programs have their stacks. */
#define HIGH UINT64_C(0x7ffc00000000)
#define RECORD_MAX_BYTES (8U << 20)

/* An object as it came, contents from `base` on. */
struct record {
        Rm__ImageKind kind;
        char *name; /* every field but the contents, as text */
        uint64_t base;
        uint64_t size_bytes;
        uint8_t *contents;
        uint64_t reach; /* of what was written in it */
        uint8_t *come; /* by page: data or zeros came */
};

struct recorder {
        struct image_target target;
        struct record records[64];
        size_t n;
};

void recorder_init(struct recorder *r);
void recorder_finish(struct recorder *r);
/* NULL: there is none. `part`: of the name. */
const struct record *recorder_find(const struct recorder *r, Rm__ImageKind kind, const char *part);
/* All the same, in the same order. */
void recorder_assert_same(const struct recorder *a, const struct recorder *b);

struct scene {
        char base[64];
        char *dir; /* of the store */
        struct store_keys keys;
        struct store_origin origin;
        struct store *store;
        struct memory m;
        struct image_writer *w;
        struct rm_error err;
};

void scene_init(struct scene *s);
void scene_finish(struct scene *s);
void scene_reopen(struct scene *s);

/* The functions of the stream. */
void stream_begin(struct scene *s);
uint32_t stream_open(struct scene *s, Rm__ImageKind kind, const char *role, const char *path);
void stream_put(struct scene *s, uint32_t slot, uint64_t offset, const void *data, size_t size_bytes);
void stream_close(struct scene *s, uint32_t slot, uint64_t size_bytes);
void stream_present(struct scene *s, const char *pid, const uint64_t *runs, size_t n);
void stream_end(struct scene *s);
/* Reads all of the stream into a target. 0 or the reader's error. */
int stream_read(struct scene *s, const struct image_target *target);
/* A file of `n` pages that differ by `seed`; below `seed` 0x100000000 compressible. */
void stream_file(struct scene *s, const char *path, uint64_t seed, size_t n);
void fill_page(uint8_t *page, uint64_t seed);

/* The stream as checkpoint `number`. */
int scene_save(struct scene *s, uint64_t number, int level, struct store_figures *figures);
/* Loads a checkpoint. 0 or negative errno, with s->err. */
int scene_load(struct scene *s, uint64_t number, struct recorder *r);

/* Files of the store's directory whose names begin so. */
size_t scene_count(const struct scene *s, const char *prefix);
char *scene_path(const struct scene *s, const char *name); /* malloc'ed */

#endif
