#include "daemon/criu_images/open_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/compare.h"
#include "common/error.h"
#include "common/util.h"
#include "daemon/criu_images/fields.h"

#define FILES "files.img"
#define REMAPS "remap-fpath.img"
#define GHOSTS "ghost-file-"

/* Numbers of fields in CRIU's messages. */
enum {
        FILE_TYPE = 1, /* file_entry */
        FILE_ID = 2,
        FILE_REG = 3,
        REG_NAME = 6,   /* reg_file_entry */
        REMAP_FILE = 1, /* remap_file_path_entry: a file of files.img that has lost its name */
        REMAP_BY = 2,   /* the ghost file, or the file of files.img that is a link to it */
        REMAP_TYPE = 3,
        REMAP_LINKED = 0,
        REMAP_GHOST = 1,
        GHOST_UID = 1, /* ghost_file_entry */
        GHOST_MODE = 3,
        GHOST_INODE = 5,
        GHOST_HEAD_BYTES = 8192, /* with the target of a symbolic link */
};

/* The types in file_entry.type that are expected: files that the inventory knows by their paths,
 * and those without contents but the job's own. Not: namespaces, network devices, external files,
 * fanotify, BPF objects, raw sockets. */
static bool is_expected(uint64_t type) {
        static const uint8_t types[] = {
                1 /* regular */,  2 /* pipe */,      3 /* FIFO */,    4 /* inet */,     5 /* Unix */,
                6 /* eventfd */,  7 /* eventpoll */, 8 /* inotify */, 9 /* signalfd */, 11 /* terminal */,
                13 /* netlink */, 17 /* timerfd */,  18 /* memfd */,  20 /* pidfd */,
        };

        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (types[i] == type)
                        return true;
        return false;
}

static bool begins(const char *text, const char *with) {
        return strncmp(text, with, strlen(with)) == 0;
}

size_t open_files_needs(const char *name) {
        if (strcmp(name, FILES) == 0 || strcmp(name, REMAPS) == 0)
                return OPEN_FILES_IMAGE_BYTES;
        return begins(name, GHOSTS) ? GHOST_HEAD_BYTES : 0;
}

struct numbers {
        uint64_t *list;
        size_t n;
};

struct check {
        const Capsule__Inventory *inventory;
        const char **names; /* sorted */
        size_t n_names;
        struct numbers remapped; /* files that have lost their names; sorted */
        struct numbers links; /* and those that are links to one; sorted */
        struct rm_error *error;
};

static int compare_texts(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static void add_number(struct numbers *numbers, uint64_t number) {
        numbers->list = xgrow(numbers->list, numbers->n, sizeof(*numbers->list));
        numbers->list[numbers->n++] = number;
}

static void sort_numbers(struct numbers *numbers) {
        if (numbers->n > 0)
                qsort(numbers->list, numbers->n, sizeof(numbers->list[0]), compare_u64);
}

static bool has_number(const struct numbers *numbers, uint64_t number) {
        return numbers->n > 0 && bsearch(&number, numbers->list, numbers->n, sizeof(number), compare_u64);
}

static int damaged(struct check *c, const char *what) {
        return error_set(c->error, -EBADMSG, "the image %.100s is damaged or missing", what);
}

static int unknown(struct check *c, const char *what) {
        (void) error_set(c->error, -EPERM, "the image has %.400s, which no process had open when the group was frozen", what);
        error_clean(c->error);
        return -EPERM;
}

static void take_names(struct check *c) {
        c->names = xcalloc(c->inventory->n_files + 1, sizeof(c->names[0]));
        for (size_t i = 0; i < c->inventory->n_files; i++)
                if (c->inventory->files[i]->name[0] == '/')
                        c->names[c->n_names++] = c->inventory->files[i]->name;
        if (c->n_names > 0)
                qsort(c->names, c->n_names, sizeof(c->names[0]), compare_texts);
}

/* Calls `fn` for each entry. */
static int each_entry(struct check *c, const struct criu_image *image, uint32_t magic,
                      int (*fn)(struct check *c, struct criu_cursor entry)) {
        struct criu_cursor entries, entry;
        int r = 0;

        if (!criu_image_open(image->bytes, image->size, magic, &entries))
                return damaged(c, image->name);
        while (r == 0 && criu_next_entry(&entries, &entry))
                r = fn(c, entry);
        return r == 0 && !criu_all_read(&entries) ? damaged(c, image->name) : r;
}

static int take_remap(struct check *c, struct criu_cursor entry) {
        uint64_t file = 0, by = 0, type = REMAP_GHOST;
        struct criu_field f;

        while (criu_next_field(&entry, &f)) {
                if (!f.varint)
                        return damaged(c, REMAPS);
                if (f.number == REMAP_FILE)
                        file = f.value;
                else if (f.number == REMAP_BY)
                        by = f.value;
                else if (f.number == REMAP_TYPE)
                        type = f.value;
        }
        if (!criu_all_read(&entry))
                return damaged(c, REMAPS);
        if (type != REMAP_LINKED && type != REMAP_GHOST)
                return unknown(c, "a file of a process that has ended");
        add_number(&c->remapped, file);
        if (type == REMAP_LINKED)
                add_number(&c->links, by);
        return 0;
}

static int scan_name(struct check *c, uint64_t id, const struct criu_field *f) {
        cleanup_free char *name = strndup((const char *) f->bytes.at, (size_t) (f->bytes.end - f->bytes.at));

        if (!name)
                return -ENOMEM;
        if (has_number(&c->remapped, id) || has_number(&c->links, id) ||
            (c->n_names > 0 && bsearch(&name, c->names, c->n_names, sizeof(name), compare_texts)))
                return 0;
        return unknown(c, name);
}

static int scan_reg(struct check *c, uint64_t id, struct criu_cursor reg) {
        struct criu_field f;
        bool named = false;
        int r = 0;

        while (r == 0 && criu_next_field(&reg, &f))
                if (f.number == REG_NAME && !f.varint) {
                        named = true;
                        r = scan_name(c, id, &f);
                }
        return r == 0 && (!named || !criu_all_read(&reg)) ? damaged(c, FILES) : r;
}

static int scan_file(struct check *c, struct criu_cursor entry) {
        struct criu_cursor again = entry;
        uint64_t type = 0, id = 0;
        struct criu_field f;
        int r = 0;

        while (criu_next_field(&entry, &f)) {
                type = f.number == FILE_TYPE && f.varint ? f.value : type;
                id = f.number == FILE_ID && f.varint ? f.value : id;
        }
        if (!criu_all_read(&entry))
                return damaged(c, FILES);
        if (!is_expected(type)) {
                cleanup_free char *what = xasprintf("a special file (kind %" PRIu64 ")", type);

                return unknown(c, what);
        }
        while (r == 0 && criu_next_field(&again, &f))
                if (f.number == FILE_REG)
                        r = f.varint ? damaged(c, FILES) : scan_reg(c, id, f.bytes);
        return r;
}

/* A FIFO has no contents, and CRIU was told another inode number of it
 * (daemon/capsule/pages_preload/fifos.c). */
static bool is_ghost(const Capsule__InventoryFile *file, uint64_t inode, uint64_t uid, uint64_t mode) {
        return strcmp(file->name, "deleted") == 0 && (file->inode == inode || S_ISFIFO(mode)) && file->uid == uid &&
               file->mode == mode;
}

static int scan_ghost(struct check *c, const struct criu_image *image) {
        struct criu_cursor entries, entry;
        uint64_t inode = 0, uid = UINT64_MAX, mode = 0;
        struct criu_field f;

        if (!criu_image_open(image->bytes, image->size, CRIU_IMAGE_MAGIC_GHOST, &entries) || !criu_next_entry(&entries, &entry))
                return damaged(c, image->name);
        while (criu_next_field(&entry, &f)) {
                inode = f.number == GHOST_INODE && f.varint ? f.value : inode;
                uid = f.number == GHOST_UID && f.varint ? f.value : uid;
                mode = f.number == GHOST_MODE && f.varint ? f.value : mode;
        }
        if (!criu_all_read(&entry))
                return damaged(c, image->name);
        for (size_t i = 0; i < c->inventory->n_files; i++)
                if (is_ghost(c->inventory->files[i], inode, uid, mode))
                        return 0;
        return unknown(c, "the contents of a file without a name");
}

static int scan_image(struct check *c, const struct criu_image *image) {
        if (strcmp(image->name, FILES) == 0)
                return each_entry(c, image, CRIU_IMAGE_MAGIC_FILES, scan_file);
        return begins(image->name, GHOSTS) ? scan_ghost(c, image) : 0;
}

/* 1 or 0, or negative. */
static int take_remaps(struct check *c, const struct criu_image *images, size_t n) {
        int files = 0, r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                files += strcmp(images[i].name, FILES) == 0;
                if (images[i].size > OPEN_FILES_IMAGE_BYTES)
                        r = error_set(c->error, -EFBIG, "the group has too many open files for its image to be checked");
                else if (strcmp(images[i].name, REMAPS) == 0)
                        r = each_entry(c, &images[i], CRIU_IMAGE_MAGIC_REMAP, take_remap);
        }
        sort_numbers(&c->remapped);
        sort_numbers(&c->links);
        return r == 0 && files == 0 ? damaged(c, FILES) : r;
}

int open_files_check(const struct criu_image *images, size_t n, const Capsule__Inventory *inventory, struct rm_error *error) {
        struct check c = { .inventory = inventory, .error = error };
        int r = take_remaps(&c, images, n);

        take_names(&c);
        for (size_t i = 0; i < n && r == 0; i++)
                r = scan_image(&c, &images[i]);
        free(c.names);
        free(c.remapped.list);
        free(c.links.list);
        return r;
}
