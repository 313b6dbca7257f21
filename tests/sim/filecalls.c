/* The file system of rmd's own code (daemon/checkpoint) for its stores, in the virtual world: the
 * linker puts these functions in the place of libc's, and of those of daemon/store/directory.c that
 * read a disk (--wrap). Other paths are nowhere. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/job/file_writer.h"
#include "daemon/store/directory.h"
#include "daemon/transfer/remover.h"
#include "tests/sim/files.h"
#include "tests/sim/kept.h"

/* The share of attempts, of a thousand, at which an rm-mover has the lock. */
#define LOCKED 30U
#define BLOCK_BYTES 4096U
#define BLOCKS (UINT64_C(1) << 20)

/* The stream behind a DIR. */
struct listing {
        char **names;
        size_t n, at;
        struct dirent entry;
};

/* The directory that was opened last: rmd opens one at a time. */
static struct {
        int fd;
        char path[256];
} opened = { .fd = -1 };

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
struct dirent *__real_readdir64(DIR *d);
struct dirent *__wrap_readdir64(DIR *d);
int __real_closedir(DIR *d);
int __wrap_closedir(DIR *d);
int __real_lstat64(const char *path, struct stat *st);
int __wrap_lstat64(const char *path, struct stat *st);
int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __real_statvfs64(const char *path, struct statvfs *fs);
int __wrap_statvfs64(const char *path, struct statvfs *fs);
int __real_chmod(const char *path, mode_t mode);
int __wrap_chmod(const char *path, mode_t mode);
uint64_t __wrap_directory_bytes(int dir_fd);

/* ---- directories ---- */

DIR *__wrap_opendir(const char *path) {
        struct listing *listing;

        if (!host_current())
                return __real_opendir(path);
        listing = xcalloc(1, sizeof(*listing));
        listing->names = files_list(host_current(), path, &listing->n);
        if (listing->names || strcmp(path, FILES_ROOT) == 0)
                return (DIR *) listing;
        free(listing);
        errno = ENOENT;
        return NULL;
}

struct dirent *__wrap_readdir64(DIR *d) {
        struct listing *listing = (struct listing *) d;

        if (!host_current())
                return __real_readdir64(d);
        if (listing->at == listing->n)
                return NULL;
        (void) snprintf(listing->entry.d_name, sizeof(listing->entry.d_name), "%s", listing->names[listing->at++]);
        return &listing->entry;
}

int __wrap_closedir(DIR *d) {
        struct listing *listing = (struct listing *) d;

        if (!host_current())
                return __real_closedir(d);
        files_list_free(listing->names, listing->n);
        free(listing);
        return 0;
}

int __wrap_open64(const char *path, int flags, ...) {
        va_list ap;
        mode_t mode;

        va_start(ap, flags);
        mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
        va_end(ap);
        if (!host_current() || strncmp(path, FILES_ROOT, strlen(FILES_ROOT)) != 0)
                return __real_open64(path, flags, mode);
        if (!files_is_dir(host_current(), path)) {
                errno = ENOENT;
                return -1;
        }
        opened.fd = __real_open64("/dev/null", O_RDONLY | O_CLOEXEC);
        (void) snprintf(opened.path, sizeof(opened.path), "%s", path);
        return opened.fd;
}

int __wrap_flock(int fd, int operation) {
        if (!host_current())
                return __real_flock(fd, operation);
        if (!timeline_chance(host_timeline(host_current()), LOCKED))
                return 0;
        errno = EWOULDBLOCK;
        return -1;
}

static uint64_t bytes_in(const char *dir) {
        size_t n, n_data;
        char **names = files_list(host_current(), dir, &n);
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++) {
                cleanup_free char *path = xasprintf("%s/%s", dir, names[i]);

                if (files_read(host_current(), path, false, &n_data))
                        sum += n_data;
        }
        files_list_free(names, n);
        return sum;
}

uint64_t __wrap_directory_bytes(int dir_fd) {
        return dir_fd == opened.fd ? bytes_in(opened.path) : 0;
}

/* ---- files ---- */

int __wrap_lstat64(const char *path, struct stat *st) {
        size_t n = 0;

        if (!host_current())
                return __real_lstat64(path, st);
        memset(st, 0, sizeof(*st));
        if (files_read(host_current(), path, false, &n)) {
                st->st_mode = S_IFREG | 0600;
                st->st_size = (off_t) n;
                return 0;
        }
        st->st_mode = S_IFDIR | 0700;
        errno = ENOENT;
        return files_is_dir(host_current(), path) ? 0 : -1;
}

int __wrap_unlink(const char *path) {
        bool there;

        if (!host_current())
                return __real_unlink(path);
        kept_before(host_current());
        there = files_remove(host_current(), path);
        kept_after(host_current(), path);
        errno = ENOENT;
        return there ? 0 : -1;
}

int __wrap_rename(const char *from, const char *to) {
        bool there;

        if (!host_current())
                return __real_rename(from, to);
        kept_before(host_current());
        there = files_rename(host_current(), from, to);
        kept_after(host_current(), to);
        errno = ENOENT;
        return there ? 0 : -1;
}

int __wrap_access(const char *path, int mode) {
        size_t n;

        if (!host_current())
                return __real_access(path, mode);
        errno = ENOENT;
        return files_read(host_current(), path, false, &n) ? 0 : -1;
}

int __wrap_statvfs64(const char *path, struct statvfs *fs) {
        if (!host_current())
                return __real_statvfs64(path, fs);
        memset(fs, 0, sizeof(*fs));
        fs->f_frsize = fs->f_bsize = BLOCK_BYTES;
        fs->f_blocks = BLOCKS;
        fs->f_bavail = disk_full(host_part(host_current(), HOST_DISK)) ? 0 : BLOCKS;
        return 0;
}

int __wrap_chmod(const char *path, mode_t mode) {
        return host_current() ? 0 : __real_chmod(path, mode);
}

/* ---- daemon/job/file_writer.h, without a thread: files that exist have their names forced to the
 * disk ---- */

struct file_writer {
        struct host *host;
};

struct written {
        file_written_fn done;
        void *userdata;
};

static void on_written(void *userdata) {
        struct written *written = userdata;

        written->done(written->userdata, disk_broken(host_part(host_current(), HOST_DISK)) ? -EIO : 0);
        free(written);
}

static void on_not_written(void *userdata) {
        struct written *written = userdata;

        written->done(written->userdata, -ECANCELED);
        free(written);
}

int file_writer_create(struct event_base *base, struct file_writer **ret) {
        *ret = xcalloc(1, sizeof(**ret));
        (*ret)->host = host_current();
        return 0;
}

void file_writer_destroy(struct file_writer *writer) {
        free(writer);
}

void file_writer_sync_name(struct file_writer *writer, char *path, file_written_fn done, void *userdata) {
        struct written *written = xcalloc(1, sizeof(*written));

        *written = (struct written) { done, userdata };
        files_sync(writer->host, on_written, on_not_written, written);
        free(path);
}

/* No job has a body. */
void file_writer_add(struct file_writer *writer, char *path, uint8_t *data, size_t size_bytes, file_written_fn done,
                     void *userdata) {
        abort();
}

/* ---- daemon/transfer/remover.h, of which nothing else has an effect here ---- */

char *remover_set_aside(struct remover *remover, const char *dir) {
        char *aside;

        if (!host_current() || !files_is_dir(host_current(), dir))
                return NULL;
        aside = xasprintf("%s.removed-%llu", dir, (unsigned long long) timeline_count(host_timeline(host_current())));
        kept_before(host_current());
        (void) files_rename(host_current(), dir, aside);
        kept_after(host_current(), dir);
        return aside;
}

void remover_add(struct remover *remover, char *aside) {
        if (aside)
                files_remove_tree(host_current(), aside);
        free(aside);
}

struct remover *remover_create(struct event_base *base, const char *program) {
        return NULL;
}

void remover_destroy(struct remover *remover) {
}

void remover_unmount(const char *program, const char *dir) {
}
