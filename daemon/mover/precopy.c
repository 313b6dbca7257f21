#include "daemon/mover/precopy.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/log.h"
#include "common/openat.h"
#include "common/util.h"
#include "daemon/image/zero.h"
#include "daemon/mover/procs.h"
#include "daemon/mover/rounds.h"
#include "daemon/pages/maps.h"

/* Each reads and hashes all memory. */
#define ROUNDS_MAX 4U
#define ENOUGH 16U
#define STEP_BYTES (1U << 20)
#define REGIONS_MAX 512U

struct precopy {
        struct image_writer *writer;
        struct image_known *known;
        const struct mover_hooks *hooks;
        bool tracked;
        const struct files *files;
        uint32_t slot;
        uint8_t *out; /* the writer's buffer, filled up to out_bytes; NULL: none is out */
        size_t out_bytes;
        uint64_t sent_bytes; /* blocks, in this round */
        struct page_region regions[REGIONS_MAX];
        uint8_t step[STEP_BYTES];
};

struct process {
        pid_t pid;
        int pagemap_fd;
};

/* A mapping. */
struct area {
        uint64_t start;
        uint64_t end;
        bool shared;
};

/* ---- blocks into the stream ---- */

static int out_flush(struct precopy *p, struct rm_error *err) {
        uint64_t end = image_known_count(p->known) * IMAGE_BLOCK_BYTES;
        int r = 0;

        if (p->out)
                r = image_writer_data(p->writer, p->slot, end - p->out_bytes, p->out_bytes, err);
        p->out = NULL;
        p->out_bytes = 0;
        return r;
}

static int block_send(struct precopy *p, const uint8_t *block, struct rm_error *err) {
        if (!p->out) {
                p->out = image_writer_buffer(p->writer, STEP_BYTES, err);
                if (!p->out)
                        return err ? err->code : -EIO;
        }
        memcpy(p->out + p->out_bytes, block, IMAGE_BLOCK_BYTES);
        p->out_bytes += IMAGE_BLOCK_BYTES;
        p->sent_bytes += IMAGE_BLOCK_BYTES;
        return p->out_bytes == STEP_BYTES ? out_flush(p, err) : 0;
}

/* ---- memory of one process ---- */

/* `size_bytes` of its memory at `address`, at most STEP_BYTES; as much as can be read. */
static int range_send(struct precopy *p, const struct process *process, uint64_t address, size_t size_bytes, struct rm_error *err) {
        struct iovec here = { .iov_base = p->step, .iov_len = size_bytes };
        /* An address in another process: no pointer of ours. */
        union {
                uint64_t address;
                void *pointer;
        } remote = { .address = address };
        struct iovec there = { .iov_base = remote.pointer, .iov_len = size_bytes };
        ssize_t n = process_vm_readv(process->pid, &here, 1, &there, 1, 0);
        int r = 0;

        for (size_t at = 0; n > 0 && at + IMAGE_BLOCK_BYTES <= (size_t) n && r == 0; at += IMAGE_BLOCK_BYTES)
                if (!image_block_is_zero(p->step + at, IMAGE_BLOCK_BYTES) && image_known_add(p->known, p->step + at))
                        r = block_send(p, p->step + at, err);
        return r;
}

static int region_send(struct precopy *p, const struct process *process, uint64_t start, uint64_t end, struct rm_error *err) {
        int r = 0;

        for (uint64_t at = start; at < end && r == 0; at += STEP_BYTES) {
                r = range_send(p, process, at, end - at < STEP_BYTES ? (size_t) (end - at) : STEP_BYTES, err);
                if (r == 0)
                        r = p->hooks->poll(p->hooks->ctx, "memory", err);
        }
        return r;
}

/* The pages of a mapping that are there; of a private one only its own, not those of the file under
 * it. A mapping may be far larger than what is there of it, so the kernel looks for them; one that
 * cannot (before 6.7) makes images larger. */
static int area_send(struct precopy *p, const struct process *process, const struct area *area, struct rm_error *err) {
        struct pm_scan_arg scan = {
                .size = sizeof(scan),
                .start = area->start,
                .end = area->end,
                .vec = (uint64_t) (uintptr_t) p->regions,
                .vec_len = REGIONS_MAX,
                .category_mask = PAGE_IS_PRESENT | PAGE_IS_PFNZERO | (area->shared ? 0 : PAGE_IS_FILE),
                .category_inverted = PAGE_IS_PFNZERO | (area->shared ? 0 : PAGE_IS_FILE),
                .return_mask = PAGE_IS_PRESENT,
        };

        while (scan.start < area->end) {
                int n = ioctl(process->pagemap_fd, PAGEMAP_SCAN, &scan);

                for (int i = 0; i < n; i++) {
                        int r = region_send(p, process, p->regions[i].start, p->regions[i].end, err);

                        if (r < 0)
                                return r;
                }
                if (n < 0 || scan.walk_end <= scan.start)
                        return 0;
                scan.start = scan.walk_end;
        }
        return 0;
}

/* Shared memory is a file of some tmpfs, named or not. Whatever else is shared (files, devices)
 * does not travel. */
static bool is_shared_memory(const struct precopy *p, pid_t pid, const struct area *area) {
        cleanup_free char *path = xasprintf("/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int) pid, area->start, area->end);
        struct statfs fs;
        struct stat st;

        if (p->files && stat(path, &st) == 0 && files_saved_state(p->files, st.st_dev))
                return false;
        return statfs(path, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

/* Is there something in it that may travel? Not in the kernel's special ones ("[vvar]"), nor in
 * what is not readable. */
static bool area_parse(const struct precopy *p, pid_t pid, const char *line, struct area *ret) {
        struct map map;
        char access[5];

        if (p->tracked && map_parse(line, &map) == 0 && map.kind == MAP_KIND_LAZY)
                return false;

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &ret->start, &ret->end, access) != 3 || access[0] != 'r' ||
            strstr(line, "[v"))
                return false;
        ret->shared = access[3] == 's';
        return !ret->shared || is_shared_memory(p, pid, ret);
}

static int process_send(struct precopy *p, pid_t pid, struct rm_error *err) {
        cleanup_free char *path = xasprintf("/proc/%d", (int) pid), *line = NULL;
        cleanup_close int proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        cleanup_close int pagemap_fd = openat(proc_fd, "pagemap", O_RDONLY | O_CLOEXEC);
        cleanup_file FILE *maps = fopen_at(proc_fd, "maps");
        const struct process process = { .pid = pid, .pagemap_fd = pagemap_fd };
        size_t space = 0;
        struct area area;
        int r = 0;

        while (r == 0 && maps && pagemap_fd >= 0 && getline(&line, &space, maps) > 0)
                if (area_parse(p, pid, line, &area))
                        r = area_send(p, &process, &area, err);
        return r;
}

/* ---- rounds ---- */

static int round_send(struct precopy *p, const char *procs_file, struct rm_error *err) {
        cleanup_free pid_t *pids = NULL;
        size_t n = 0;
        int r;

        p->sent_bytes = 0;
        r = procs_read(procs_file, &pids, &n);
        if (r < 0) {
                log_warn("cannot read %s (%s): nothing is sent ahead", procs_file, strerror(-r));
                return 0;
        }
        for (size_t i = 0; i < n && r == 0; i++)
                r = process_send(p, pids[i], err);
        if (r == 0)
                r = out_flush(p, err);
        return r < 0 ? r : p->hooks->idle(p->hooks->ctx, err);
}

static int rounds_send(struct precopy *p, const char *procs_file, uint64_t *ret_rounds, struct rm_error *err) {
        struct rounds rounds = { .max = ROUNDS_MAX, .part = ENOUGH };
        uint64_t begin_usec;
        int r;

        do {
                begin_usec = now_usec();
                r = round_send(p, procs_file, err);
                if (r == 0)
                        ++*ret_rounds;
        } while (r == 0 && rounds_another(&rounds, p->sent_bytes) &&
                 rounds_in_time(p->hooks->deadline, now_usec(), now_usec() - begin_usec));
        return r;
}

int precopy_run(const char *procs_file, bool tracked, const struct files *files, struct image_writer *w, struct image_known *known,
                const struct mover_hooks *hooks, uint64_t *ret_rounds, struct rm_error *err) {
        const struct image_object object = { .kind = RM__IMAGE_KIND__IMAGE_KIND_BLOCKS, .role = "", .path = "", .target = "" };
        struct precopy *p = xcalloc(1, sizeof(*p));
        int r;

        *ret_rounds = 0;
        p->writer = w;
        p->known = known;
        p->hooks = hooks;
        p->tracked = tracked;
        p->files = files;
        r = image_writer_open(w, &object, &p->slot, err);
        if (r == 0)
                r = rounds_send(p, procs_file, ret_rounds, err);
        if (r == 0)
                r = image_writer_close(w, p->slot, image_known_count(known) * IMAGE_BLOCK_BYTES, err);
        if (r == 0)
                r = hooks->idle(hooks->ctx, err);
        free(p);
        return r;
}
