#include <assert.h>
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/store/contents.h"
#include "daemon/store/internal.h"
#include "daemon/store/manifest.h"
#include "daemon/store/store.h"

/* Zeros of all processes: 32 MiB of them take up 1 KiB of memory (pageset.h), however few bytes of
 * the stream tell of them. */
#define ZERO_PAGES_MAX_BYTES (UINT64_C(1) << 44)

enum stage {
        STAGE_PAGES, /* they come */
        STAGE_LIST,  /* a PRESENT is open */
        STAGE_KNOWN, /* it was closed; no pages may follow */
};

/* An object that is open. */
struct handle {
        Rm__ImageKind kind;
        struct checkpoint_object *object;
        struct contents contents;
        uint32_t ahead; /* its number, of AHEAD */

        /* The fields of a PAGES object. */
        enum stage stage;
        uint32_t pid;
        struct handle *next;

        /* The fields of a PRESENT object. */
        struct handle *pages;
        struct pageset *present;
        uint64_t list_bytes;
        uint64_t list_end;
};

struct store_save {
        struct store *store;
        struct checkpoint *c;
        struct image_target target;
        struct store_figures figures;
        struct pack *pack;
        struct rm_error failed; /* the first failure of the target, or that it was dropped */
        uint64_t zero_bytes;
        size_t n_open;
        struct handle *processes; /* whose PAGES are open */
        size_t n_processes;       /* that there were */
        uint32_t *continued;      /* pids */
        size_t n_continued;
        struct checkpoint_object *ahead[IMAGE_AHEAD_MAX + 1];
        bool ahead_open[IMAGE_AHEAD_MAX + 1];
};

static int bad(struct rm_error *err, const char *what, const char *of) {
        return error_set(err, -EBADMSG, "the image stream is damaged: %s of %.300s", what, of);
}

/* Keeps the first error of any call: the checkpoint cannot be whole any more. */
static int failing(struct store_save *save, int r, struct rm_error *err) {
        if (r < 0 && save->failed.code == 0) {
                save->failed.code = r;
                (void) snprintf(save->failed.text, sizeof(save->failed.text), "%s", err ? error_text(err) : strerror(-r));
        }
        return r;
}

/* ---- opening ---- */

static uint32_t number_of(const struct image_object *o) {
        return (uint32_t) strtoul(o->path, NULL, 10); /* image_object_check() has seen it */
}

static struct handle *process_find(struct store_save *save, uint32_t pid) {
        struct handle *h = save->processes;

        while (h && h->pid != pid)
                h = h->next;
        return h;
}

static const struct checkpoint_object *last_find(const struct store *s, const char *pid) {
        for (size_t i = 0; s->last && i < s->last->n_objects; i++)
                if (strcmp(s->last->objects[i]->o.path, pid) == 0)
                        return s->last->objects[i];
        return NULL;
}

/* Each pid is taken once only, since another process may get it. */
static bool continued_take(struct store_save *save, uint32_t pid) {
        for (size_t i = 0; i < save->n_continued; i++)
                if (save->continued[i] == pid) {
                        save->continued[i] = save->continued[--save->n_continued];
                        return true;
                }
        return false;
}

static int pages_open(struct store_save *save, struct handle *h, const struct image_object *o, struct rm_error *err) {
        h->pid = number_of(o);
        if (process_find(save, h->pid))
                return bad(err, "pages a second time", o->path);
        for (size_t i = 0; i < save->c->n_objects; i++)
                if (save->c->objects[i]->o.kind == o->kind && !save->c->objects[i]->dropped &&
                    strcmp(save->c->objects[i]->o.path, o->path) == 0)
                        return bad(err, "pages a second time", o->path);
        if (save->n_processes++ >= IMAGE_PAGES_MAX)
                return error_set(err, -EFBIG, "pages of more than %u processes", IMAGE_PAGES_MAX);
        h->object = checkpoint_object_create(o);
        if (continued_take(save, h->pid)) {
                const struct checkpoint_object *last = last_find(save->store, o->path);

                blockmap_destroy(h->object->map);
                h->object->map = blockmap_copy(last->map);
                pageset_add_common(h->object->present, last->present, 0, UINT64_MAX);
        }
        h->next = save->processes;
        save->processes = h;
        return checkpoint_add(save->c, h->object, err);
}

static int present_open(struct store_save *save, struct handle *h, const struct image_object *o, struct rm_error *err) {
        h->pages = process_find(save, number_of(o));
        if (!h->pages || h->pages->stage != STAGE_PAGES)
                return bad(err, "a list of pages, but none open,", o->path);
        h->pages->stage = STAGE_LIST;
        h->present = pageset_create();
        return 0;
}

static int ahead_open(struct store_save *save, struct handle *h, const struct image_object *o, struct rm_error *err) {
        struct checkpoint_object **object = &save->ahead[number_of(o)];

        h->ahead = number_of(o);
        if (save->ahead_open[h->ahead] || (*object && strcmp((*object)->o.role, o->role) != 0))
                return bad(err, "another file ahead with the number", o->path);
        if (!*object)
                *object = checkpoint_object_create(o);
        h->object = *object;
        save->ahead_open[h->ahead] = true;
        return 0;
}

static int file_open(struct store_save *save, struct handle *h, const struct image_object *o, struct rm_error *err) {
        struct checkpoint_object *ahead = o->ahead > 0 ? save->ahead[o->ahead] : NULL;

        if (o->ahead > 0 && (!ahead || save->ahead_open[o->ahead] || strcmp(ahead->o.role, o->role) != 0))
                return bad(err, "contents ahead that did not come,", o->path);
        h->object = checkpoint_object_create(o);
        if (ahead) {
                struct blockmap *map = h->object->map;

                h->object->map = ahead->map;
                ahead->map = map;
                checkpoint_object_destroy(ahead);
                save->ahead[o->ahead] = NULL;
        }
        return checkpoint_add(save->c, h->object, err);
}

static void handle_free(struct store_save *save, struct handle *h) {
        struct handle **p = &save->processes;

        while (*p && *p != h)
                p = &(*p)->next;
        if (*p)
                *p = h->next;
        if (h->ahead > 0)
                save->ahead_open[h->ahead] = false;
        contents_finish(&h->contents);
        pageset_destroy(h->present);
        free(h);
}

static int data_open(struct store_save *save, const struct image_object *o, void **ret_handle, struct rm_error *err) {
        struct handle *h = xcalloc(1, sizeof(*h));
        int r;

        h->kind = o->kind;
        if (o->kind == RM__IMAGE_KIND__IMAGE_KIND_PAGES)
                r = pages_open(save, h, o, err);
        else if (o->kind == RM__IMAGE_KIND__IMAGE_KIND_PRESENT)
                r = present_open(save, h, o, err);
        else if (o->kind == RM__IMAGE_KIND__IMAGE_KIND_AHEAD)
                r = ahead_open(save, h, o, err);
        else
                r = file_open(save, h, o, err);
        if (r < 0) {
                h->ahead = 0;
                handle_free(save, h);
                return r;
        }
        h->contents = (struct contents) { .packs = &save->store->packs,
                                          .figures = &save->figures,
                                          .map = h->object ? h->object->map : NULL };
        save->n_open++;
        *ret_handle = h;
        return 0;
}

static int save_open(void *ctx, const struct image_object *o, void **ret_handle, struct rm_error *err) {
        struct store_save *save = ctx;
        int r = image_object_check(o, err);

        if (r < 0)
                return failing(save, r, err);
        if (o->kind == RM__IMAGE_KIND__IMAGE_KIND_BLOCKS || o->kind == RM__IMAGE_KIND__IMAGE_KIND_LATER ||
            o->kind == RM__IMAGE_KIND__IMAGE_KIND_SUMS)
                r = error_set(err, -EOPNOTSUPP, "objects of kind %d cannot be stored", (int) o->kind);
        else if (image_kind_has_data(o->kind))
                r = data_open(save, o, ret_handle, err);
        else
                r = checkpoint_add(save->c, checkpoint_object_create(o), err);
        return failing(save, r, err);
}

/* ---- contents ---- */

/* The reader has looked at this, too: what would be kept wrongly here is believed at the next
 * restart. */
static int pages_check(const struct handle *h, uint64_t offset, uint64_t size_bytes, struct rm_error *err) {
        if (h->stage != STAGE_PAGES)
                return bad(err, "pages after the present ones were told,", h->object->o.path);
        if (offset % IMAGE_BLOCK_BYTES || size_bytes % IMAGE_BLOCK_BYTES)
                return bad(err, "pages that are not whole,", h->object->o.path);
        return 0;
}

static int pages_come(const struct handle *h, uint64_t offset, uint64_t size_bytes, struct rm_error *err) {
        return pageset_add(h->object->present, offset, offset + size_bytes) < 0
                       ? bad(err, "pages that cannot be,", h->object->o.path)
                       : 0;
}

static int check_come(const struct handle *pages, uint64_t start, uint64_t end, struct rm_error *err) {
        const struct pageset *come = pages->object->present;
        uint64_t at = start, from, to;

        while (at < end && pageset_next(come, at, end - at, &from, &to) && from == at)
                at = to;
        return at == end ? 0
                         : error_set(err, -EBADMSG,
                                     "the image stream is damaged: present pages that never came of process %.300s: the one at "
                                     "%" PRIx64 ", in a run of %" PRIu64 "; %" PRIu64 " pages of it came",
                                     pages->object->o.path, at, (end - start) / IMAGE_BLOCK_BYTES,
                                     pageset_bytes(come) / IMAGE_BLOCK_BYTES);
}

/* The runs are checked as image_place checks them: by address, of pages that have come. */
static int present_run(struct handle *h, uint64_t start, uint64_t end, struct rm_error *err) {
        const struct handle *pages = h->pages;
        int r;

        if (start < h->list_end || start >= end || start % IMAGE_BLOCK_BYTES || end % IMAGE_BLOCK_BYTES ||
            end > IMAGE_OBJECT_MAX_BYTES)
                return bad(err, "a list of pages out of order", pages->object->o.path);
        r = check_come(pages, start, end, err);
        if (r < 0)
                return r;
        (void) pageset_add(h->present, start, end);
        /* Pages between the runs are not present, so their blocks are dropped. */
        blockmap_cut(pages->object->map, h->list_end / IMAGE_BLOCK_BYTES, start / IMAGE_BLOCK_BYTES);
        h->list_end = end;
        return 0;
}

static int present_data(struct handle *h, uint64_t offset, const uint8_t *data, size_t size_bytes, struct rm_error *err) {
        int r = 0;

        if (offset != h->list_bytes || size_bytes % IMAGE_PRESENT_RUN_BYTES)
                return bad(err, "a list of pages out of place", h->pages->object->o.path);
        for (size_t at = 0; r == 0 && at < size_bytes; at += IMAGE_PRESENT_RUN_BYTES) {
                uint64_t run[2];

                memcpy(run, data + at, sizeof(run));
                r = present_run(h, le64toh(run[0]), le64toh(run[1]), err);
        }
        h->list_bytes += size_bytes;
        return r;
}

static int object_prefix(struct rm_error *err, const struct handle *h, int r) {
        cleanup_free char *label = r < 0 ? checkpoint_object_label(h->object) : NULL;

        if (label)
                (void) error_prefix(err, "store %s", label);
        return r;
}

static int save_data(void *ctx, void *handle, uint64_t offset, const void *data, size_t size_bytes, struct rm_error *err) {
        struct store_save *save = ctx;
        struct handle *h = handle;
        int r = 0;

        if (h->kind == RM__IMAGE_KIND__IMAGE_KIND_PRESENT)
                return failing(save, present_data(h, offset, data, size_bytes, err), err);
        if (offset > IMAGE_OBJECT_MAX_BYTES || size_bytes > IMAGE_OBJECT_MAX_BYTES - offset)
                r = bad(err, "bytes beyond the largest file", h->object->o.path);
        if (r == 0 && h->kind == RM__IMAGE_KIND__IMAGE_KIND_PAGES)
                r = pages_check(h, offset, size_bytes, err);
        if (r == 0 && h->kind == RM__IMAGE_KIND__IMAGE_KIND_PAGES)
                r = pages_come(h, offset, size_bytes, err);
        if (r == 0)
                r = object_prefix(err, h, contents_write(&h->contents, offset, data, size_bytes, err));
        return failing(save, r, err);
}

static int save_zero(void *ctx, void *handle, uint64_t offset, uint64_t size_bytes, struct rm_error *err) {
        struct store_save *save = ctx;
        struct handle *h = handle;
        int r = 0;

        if (h->kind == RM__IMAGE_KIND__IMAGE_KIND_PRESENT || offset > IMAGE_OBJECT_MAX_BYTES ||
            size_bytes > IMAGE_OBJECT_MAX_BYTES - offset)
                r = bad(err, "zeros that cannot be", h->object ? h->object->o.path : "a list of pages");
        if (r == 0 && h->kind == RM__IMAGE_KIND__IMAGE_KIND_PAGES) {
                save->zero_bytes += size_bytes;
                r = pages_check(h, offset, size_bytes, err);
                if (r == 0 && save->zero_bytes > ZERO_PAGES_MAX_BYTES)
                        r = error_set(err, -EFBIG, "more than 16 TiB of zero pages");
                if (r == 0)
                        r = pages_come(h, offset, size_bytes, err);
        }
        if (r == 0)
                r = object_prefix(err, h, contents_zero(&h->contents, offset, size_bytes, err));
        return failing(save, r, err);
}

/* ---- closing ---- */

static int present_close(struct handle *h, uint64_t size_bytes, struct rm_error *err) {
        struct checkpoint_object *object = h->pages->object;

        if (size_bytes != h->list_bytes)
                return bad(err, "a part of a list of pages", object->o.path);
        blockmap_cut(object->map, h->list_end / IMAGE_BLOCK_BYTES, UINT64_MAX);
        pageset_destroy(object->present);
        object->present = take_ptr(h->present);
        h->pages->stage = STAGE_KNOWN;
        return 0;
}

/* Nothing is left of one that has ended, which also has no list. */
static int pages_close(const struct handle *h, struct rm_error *err) {
        if (h->stage == STAGE_LIST)
                return bad(err, "an end within a list of pages", h->object->o.path);
        h->object->dropped = h->stage != STAGE_KNOWN || pageset_bytes(h->object->present) == 0;
        return 0;
}

static int contents_close(struct store_save *save, struct handle *h, uint64_t size_bytes, struct rm_error *err) {
        int r = object_prefix(err, h, contents_end(&h->contents, size_bytes, err));

        h->object->size_bytes = size_bytes;
        if (r == 0 && h->ahead > 0 && size_bytes == 0) {
                checkpoint_object_destroy(h->object);
                save->ahead[h->ahead] = NULL;
        }
        return r;
}

static int save_close(void *ctx, void *handle, uint64_t size_bytes, struct rm_error *err) {
        struct store_save *save = ctx;
        struct handle *h = handle;
        int r;

        if (size_bytes > IMAGE_OBJECT_MAX_BYTES)
                r = bad(err, "a size that cannot be", "an object");
        else if (h->kind == RM__IMAGE_KIND__IMAGE_KIND_PRESENT)
                r = present_close(h, size_bytes, err);
        else if (h->kind == RM__IMAGE_KIND__IMAGE_KIND_PAGES)
                r = pages_close(h, err);
        else
                r = contents_close(save, h, size_bytes, err);
        save->n_open--;
        handle_free(save, h);
        return failing(save, r, err);
}

static void save_drop(void *ctx, void *handle) {
        struct store_save *save = ctx;

        (void) failing(save, -ECANCELED, NULL);
        save->n_open--;
        handle_free(save, handle);
}

/* ---- create and destroy ---- */

static int number_check(const struct store *s, uint64_t checkpoint, struct rm_error *err) {
        cleanup_free uint64_t *numbers = NULL;
        size_t n = 0;
        int r = store_list(s, &numbers, &n, err);

        if (r < 0)
                return r;
        if (checkpoint == 0 || checkpoint > INT64_MAX || (n > 0 && numbers[n - 1] >= checkpoint))
                return error_set(err, -EINVAL, "checkpoint %" PRIu64 " cannot follow %" PRIu64, checkpoint,
                                 n > 0 ? numbers[n - 1] : 0);
        return 0;
}

void store_save_limit(struct store_save *save, uint64_t bytes) {
        packs_limit(&save->store->packs, bytes);
}

int store_save_begin(struct store *s, uint64_t checkpoint, int level, struct store_save **ret, struct rm_error *err) {
        char name[DIRECTORY_NAME_BYTES];
        struct store_save *save;
        int fd = -1, r;

        if (s->saving)
                return error_set(err, -EBUSY, "a checkpoint is being saved already");
        store_sweep(s);
        r = store_use(s, err);
        if (r < 0)
                return r;
        directory_pack_name(checkpoint, name);
        r = number_check(s, checkpoint, err);
        if (r == 0)
                r = directory_file_create(s->dir_fd, name, &fd, err);
        if (r < 0) {
                store_unuse(s);
                return r;
        }
        packs_build_begin(&s->packs, checkpoint, fd, level);
        s->saving = true;
        save = xcalloc(1, sizeof(*save));
        save->store = s;
        save->pack = packs_built(&s->packs);
        save->c = checkpoint_create(checkpoint);
        save->c->origin = s->origin;
        save->target = (struct image_target) {
                .ctx = save,
                .open = save_open,
                .data = save_data,
                .zero = save_zero,
                .close = save_close,
                .drop = save_drop,
        };
        *ret = save;
        return 0;
}

const struct image_target *store_save_target(struct store_save *save) {
        return &save->target;
}

/* A damaged pack of the last checkpoint means that all pages must be sent again: blocks that are
 * not sent would be lost with it. */
static bool last_is_damaged(const struct store *s) {
        for (size_t i = 0; i < s->last->n_packs; i++) {
                const struct pack *pack = packs_find(&s->packs, s->last->packs[i].number);

                if (!pack || pack->is_damaged)
                        return true;
        }
        return false;
}

int store_save_continue(struct store_save *save, uint32_t pid) {
        cleanup_free char *path = xasprintf("%u", pid);

        if (!last_find(save->store, path) || last_is_damaged(save->store))
                return -ENOENT;
        (void) continued_take(save, pid);
        save->continued = xrealloc(save->continued, (save->n_continued + 1) * sizeof(*save->continued));
        save->continued[save->n_continued++] = pid;
        return 0;
}

int store_save_meta(struct store_save *save, const char *name, const void *data, size_t size_bytes, struct rm_error *err) {
        return checkpoint_add_meta(save->c, name, data, size_bytes, err);
}

static void save_free(struct store_save *save) {
        for (size_t i = 0; i <= IMAGE_AHEAD_MAX; i++)
                checkpoint_object_destroy(save->ahead[i]);
        while (save->processes)
                handle_free(save, save->processes);
        checkpoint_destroy(save->c);
        free(save->continued);
        save->store->saving = false;
        store_unuse(save->store);
        free(save);
}

/* Nothing is left of it. */
static void save_undo(struct store_save *save) {
        struct store *s = save->store;
        char name[DIRECTORY_NAME_BYTES];

        if (packs_built(&s->packs))
                packs_build_abort(&s->packs);
        else if (save->pack)
                packs_drop(&s->packs, save->pack);
        directory_new_manifest_name(save->c->number, name);
        (void) directory_file_remove(s->dir_fd, name, NULL);
        directory_pack_name(save->c->number, name);
        (void) directory_file_remove(s->dir_fd, name, NULL);
}

void store_save_abort(struct store_save *save) {
        if (!save)
                return;
        save_undo(save);
        save_free(save);
}

/* ---- the end ---- */

/* The blocks of all objects, as bits; counts their bytes. */
static uint8_t *blocks_mark(struct store_save *save) {
        const struct index *ix = &save->store->packs.index;
        uint8_t *used = xcalloc((size_t) ix->n_blocks / 8 + 1, 1);

        for (size_t i = 0; i < save->c->n_objects; i++) {
                struct blockmap_walk walk;
                uint64_t place;
                uint32_t block;

                if (!save->c->objects[i]->map)
                        continue;
                blockmap_begin(save->c->objects[i]->map, &walk);
                while (blockmap_step(&walk, &place, &block)) {
                        used[block / 8] |= (uint8_t) (1U << (block % 8));
                        save->c->raw_bytes += ix->blocks[block].size_bytes;
                }
        }
        return used;
}

static bool pack_used(const struct index *ix, const struct pack *pack, const uint8_t *used) {
        for (uint32_t k = 0; k < ix->n_frames; k++)
                for (uint8_t i = 0; ix->frames[k].pack == pack && i < ix->frames[k].n; i++) {
                        uint32_t block = ix->frames[k].blocks[i];

                        if (compact_bit(used, block) && ix->blocks[block].frame == k)
                                return true;
                }
        return false;
}

static int pack_finish(struct store_save *save, const uint8_t *used, struct rm_error *err) {
        struct packs *p = &save->store->packs;
        int r = packs_build_end(p, err);

        if (r < 0)
                return r;
        save->figures.packed_bytes = save->pack->size_bytes;
        for (size_t i = 0; i < p->n; i++)
                if (pack_used(&p->index, p->list[i], used))
                        checkpoint_add_pack(save->c, p->list[i]->number, p->list[i]->size_bytes);
        return 0;
}

static int manifest_file_write(struct store_save *save, const char *name, struct rm_error *err) {
        struct store *s = save->store;
        cleanup_file FILE *f = NULL;
        int fd = -1, r = directory_file_create(s->dir_fd, name, &fd, err);

        if (r < 0)
                return r;
        f = fdopen(fd, "w");
        if (!f) {
                r = error_sys(err, -errno, "write %s", name);
                (void) close(fd);
                return r;
        }
        r = manifest_write(f, save->c, &s->packs.index, &s->keys.key, err);
        if (r == 0 && fsync(fd) < 0)
                r = error_sys(err, -errno, "write");
        if (r < 0)
                return error_prefix(err, "%s", name), r;
        save->figures.manifest_bytes = (uint64_t) ftello(f);
        return 0;
}

/* The name of the pack must be there before that of the manifest: a disk may keep the one and lose
 * the other. */
static int manifest_finish(struct store_save *save, struct rm_error *err) {
        int dir_fd = save->store->dir_fd;
        char new_name[DIRECTORY_NAME_BYTES], name[DIRECTORY_NAME_BYTES];
        int r;

        /* The manifest names blocks that are on the disk already. */
        assert(!packs_built(&save->store->packs) && save->failed.code == 0 && save->n_open == 0);
        directory_new_manifest_name(save->c->number, new_name);
        directory_manifest_name(save->c->number, name);
        r = manifest_file_write(save, new_name, err);
        if (r < 0)
                return r;
        if (fsync(dir_fd) < 0 || renameat(dir_fd, new_name, dir_fd, name) < 0)
                return error_sys(err, -errno, "write %s", name);
        if (fsync(dir_fd) == 0)
                return 0;
        r = error_sys(err, -errno, "write %s", name);
        (void) directory_file_remove(dir_fd, name, NULL);
        return r;
}

static int save_finish(struct store_save *save, struct rm_error *err) {
        struct packs *p = &save->store->packs;
        cleanup_free uint8_t *used = NULL;
        int r;

        if (save->failed.code < 0)
                return error_set(err, save->failed.code, "%s", save->failed.text);
        if (save->n_open > 0)
                return error_set(err, -EBUSY, "%zu objects are open", save->n_open);
        checkpoint_close_up(save->c);
        used = blocks_mark(save);
        save->figures.raw_bytes = save->c->raw_bytes;
        r = compact(p, used, &save->figures.moved_blocks, err);
        save->figures.new_blocks += save->figures.moved_blocks;
        if (r == 0)
                r = pack_finish(save, used, err);
        if (r == 0)
                r = manifest_finish(save, err);
        return r;
}

/* A pack without anything is in no list, and goes with the others. What may be continued stays in
 * memory. */
static void last_keep(struct store_save *save) {
        struct store *s = save->store;

        for (size_t i = 0; i < save->c->n_objects; i++)
                save->c->objects[i]->dropped = save->c->objects[i]->o.kind != RM__IMAGE_KIND__IMAGE_KIND_PAGES;
        checkpoint_close_up(save->c);
        checkpoint_destroy(s->last);
        s->last = take_ptr(save->c);
}

int store_save_commit(struct store_save *save, struct store_figures *ret_figures, struct rm_error *err) {
        struct store *s = save->store;
        int r = save_finish(save, err);

        if (r < 0) {
                (void) error_prefix(err, "save checkpoint %" PRIu64, save->c->number);
                store_save_abort(save);
                return r;
        }
        if (ret_figures)
                *ret_figures = save->figures;
        last_keep(save);
        save_free(save);
        store_sweep(s);
        return 0;
}
