#include "daemon/image/place.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/image/attributes.h"
#include "daemon/image/place_ahead.h"
#include "daemon/image/place_blocks.h"
#include "daemon/image/place_pages.h"

/* A tree's directory or a spool file. */
struct role {
        struct role *next;
        char *name;
        char *path;
        bool is_file;
        int fd; /* of a tree, once it was needed */
};

struct image_place {
        struct image_target target;
        struct role *roles;
        char *images_path;
        int images_fd;
        struct image_delta delta;
        struct place_ahead *ahead;
        struct place_blocks *blocks;
        struct place_pages *pages;
        uint64_t written_bytes;
        uint64_t kept_bytes; /* see image_place_limit() */
        uint64_t max_bytes;
        bool blocks_count; /* to kept_bytes */
        uint64_t images_done_usec;

        /* The directory of the last path: files of one directory come one after another. */
        const struct role *parent_role;
        char *parent_path;
        int parent_fd;
};

struct file {
        int fd; /* -1: memory */
        struct place_process *process; /* memory of this one */
        uint32_t blocks_file; /* see place_blocks_used() */
        Rm__ImageKind kind;
        bool counts; /* to kept_bytes: it takes up memory, and no disk */
        char *number; /* of a file that comes ahead */
        bool replaces; /* see image_object_replaces() */
        char *label; /* for messages */
        mode_t mode;
        uid_t uid;
        gid_t gid;
        struct timespec mtime;
        struct image_attributes attributes;
};

static int fail(struct rm_error *err, const char *what, const struct image_object *o) {
        return error_sys(err, -errno, "%s %s%s%s", what, o->role, *o->role ? ":" : "", o->path);
}

static int attributes_set(const struct image_object *o, int fd, const char *name, struct rm_error *err) {
        cleanup_free char *label = xasprintf("%s:%s", o->role, o->path);

        return image_attributes_set(o->kind, fd, name, o->attributes, o->n_attributes, label, err);
}

static const struct timespec *times_of(const struct image_object *o, struct timespec out[static 2]) {
        out[0] = (struct timespec) { .tv_nsec = UTIME_OMIT };
        out[1] = (struct timespec) { .tv_sec = o->mtime_sec, .tv_nsec = o->mtime_nsec };
        return out;
}

/* The place of an object: a directory and a name in it. The descriptor stays the place's. */
struct spot {
        int dir_fd;
        const char *name;
};

static int role_find(struct image_place *p, const char *name, bool is_file, struct role **ret_role, struct rm_error *err) {
        for (struct role *r = p->roles; r; r = r->next)
                if (r->is_file == is_file && strcmp(r->name, name) == 0) {
                        *ret_role = r;
                        return 0;
                }
        return error_set(err, -ENOENT, "no destination for '%s'", name);
}

static int role_open(struct image_place *p, const char *name, struct role **ret_role, struct rm_error *err) {
        struct role *r = NULL;
        int k = role_find(p, name, false, &r, err);

        if (k < 0)
                return k;
        if (r->fd < 0)
                r->fd = open(r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (r->fd < 0)
                return error_sys(err, -errno, "open %s", r->path);
        *ret_role = r;
        return 0;
}

/* A directory below `fd`: every component is looked at by the kernel, none may be a symlink or
 * another mount. */
static int directory_open(int fd, const char *path) {
        struct open_how how = {
                .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
        };

        return (int) syscall(SYS_openat2, fd, path, &how, sizeof(how));
}

static int parent_open(struct image_place *p, const struct role *r, const char *path, size_t size_bytes, struct rm_error *err) {
        char *copy;
        int fd;

        if (p->parent_role == r && strlen(p->parent_path) == size_bytes && memcmp(p->parent_path, path, size_bytes) == 0)
                return p->parent_fd;
        copy = xasprintf("%.*s", (int) size_bytes, path);
        fd = directory_open(r->fd, copy);
        if (fd < 0) {
                int k = error_sys(err, -errno, "open directory %s:%s", r->name, copy);

                free(copy);
                return k;
        }
        free(p->parent_path);
        cleanup_close_fd(&p->parent_fd);
        p->parent_role = r;
        p->parent_path = copy;
        p->parent_fd = fd;
        return fd;
}

static int spot_find(struct image_place *p, const char *role, const char *path, struct spot *ret_spot, struct rm_error *err) {
        const char *slash = strrchr(path, '/');
        struct role *r = NULL;
        int k;

        k = role_open(p, role, &r, err);
        if (k < 0)
                return k;
        k = r->fd;
        if (slash)
                k = parent_open(p, r, path, (size_t) (slash - path), err);
        if (k < 0)
                return k;
        *ret_spot = (struct spot) { .dir_fd = k, .name = slash ? slash + 1 : path };
        return 0;
}

/* Removes an object that is there already, unless it is a directory with contents. */
static int spot_clear(const struct spot *s) {
        if (unlinkat(s->dir_fd, s->name, 0) == 0 || errno == ENOENT)
                return 0;
        return errno == EISDIR ? unlinkat(s->dir_fd, s->name, AT_REMOVEDIR) : -1;
}

static int directory_make(struct image_place *p, const struct image_object *o, struct rm_error *err) {
        struct spot s;
        struct stat st;
        int k;

        if (strcmp(o->path, ".") == 0)
                return 0;
        k = spot_find(p, o->role, o->path, &s, err);
        if (k < 0)
                return k;
        if (mkdirat(s.dir_fd, s.name, 0700) == 0)
                return 0;
        if (errno == EEXIST && fstatat(s.dir_fd, s.name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
                return 0;
        errno = EEXIST;
        if (spot_clear(&s) == 0 && mkdirat(s.dir_fd, s.name, 0700) == 0)
                return 0;
        return fail(err, "make directory", o);
}

static int directory_finish(struct image_place *p, const struct image_object *o, struct rm_error *err) {
        struct timespec times[2];
        cleanup_close int fd = -1;
        struct role *r = NULL;
        int k = role_open(p, o->role, &r, err);

        if (k < 0)
                return k;
        fd = directory_open(r->fd, o->path);
        if (fd < 0)
                return fail(err, "open directory", o);
        if (fchown(fd, o->uid, o->gid) < 0 || fchmod(fd, o->mode) < 0 || futimens(fd, times_of(o, times)) < 0)
                return fail(err, "set owner, mode and time of directory", o);
        return attributes_set(o, fd, NULL, err);
}

static int fifo_make(struct image_place *p, const struct image_object *o, struct rm_error *err) {
        struct timespec times[2];
        struct spot s;
        struct stat st;
        int k;

        k = spot_find(p, o->role, o->path, &s, err);
        if (k < 0)
                return k;
        if (mkfifoat(s.dir_fd, s.name, 0600) < 0) {
                if (errno != EEXIST || fstatat(s.dir_fd, s.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        return fail(err, "make FIFO", o);
                if (!S_ISFIFO(st.st_mode) && (spot_clear(&s) < 0 || mkfifoat(s.dir_fd, s.name, 0600) < 0))
                        return fail(err, "make FIFO", o);
        }
        if (fchownat(s.dir_fd, s.name, o->uid, o->gid, AT_SYMLINK_NOFOLLOW) < 0 || fchmodat(s.dir_fd, s.name, o->mode, 0) < 0 ||
            utimensat(s.dir_fd, s.name, times_of(o, times), AT_SYMLINK_NOFOLLOW) < 0)
                return fail(err, "set owner, mode and time of FIFO", o);
        return attributes_set(o, s.dir_fd, s.name, err);
}

static int symlink_make(struct image_place *p, const struct image_object *o, struct rm_error *err) {
        struct timespec times[2];
        struct spot s;
        int k;

        k = spot_find(p, o->role, o->path, &s, err);
        if (k < 0)
                return k;
        k = symlinkat(o->target, s.dir_fd, s.name);
        if (k < 0 && errno == EEXIST && spot_clear(&s) == 0)
                k = symlinkat(o->target, s.dir_fd, s.name);
        if (k < 0)
                return fail(err, "make symlink", o);
        if (fchownat(s.dir_fd, s.name, o->uid, o->gid, AT_SYMLINK_NOFOLLOW) < 0 ||
            utimensat(s.dir_fd, s.name, times_of(o, times), AT_SYMLINK_NOFOLLOW) < 0)
                return fail(err, "set owner and time of symlink", o);
        return 0;
}

static int hardlink_make(struct image_place *p, const struct image_object *o, struct rm_error *err) {
        const char *slash = strrchr(o->target, '/');
        cleanup_free char *target_dir = slash ? xasprintf("%.*s", (int) (slash - o->target), o->target) : xstrdup(".");
        const char *target_name = slash ? slash + 1 : o->target;
        cleanup_close int fd = -1;
        struct role *r = NULL;
        struct spot s;
        int k;

        k = spot_find(p, o->role, o->path, &s, err);
        if (k == 0)
                k = role_open(p, o->role, &r, err);
        if (k < 0)
                return k;
        fd = directory_open(r->fd, target_dir);
        if (fd < 0)
                return fail(err, "find the target of hard link", o);
        k = linkat(fd, target_name, s.dir_fd, s.name, 0);
        if (k < 0 && errno == EEXIST && spot_clear(&s) == 0)
                k = linkat(fd, target_name, s.dir_fd, s.name, 0);
        return k < 0 ? fail(err, "make hard link", o) : 0;
}

static int images_open(struct image_place *p, struct rm_error *err) {
        if (!p->images_path)
                return error_set(err, -ENOENT, "no directory for images");
        if (p->images_fd < 0)
                p->images_fd = open(p->images_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return p->images_fd < 0 ? error_sys(err, -errno, "open %s", p->images_path) : 0;
}

static int image_create(struct image_place *p, const struct image_object *o, int *ret_fd, struct rm_error *err) {
        int k = images_open(p, err);

        if (k < 0)
                return k;
        *ret_fd = openat(p->images_fd, o->path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        return *ret_fd < 0 ? fail(err, "create image", o) : 0;
}

static int blocks_create(struct image_place *p, int *ret_fd, struct rm_error *err) {
        if (!p->images_path)
                return error_set(err, -ENOENT, "no directory for pre-copied blocks");
        return place_blocks_open(p->blocks, p->images_path, ret_fd, err);
}

static int blocks_fetch(void *ctx, uint64_t number, size_t n, void *ret_blocks) {
        const struct image_place *p = ctx;

        return place_blocks_fetch(p->blocks, number, n, ret_blocks);
}

/* Spool files are written to by others, too. */
static void blocks_used(void *ctx, uint64_t number, size_t n, void *handle, uint64_t offset) {
        struct image_place *p = ctx;
        struct file *f = handle;
        size_t moved = 0;

        if (f->kind == RM__IMAGE_KIND__IMAGE_KIND_CRIU || f->kind == RM__IMAGE_KIND__IMAGE_KIND_REGULAR)
                moved = place_blocks_used(p->blocks, number, n, f->fd, &f->blocks_file, offset);
        if (p->blocks_count)
                p->kept_bytes -= moved * IMAGE_BLOCK_BYTES;
}

static int spool_create(struct image_place *p, const struct image_object *o, int *ret_fd, struct rm_error *err) {
        struct role *r = NULL;
        int k = role_find(p, o->role, true, &r, err);

        if (k < 0)
                return k;
        *ret_fd = open(r->path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        return *ret_fd < 0 ? error_sys(err, -errno, "create %s", r->path) : 0;
}

/* A file that is there already is emptied rather than replaced: it may be mounted elsewhere, as
 * init does with the capsule's /etc/hosts. Not when it has other names, which are to keep what they
 * have. Mode 0600 also masks what an access control list of it grants. */
static int regular_reuse(const struct spot *s) {
        cleanup_close int fd = openat(s->dir_fd, s->name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1 || fchmod(fd, 0600) < 0 ||
            ftruncate(fd, 0) < 0)
                return -1;
        return take_fd(&fd);
}

static int regular_create(struct image_place *p, const struct image_object *o, int *ret_fd, struct rm_error *err) {
        const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
        struct spot s;
        int k;

        k = spot_find(p, o->role, o->path, &s, err);
        if (k == 0 && o->ahead > 0)
                return place_ahead_link(p->ahead, o, s.dir_fd, s.name, ret_fd, err);
        if (k < 0)
                return k;
        *ret_fd = openat(s.dir_fd, s.name, flags, 0600);
        if (*ret_fd < 0 && errno == EEXIST) {
                *ret_fd = regular_reuse(&s);
                if (*ret_fd < 0 && spot_clear(&s) == 0)
                        *ret_fd = openat(s.dir_fd, s.name, flags, 0600);
        }
        return *ret_fd < 0 ? fail(err, "create file", o) : 0;
}

static int ahead_create(struct image_place *p, const struct image_object *o, int *ret_fd, struct rm_error *err) {
        struct role *r = NULL;
        int k = role_open(p, o->role, &r, err);

        return k < 0 ? k : place_ahead_open(p->ahead, r->fd, o, ret_fd, err);
}

static int memory_open(struct image_place *p, const struct image_object *o, struct place_process **ret_process,
                       struct rm_error *err) {
        int k = images_open(p, err);

        return k < 0 ? k : place_pages_open(p->pages, p->images_fd, o, ret_process, err);
}

static bool is_in_memory(int fd) {
        struct statfs st;

        return fstatfs(fd, &st) == 0 && st.f_type == TMPFS_MAGIC;
}

static int file_create(struct image_place *p, const struct image_object *o, void **ret_handle, struct rm_error *err) {
        struct place_process *process = NULL;
        struct file *f;
        int fd = -1;
        int k;

        if (o->kind == RM__IMAGE_KIND__IMAGE_KIND_CRIU)
                k = image_create(p, o, &fd, err);
        else if (o->kind == RM__IMAGE_KIND__IMAGE_KIND_BLOCKS)
                k = blocks_create(p, &fd, err);
        else if (o->kind == RM__IMAGE_KIND__IMAGE_KIND_SPOOL)
                k = spool_create(p, o, &fd, err);
        else if (o->kind == RM__IMAGE_KIND__IMAGE_KIND_AHEAD)
                k = ahead_create(p, o, &fd, err);
        else if (image_kind_is_memory(o->kind))
                k = memory_open(p, o, &process, err);
        else
                k = regular_create(p, o, &fd, err);
        if (k < 0)
                return k;
        f = xcalloc(1, sizeof(*f));
        f->fd = fd;
        f->process = process;
        f->kind = o->kind;
        f->counts = fd >= 0 && is_in_memory(fd);
        f->number = o->kind == RM__IMAGE_KIND__IMAGE_KIND_AHEAD ? xstrdup(o->path) : NULL;
        f->replaces = image_object_replaces(o);
        if (o->kind == RM__IMAGE_KIND__IMAGE_KIND_BLOCKS)
                p->blocks_count = f->counts;
        f->label = o->kind == RM__IMAGE_KIND__IMAGE_KIND_BLOCKS
                           ? xstrdup("pre-copied blocks")
                           : xasprintf("%s%s%s", o->role, *o->role && *o->path ? ":" : "", o->path);
        f->mode = o->mode;
        f->uid = o->uid;
        f->gid = o->gid;
        f->mtime = (struct timespec) { .tv_sec = o->mtime_sec, .tv_nsec = o->mtime_nsec };
        image_attributes_copy(o->attributes, o->n_attributes, &f->attributes);
        *ret_handle = f;
        return 0;
}

static int place_open(void *ctx, const struct image_object *o, void **ret_handle, struct rm_error *err) {
        struct image_place *p = ctx;

        switch (o->kind) {
        case RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY:
                return directory_make(p, o, err);
        case RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY_END:
                return directory_finish(p, o, err);
        case RM__IMAGE_KIND__IMAGE_KIND_FIFO:
                return fifo_make(p, o, err);
        case RM__IMAGE_KIND__IMAGE_KIND_SYMLINK:
                return symlink_make(p, o, err);
        case RM__IMAGE_KIND__IMAGE_KIND_HARDLINK:
                return hardlink_make(p, o, err);
        default:
                return file_create(p, o, ret_handle, err);
        }
}

static int limit_check(const struct image_place *p, uint64_t more_bytes, struct rm_error *err) {
        if (p->max_bytes == 0 || p->kept_bytes + more_bytes <= p->max_bytes)
                return 0;
        return error_set(err, -ENOSPC,
                         "more comes than the %" PRIu64
                         " MB that were granted when the move began: the group has grown too much since",
                         p->max_bytes / 1000000);
}

/* Counts the pages of a process after a change of them. */
static void pages_count(struct image_place *p, const struct place_process *process, uint64_t before_bytes) {
        p->kept_bytes = p->kept_bytes - before_bytes + place_pages_bytes(process);
}

static int pages_data(struct image_place *p, const struct file *f, uint64_t offset, const void *data, size_t size_bytes,
                      struct rm_error *err) {
        uint64_t before_bytes = place_pages_bytes(f->process);
        int k = place_pages_data(f->process, f->kind, offset, data, size_bytes, err);

        p->written_bytes += size_bytes;
        pages_count(p, f->process, before_bytes);
        return k < 0 ? k : limit_check(p, 0, err);
}

static int pages_zero(struct image_place *p, const struct file *f, uint64_t offset, uint64_t size_bytes, struct rm_error *err) {
        uint64_t before_bytes = place_pages_bytes(f->process);
        int k = place_pages_zero(f->process, offset, size_bytes, err);

        pages_count(p, f->process, before_bytes);
        return k;
}

/* Lists drop pages; with that of kind PAGES the process is known no more. */
static int pages_close(struct image_place *p, const struct file *f, uint64_t size_bytes, struct rm_error *err) {
        uint64_t before_bytes = place_pages_bytes(f->process);
        int k = place_pages_close(p->pages, f->process, f->kind, size_bytes, err);

        if (image_kind_is_runs(f->kind))
                pages_count(p, f->process, before_bytes);
        return k;
}

static uint64_t file_bytes(const struct file *f) {
        struct stat st;

        return f->counts && fstat(f->fd, &st) == 0 ? (uint64_t) st.st_blocks * 512 : 0;
}

static int file_write(struct image_place *p, const struct file *f, uint64_t offset, const uint8_t *from, size_t size_bytes,
                      struct rm_error *err) {
        while (size_bytes > 0) {
                ssize_t n = pwrite(f->fd, from, size_bytes, (off_t) offset);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_sys(err, -errno, "write %s at byte %llu", f->label, (unsigned long long) offset);
                from += n;
                offset += (uint64_t) n;
                size_bytes -= (size_t) n;
                p->written_bytes += (uint64_t) n;
        }
        return 0;
}

/* The data may come again, so the size of the file counts. */
static int replacing_data(struct image_place *p, const struct file *f, uint64_t offset, const void *data, size_t size_bytes,
                          struct rm_error *err) {
        uint64_t before_bytes = file_bytes(f);
        int k = file_write(p, f, offset, data, size_bytes, err);

        p->kept_bytes = p->kept_bytes - before_bytes + file_bytes(f);
        return k < 0 ? k : limit_check(p, 0, err);
}

static int place_data(void *ctx, void *handle, uint64_t offset, const void *data, size_t size_bytes, struct rm_error *err) {
        struct image_place *p = ctx;
        struct file *f = handle;
        int k;

        if (f->process)
                return pages_data(p, f, offset, data, size_bytes, err);
        if (f->replaces)
                return replacing_data(p, f, offset, data, size_bytes, err);
        k = f->counts ? limit_check(p, size_bytes, err) : 0;
        if (k < 0)
                return k;
        p->kept_bytes += f->counts ? size_bytes : 0;
        return file_write(p, f, offset, data, size_bytes, err);
}

/* New files are holes where nothing is written; an older spool file, and what came ahead, may have
 * something there. */
static int place_zero(void *ctx, void *handle, uint64_t offset, uint64_t size_bytes, struct rm_error *err) {
        struct image_place *p = ctx;
        struct file *f = handle;
        uint64_t before_bytes;

        if (f->process)
                return pages_zero(p, f, offset, size_bytes, err);
        if (f->kind != RM__IMAGE_KIND__IMAGE_KIND_SPOOL && !f->replaces)
                return 0;
        before_bytes = file_bytes(f);
        if (fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) offset, (off_t) size_bytes) < 0)
                return error_sys(err, -errno, "make a hole in %s at byte %llu", f->label, (unsigned long long) offset);
        p->kept_bytes -= f->replaces ? before_bytes - file_bytes(f) : 0;
        return 0;
}

static void place_drop(void *ctx, void *handle) {
        struct file *f = handle;

        cleanup_close_fd(&f->fd);
        image_attributes_finish(&f->attributes);
        free(f->number);
        free(f->label);
        free(f);
}

static int place_close(void *ctx, void *handle, uint64_t size_bytes, struct rm_error *err) {
        struct image_place *p = ctx;
        struct file *f = handle;
        struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, f->mtime };
        uint64_t before_bytes = f->replaces ? file_bytes(f) : 0;
        int k = 0;

        if (f->process)
                k = pages_close(p, f, size_bytes, err);
        else if (ftruncate(f->fd, (off_t) size_bytes) < 0)
                k = error_sys(err, -errno, "set the size of %s", f->label);
        else if (f->kind == RM__IMAGE_KIND__IMAGE_KIND_REGULAR &&
                 (fchown(f->fd, f->uid, f->gid) < 0 || fchmod(f->fd, f->mode) < 0 || futimens(f->fd, times) < 0))
                k = error_sys(err, -errno, "set owner, mode and time of %s", f->label);
        else if (f->kind == RM__IMAGE_KIND__IMAGE_KIND_REGULAR)
                k = image_attributes_set(f->kind, f->fd, NULL, f->attributes.list, f->attributes.n, f->label, err);
        if (f->kind == RM__IMAGE_KIND__IMAGE_KIND_CRIU)
                p->images_done_usec = now_usec();
        if (f->replaces)
                p->kept_bytes -= before_bytes - file_bytes(f);
        if (f->number)
                place_ahead_close(p->ahead, f->number, size_bytes);
        place_drop(p, f);
        return k;
}

/* A program is not run, nor is a file leased, that is open for writing somewhere: CRIU would fail
 * to restore it. */
static void place_end(void *ctx) {
        struct image_place *p = ctx;

        place_ahead_release(p->ahead);
        place_blocks_release(p->blocks);
}

struct image_place *image_place_create(void) {
        struct image_place *p = xcalloc(1, sizeof(*p));

        p->images_fd = -1;
        p->parent_fd = -1;
        p->ahead = place_ahead_create();
        p->blocks = place_blocks_create();
        p->pages = place_pages_create();
        p->delta = (struct image_delta) { .ctx = p, .fetch = blocks_fetch, .used = blocks_used };
        p->target = (struct image_target) {
                .ctx = p,
                .open = place_open,
                .data = place_data,
                .zero = place_zero,
                .close = place_close,
                .drop = place_drop,
                .end = place_end,
        };
        return p;
}

static void role_destroy(struct role *r) {
        cleanup_close_fd(&r->fd);
        free(r->name);
        free(r->path);
        free(r);
}

void image_place_destroy(struct image_place *p) {
        if (!p)
                return;
        while (p->roles) {
                struct role *next = p->roles->next;

                role_destroy(p->roles);
                p->roles = next;
        }
        cleanup_close_fd(&p->images_fd);
        place_ahead_destroy(p->ahead);
        place_blocks_destroy(p->blocks);
        place_pages_destroy(p->pages);
        cleanup_close_fd(&p->parent_fd);
        free(p->images_path);
        free(p->parent_path);
        free(p);
}

static void role_add(struct image_place *p, const char *name, const char *path, bool is_file) {
        struct role *r = xcalloc(1, sizeof(*r));

        r->name = xstrdup(name);
        r->path = xstrdup(path);
        r->is_file = is_file;
        r->fd = -1;
        r->next = p->roles;
        p->roles = r;
}

void image_place_limit(struct image_place *p, uint64_t max_bytes) {
        p->max_bytes = max_bytes;
}

void image_place_images(struct image_place *p, const char *directory) {
        free(p->images_path);
        p->images_path = xstrdup(directory);
}

void image_place_tree(struct image_place *p, const char *role, const char *directory) {
        role_add(p, role, directory, false);
}

void image_place_file(struct image_place *p, const char *role, const char *path) {
        role_add(p, role, path, true);
}

const struct image_target *image_place_target(struct image_place *p) {
        return &p->target;
}

const struct image_delta *image_place_delta(struct image_place *p) {
        return &p->delta;
}

uint64_t image_place_written_bytes(const struct image_place *p) {
        return p->written_bytes;
}

uint64_t image_place_later_bytes(const struct image_place *p) {
        return place_pages_later_bytes(p->pages);
}

bool image_place_has_pages(const struct image_place *p) {
        return place_pages_any(p->pages);
}

uint64_t image_place_images_done_usec(const struct image_place *p) {
        return p->images_done_usec;
}
