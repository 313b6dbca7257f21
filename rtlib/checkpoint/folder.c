#include "rtlib/checkpoint/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"

#define NAME_BYTES 64
#define PREFIX "rmrt-"
#define TEMPORARY PREFIX "manifest.tmp"

static char *manifest_name(uint64_t number, char ret[static NAME_BYTES]) {
        (void) snprintf(ret, NAME_BYTES, PREFIX "%" PRIu64 ".manifest", number);
        return ret;
}

static char *rank_name(uint64_t number, size_t rank, char ret[static NAME_BYTES]) {
        (void) snprintf(ret, NAME_BYTES, PREFIX "%" PRIu64 ".rank-%zu", number, rank);
        return ret;
}

/* 0: it is no file of ours. */
static uint64_t name_number(const char *name, bool *ret_is_manifest) {
        char *end;
        uint64_t number;

        if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0 || name[sizeof(PREFIX) - 1] < '1' || name[sizeof(PREFIX) - 1] > '9')
                return 0;
        errno = 0;
        number = strtoull(name + sizeof(PREFIX) - 1, &end, 10);
        *ret_is_manifest = strcmp(end, ".manifest") == 0;
        return errno == 0 && (*ret_is_manifest || strncmp(end, ".rank-", 6) == 0) ? number : 0;
}

int folder_open(const char *path, bool create, struct rm_error *err) {
        int fd, r = create ? mkdir_p(path, 0700) : 0;

        if (r < 0)
                return error_sys(err, r, "make folder '%s'", path);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? error_sys(err, -errno, "folder '%s'", path) : fd;
}

/* A directory stream of its own, from the beginning. */
static DIR *stream_open(int dir) {
        int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);

        if (!d && fd >= 0)
                (void) close(fd);
        return d;
}

static int newest_first(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return (x < y) - (x > y);
}

int folder_list(int dir, uint64_t **ret, size_t *ret_n, uint64_t *ret_last, struct rm_error *err) {
        DIR *d = stream_open(dir);
        uint64_t *list = NULL, last = 0;
        size_t n = 0;

        if (!d)
                return error_sys(err, -errno, "read the folder");
        for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
                bool is_manifest = false;
                uint64_t number = name_number(e->d_name, &is_manifest);

                last = number > last ? number : last;
                if (number == 0 || !is_manifest)
                        continue;
                list = xrealloc(list, (n + 1) * sizeof(*list));
                list[n++] = number;
        }
        (void) closedir(d);
        if (n > 0)
                qsort(list, n, sizeof(*list), newest_first);
        *ret = list;
        *ret_n = n;
        if (ret_last)
                *ret_last = last;
        return 0;
}

/* ---- manifests ---- */

static int read_descriptor(int fd, uint8_t **ret, size_t *ret_size, struct rm_error *err) {
        cleanup_free uint8_t *data = NULL;
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0)
                return error_sys(err, -errno, "read");
        if (!S_ISREG(st.st_mode) || (uint64_t) st.st_size > (uint64_t) PORTABLE_RECORD_MAX_BYTES + 4096)
                return error_set(err, -EBADMSG, "it is no manifest");
        data = xrealloc(NULL, (size_t) st.st_size + 1);
        r = st.st_size > 0 ? read_all(fd, data, (size_t) st.st_size) : 0;
        if (r < 0)
                return error_sys(err, -EBADMSG, "read");
        *ret = take_ptr(data);
        *ret_size = (size_t) st.st_size;
        return 0;
}

int folder_read_manifest(int dir, uint64_t number, Portable__Manifest **ret, uint8_t *ret_digest, struct rm_error *err) {
        char name[NAME_BYTES];
        cleanup_close int fd = openat(dir, manifest_name(number, name), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        cleanup_free uint8_t *data = NULL;
        Portable__Manifest *m = NULL;
        size_t n = 0;
        int r = 0;

        if (fd < 0)
                r = errno == ENOENT ? error_set(err, -EBADMSG, "it is missing") : error_sys(err, -errno, "open");
        if (r == 0)
                r = read_descriptor(fd, &data, &n, err);
        if (r == 0)
                r = manifest_unpack(data, n, &m, ret_digest, err);
        if (r == 0 && m->number != number) {
                r = error_set(err, -EBADMSG, "it is that of checkpoint %" PRIu64, m->number);
                portable__manifest__free_unpacked(m, NULL);
        }
        if (r < 0)
                return error_prefix(err, "%s", name);
        *ret = m;
        return 0;
}

static int write_temporary(int dir, const uint8_t *data, size_t n) {
        cleanup_close int fd = openat(dir, TEMPORARY, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        int r = fd < 0 ? -errno : write_all(fd, data, n);

        return r == 0 && fsync(fd) < 0 ? -errno : r;
}

int folder_write_manifest(int dir, const Portable__Manifest *m, uint8_t *ret_digest, struct rm_error *err) {
        char name[NAME_BYTES];
        cleanup_free uint8_t *data = NULL;
        size_t n = 0;
        int r = manifest_pack(m, &data, &n, ret_digest, err);

        if (r < 0)
                return r;
        (void) manifest_name(m->number, name);
        r = write_temporary(dir, data, n);
        /* First the names of the ranks' files, then that of the manifest. */
        if (r == 0 && fsync(dir) < 0)
                r = -errno;
        if (r == 0 && renameat(dir, TEMPORARY, dir, name) < 0)
                r = -errno;
        if (r == 0 && fsync(dir) < 0) {
                r = -errno;
                (void) unlinkat(dir, name, 0);
        }
        if (r < 0)
                (void) unlinkat(dir, TEMPORARY, 0);
        return r < 0 ? error_sys(err, r, "write %s", name) : 0;
}

/* ---- files of ranks ---- */

int folder_create_rank(int dir, uint64_t number, size_t rank, struct rm_error *err) {
        char name[NAME_BYTES];
        int fd = openat(dir, rank_name(number, rank, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

        return fd < 0 ? error_sys(err, -errno, "make %s", name) : fd;
}

int folder_open_rank(int dir, uint64_t number, size_t rank, struct rm_error *err) {
        char name[NAME_BYTES];
        int fd = openat(dir, rank_name(number, rank, name), O_RDONLY | O_CLOEXEC | O_NONBLOCK);

        if (fd >= 0)
                return fd;
        return errno == ENOENT ? error_set(err, -EBADMSG, "%s is missing", name) : error_sys(err, -errno, "open %s", name);
}

int folder_rank_bytes(int dir, uint64_t number, size_t rank, uint64_t *ret, struct rm_error *err) {
        char name[NAME_BYTES];
        struct stat st;

        if (fstatat(dir, rank_name(number, rank, name), &st, 0) < 0)
                return error_sys(err, -errno, "%s", name);
        *ret = (uint64_t) st.st_size;
        return 0;
}

void folder_remove_rank(int dir, uint64_t number, size_t rank) {
        char name[NAME_BYTES];

        (void) unlinkat(dir, rank_name(number, rank, name), 0);
}

/* ---- keeping ---- */

static bool kept(const uint64_t *numbers, size_t n, uint64_t number) {
        for (size_t i = 0; i < n; i++)
                if (numbers[i] == number)
                        return true;
        return false;
}

/* `number` and what it builds on. False: what that is cannot be read. */
static bool keep_chain(int dir, uint64_t number, uint64_t **numbers, size_t *n) {
        while (number > 0 && !kept(*numbers, *n, number)) {
                Portable__Manifest *m = NULL;

                *numbers = xrealloc(*numbers, (*n + 1) * sizeof(**numbers));
                (*numbers)[(*n)++] = number;
                if (folder_read_manifest(dir, number, &m, NULL, NULL) < 0)
                        return false;
                number = m->previous;
                portable__manifest__free_unpacked(m, NULL);
        }
        return true;
}

/* Manifests first: what is left half removed is no checkpoint. */
static void remove_others(int dir, const uint64_t *numbers, size_t n, uint64_t newest, bool manifests) {
        DIR *d = stream_open(dir);

        for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
                bool is_manifest = false;
                uint64_t number = name_number(e->d_name, &is_manifest);

                if (number > 0 && number <= newest && is_manifest == manifests && !kept(numbers, n, number))
                        (void) unlinkat(dir, e->d_name, 0);
        }
        if (d)
                (void) closedir(d);
}

void folder_keep(int dir, size_t keep) {
        cleanup_free uint64_t *all = NULL, *numbers = NULL;
        size_t n_all = 0, n = 0;

        if (folder_list(dir, &all, &n_all, NULL, NULL) < 0 || n_all == 0)
                return;
        for (size_t i = 0; i < n_all && i < keep; i++)
                if (!keep_chain(dir, all[i], &numbers, &n))
                        return;
        remove_others(dir, numbers, n, all[0], true);
        remove_others(dir, numbers, n, all[0], false);
}
