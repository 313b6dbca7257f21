#include "daemon/store/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"

#define PACK_PREFIX "pack-"
#define MANIFEST_PREFIX "manifest-"
#define NEW_PREFIX "new-manifest-"

static void cleanup_closedir(DIR **d) {
        if (*d)
                (void) closedir(*d);
}

int directory_open(const char *path, int *ret_fd, struct rm_error *err) {
        cleanup_close int fd = -1;
        struct stat st;

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return error_sys(err, -errno, "make directory %s", path);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return error_sys(err, -errno, "open directory %s", path);
        if (st.st_uid != geteuid() || (st.st_mode & 022))
                return error_set(err, -EPERM, "directory %s may be written to by others: it must belong to user %u, with mode 0700",
                                 path, (unsigned) geteuid());
        *ret_fd = take_fd(&fd);
        return 0;
}

void directory_pack_name(uint64_t number, char ret[static DIRECTORY_NAME_BYTES]) {
        (void) snprintf(ret, DIRECTORY_NAME_BYTES, PACK_PREFIX "%" PRIu64, number);
}

void directory_manifest_name(uint64_t number, char ret[static DIRECTORY_NAME_BYTES]) {
        (void) snprintf(ret, DIRECTORY_NAME_BYTES, MANIFEST_PREFIX "%" PRIu64, number);
}

void directory_new_manifest_name(uint64_t number, char ret[static DIRECTORY_NAME_BYTES]) {
        (void) snprintf(ret, DIRECTORY_NAME_BYTES, NEW_PREFIX "%" PRIu64, number);
}

/* 0: it is not such a name. */
static uint64_t name_number(const char *name, const char *prefix) {
        size_t n = strlen(prefix);
        int64_t number = 0;

        if (strncmp(name, prefix, n) != 0 || name[n] < '1' || name[n] > '9' || parse_i64(name + n, 1, INT64_MAX, &number) < 0)
                return 0;
        return (uint64_t) number;
}

uint64_t directory_pack_number(const char *name) {
        return name_number(name, PACK_PREFIX);
}

uint64_t directory_manifest_number(const char *name) {
        return name_number(name, MANIFEST_PREFIX);
}

bool directory_name_valid(const char *name, uint64_t checkpoint) {
        uint64_t pack = directory_pack_number(name), manifest = directory_manifest_number(name);

        return (pack > 0 && pack <= checkpoint) || (manifest > 0 && manifest == checkpoint);
}

char *directory_of_capsule(const char *dir, int32_t capsule) {
        return capsule < 0 ? xasprintf("%s/head", dir) : xasprintf("%s/g%" PRId32, dir, capsule);
}

static void number_add(uint64_t **list, size_t *n, uint64_t number) {
        if (number == 0)
                return;
        *list = xrealloc(*list, (*n + 1) * sizeof(**list));
        (*list)[(*n)++] = number;
}

static int number_compare(const void *a, const void *b) {
        const uint64_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

/* A stream of its own: `dir_fd` keeps its place, and its locks. */
static DIR *directory_stream(int dir_fd) {
        cleanup_close int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

        if (d)
                (void) take_fd(&fd);
        return d;
}

int directory_names_read(int dir_fd, struct directory_names *ret, struct rm_error *err) {
        __attribute__((cleanup(cleanup_closedir))) DIR *d = directory_stream(dir_fd);
        struct directory_names names = { 0 };
        const struct dirent *e;

        if (!d)
                return error_sys(err, -errno, "list the directory");
        while ((errno = 0, e = readdir(d))) {
                number_add(&names.packs, &names.n_packs, directory_pack_number(e->d_name));
                number_add(&names.manifests, &names.n_manifests, directory_manifest_number(e->d_name));
        }
        if (errno != 0) {
                directory_names_finish(&names);
                return error_sys(err, -errno, "list the directory");
        }
        if (names.n_packs > 0)
                qsort(names.packs, names.n_packs, sizeof(*names.packs), number_compare);
        if (names.n_manifests > 0)
                qsort(names.manifests, names.n_manifests, sizeof(*names.manifests), number_compare);
        *ret = names;
        return 0;
}

void directory_names_finish(struct directory_names *names) {
        free(names->packs);
        free(names->manifests);
        *names = (struct directory_names) { 0 };
}

int directory_remove_new(int dir_fd, struct rm_error *err) {
        __attribute__((cleanup(cleanup_closedir))) DIR *d = directory_stream(dir_fd);
        const struct dirent *e;

        if (!d)
                return error_sys(err, -errno, "list the directory");
        while ((e = readdir(d)))
                if (name_number(e->d_name, NEW_PREFIX) > 0 && unlinkat(dir_fd, e->d_name, 0) < 0 && errno != ENOENT)
                        return error_sys(err, -errno, "remove %s", e->d_name);
        return 0;
}

uint64_t directory_bytes(int dir_fd) {
        __attribute__((cleanup(cleanup_closedir))) DIR *d = directory_stream(dir_fd);
        const struct dirent *e;
        uint64_t sum = 0;

        while (d && (e = readdir(d))) {
                struct stat st;

                if (fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
                        sum += (uint64_t) st.st_size;
        }
        return sum;
}

int directory_file_open(int dir_fd, const char *name, int *ret_fd, struct rm_error *err) {
        /* A FIFO would be waited at. */
        cleanup_close int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;

        if (fd < 0 && errno == ENOENT)
                return -ENOENT;
        if (fd < 0 || fstat(fd, &st) < 0)
                return error_sys(err, -errno, "open %s", name);
        if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
                return error_set(err, -EPERM, "%s is not a regular file of user %u", name, (unsigned) geteuid());
        *ret_fd = take_fd(&fd);
        return 0;
}

int directory_file_create(int dir_fd, const char *name, int *ret_fd, struct rm_error *err) {
        *ret_fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        return *ret_fd < 0 ? error_sys(err, -errno, "create %s", name) : 0;
}

int directory_file_remove(int dir_fd, const char *name, struct rm_error *err) {
        return unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT ? 0 : error_sys(err, -errno, "remove %s", name);
}
