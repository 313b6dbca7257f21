#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <endian.h>
#include <sys/stat.h>

#include "common/util.h"
#include "scene.h"

/* ---- the target that remembers ---- */

static int record_open(void *ctx, const struct image_object *o, void **ret_handle, struct rm_error *err) {
        struct recorder *r = ctx;
        struct record *record = &r->records[r->n++];
        char *name;

        (void) err;
        assert_true(r->n <= ARRAY_SIZE(r->records));
        name = xasprintf("%d %s:%s -> %s %o %u:%u %lld.%u", (int) o->kind, o->role, o->path, o->target, o->mode, o->uid, o->gid,
                         (long long) o->mtime_sec, o->mtime_nsec);
        for (size_t i = 0; i < o->n_attributes; i++) {
                char *longer = xasprintf("%s %s=%.*s(%zu)", name, o->attributes[i].name, (int) o->attributes[i].value_bytes,
                                         (const char *) o->attributes[i].value, o->attributes[i].value_bytes);

                free(name);
                name = longer;
        }
        record->kind = o->kind;
        record->name = name;
        record->base = o->kind == RM__IMAGE_KIND__IMAGE_KIND_PAGES ? HIGH : 0;
        *ret_handle = record;
        return 0;
}

static void record_reach(struct record *record, uint64_t at, uint64_t size_bytes) {
        assert_true(at + size_bytes <= RECORD_MAX_BYTES);
        if (!record->contents) {
                record->contents = xcalloc(1, RECORD_MAX_BYTES);
                record->come = xcalloc(1, RECORD_MAX_BYTES / PAGE);
        }
        for (uint64_t page = at / PAGE; page * PAGE < at + size_bytes; page++)
                record->come[page] = 1;
        if (record->reach < at + size_bytes)
                record->reach = at + size_bytes;
}

static int record_data(void *ctx, void *handle, uint64_t offset, const void *data, size_t size_bytes, struct rm_error *err) {
        struct record *record = handle;

        (void) ctx;
        (void) err;
        record_reach(record, offset - record->base, size_bytes);
        memcpy(record->contents + (offset - record->base), data, size_bytes);
        return 0;
}

static int record_zero(void *ctx, void *handle, uint64_t offset, uint64_t size_bytes, struct rm_error *err) {
        struct record *record = handle;

        (void) ctx;
        (void) err;
        /* Holes may be long. */
        if (record->kind != RM__IMAGE_KIND__IMAGE_KIND_PAGES)
                return 0;
        record_reach(record, offset - record->base, size_bytes);
        memset(record->contents + (offset - record->base), 0, size_bytes);
        return 0;
}

static int record_close(void *ctx, void *handle, uint64_t size_bytes, struct rm_error *err) {
        struct record *record = handle;

        (void) ctx;
        (void) err;
        record->size_bytes = size_bytes;
        return 0;
}

static void record_drop(void *ctx, void *handle) {
        (void) ctx;
        (void) handle;
}

void recorder_init(struct recorder *r) {
        *r = (struct recorder) { .target = { .ctx = r,
                                             .open = record_open,
                                             .data = record_data,
                                             .zero = record_zero,
                                             .close = record_close,
                                             .drop = record_drop } };
}

void recorder_finish(struct recorder *r) {
        for (size_t i = 0; i < r->n; i++) {
                free(r->records[i].name);
                free(r->records[i].contents);
                free(r->records[i].come);
        }
        r->n = 0;
}

const struct record *recorder_find(const struct recorder *r, Rm__ImageKind kind, const char *part) {
        for (size_t i = 0; i < r->n; i++)
                if (r->records[i].kind == kind && strstr(r->records[i].name, part))
                        return &r->records[i];
        return NULL;
}

static void contents_assert_same(const struct record *a, const struct record *b) {
        uint64_t reach = a->reach > b->reach ? a->reach : b->reach;

        for (uint64_t i = 0; i < reach; i++) {
                uint8_t x = a->contents && i < a->reach ? a->contents[i] : 0;
                uint8_t y = b->contents && i < b->reach ? b->contents[i] : 0;

                if (x != y)
                        fail_msg("%s differs at byte %llu", a->name, (unsigned long long) i);
        }
}

void recorder_assert_same(const struct recorder *a, const struct recorder *b) {
        for (size_t i = 0; i < a->n && i < b->n; i++) {
                assert_string_equal(a->records[i].name, b->records[i].name);
                assert_int_equal(a->records[i].size_bytes, b->records[i].size_bytes);
                contents_assert_same(&a->records[i], &b->records[i]);
        }
        assert_int_equal(a->n, b->n);
}

/* ---- the store ---- */

void scene_init(struct scene *s) {
        *s = (struct scene) { .base = "/dev/shm/rmd-test-store.XXXXXX" };
        assert_non_null(mkdtemp(s->base));
        s->dir = xasprintf("%s/store", s->base);
        memset(s->keys.key.bytes, 7, STORE_KEY_BYTES);
        s->origin = (struct store_origin) { .job = 7, .capsule = -1, .uid = 1000 };
        memory_init(&s->m);
        scene_reopen(s);
}

void scene_finish(struct scene *s) {
        store_close(s->store);
        image_writer_destroy(s->w);
        memory_finish(&s->m);
        assert_int_equal(remove_tree(s->base), 0);
        free(s->dir);
}

void scene_reopen(struct scene *s) {
        store_close(s->store);
        s->store = NULL;
        if (store_open(s->dir, &s->keys, &s->origin, &s->store, &s->err) < 0)
                fail_msg("%s", error_text(&s->err));
}

char *scene_path(const struct scene *s, const char *name) {
        return xasprintf("%s/%s", s->dir, name);
}

size_t scene_count(const struct scene *s, const char *prefix) {
        DIR *d = opendir(s->dir);
        const struct dirent *e;
        size_t n = 0;

        assert_non_null(d);
        while ((e = readdir(d)))
                n += strncmp(e->d_name, prefix, strlen(prefix)) == 0 && e->d_name[0] != '.';
        (void) closedir(d);
        return n;
}

/* ---- streams ---- */

void stream_begin(struct scene *s) {
        image_writer_destroy(s->w);
        s->w = NULL;
        s->m.size_bytes = s->m.at = 0;
        assert_int_equal(image_writer_create(&s->m.sink, NULL, NULL, &s->w, NULL), 0);
}

uint32_t stream_open(struct scene *s, Rm__ImageKind kind, const char *role, const char *path) {
        struct image_object o = { .kind = kind, .role = role, .path = path, .target = "", .mode = 0640, .uid = 1000, .gid = 100 };
        uint32_t slot = 0;

        o.mtime_sec = 1700000000;
        o.mtime_nsec = 5;
        assert_int_equal(image_writer_open(s->w, &o, &slot, NULL), 0);
        return slot;
}

void stream_put(struct scene *s, uint32_t slot, uint64_t offset, const void *data, size_t size_bytes) {
        void *buffer = image_writer_buffer(s->w, size_bytes, NULL);

        assert_non_null(buffer);
        memcpy(buffer, data, size_bytes);
        assert_int_equal(image_writer_data(s->w, slot, offset, size_bytes, NULL), 0);
}

void stream_close(struct scene *s, uint32_t slot, uint64_t size_bytes) {
        assert_int_equal(image_writer_close(s->w, slot, size_bytes, NULL), 0);
}

void stream_present(struct scene *s, const char *pid, const uint64_t *runs, size_t n) {
        uint32_t slot = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_PRESENT, "", pid);
        uint64_t list[64];

        for (size_t i = 0; i < n; i++)
                list[i] = htole64(runs[i]);
        if (n > 0)
                stream_put(s, slot, 0, list, n * sizeof(*list));
        stream_close(s, slot, n * sizeof(*list));
}

void stream_end(struct scene *s) {
        assert_int_equal(image_writer_end(s->w, NULL), 0);
}

int stream_read(struct scene *s, const struct image_target *target) {
        struct image_reader *reader = NULL;
        int r;

        s->m.at = 0;
        error_clear(&s->err);
        r = image_reader_create(&s->m.source, target, NULL, &reader, &s->err);
        if (r == 0)
                r = image_reader_run(reader, &s->err);
        image_reader_destroy(reader);
        return r;
}

void fill_page(uint8_t *page, uint64_t seed) {
        bool repeats = seed < UINT64_C(0x100000000);
        uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

        for (size_t i = 0; i < PAGE; i += 8) {
                if (i % 256 == 0 || !repeats) {
                        x ^= x << 13;
                        x ^= x >> 7;
                        x ^= x << 17;
                }
                memcpy(page + i, &x, 8);
        }
}

void stream_file(struct scene *s, const char *path, uint64_t seed, size_t n) {
        uint32_t slot = stream_open(s, RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp", path);
        uint8_t page[PAGE];

        for (size_t i = 0; i < n; i++) {
                fill_page(page, seed + i);
                stream_put(s, slot, i * PAGE, page, PAGE);
        }
        stream_close(s, slot, n * PAGE);
}

int scene_save(struct scene *s, uint64_t number, int level, struct store_figures *figures) {
        struct store_save *save = NULL;
        int r;

        error_clear(&s->err);
        r = store_save_begin(s->store, number, level, &save, &s->err);
        if (r < 0)
                return r;
        r = stream_read(s, store_save_target(save));
        if (r < 0) {
                store_save_abort(save);
                return r;
        }
        return store_save_commit(save, figures, &s->err);
}

int scene_load(struct scene *s, uint64_t number, struct recorder *recorder) {
        struct store_load *load = NULL;
        int r;

        recorder_init(recorder);
        error_clear(&s->err);
        r = store_load_begin(s->store, number, &load, &s->err);
        if (r < 0)
                return r;
        stream_begin(s);
        r = store_load_write(load, s->w, NULL, NULL, &s->err);
        store_load_end(load);
        if (r < 0)
                return r;
        stream_end(s);
        return stream_read(s, &recorder->target);
}
