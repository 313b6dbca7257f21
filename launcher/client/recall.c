#include "launcher/client/recall.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/util.h"
#include "launcher/client/buffer.h"

/* A job that prints no more than this needs no file. */
#define NO_FILE_BYTES (8U << 20)
/* Moving what is kept to the file's beginning is not worth its while for less. */
#define COMPACT_BYTES (4U << 20)
#define CHUNK_BYTES (64U << 10)

struct recall {
        char *directory;
        struct buffer memory; /* [begin, end), while there is no file */
        int fd;               /* -1: all is in memory */
        uint64_t base;        /* offset in the stream of the file's first byte, at most begin */
        uint64_t limit_bytes; /* of the file */
        uint64_t begin, end;
        int file_error; /* why there is none */
        int error;
};

struct recall *recall_create(const char *directory) {
        struct recall *r = xcalloc(1, sizeof(*r));

        r->directory = xstrdup(directory);
        r->fd = -1;
        return r;
}

void recall_destroy(struct recall *r) {
        if (!r)
                return;
        cleanup_close_fd(&r->fd);
        buffer_finish(&r->memory);
        free(r->directory);
        free(r);
}

uint64_t recall_begin(const struct recall *r) {
        return r->begin;
}

uint64_t recall_end(const struct recall *r) {
        return r->end;
}

int recall_error(const struct recall *r) {
        return r->error;
}

void recall_reset(struct recall *r, uint64_t offset) {
        buffer_finish(&r->memory);
        if (r->fd >= 0)
                (void) !ftruncate(r->fd, 0);
        r->base = r->begin = r->end = offset;
}

static int write_at(int fd, uint64_t at, const uint8_t *data, size_t size_bytes) {
        while (size_bytes > 0) {
                ssize_t n = pwrite(fd, data, size_bytes, (off_t) at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ENOSPC;
                data += n;
                at += (uint64_t) n;
                size_bytes -= (size_t) n;
        }
        return 0;
}

static int read_at(int fd, uint64_t at, uint8_t *data, size_t size_bytes) {
        while (size_bytes > 0) {
                ssize_t n = pread(fd, data, size_bytes, (off_t) at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                data += n;
                at += (uint64_t) n;
                size_bytes -= (size_t) n;
        }
        return 0;
}

/* Writing beyond the limit on the size of files would end us by SIGXFSZ. */
static uint64_t file_limit(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
                return UINT64_MAX;
        return limit.rlim_cur;
}

static int open_file(const struct recall *r) {
        int fd;

        if (!r->directory)
                return -ENOSPC;
        if (file_limit() < r->memory.used)
                return -EFBIG;
        fd = open(r->directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
        return fd < 0 ? -errno : fd;
}

/* Tried once: where no file can be made or filled, there is the memory. */
static void move_to_file(struct recall *r) {
        int fd = open_file(r);
        int error = fd < 0 ? fd : write_at(fd, 0, buffer_data(&r->memory), r->memory.used);

        if (error < 0) {
                cleanup_close_fd(&fd);
                r->file_error = -error;
                return;
        }
        r->fd = fd;
        r->base = r->begin;
        r->limit_bytes = file_limit();
        buffer_finish(&r->memory);
}

static int keep(struct recall *r, const uint8_t *data, size_t size_bytes) {
        uint64_t kept = r->end - r->begin + size_bytes;
        uint64_t file = r->end - r->base;

        if (r->fd >= 0)
                return kept > RECALL_FILE_BYTES || file + size_bytes > r->limit_bytes ? -EFBIG
                                                                                      : write_at(r->fd, file, data, size_bytes);
        if (kept > RECALL_MEMORY_BYTES)
                return -r->file_error;
        buffer_add(&r->memory, data, size_bytes);
        return 0;
}

void recall_add(struct recall *r, const void *data, size_t size_bytes) {
        int error;

        if (r->fd < 0 && !r->file_error && r->memory.used > 0 && r->memory.used + size_bytes > NO_FILE_BYTES)
                move_to_file(r);
        error = keep(r, data, size_bytes);
        if (error < 0) {
                r->error = -error;
                recall_reset(r, r->end + size_bytes);
        } else {
                r->end += size_bytes;
        }
}

/* The kept bytes are fewer than the free ones before them, so that the two do not overlap. */
static int compact(struct recall *r) {
        cleanup_free uint8_t *chunk = xcalloc(1, CHUNK_BYTES);
        uint64_t from = r->begin - r->base;
        uint64_t kept = r->end - r->begin;
        int error = 0;

        for (uint64_t at = 0; at < kept && error == 0; at += CHUNK_BYTES) {
                size_t n = kept - at < CHUNK_BYTES ? (size_t) (kept - at) : CHUNK_BYTES;

                error = read_at(r->fd, from + at, chunk, n);
                if (error == 0)
                        error = write_at(r->fd, at, chunk, n);
        }
        if (error == 0 && ftruncate(r->fd, (off_t) kept) < 0)
                error = -errno;
        r->base = r->begin;
        return error;
}

void recall_drop(struct recall *r, uint64_t offset) {
        uint64_t free_bytes;
        int error;

        if (offset <= r->begin)
                return;
        if (offset >= r->end) {
                recall_reset(r, r->end);
                return;
        }
        if (r->fd < 0)
                buffer_drop(&r->memory, (size_t) (offset - r->begin));
        r->begin = offset;
        free_bytes = r->begin - r->base;
        if (r->fd < 0 || free_bytes < COMPACT_BYTES || free_bytes < r->end - r->begin)
                return;
        error = compact(r);
        if (error < 0) {
                r->error = -error;
                recall_reset(r, r->end);
        }
}

void recall_cut(struct recall *r, uint64_t offset) {
        if (offset >= r->end)
                return;
        if (offset <= r->begin) {
                recall_reset(r, offset);
                return;
        }
        if (r->fd < 0)
                r->memory.used = (size_t) (offset - r->begin);
        r->end = offset; /* what is behind it in the file is overwritten */
}

static size_t equal_bytes(const uint8_t *a, const uint8_t *b, size_t size_bytes) {
        size_t n = 0;

        while (n < size_bytes && a[n] == b[n])
                n++;
        return n;
}

static int compare_file(const struct recall *r, uint64_t at, const uint8_t *data, size_t size_bytes, size_t *ret_equal_bytes) {
        cleanup_free uint8_t *chunk = xcalloc(1, CHUNK_BYTES);
        size_t done = 0;

        while (done < size_bytes) {
                size_t n = size_bytes - done < CHUNK_BYTES ? size_bytes - done : CHUNK_BYTES;
                int error = read_at(r->fd, at + done, chunk, n);
                size_t equal = error < 0 ? 0 : equal_bytes(chunk, data + done, n);

                if (error < 0)
                        return error;
                done += equal;
                if (equal < n)
                        break;
        }
        *ret_equal_bytes = done;
        return 0;
}

int recall_compare(const struct recall *r, uint64_t offset, const void *data, size_t size_bytes, size_t *ret_equal_bytes) {
        if (r->fd >= 0)
                return compare_file(r, offset - r->base, data, size_bytes, ret_equal_bytes);
        *ret_equal_bytes = equal_bytes(buffer_data(&r->memory) + (offset - r->begin), data, size_bytes);
        return 0;
}
