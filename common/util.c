#include "common/util.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void cleanup_close_fd(int *fd) {
        int taken = take_fd(fd);

        if (taken >= 0)
                (void) close(taken);
}

void cleanup_fclose(FILE **f) {
        if (*f)
                (void) fclose(*f);
}

static uint64_t clock_usec(clockid_t clock) {
        struct timespec ts;

        (void) clock_gettime(clock, &ts);
        return (uint64_t) ts.tv_sec * 1000000U + (uint64_t) ts.tv_nsec / 1000U;
}

uint64_t now_usec(void) {
        return clock_usec(CLOCK_MONOTONIC);
}

uint64_t thread_cpu_usec(void) {
        return clock_usec(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t now_real_usec(void) {
        return clock_usec(CLOCK_REALTIME);
}

uint64_t now_boot_usec(void) {
        return clock_usec(CLOCK_BOOTTIME);
}

uint64_t thread_nsec(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
        return (uint64_t) ts.tv_sec * 1000000000U + (uint64_t) ts.tv_nsec;
}

int write_all(int fd, const void *data, size_t size_bytes) {
        const char *p = data;

        while (size_bytes > 0) {
                ssize_t n = write(fd, p, size_bytes);

                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                p += n;
                size_bytes -= (size_t) n;
        }
        return 0;
}

int read_all(int fd, void *data, size_t size_bytes) {
        char *p = data;
        size_t left = size_bytes;

        while (left > 0) {
                ssize_t n = read(fd, p, left);

                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                if (n == 0)
                        return left == size_bytes ? -ENODATA : -EPIPE;
                p += n;
                left -= (size_t) n;
        }
        return 0;
}

int read_file(const char *path, size_t max_bytes, char **ret_data, size_t *ret_size_bytes) {
        cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
        cleanup_free char *data = NULL;
        size_t used = 0;
        size_t space = 0;

        if (fd < 0)
                return -errno;
        for (;;) {
                ssize_t n;

                if (used + 1 >= space) {
                        space = space ? space * 2 : 4096;
                        data = xrealloc(data, space);
                }
                n = read(fd, data + used, space - used - 1);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                used += (size_t) n;
                if (used > max_bytes)
                        return -EFBIG;
        }
        data[used] = 0;
        *ret_data = take_ptr(data);
        if (ret_size_bytes)
                *ret_size_bytes = used;
        return 0;
}

int write_file_atomic(const char *path, const void *data, size_t size_bytes, mode_t mode, bool durable) {
        cleanup_free char *tmp = xasprintf("%s.tmp.%d", path, (int) gettid());
        cleanup_close int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
        int r;

        if (fd < 0)
                return -errno;
        r = write_all(fd, data, size_bytes);
        if (r == 0 && fchmod(fd, mode) < 0)
                r = -errno;
        if (r == 0 && durable && fsync(fd) < 0)
                r = -errno;
        if (r == 0 && rename(tmp, path) < 0)
                r = -errno;
        if (r < 0)
                (void) unlink(tmp);
        return r;
}

int sync_name(const char *path) {
        const char *slash = strrchr(path, '/');
        cleanup_free char *dir = slash ? xasprintf("%.*s/", (int) (slash - path), path) : xstrdup(".");
        cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int write_text(const char *path, const char *text) {
        cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        return write_all(fd, text, strlen(text));
}

int mkdir_p(const char *path, mode_t mode) {
        cleanup_free char *copy = xstrdup(path);

        for (char *p = copy + 1; *p; p++) {
                if (*p != '/')
                        continue;
                *p = 0;
                if (mkdir(copy, 0755) < 0 && errno != EEXIST)
                        return -errno;
                *p = '/';
        }
        if (mkdir(copy, mode) < 0 && errno != EEXIST)
                return -errno;
        return 0;
}

/* The function does not use nftw(): on an overlay, the root of many a stateless node, FTW_MOUNT
 * leaves files, whose st_dev is not that of their directories. */
int remove_tree(const char *path) {
        cleanup_free char *root = xstrdup(path); /* fts_open() wants it writable */
        char *roots[] = { root, NULL };
        FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
        FTSENT *entry;
        int r = 0;

        if (!tree)
                return -errno;
        while (r == 0 && (entry = fts_read(tree))) {
                if (entry->fts_info == FTS_D)
                        continue; /* and again after what is in it */
                if (entry->fts_info == FTS_NS || entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
                        r = entry->fts_errno == ENOENT ? 0 : -entry->fts_errno;
                else if (remove(entry->fts_accpath) < 0 && errno != ENOENT)
                        r = -errno;
        }
        (void) fts_close(tree);
        return r;
}

void stdio_begin(void) {
        int fd;

        do
                fd = open("/dev/null", O_RDWR);
        while (fd >= 0 && fd <= STDERR_FILENO);
        cleanup_close_fd(&fd);
        (void) setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
}

int set_nonblock(int fd, bool on) {
        int flags = fcntl(fd, F_GETFL);

        if (flags < 0)
                return -errno;
        flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
        return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int set_cloexec(int fd, bool on) {
        return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

char *xvasprintf(const char *fmt, va_list ap) {
        char *s = NULL;

        if (vasprintf(&s, fmt, ap) < 0)
                abort();
        return s;
}

char *xasprintf(const char *fmt, ...) {
        va_list ap;
        char *s;

        va_start(ap, fmt);
        s = xvasprintf(fmt, ap);
        va_end(ap);
        return s;
}

void *xcalloc(size_t n, size_t size_bytes) {
        void *p = calloc(n ? n : 1, size_bytes ? size_bytes : 1);

        if (!p)
                abort();
        return p;
}

void *xrealloc(void *p, size_t size_bytes) {
        void *q = realloc(p, size_bytes ? size_bytes : 1);

        if (!q)
                abort();
        return q;
}

void *xgrow(void *list, size_t n, size_t item_bytes) {
        const size_t least = 16;

        if (n == 0 || (n >= least && (n & (n - 1)) == 0))
                return xrealloc(list, (n == 0 ? least : 2 * n) * item_bytes);
        return list;
}

char *xstrdup(const char *s) {
        char *copy;

        if (!s)
                return NULL;
        copy = strdup(s);
        if (!copy)
                abort();
        return copy;
}

int parse_i64(const char *text, int64_t min, int64_t max, int64_t *ret_value) {
        char *end = NULL;
        long long v;

        if (!text || (!isdigit((unsigned char) text[0]) && text[0] != '-'))
                return -EINVAL;
        errno = 0;
        v = strtoll(text, &end, 10);
        if (*end || end == text)
                return -EINVAL;
        if (errno == ERANGE || v < min || v > max)
                return -ERANGE;
        *ret_value = v;
        return 0;
}

struct unit {
        const char *name;
        uint64_t value;
};

static int parse_units(const char *text, const struct unit *units, size_t n_units, uint64_t *ret_value) {
        char *end = NULL;
        unsigned long long v;

        if (!text || !isdigit((unsigned char) text[0]))
                return -EINVAL;
        errno = 0;
        v = strtoull(text, &end, 10);
        if (errno == ERANGE)
                return -ERANGE;
        for (size_t i = 0; i < n_units; i++) {
                if (strcmp(end, units[i].name) != 0)
                        continue;
                if (v > UINT64_MAX / 2 / units[i].value)
                        return -ERANGE;
                *ret_value = v * units[i].value;
                return 0;
        }
        return -EINVAL;
}

int parse_duration_usec(const char *text, uint64_t *ret_usec) {
        static const struct unit units[] = {
                { "", 1000000U },        { "s", 1000000U },         { "ms", 1000U },
                { "m", 60U * 1000000U }, { "h", 3600U * 1000000U }, { "d", UINT64_C(86400) * 1000000U },
        };

        return parse_units(text, units, ARRAY_SIZE(units), ret_usec);
}

int parse_bytes(const char *text, uint64_t *ret_bytes) {
        static const struct unit units[] = {
                { "", 1 }, { "K", 1U << 10 }, { "M", 1U << 20 }, { "G", 1U << 30 }, { "T", UINT64_C(1) << 40 },
        };

        return parse_units(text, units, ARRAY_SIZE(units), ret_bytes);
}

int parse_decimal(const char *text, double min, double max, double *ret_value) {
        char *end = NULL;
        double value;

        if (strspn(text, "0123456789+-.eE") != strlen(text))
                return -EINVAL;
        value = strtod(text, &end);
        if (end == text || *end)
                return -EINVAL;
        if (!isfinite(value) || value < min || value > max)
                return -ERANGE;
        *ret_value = value;
        return 0;
}

size_t byte_order_mark_bytes(const char *data, size_t size_bytes) {
        static const char mark[3] = { '\xef', '\xbb', '\xbf' };

        return size_bytes >= sizeof(mark) && memcmp(data, mark, sizeof(mark)) == 0 ? sizeof(mark) : 0;
}

bool name_valid(const char *name) {
        size_t n = name ? strlen(name) : 0;

        if (n < 1 || n > 63 || !isalnum((unsigned char) name[0]))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char) name[i]) && !strchr("._-", name[i]))
                        return false;
        return true;
}

void free_all(void *array, size_t n) {
        void **items = array;

        for (size_t i = 0; i < n; i++)
                free(items[i]);
        free(array);
}

void names_clear(char ***names, size_t *n) {
        free_all(take_ptr(*names), *n);
        *n = 0;
}

bool names_have(char *const *names, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return false;
}
