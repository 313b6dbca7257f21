#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/util.h"
#include "daemon/mover/pages_internal.h"

#define STEP_BYTES IMAGE_PAYLOAD_MAX_BYTES
/* The bytes between two calls of the hook. */
#define POLL_BYTES (256U << 10)
#define POLL_RUNS 64U
#define WAIT_USEC 5000U
/* The wait after a page was reported, for calls that write to it. A page that is read sooner is
 * reported again, so that it is sent twice at worst. */
#define CALLS_WAIT_USEC 100000U

static int object_open(struct pages *p, const struct process *process, Rm__ImageKind kind, uint32_t *ret_slot,
                       struct rm_error *err) {
        char path[16];
        const struct image_object object = { .kind = kind, .role = "", .path = path, .target = "" };

        (void) snprintf(path, sizeof(path), "%d", (int) process->inner_pid);
        return image_writer_open(p->writer, &object, ret_slot, err);
}

int pages_object_open(struct pages *p, struct process *process, struct rm_error *err) {
        int r = 0;

        if (process->opened)
                return 0;
        if (process->continued && p->hooks->continues)
                r = p->hooks->continues(p->hooks->ctx, (uint32_t) process->inner_pid, err);
        if (r < 0)
                return r;
        process->continued = false;
        r = object_open(p, process, RM__IMAGE_KIND__IMAGE_KIND_PAGES, &process->slot, err);
        process->opened = r == 0;
        return r;
}

int pages_poll(struct pages *p, struct rm_error *err) {
        p->unpolled_bytes = p->unpolled_runs = 0;
        if (p->slow && now_usec() > p->slow_until_usec)
                pages_slow_end(p);
        return p->hooks->poll(p->hooks->ctx, "memory", err);
}

/* Sends as much of [start, end) as one chunk takes. */
static int chunk_send(struct pages *p, const struct process *process, uint64_t start, uint64_t end, uint64_t *ret_end,
                      struct rm_error *err) {
        size_t size_bytes = end - start < STEP_BYTES ? (size_t) (end - start) : STEP_BYTES;
        void *buffer = image_writer_buffer(p->writer, size_bytes, err);
        ssize_t n;
        int r;

        if (!buffer)
                return err->code < 0 ? err->code : -EIO;
        n = track_read(process->track, start, buffer, size_bytes);
        size_bytes = n > 0 ? (size_t) n / PAGES_PAGE_BYTES * PAGES_PAGE_BYTES : 0;
        r = image_writer_data(p->writer, process->slot, start, size_bytes, err);
        if (r < 0)
                return r;
        p->unpolled_bytes += (uint32_t) size_bytes;
        if (size_bytes == 0 && p->frozen)
                return error_set(err, n < 0 ? (int) n : -EIO, "memory of process %d at %" PRIx64 " cannot be read",
                                 (int) process->pid, start);
        /* While it runs, pages may vanish, or there may be no memory to bring one in; what is
         * behind them is still to be read. */
        if (size_bytes == 0)
                track_again(process->track, start, start + PAGES_PAGE_BYTES);
        *ret_end = start + (size_bytes > 0 ? size_bytes : PAGES_PAGE_BYTES);
        return 0;
}

static int range_send(struct pages *p, struct process *process, uint64_t start, uint64_t end, struct rm_error *err) {
        int r = pages_object_open(p, process, err);

        p->unpolled_runs++;
        while (r == 0 && start < end) {
                r = chunk_send(p, process, start, end, &start, err);
                if (r == 0 && (p->unpolled_bytes >= POLL_BYTES || p->unpolled_runs >= POLL_RUNS))
                        r = pages_poll(p, err);
        }
        return r;
}

static int run_send(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        struct pages *p = ctx;
        int r;

        p->reported_bytes += end - start;
        if (p->later)
                return pages_later_run(p, start, end);
        r = range_send(p, p->at, start, end, p->err);
        p->failed = r != 0;
        return r;
}

/* ---- while they run: read a moment after it was told ---- */

void pages_queue_clear(struct pages *p) {
        p->queue_first = p->n_queued = 0;
        p->queued_bytes = 0;
}

static int wait_until(struct pages *p, uint64_t when_usec, struct rm_error *err) {
        int r = 0;

        for (uint64_t now = now_usec(); r == 0 && now < when_usec; now = now_usec()) {
                (void) usleep(when_usec - now < WAIT_USEC ? (useconds_t) (when_usec - now) : WAIT_USEC);
                r = pages_poll(p, err);
        }
        return r;
}

/* Until the calls are over that can have looked it up before it was told, or for as long as it
 * pays. */
static int wait_for_calls(struct pages *p, uint64_t reported_usec, struct rm_error *err) {
        int r = 0;

        for (;;) {
                uint64_t now = now_usec();

                if (now - p->scanned_usec >= WAIT_USEC) {
                        r = calls_scan(p->calls, p->procs_file);
                        p->scanned_usec = now;
                }
                if (r < 0)
                        return error_sys(err, r, "read %s", p->procs_file);
                if (calls_over_usec(p->calls) >= reported_usec || now >= reported_usec + CALLS_WAIT_USEC)
                        return 0;
                r = wait_until(p, now + WAIT_USEC, err);
                if (r < 0)
                        return r;
        }
}

/* Checks that no call can write to the pages unseen. One look suffices for all that was reported
 * before. */
static int check_writers(struct pages *p, uint64_t reported_usec, struct rm_error *err) {
        int r = wait_for_calls(p, reported_usec, err);

        if (r < 0 || p->direct_usec >= reported_usec)
                return r;
        p->direct_usec = now_usec();
        return pages_check_direct(p, err);
}

static int first_send(struct pages *p, struct rm_error *err) {
        const struct queued first = p->queue[p->queue_first];
        int r = wait_until(p, first.reported_usec + PAGES_PINNED_USEC, err);

        if (r == 0)
                r = check_writers(p, first.reported_usec, err);
        if (r < 0)
                return r;
        p->queue_first = (p->queue_first + 1) % QUEUE_RUNS;
        p->n_queued--;
        p->queued_bytes -= first.end - first.start;
        if (!first.process->track)
                return 0;
        r = range_send(p, first.process, first.start, first.end, err);
        if (calls_over_usec(p->calls) < first.reported_usec)
                track_again(first.process->track, first.start, first.end);
        return r;
}

int pages_queue_flush(struct pages *p, struct rm_error *err) {
        int r = 0;

        while (r == 0 && p->n_queued > 0)
                r = first_send(p, err);
        return r;
}

/* Queues the run, and sends the first ones when the queue is full. A longer queue needs fewer
 * checks for writers to its pages. */
static int run_queue(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        struct pages *p = ctx;
        int r = 0;

        p->reported_bytes += end - start;
        while (r == 0 && (p->n_queued == QUEUE_RUNS || p->queued_bytes >= QUEUE_BYTES))
                r = first_send(p, p->err);
        p->failed = r != 0;
        if (r < 0)
                return r;
        p->queue[(p->queue_first + p->n_queued++) % QUEUE_RUNS] =
                (struct queued) { .process = p->at, .start = start, .end = end, .reported_usec = now_usec() };
        p->queued_bytes += end - start;
        return 0;
}

int pages_scan_poll(void *ctx) {
        struct pages *p = ctx;
        int r = pages_poll(p, p->err);

        p->failed = r != 0;
        return r;
}

int pages_scan(struct pages *p, struct process *process, pages_scan_fn scan, struct rm_error *err) {
        p->at = process;
        p->err = err;
        p->failed = false;
        track_set_poll(process->track, pages_scan_poll, p);
        return scan(process->track, p->frozen ? run_send : run_queue, p, err);
}

/* ---- which pages there are, or come later ---- */

int pages_list_begin(struct pages *p, struct process *process, Rm__ImageKind kind, struct rm_error *err) {
        p->list_bytes = p->n_list = 0;
        p->err = err;
        return object_open(p, process, kind, &p->list_slot, err);
}

static int list_flush(struct pages *p, struct rm_error *err) {
        size_t size_bytes = p->n_list * sizeof(struct run);
        void *buffer;
        int r;

        if (size_bytes == 0)
                return 0;
        buffer = image_writer_buffer(p->writer, size_bytes, err);
        if (!buffer)
                return err->code < 0 ? err->code : -EIO;
        for (size_t i = 0; i < p->n_list; i++)
                p->list[i] = (struct run) { htole64(p->list[i].start), htole64(p->list[i].end) };
        memcpy(buffer, p->list, size_bytes);
        r = image_writer_data(p->writer, p->list_slot, p->list_bytes, size_bytes, err);
        p->list_bytes += size_bytes;
        p->n_list = 0;
        return r;
}

static int list_put(struct pages *p, uint64_t start, uint64_t end) {
        int r = p->n_list == LIST_MAX ? list_flush(p, p->err) : 0;

        p->failed = r != 0;
        if (r == 0)
                p->list[p->n_list++] = (struct run) { start, end };
        return r;
}

int pages_list_add(struct pages *p, uint64_t start, uint64_t end) {
        struct run *last = p->n_list > 0 ? &p->list[p->n_list - 1] : NULL;

        if (!last || last->end != start)
                return list_put(p, start, end);
        last->end = end;
        return 0;
}

int pages_list_end(struct pages *p, struct rm_error *err) {
        int r = list_flush(p, err);

        return r < 0 ? r : image_writer_close(p->writer, p->list_slot, p->list_bytes, err);
}

int pages_add_run(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        struct pages *p = ctx;

        (void) pageset_add(p->adding, start, end);
        return 0;
}

/* The sender reads what the process has once more. */
static int send_sums(struct pages *p, struct process *process, const struct pageset *present, struct rm_error *err) {
        uint8_t data[IMAGE_SUM_MAX_BYTES];
        uint64_t start, end = 0;
        int r = pages_list_begin(p, process, RM__IMAGE_KIND__IMAGE_KIND_SUMS, err);

        while (r == 0 && pageset_next(present, end, sizeof(data), &start, &end)) {
                if (track_read(process->track, start, data, end - start) != (ssize_t) (end - start))
                        return error_set(err, -EIO, "memory of process %d at %" PRIx64 " cannot be read again", (int) process->pid,
                                         start);
                r = list_put(p, start, end);
                if (r == 0)
                        r = list_put(p, XXH3_64bits(data, end - start), 0);
        }
        return r < 0 ? r : pages_list_end(p, err);
}

int pages_send_present(struct pages *p, struct process *process, const struct pageset *present, struct rm_error *err) {
        struct pageset *left = process->later ? pageset_create() : NULL;
        uint64_t start, end = 0;
        int r = pages_list_begin(p, process, RM__IMAGE_KIND__IMAGE_KIND_PRESENT, err);

        while (r == 0 && present && pageset_next(present, end, UINT64_MAX, &start, &end)) {
                if (left)
                        pageset_add_common(left, process->later, start, end);
                r = pages_list_add(p, start, end);
        }
        pageset_destroy(process->later);
        process->later = left;
        if (r == 0)
                r = pages_list_end(p, err);
        if (r == 0 && present && p->hooks->sums && !p->later)
                r = send_sums(p, process, present, err);
        if (r == 0)
                r = image_writer_close(p->writer, process->slot, 0, err);
        process->opened = false;
        return r;
}
