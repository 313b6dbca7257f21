#include "daemon/capsule/spool.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
        if (spool->fd >= 0)
                close(spool->fd);
        spool->fd = -1;
}

static int open_segment(struct spool *spool) {
        char file[SEGMENT_NAME_MAX];

        if (spool->fd >= 0 && spool->end - spool->segment < SPOOL_SEGMENT_BYTES)
                return 0;
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

/* Calls `visit` for each segment of `name`. */
static int for_each_segment(int dir_fd, const char *name, void (*visit)(uint64_t offset, void *arg), void *arg) {
        int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct dirent *entry;
        uint64_t offset;
        DIR *dir;

        if (fd < 0)
                return -errno;
        dir = fdopendir(fd);
        if (!dir) {
                close(fd);
                return -ENOMEM;
        }
        while ((entry = readdir(dir)))
                if (spool_segment_parse(entry->d_name, name, &offset))
                        visit(offset, arg);
        closedir(dir);
        return 0;
}

struct search {
        uint64_t wanted;
        uint64_t best; /* the last that begins at or before `wanted` */
        uint64_t next; /* the first that begins after it */
        bool found;
};

static void search_visit(uint64_t offset, void *arg) {
        struct search *s = arg;

        if (offset > s->wanted) {
                if (offset < s->next)
                        s->next = offset;
        } else if (!s->found || offset > s->best) {
                s->found = true;
                s->best = offset;
        }
}

struct trim {
        struct spool *spool;
        uint64_t keep; /* begin of the segment that holds the wanted offset */
};

static void trim_visit(uint64_t offset, void *arg) {
        struct trim *t = arg;
        char file[SEGMENT_NAME_MAX];

        if (offset >= t->keep)
                return;
        segment_name(file, t->spool->name, offset);
        (void) unlinkat(t->spool->dir_fd, file, 0);
}

void spool_trim(struct spool *spool, uint64_t offset) {
        struct search s = { .wanted = offset, .next = UINT64_MAX };
        struct trim t = { .spool = spool };

        if (offset > spool->end)
                return;
        if (for_each_segment(spool->dir_fd, spool->name, search_visit, &s) < 0 || !s.found || s.best <= spool->begin)
                return;
        t.keep = s.best;
        if (for_each_segment(spool->dir_fd, spool->name, trim_visit, &t) == 0)
                spool->begin = s.best;
}

ssize_t spool_read(int dir_fd, const char *name, uint64_t offset, void *buffer, size_t size) {
        struct search s = { .wanted = offset, .next = UINT64_MAX };
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
