#include "daemon/image/place_pages.h"

#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>
#include <xxhash.h>

#include "common/util.h"
#include "daemon/pages/page_store.h"
#include "daemon/pages/pageset.h"

enum stage {
        STAGE_PAGES,   /* they come, in any order, also again */
        STAGE_LATER,   /* which do not come in the stream */
        STAGE_PRESENT, /* which of them there are */
        STAGE_KNOWN,   /* the others are dropped */
        STAGE_CLOSED,
};

struct place_process {
        char *pid;
        enum stage stage;
        struct page_store *store;
        struct pageset *later;  /* as told by LATER; NULL: nothing was */
        struct pageset *kept;   /* of these, those that are PRESENT */
        uint64_t list_bytes;    /* of the object of runs, so far */
        uint64_t list_end;      /* of its last run */
        UT_hash_handle hh;
};

struct place_pages {
        int dir_fd; /* -1: no process was named yet */
        int later_fd; /* -1: nothing comes later */
        uint64_t later_bytes;
        struct place_process *processes; /* by pid */
};

struct place_pages *place_pages_create(void) {
        struct place_pages *p = xcalloc(1, sizeof(*p));

        p->dir_fd = p->later_fd = -1;
        return p;
}

static void process_drop(struct place_pages *p, struct place_process *process) {
        HASH_DEL(p->processes, process);
        page_store_destroy(process->store);
        pageset_destroy(process->later);
        pageset_destroy(process->kept);
        free(process->pid);
        free(process);
}

void place_pages_destroy(struct place_pages *p) {
        struct place_process *process, *next;

        if (!p)
                return;
        HASH_ITER (hh, p->processes, process, next) {
                process_drop(p, process);
        }
        cleanup_close_fd(&p->dir_fd);
        cleanup_close_fd(&p->later_fd);
        free(p);
}

bool place_pages_any(const struct place_pages *p) {
        return p->dir_fd >= 0;
}

static int bad(const struct place_process *process, const char *what, struct rm_error *err) {
        return error_set(err, -EBADMSG, "the image stream is damaged: %s of process %s", what, process->pid);
}

static int directory_make(int images_fd, const char *name, int *fd, struct rm_error *err) {
        if (*fd < 0 && mkdirat(images_fd, name, 0700) == 0)
                *fd = openat(images_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return *fd < 0 ? error_sys(err, -errno, "make the directory for pages") : 0;
}

static int store_make(struct place_pages *p, const char *pid, struct page_store **ret_store, struct rm_error *err) {
        cleanup_close int fd = openat(p->dir_fd, pid, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        int r = fd < 0 ? -errno : page_store_adopt(fd, ret_store);

        if (r < 0)
                return error_sys(err, r, "make a file for the pages of process %s", pid);
        (void) take_fd(&fd); /* the store's by now */
        return 0;
}

static int process_add(struct place_pages *p, int images_fd, const char *pid, struct place_process **ret_process,
                       struct rm_error *err) {
        struct page_store *store = NULL;
        int r;

        if (HASH_COUNT(p->processes) >= IMAGE_PAGES_MAX)
                return error_set(err, -EFBIG, "pages of more than %u processes", IMAGE_PAGES_MAX);
        r = directory_make(images_fd, IMAGE_PAGES_DIRECTORY, &p->dir_fd, err);
        if (r == 0)
                r = store_make(p, pid, &store, err);
        if (r < 0)
                return r;
        *ret_process = xcalloc(1, sizeof(**ret_process));
        (*ret_process)->pid = xstrdup(pid);
        (*ret_process)->store = store;
        HASH_ADD_KEYPTR(hh, p->processes, (*ret_process)->pid, strlen(pid), *ret_process);
        return 0;
}

int place_pages_open(struct place_pages *p, int images_fd, const struct image_object *o, struct place_process **ret_process,
                     struct rm_error *err) {
        struct place_process *process;

        HASH_FIND(hh, p->processes, o->path, strlen(o->path), process);
        if (o->kind == RM__IMAGE_KIND__IMAGE_KIND_PAGES && !process)
                return process_add(p, images_fd, o->path, ret_process, err);
        if (o->kind == RM__IMAGE_KIND__IMAGE_KIND_PAGES)
                return bad(process, "pages a second time", err);
        if (!process || process->stage != (o->kind == RM__IMAGE_KIND__IMAGE_KIND_SUMS ? STAGE_KNOWN : STAGE_PAGES))
                return error_set(err, -EBADMSG, "the image stream is damaged: a list of pages, but none open, of process %s",
                                 o->path);
        process->list_bytes = process->list_end = 0;
        if (o->kind == RM__IMAGE_KIND__IMAGE_KIND_LATER) {
                int r = directory_make(images_fd, IMAGE_LATER_DIRECTORY, &p->later_fd, err);

                if (r < 0)
                        return r;
                process->stage = STAGE_LATER;
                process->later = process->later ? process->later : pageset_create();
                process->kept = process->kept ? process->kept : pageset_create();
        } else if (o->kind == RM__IMAGE_KIND__IMAGE_KIND_PRESENT) {
                process->stage = STAGE_PRESENT;
        }
        *ret_process = process;
        return 0;
}

static int writing(const struct place_process *process, int r, struct rm_error *err) {
        return r < 0 ? error_sys(err, r, "write pages of process %s", process->pid) : 0;
}

/* Pages that are there are dropped: they are older. */
static int later_run(struct place_process *process, uint64_t start, uint64_t end, struct rm_error *err) {
        if (page_store_zero(process->store, start, end) < 0 || pageset_add(process->later, start, end) < 0)
                return bad(process, "pages that cannot come later", err);
        return 0;
}

/* Without them the process would go on with zeros in place of what it had. */
static int check_come(const struct place_process *process, uint64_t start, uint64_t end, struct rm_error *err) {
        uint64_t missing = page_store_missing(process->store, start, end);

        return missing == end ? 0
                              : error_set(err, -EBADMSG,
                                          "the image stream is damaged: present pages that never came of process %s: the one at "
                                          "%" PRIx64 ", in a run of %" PRIu64 "; %" PRIu64 " pages of it came",
                                          process->pid, missing, (end - start) / IMAGE_BLOCK_BYTES,
                                          page_store_come_bytes(process->store) / IMAGE_BLOCK_BYTES);
}

static int present_run(struct place_process *process, uint64_t start, uint64_t end, struct rm_error *err) {
        int r = 0;

        if (page_store_keep(process->store, start, end) < 0)
                return bad(process, "present pages that cannot be", err);
        r = check_come(process, start, end, err);
        if (r == 0 && process->later)
                pageset_add_common(process->kept, process->later, start, end);
        return r;
}

/* Runs come by address: a stream that told of the same pages again and again would take up time
 * without end. */
static int list_take(struct place_process *process, uint64_t offset, const uint8_t *data, size_t size_bytes, struct rm_error *err) {
        if (offset != process->list_bytes || size_bytes % IMAGE_PRESENT_RUN_BYTES)
                return bad(process, "a list of pages out of place", err);
        for (size_t at = 0; at < size_bytes; at += IMAGE_PRESENT_RUN_BYTES) {
                uint64_t run[2];
                int r;

                memcpy(run, data + at, sizeof(run));
                run[0] = le64toh(run[0]);
                run[1] = le64toh(run[1]);
                if (run[0] < process->list_end)
                        return bad(process, "a list of pages out of order", err);
                r = process->stage == STAGE_LATER ? later_run(process, run[0], run[1], err)
                                                  : present_run(process, run[0], run[1], err);
                if (r < 0)
                        return r;
                process->list_end = run[1];
        }
        process->list_bytes += size_bytes;
        return 0;
}

/* Are the received pages those of the process, by the sums of a second reading? */
static int sum_check(const struct place_process *process, const uint64_t sum[IMAGE_SUM_BYTES / 8], struct rm_error *err) {
        uint64_t start = le64toh(sum[0]), end = le64toh(sum[1]);
        uint8_t data[IMAGE_SUM_MAX_BYTES] = { 0 };
        uint64_t from, to = start;
        int r = 0;

        if (start >= end || end - start > sizeof(data) || start % IMAGE_BLOCK_BYTES || end % IMAGE_BLOCK_BYTES)
                return bad(process, "sums of pages that cannot be", err);
        while (r == 0 && to < end && page_store_next(process->store, to, end - to, &from, &to) && from < end)
                r = page_store_read(process->store, from, data + (from - start), (to < end ? to : end) - from);
        if (r < 0)
                return error_sys(err, r, "read pages of process %s", process->pid);
        return XXH3_64bits(data, end - start) == le64toh(sum[2])
                       ? 0
                       : error_set(err, -EBADMSG, "of process %s the %" PRIu64 " pages at %" PRIx64 " are not what it has",
                                   process->pid, (end - start) / IMAGE_BLOCK_BYTES, start);
}

static int sums_take(struct place_process *process, uint64_t offset, const uint8_t *data, size_t size_bytes, struct rm_error *err) {
        int r = 0;

        if (offset != process->list_bytes || size_bytes % IMAGE_SUM_BYTES)
                return bad(process, "a list of sums out of place", err);
        for (size_t at = 0; r == 0 && at < size_bytes; at += IMAGE_SUM_BYTES) {
                uint64_t sum[IMAGE_SUM_BYTES / 8];

                memcpy(sum, data + at, sizeof(sum));
                r = sum_check(process, sum, err);
        }
        process->list_bytes += size_bytes;
        return r;
}

int place_pages_data(struct place_process *process, Rm__ImageKind kind, uint64_t offset, const void *data, size_t size_bytes,
                     struct rm_error *err) {
        if (kind == RM__IMAGE_KIND__IMAGE_KIND_SUMS)
                return sums_take(process, offset, data, size_bytes, err);
        if (image_kind_is_runs(kind))
                return list_take(process, offset, data, size_bytes, err);
        if (process->stage != STAGE_PAGES || process->later)
                return bad(process, "pages after the present ones were told", err);
        return writing(process, page_store_write(process->store, offset, data, size_bytes), err);
}

int place_pages_zero(struct place_process *process, uint64_t offset, uint64_t size_bytes, struct rm_error *err) {
        if (process->stage != STAGE_PAGES || process->later)
                return bad(process, "zeros after the present pages were told", err);
        return writing(process, page_store_zero(process->store, offset, offset + size_bytes), err);
}

static int list_close(struct place_process *process, uint64_t size_bytes, struct rm_error *err) {
        if (size_bytes != process->list_bytes)
                return bad(process, "a part of a list of pages", err);
        if (process->stage == STAGE_KNOWN)
                return 0; /* of sums */
        if (process->stage == STAGE_LATER) {
                process->stage = STAGE_PAGES;
                return 0;
        }
        process->stage = STAGE_KNOWN;
        return writing(process, page_store_drop_others(process->store), err);
}

/* The process has ended before the freeze. Another one may get its pid. */
static int process_ended(struct place_pages *p, struct place_process *process, struct rm_error *err) {
        int r = 0;

        if (unlinkat(p->dir_fd, process->pid, 0) < 0)
                r = error_sys(err, -errno, "remove the pages of process %s", process->pid);
        process_drop(p, process);
        return r;
}

/* Writes the set of pages for the uffd handler (daemon/capsule/init/memory/fill.c). */
static int later_write(struct place_pages *p, const struct place_process *process, struct rm_error *err) {
        cleanup_close int fd = openat(p->later_fd, process->pid, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        int r = fd < 0 ? -errno : pageset_save(process->kept, fd);

        p->later_bytes += pageset_bytes(process->kept);
        return r < 0 ? error_sys(err, r, "write which pages of process %s come later", process->pid) : 0;
}

int place_pages_close(struct place_pages *p, struct place_process *process, Rm__ImageKind kind, uint64_t size_bytes,
                      struct rm_error *err) {
        int r = 0;

        if (image_kind_is_runs(kind))
                return list_close(process, size_bytes, err);
        if (process->stage != STAGE_KNOWN)
                return bad(process, "pages without telling the present ones", err);
        if (process->kept && pageset_bytes(process->kept) > 0)
                r = later_write(p, process, err);
        else if (page_store_bytes(process->store) == 0)
                return process_ended(p, process, err);
        if (r < 0)
                return r;
        process->stage = STAGE_CLOSED;
        page_store_destroy(process->store);
        process->store = NULL;
        return 0;
}

uint64_t place_pages_bytes(const struct place_process *process) {
        return process->store ? page_store_bytes(process->store) : 0;
}

uint64_t place_pages_later_bytes(const struct place_pages *p) {
        return p->later_bytes;
}
