#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "common/util.h"
#include "daemon/store/internal.h"
#include "daemon/store/manifest.h"
#include "daemon/store/store.h"

struct store_load {
        struct store *store;
        struct checkpoint *c;
};

typedef int (*poll_function)(void *ctx, const char *what, struct rm_error *err);

/* ---- the manifest ---- */

static uint32_t block_find(void *ctx, const uint8_t *hash) {
        const struct store *s = ctx;

        return index_find(&s->packs.index, hash);
}

static int packs_check(const struct store *s, const struct checkpoint *c, struct rm_error *err) {
        for (size_t i = 0; i < c->n_packs; i++) {
                const struct pack *pack = packs_find(&s->packs, c->packs[i].number);

                if (!pack)
                        return error_set(err, -ENODATA, "pack-%" PRIu64 ", which checkpoint %" PRIu64 " needs, is missing in %s",
                                         c->packs[i].number, c->number, s->path);
                if (pack->size_bytes < pack->file_bytes)
                        return error_set(err, -EBADMSG, "%s is damaged: no frame at byte %" PRIu64, pack->name, pack->size_bytes);
                if (pack->size_bytes != c->packs[i].size_bytes)
                        return error_set(err, -EBADMSG, "%s is damaged: it has %" PRIu64 " bytes instead of %" PRIu64, pack->name,
                                         pack->size_bytes, c->packs[i].size_bytes);
        }
        return 0;
}

static int manifest_load(struct store *s, uint64_t checkpoint, struct checkpoint **ret, struct rm_error *err) {
        struct checkpoint *c = NULL, *head = NULL;
        cleanup_file FILE *f = NULL;
        uint64_t size_bytes = 0;
        int r = store_manifest_open(s, checkpoint, &f, &size_bytes, err);

        if (r < 0)
                return r;
        r = manifest_read_head(f, size_bytes, &head, err);
        if (r < 0)
                (void) error_prefix(err, "manifest-%" PRIu64, checkpoint);
        else
                r = store_head_check(s, head, checkpoint, err);
        if (r == 0)
                r = packs_check(s, head, err);
        checkpoint_destroy(head);
        if (r < 0)
                return r;
        if (fseek(f, 0, SEEK_SET) != 0)
                return error_sys(err, -errno, "read manifest-%" PRIu64, checkpoint);
        r = manifest_read(f, size_bytes, block_find, s, &c, err);
        if (r < 0)
                return error_prefix(err, "manifest-%" PRIu64, checkpoint), r;
        *ret = c;
        return 0;
}

int store_load_begin(struct store *s, uint64_t checkpoint, struct store_load **ret, struct rm_error *err) {
        struct checkpoint *c = NULL;
        int r = store_use(s, err);

        if (r < 0)
                return r;
        r = manifest_load(s, checkpoint, &c, err);
        if (r < 0) {
                store_unuse(s);
                return r;
        }
        *ret = xcalloc(1, sizeof(**ret));
        (*ret)->store = s;
        (*ret)->c = c;
        return 0;
}

int store_load_meta(const struct store_load *load, const char *name, const void **ret_data, size_t *ret_size_bytes) {
        for (size_t i = 0; i < load->c->n_metas; i++)
                if (strcmp(load->c->metas[i].name, name) == 0) {
                        *ret_data = load->c->metas[i].data;
                        *ret_size_bytes = load->c->metas[i].size_bytes;
                        return 0;
                }
        return -ENOENT;
}

uint64_t store_load_raw_bytes(const struct store_load *load) {
        return load->c->raw_bytes;
}

void store_load_end(struct store_load *load) {
        if (!load)
                return;
        checkpoint_destroy(load->c);
        store_unuse(load->store);
        free(load);
}

/* ---- objects ---- */

struct emission {
        struct store *store;
        struct image_writer *w;
        poll_function poll;
        void *ctx;
        const char *label;
        uint32_t slot;
        struct rm_error *err;
        uint64_t polled_bytes; /* written since the last poll */
};

static int emission_poll(struct emission *e, uint64_t bytes) {
        e->polled_bytes += bytes;
        if (!e->poll || e->polled_bytes < IMAGE_PAYLOAD_MAX_BYTES)
                return 0;
        e->polled_bytes = 0;
        return e->poll(e->ctx, e->label, e->err);
}

/* Blocks that follow one another, into one piece of the writer's. */
struct run {
        uint64_t first; /* place */
        size_t n;
        uint32_t blocks[IMAGE_PAYLOAD_MAX_BYTES / IMAGE_BLOCK_BYTES];
};

static int run_write(struct emission *e, struct run *run, uint64_t size_bytes) {
        uint64_t offset = run->first * IMAGE_BLOCK_BYTES;
        size_t bytes = run->n * IMAGE_BLOCK_BYTES;
        uint8_t *to;
        int r = 0;

        if (run->n == 0)
                return 0;
        if (bytes > size_bytes - offset)
                bytes = (size_t) (size_bytes - offset);
        /* The buffer also has room for the end of a last block that is longer than the object. */
        to = image_writer_buffer(e->w, run->n * IMAGE_BLOCK_BYTES, e->err);
        if (!to)
                return -EIO;
        for (size_t i = 0; r == 0 && i < run->n; i++) {
                size_t n = e->store->packs.index.blocks[run->blocks[i]].size_bytes;

                r = packs_read(&e->store->packs, run->blocks[i], to + i * IMAGE_BLOCK_BYTES, e->err);
                memset(to + i * IMAGE_BLOCK_BYTES + n, 0, IMAGE_BLOCK_BYTES - n);
        }
        if (r == 0)
                r = image_writer_data(e->w, e->slot, offset, bytes, e->err);
        run->n = 0;
        return r == 0 ? emission_poll(e, bytes) : r;
}

static int run_add(struct emission *e, struct run *run, uint64_t place, uint32_t block, uint64_t size_bytes) {
        int r = 0;

        if (run->n == ARRAY_SIZE(run->blocks) || place != run->first + run->n)
                r = run_write(e, run, size_bytes);
        if (run->n == 0)
                run->first = place;
        run->blocks[run->n++] = block;
        return r;
}

static int contents_emit(struct emission *e, const struct checkpoint_object *object) {
        struct blockmap_walk walk;
        struct run run = { 0 };
        uint64_t place;
        uint32_t block;
        int r = 0;

        blockmap_begin(object->map, &walk);
        while (r == 0 && blockmap_step(&walk, &place, &block))
                r = run_add(e, &run, place, block, object->size_bytes);
        if (r == 0)
                r = run_write(e, &run, object->size_bytes);
        return r == 0 ? image_writer_close(e->w, e->slot, object->size_bytes, e->err) : r;
}

/* Pages from `start` on that are zero: the receiver must know that they have come. Up to where
 * there is something, or to `end`. */
static int zero_pages_emit(struct emission *e, const struct checkpoint_object *object, uint64_t start, uint64_t end,
                           uint64_t *ret_end) {
        uint64_t at = start;

        while (at < end && blockmap_get(object->map, at / IMAGE_BLOCK_BYTES) == BLOCKMAP_NONE)
                at += IMAGE_BLOCK_BYTES;
        *ret_end = at;
        return at > start ? image_writer_zero(e->w, e->slot, start, at - start, e->err) : 0;
}

static int pages_run_emit(struct emission *e, const struct checkpoint_object *object, uint64_t start, uint64_t end) {
        struct run run = { 0 };
        int r = 0;

        while (r == 0 && start < end) {
                uint32_t block = blockmap_get(object->map, start / IMAGE_BLOCK_BYTES);

                if (block == BLOCKMAP_NONE) {
                        r = run_write(e, &run, IMAGE_OBJECT_MAX_BYTES);
                        if (r == 0)
                                r = zero_pages_emit(e, object, start, end, &start);
                        continue;
                }
                r = run_add(e, &run, start / IMAGE_BLOCK_BYTES, block, IMAGE_OBJECT_MAX_BYTES);
                start += IMAGE_BLOCK_BYTES;
        }
        return r == 0 ? run_write(e, &run, IMAGE_OBJECT_MAX_BYTES) : r;
}

/* Emits a piece of the list from the page at `*at` on. */
static int present_piece_emit(struct emission *e, const struct checkpoint_object *object, uint32_t slot, uint64_t *at,
                              uint64_t *list_bytes) {
        uint8_t *to = image_writer_buffer(e->w, IMAGE_PAYLOAD_MAX_BYTES, e->err);
        uint64_t start, end;
        size_t n = 0;
        int r;

        if (!to)
                return -EIO;
        while (n < IMAGE_PAYLOAD_MAX_BYTES && pageset_next(object->present, *at, UINT64_MAX, &start, &end)) {
                const uint64_t run[2] = { htole64(start), htole64(end) };

                memcpy(to + n, run, sizeof(run));
                n += sizeof(run);
                *at = end;
        }
        r = image_writer_data(e->w, slot, *list_bytes, n, e->err);
        *list_bytes += n;
        return r == 0 && n < IMAGE_PAYLOAD_MAX_BYTES ? 1 : r;
}

static int present_emit(struct emission *e, const struct checkpoint_object *object) {
        const struct image_object o = {
                .kind = RM__IMAGE_KIND__IMAGE_KIND_PRESENT, .role = "", .path = object->o.path, .target = ""
        };
        uint64_t at = 0, list_bytes = 0;
        uint32_t slot = 0;
        int r = image_writer_open(e->w, &o, &slot, e->err);

        while (r == 0)
                r = present_piece_emit(e, object, slot, &at, &list_bytes);
        return r > 0 ? image_writer_close(e->w, slot, list_bytes, e->err) : r;
}

static int pages_emit(struct emission *e, const struct checkpoint_object *object) {
        uint64_t start, end = 0;
        int r = 0;

        while (r == 0 && pageset_next(object->present, end, UINT64_MAX, &start, &end))
                r = pages_run_emit(e, object, start, end);
        if (r == 0)
                r = present_emit(e, object);
        return r == 0 ? image_writer_close(e->w, e->slot, 0, e->err) : r;
}

static int object_emit(struct emission *e, const struct checkpoint_object *object) {
        int r = image_writer_open(e->w, &object->o, &e->slot, e->err);

        if (r < 0 || !object->map)
                return r == 0 ? emission_poll(e, IMAGE_BLOCK_BYTES) : r;
        return object->o.kind == RM__IMAGE_KIND__IMAGE_KIND_PAGES ? pages_emit(e, object) : contents_emit(e, object);
}

int store_load_write(struct store_load *load, struct image_writer *w,
                     int (*poll)(void *ctx, const char *what, struct rm_error *err), void *ctx, struct rm_error *err) {
        struct emission e = { .store = load->store, .w = w, .poll = poll, .ctx = ctx, .err = err };
        int r = 0;

        for (size_t i = 0; r == 0 && i < load->c->n_objects; i++) {
                cleanup_free char *label = checkpoint_object_label(load->c->objects[i]);

                e.label = label;
                r = object_emit(&e, load->c->objects[i]);
                if (r == -EBADMSG)
                        (void) error_prefix(err, "load %s", label);
        }
        return r;
}

/* ---- verification ---- */

static int object_verify(struct store *s, const struct checkpoint_object *object, uint8_t *seen, struct emission *e) {
        uint8_t data[IMAGE_BLOCK_BYTES];
        struct blockmap_walk walk;
        uint64_t place;
        uint32_t block;
        int r = 0;

        blockmap_begin(object->map, &walk);
        while (r == 0 && blockmap_step(&walk, &place, &block)) {
                if (compact_bit(seen, block))
                        continue;
                seen[block / 8] |= (uint8_t) (1U << (block % 8));
                r = packs_read(&s->packs, block, data, e->err);
                if (r == 0)
                        r = emission_poll(e, IMAGE_BLOCK_BYTES);
        }
        return r;
}

/* Reads also blocks that no object of this checkpoint needs: a copy of the pack on another node
 * must be whole. */
static int packs_verify(struct store *s, const struct checkpoint *c, struct emission *e) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < c->n_packs; i++) {
                const struct pack *pack = packs_find(&s->packs, c->packs[i].number);

                e->label = pack->name;
                for (uint32_t k = 0; r == 0 && k < s->packs.index.n_frames; k++) {
                        if (s->packs.index.frames[k].pack != pack)
                                continue;
                        r = packs_read_frame(&s->packs, k, e->err);
                        if (r == 0)
                                r = emission_poll(e, s->packs.index.frames[k].raw_bytes);
                }
        }
        return r;
}

int store_verify(struct store *s, uint64_t checkpoint, int (*poll)(void *ctx, const char *what, struct rm_error *err), void *ctx,
                 struct rm_error *err) {
        struct emission e = { .store = s, .poll = poll, .ctx = ctx, .err = err };
        cleanup_free uint8_t *seen = NULL;
        struct store_load *load = NULL;
        int r = store_load_begin(s, checkpoint, &load, err);

        if (r < 0)
                return r;
        seen = xcalloc((size_t) s->packs.index.n_blocks / 8 + 1, 1);
        for (size_t i = 0; r == 0 && i < load->c->n_objects; i++) {
                cleanup_free char *label = checkpoint_object_label(load->c->objects[i]);

                e.label = label;
                if (load->c->objects[i]->map)
                        r = object_verify(s, load->c->objects[i], seen, &e);
                if (r == -EBADMSG)
                        (void) error_prefix(err, "%s", label);
        }
        if (r == 0)
                r = packs_verify(s, load->c, &e);
        store_load_end(load);
        return r;
}
