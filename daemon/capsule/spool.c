#include "daemon/capsule/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/openat.h"
#include "common/util.h"

enum { SEGMENT_NAME_MAX = 16 + 1 + 16 + 1, OFFSET_DIGITS = 16 };

static void segment_name(char out[static SEGMENT_NAME_MAX], const char *name, uint64_t offset) {
        snprintf(out, SEGMENT_NAME_MAX, "%.15s.%016" PRIx64, name, offset);
}

bool spool_segment_parse(const char *file, const char *name, uint64_t *ret_offset) {
        size_t length = strlen(name);
        const char *digits;

        if (strncmp(file, name, length) != 0 || file[length] != '.')
                return false;
        digits = file + length + 1;
        if (strlen(digits) != OFFSET_DIGITS || strspn(digits, "0123456789abcdef") != OFFSET_DIGITS)
                return false;
        *ret_offset = strtoull(digits, NULL, 16);
        return true;
}

void spool_init(struct spool *spool, int dir_fd, const char *name, uint64_t offset) {
        *spool = (struct spool) { .dir_fd = dir_fd, .fd = -1, .begin = offset, .segment = offset, .end = offset };
        snprintf(spool->name, sizeof(spool->name), "%s", name);
}

void spool_finish(struct spool *spool) {
        cleanup_close_fd(&spool->fd);
}

/* Calls `visit` for each segment of `name`. */
static int for_each_segment(int dir_fd, const char *name, void (*visit)(uint64_t offset, void *arg), void *arg) {
        cleanup_dir DIR *dir = opendir_at(dir_fd, ".");
        const char *found;
        uint64_t offset;

        if (!dir)
                return -errno;
        while ((found = next_name(dir)))
                if (spool_segment_parse(found, name, &offset))
                        visit(offset, arg);
        return 0;
}

struct search {
        uint64_t requested;
        uint64_t best; /* the last that begins at or before `wanted` */
        uint64_t next; /* the first that begins after it */
        bool found;
};

static void search_visit(uint64_t offset, void *arg) {
        struct search *s = arg;

        if (offset > s->requested) {
                if (offset < s->next)
                        s->next = offset;
        } else if (!s->found || offset > s->best) {
                s->found = true;
                s->best = offset;
        }
}

struct removal {
        const struct spool *spool;
        uint64_t from;
        uint64_t to;
};

static void removal_visit(uint64_t offset, void *arg) {
        const struct removal *r = arg;
        char file[SEGMENT_NAME_MAX];

        if (offset < r->from || offset >= r->to)
                return;
        segment_name(file, r->spool->name, offset);
        (void) unlinkat(r->spool->dir_fd, file, 0);
}

static void remove_segments(const struct spool *spool, uint64_t from, uint64_t to) {
        struct removal r = { .spool = spool, .from = from, .to = to };

        (void) for_each_segment(spool->dir_fd, spool->name, removal_visit, &r);
}

/* The first one takes the place of what an earlier capsule of the same name may have left beyond
 * it. */
static int open_segment(struct spool *spool) {
        char file[SEGMENT_NAME_MAX];

        if (spool->fd >= 0 && spool->end - spool->segment < SPOOL_SEGMENT_BYTES)
                return 0;
        if (spool->fd < 0)
                remove_segments(spool, spool->end, UINT64_MAX);
        segment_name(file, spool->name, spool->end);
        spool_finish(spool);
        spool->fd = openat(spool->dir_fd, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (spool->fd < 0)
                return -errno;
        spool->segment = spool->end;
        return 0;
}

ssize_t spool_splice(struct spool *spool, int pipe_fd, size_t size) {
        int r = open_segment(spool);
        ssize_t n;

        if (r < 0)
                return r;
        do
                n = splice(pipe_fd, NULL, spool->fd, NULL, size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        spool->end += (uint64_t) n;
        return n;
}

int spool_drain(struct spool *spool, int pipe_fd) {
        int left = fcntl(pipe_fd, F_GETPIPE_SZ);
        ssize_t n = 1;

        if (left < 0)
                return -errno;
        while (left > 0 && n > 0) {
                n = spool_splice(spool, pipe_fd, (size_t) left);
                left -= n > 0 ? (int) n : 0;
        }
        return n < 0 && n != -EAGAIN ? (int) n : 0;
}

void spool_trim(struct spool *spool, uint64_t offset) {
        struct search s = { .requested = offset, .next = UINT64_MAX };

        if (offset > spool->end || for_each_segment(spool->dir_fd, spool->name, search_visit, &s) < 0 || !s.found)
                return;
        remove_segments(spool, 0, s.best);
        if (s.best > spool->begin)
                spool->begin = s.best;
}

ssize_t spool_read(int dir_fd, const char *name, uint64_t offset, void *buffer, size_t size) {
        struct search s = { .requested = offset, .next = UINT64_MAX };
        char file[SEGMENT_NAME_MAX];
        cleanup_close int fd = -1;
        ssize_t n;
        int r = for_each_segment(dir_fd, name, search_visit, &s);

        if (r < 0)
                return r;
        if (!s.found)
                return s.next == UINT64_MAX ? 0 : -ERANGE;
        segment_name(file, name, s.best);
        fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        n = pread(fd, buffer, size, (off_t) (offset - s.best));
        return n < 0 ? -errno : n;
}

int spool_next(int dir_fd, const char *name, uint64_t offset, uint64_t *ret_begin) {
        struct search s = { .requested = offset, .next = UINT64_MAX };
        int r = for_each_segment(dir_fd, name, search_visit, &s);

        if (r < 0)
                return r;
        if (s.next == UINT64_MAX)
                return -ENOENT;
        *ret_begin = s.next;
        return 0;
}
