#include "daemon/image/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

/* The hash function of uthash has fall-throughs that clang warns of. */
#define HASH_FUNCTION(key, size_bytes, hash) ((hash) = (unsigned) XXH3_64bits(key, size_bytes))
#include <uthash.h>

#include "common/util.h"
#include "daemon/image/attributes.h"

/* The first path of a file that has more than one. */
struct link {
        ino_t ino;
        char *path;
        UT_hash_handle hh;
};

struct walk {
        struct image_writer *writer;
        const char *role;
        const struct image_tree_options *options;
        struct image_tree_figures *figures;
        struct link *links;
        dev_t dev;
        char path[IMAGE_PATH_MAX_BYTES + 1]; /* of where we are, "." at the top */
        size_t path_bytes;
        unsigned depth;
};

static int walk_poll(const struct image_tree_options *options, const char *path, struct rm_error *err) {
        return options && options->poll ? options->poll(options->ctx, path, err) : 0;
}

static struct image_object object_of(const char *role, Rm__ImageKind kind, const char *path, const struct stat *st) {
        return (struct image_object) {
                .kind = kind,
                .role = role,
                .path = path,
                .target = "",
                .mode = st->st_mode & 07777,
                .uid = st->st_uid,
                .gid = st->st_gid,
                .mtime_sec = st->st_mtim.tv_sec,
                .mtime_nsec = (uint32_t) st->st_mtim.tv_nsec,
        };
}

/* The contents of an open regular file, from `offset` to its end, holes as holes. */
static int contents_write(struct image_writer *w, uint32_t slot, int fd, uint64_t offset, uint64_t size_bytes, const char *label,
                          const struct image_tree_options *options, struct image_tree_figures *figures, struct rm_error *err) {
        uint64_t data_end = offset; /* the current run of data ends here */
        int r;

        while (offset < size_bytes) {
                size_t want;
                ssize_t n;
                void *buffer;

                if (offset >= data_end) {
                        off_t data = lseek(fd, (off_t) offset, SEEK_DATA);
                        uint64_t start = data < 0 || (uint64_t) data > size_bytes ? size_bytes : (uint64_t) data;

                        if (data < 0 && errno != ENXIO)
                                return error_sys(err, -errno, "find the data of %s", label);
                        r = image_writer_zero(w, slot, offset, start - offset, err);
                        if (r < 0)
                                return r;
                        offset = start;
                        if (offset >= size_bytes)
                                break;
                        data = lseek(fd, (off_t) offset, SEEK_HOLE);
                        if (data < 0)
                                return error_sys(err, -errno, "find the holes of %s", label);
                        data_end = (uint64_t) data > size_bytes ? size_bytes : (uint64_t) data;
                }
                want = IMAGE_PAYLOAD_MAX_BYTES - offset % IMAGE_BLOCK_BYTES;
                if (want > data_end - offset)
                        want = (size_t) (data_end - offset);
                buffer = image_writer_buffer(w, want, err);
                if (!buffer)
                        return err ? err->code : -EIO;
                n = pread(fd, buffer, want, (off_t) offset);
                if (n <= 0)
                        return error_sys(err, n < 0 ? -errno : -EIO, "read %s at byte %llu", label, (unsigned long long) offset);
                r = image_writer_data(w, slot, offset, (size_t) n, err);
                if (r < 0)
                        return r;
                offset += (uint64_t) n;
                figures->read_bytes += (uint64_t) n;
                r = walk_poll(options, label, err);
                if (r != 0)
                        return r;
        }
        return 0;
}

/* Returns 1 when the file was sent before under another name, and a link was sent now. */
static int link_write(struct walk *k, const struct stat *st, struct rm_error *err) {
        struct image_object o = object_of(k->role, RM__IMAGE_KIND__IMAGE_KIND_HARDLINK, k->path, st);
        struct link *l = NULL;
        int r;

        if (st->st_nlink < 2)
                return 0;
        HASH_FIND(hh, k->links, &st->st_ino, sizeof(st->st_ino), l);
        if (!l) {
                l = xcalloc(1, sizeof(*l));
                l->ino = st->st_ino;
                l->path = xstrdup(k->path);
                HASH_ADD(hh, k->links, ino, sizeof(l->ino), l);
                return 0;
        }
        o.target = l->path;
        r = image_writer_open(k->writer, &o, NULL, err);
        return r < 0 ? r : 1;
}

/* Opens `o` with the attributes that it has, found as image_attributes_read() does. */
static int open_with_attributes(struct walk *k, struct image_object *o, int fd, const char *name, uint32_t *ret_slot,
                                struct rm_error *err) {
        struct image_attributes a = { 0 };
        int r = image_attributes_read(o, fd, name, &a, err);

        o->attributes = a.list;
        o->n_attributes = a.n;
        if (r == 0)
                r = image_writer_open(k->writer, o, ret_slot, err);
        image_attributes_finish(&a);
        return r;
}

static int regular_contents(struct walk *k, const struct image_object *o, uint32_t slot, int fd, const struct stat *st,
                            struct rm_error *err) {
        if (o->ahead > 0)
                return k->options->ahead_contents(k->options->ahead_ctx, slot, fd, st, err);
        return contents_write(k->writer, slot, fd, 0, (uint64_t) st->st_size, k->path, k->options, k->figures, err);
}

static int regular_write(struct walk *k, int dir_fd, const char *name, const struct stat *st, struct rm_error *err) {
        struct image_object o = object_of(k->role, RM__IMAGE_KIND__IMAGE_KIND_REGULAR, k->path, st);
        cleanup_close int fd = -1;
        uint32_t slot = 0;
        int r;

        r = link_write(k, st, err);
        if (r != 0)
                return r < 0 ? r : 0;
        fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return error_sys(err, -errno, "open %s:%s", k->role, k->path);
        if (k->options && k->options->ahead_number)
                o.ahead = k->options->ahead_number(k->options->ahead_ctx, k->role, st);
        r = open_with_attributes(k, &o, fd, NULL, &slot, err);
        if (r == 0)
                r = regular_contents(k, &o, slot, fd, st, err);
        if (r == 0)
                r = image_writer_close(k->writer, slot, (uint64_t) st->st_size, err);
        return r;
}

static int symlink_write(struct walk *k, int dir_fd, const char *name, const struct stat *st, struct rm_error *err) {
        struct image_object o = object_of(k->role, RM__IMAGE_KIND__IMAGE_KIND_SYMLINK, k->path, st);
        char target[IMAGE_PATH_MAX_BYTES + 1];
        ssize_t n = readlinkat(dir_fd, name, target, sizeof(target));

        if (n < 0)
                return error_sys(err, -errno, "read symlink %s:%s", k->role, k->path);
        if ((size_t) n >= sizeof(target))
                return error_set(err, -ENAMETOOLONG, "symlink %s:%s is too long", k->role, k->path);
        target[n] = 0;
        o.mode = 0777;
        o.target = target;
        return image_writer_open(k->writer, &o, NULL, err);
}

static int directory_write(struct walk *k, int fd, const struct stat *st, struct rm_error *err);

static int subdirectory_write(struct walk *k, int dir_fd, const char *name, const struct stat *st, struct rm_error *err) {
        int fd;

        if (st->st_dev != k->dev)
                return 0; /* another mount: not ours to carry */
        if (k->depth >= IMAGE_TREE_DEPTH_MAX)
                return error_set(err, -ELOOP, "%s:%s is more than %u directories deep", k->role, k->path, IMAGE_TREE_DEPTH_MAX);
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return error_sys(err, -errno, "open directory %s:%s", k->role, k->path);
        return directory_write(k, fd, st, err);
}

static int fifo_write(struct walk *k, int dir_fd, const char *name, const struct stat *st, struct rm_error *err) {
        struct image_object o = object_of(k->role, RM__IMAGE_KIND__IMAGE_KIND_FIFO, k->path, st);

        return open_with_attributes(k, &o, dir_fd, name, NULL, err);
}

/* CRIU binds sockets again, with owner and mode and no more. Without its list, a mode would say
 * that the group may what a user may. */
static int socket_skip(struct walk *k, int dir_fd, const char *name, const struct stat *st, struct rm_error *err) {
        struct image_object o = object_of(k->role, RM__IMAGE_KIND__IMAGE_KIND_FIFO, k->path, st);
        struct image_attributes a = { 0 };
        int r = image_attributes_read(&o, dir_fd, name, &a, err);

        if (r == 0 && a.n > 0)
                r = error_set(err, -EOPNOTSUPP, "%s:%s is a socket with an access control list, which cannot be carried", k->role,
                              k->path);
        image_attributes_finish(&a);
        k->figures->sockets_skipped++;
        return r;
}

static int entry_write(struct walk *k, int dir_fd, const char *name, struct rm_error *err) {
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return error_sys(err, -errno, "look at %s:%s", k->role, k->path);
        switch (st.st_mode & S_IFMT) {
        case S_IFDIR:
                return subdirectory_write(k, dir_fd, name, &st, err);
        case S_IFREG:
                return st.st_dev == k->dev ? regular_write(k, dir_fd, name, &st, err) : 0;
        case S_IFLNK:
                return symlink_write(k, dir_fd, name, &st, err);
        case S_IFIFO:
                return fifo_write(k, dir_fd, name, &st, err);
        case S_IFSOCK:
                return socket_skip(k, dir_fd, name, &st, err);
        default:
                return error_set(err, -EOPNOTSUPP, "%s:%s is a device, which cannot be moved", k->role, k->path);
        }
}

static bool excluded(const struct walk *k) {
        const char *const *e = k->options ? k->options->exclude : NULL;

        for (; e && *e; e++)
                if (strcmp(*e, k->path) == 0)
                        return true;
        return false;
}

/* Visits an entry, with its name appended to the path. */
static int entry_visit(struct walk *k, int dir_fd, const char *name, struct rm_error *err) {
        size_t before_bytes = k->path_bytes;
        size_t prefix_bytes = k->depth > 1 ? before_bytes + 1 : 0;
        int r;

        if (prefix_bytes + strlen(name) > IMAGE_PATH_MAX_BYTES)
                return error_set(err, -ENAMETOOLONG, "a path below %s:%s is too long", k->role, k->path);
        if (prefix_bytes)
                k->path[before_bytes] = '/';
        strcpy(k->path + prefix_bytes, name);
        k->path_bytes = prefix_bytes + strlen(name);
        r = walk_poll(k->options, k->path, err);
        if (r == 0 && !excluded(k))
                r = entry_write(k, dir_fd, name, err);
        if (r != 0)
                return r;
        k->path_bytes = before_bytes;
        k->path[before_bytes] = 0;
        if (k->depth == 1)
                strcpy(k->path, ".");
        return 0;
}

/* Takes `fd`. */
static int directory_write(struct walk *k, int fd, const struct stat *st, struct rm_error *err) {
        struct image_object o = object_of(k->role, RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY, k->path, st);
        DIR *d = fdopendir(fd);
        struct dirent *e;
        int r;

        if (!d) {
                r = -errno;
                (void) close(fd);
                return error_sys(err, r, "read directory %s:%s", k->role, k->path);
        }
        k->depth++;
        r = image_writer_open(k->writer, &o, NULL, err);
        while (r == 0) {
                errno = 0;
                e = readdir(d);
                if (!e) {
                        r = errno ? error_sys(err, -errno, "read directory %s:%s", k->role, k->path) : 0;
                        break;
                }
                if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                        r = entry_visit(k, dirfd(d), e->d_name, err);
        }
        k->depth--;
        o.kind = RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY_END;
        if (r == 0)
                r = open_with_attributes(k, &o, dirfd(d), NULL, NULL, err);
        (void) closedir(d);
        return r;
}

static void links_free(struct walk *k) {
        struct link *l;
        struct link *next;

        HASH_ITER (hh, k->links, l, next) {
                HASH_DEL(k->links, l);
                free(l->path);
                free(l);
        }
}

int image_tree_write(struct image_writer *w, const char *role, int fd, const struct image_tree_options *options,
                     struct image_tree_figures *figures, struct rm_error *err) {
        struct walk *k;
        struct stat st;
        int own;
        int r;

        if (fstat(fd, &st) < 0)
                return error_sys(err, -errno, "look at the directory of '%s'", role);
        own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (own < 0)
                return error_sys(err, -errno, "open the directory of '%s'", role);
        k = xcalloc(1, sizeof(*k));
        k->writer = w;
        k->role = role;
        k->options = options;
        k->figures = figures;
        k->dev = st.st_dev;
        strcpy(k->path, ".");
        k->path_bytes = 1;
        r = directory_write(k, own, &st, err);
        links_free(k);
        free(k);
        return r;
}

int image_spool_write(struct image_writer *w, const char *role, int fd, uint64_t offset, const struct image_tree_options *options,
                      struct image_tree_figures *figures, struct rm_error *err) {
        struct image_object o;
        uint32_t slot = 0;
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return error_set(err, -EINVAL, "'%s' is not a regular file", role);
        if (offset > (uint64_t) st.st_size)
                return error_set(err, -ERANGE, "'%s' is shorter than the receiver's copy", role);
        o = object_of(role, RM__IMAGE_KIND__IMAGE_KIND_SPOOL, "", &st);
        r = image_writer_open(w, &o, &slot, err);
        if (r == 0)
                r = contents_write(w, slot, fd, offset, (uint64_t) st.st_size, role, options, figures, err);
        if (r == 0)
                r = image_writer_close(w, slot, (uint64_t) st.st_size, err);
        return r;
}
