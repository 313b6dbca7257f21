#include <inttypes.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/mover/pages_internal.h"

#define PROBE_STEP_USEC 250000U

/* ---- does it write all of its memory all the time? ---- */

/* Adds the reported pages to `set`. */
static int probe_scan(struct pages *p, struct process *process, struct pageset **set, struct rm_error *err) {
        struct rm_error why = { 0 };
        int r;

        if (!process->track)
                return 0;
        if (!*set)
                *set = pageset_create();
        p->adding = *set;
        p->err = err;
        p->failed = false;
        track_set_poll(process->track, pages_scan_poll, p);
        r = track_round(process->track, pages_add_run, p, &why);
        if (r == 0 || p->failed)
                return r;
        log_debug("process %d: %s: it is taken up anew", (int) process->pid, error_text(&why));
        track_end(take_ptr(process->track));
        return 0;
}

/* Makes one round of the probe. `ret_bytes`: the sum of all rounds. The first reports all pages
 * there are, the others those that were written. */
static int probe_round(struct pages *p, bool first, uint64_t *ret_bytes, struct rm_error *err) {
        struct process *process, *next;
        int r = 0;

        *ret_bytes = 0;
        HASH_ITER (hh, p->by_pid, process, next) {
                struct pageset **set = first ? &process->probed : &process->written;

                if (r == 0)
                        r = probe_scan(p, process, set, err);
                *ret_bytes += *set ? pageset_bytes(*set) : 0;
        }
        return r;
}

/* Nothing of what was told was sent: the first round is to tell it again. */
static void probe_forget(struct pages *p, bool again) {
        struct process *process, *next;

        HASH_ITER (hh, p->by_pid, process, next) {
                uint64_t start, end = 0;

                while (again && process->track && process->probed && pageset_next(process->probed, end, UINT64_MAX, &start, &end))
                        track_again(process->track, start, end);
                pageset_destroy(take_ptr(process->probed));
                pageset_destroy(take_ptr(process->written));
        }
}

static int probe_wait(struct pages *p, uint64_t until_usec, struct rm_error *err) {
        int r = 0;

        while (r == 0 && now_usec() < until_usec) {
                (void) usleep(5000);
                r = pages_poll(p, err);
        }
        return r;
}

int pages_probe(struct pages *p, bool *ret_fast, struct rm_error *err) {
        uint64_t begin_usec, all_bytes = 0, before_bytes = 0, bytes = 0;
        unsigned steps = 1;
        int r = probe_round(p, true, &all_bytes, err);

        begin_usec = now_usec();
        *ret_fast = false;
        for (unsigned i = 1; r == 0 && i <= steps; i++) {
                before_bytes = bytes;
                r = probe_wait(p, begin_usec + (uint64_t) i * PROBE_STEP_USEC, err);
                if (r == 0)
                        r = probe_round(p, false, &bytes, err);
                *ret_fast = rounds_futile(all_bytes, bytes);
                steps = rounds_futile_steps(all_bytes);
                if (*ret_fast || i == steps || !rounds_maybe_futile(all_bytes, bytes, bytes - before_bytes, steps - i))
                        break;
        }
        p->figures.probe_usec = now_usec() - begin_usec;
        p->figures.probe_bytes = bytes;
        log_debug("of %" PRIu64 " MiB %" PRIu64 " were written in %" PRIu64 " ms", all_bytes >> 20, bytes >> 20,
                  p->figures.probe_usec / 1000);
        probe_forget(p, !*ret_fast || r < 0);
        if (r == 0 && *ret_fast) {
                p->later = LATER_ALL;
                p->reported_bytes = all_bytes;
        }
        return r;
}

void pages_postpone(struct pages *p) {
        p->later = LATER_WRITTEN;
}

/* ---- when it is frozen: what comes later ---- */

int pages_later_run(struct pages *p, uint64_t start, uint64_t end) {
        struct process *process = p->at;

        if (!process->later)
                process->later = pageset_create();
        (void) pageset_add(process->later, start, end);
        return pages_list_add(p, start, end);
}

/* ---- when the destination restores it, or it runs there ---- */

uint64_t pages_later_bytes(const struct pages *p) {
        const struct process *process;
        uint64_t bytes = 0;

        for (process = p->by_pid; process; process = process->hh.next)
                bytes += process->later ? pageset_bytes(process->later) : 0;
        return bytes;
}

/* Behind what was read last, as a program that waits for a page soon wants those that follow. */
static bool next_piece(struct pages *p, size_t max_bytes, uint64_t *ret_start, uint64_t *ret_end) {
        size_t n = HASH_COUNT(p->by_pid);

        for (size_t i = 0; i <= n && n > 0; i++) {
                if (!p->later_at)
                        p->later_at = p->by_pid;
                if (p->later_at->later && (pageset_next(p->later_at->later, p->later_position, max_bytes, ret_start, ret_end) ||
                                           pageset_next(p->later_at->later, 0, max_bytes, ret_start, ret_end)))
                        return true;
                p->later_at = p->later_at->hh.next;
                p->later_position = 0;
        }
        return false;
}

static bool requested_piece(struct pages *p, uint32_t inner_pid, uint64_t address, size_t max_bytes, uint64_t *ret_start,
                            uint64_t *ret_end) {
        pid_t pid = (pid_t) inner_pid;
        struct process *process;

        HASH_FIND(hh_inner, p->by_inner, &pid, sizeof(pid), process);
        if (!process || !process->later || !pageset_has(process->later, address))
                return false;
        p->later_at = process;
        return pageset_next(process->later, address, max_bytes, ret_start, ret_end);
}

int pages_later_read(struct pages *p, uint32_t inner_pid, uint64_t address, struct pages_piece *piece, struct rm_error *err) {
        uint64_t start = 0, end = 0;
        bool found = inner_pid > 0 ? requested_piece(p, inner_pid, address, sizeof(piece->data), &start, &end)
                                   : next_piece(p, sizeof(piece->data), &start, &end);
        ssize_t n;

        piece->size_bytes = 0;
        if (!found)
                return 0;
        n = track_read(p->later_at->track, start, piece->data, end - start);
        /* A piece is never sent in part: the rest would be taken for zeros. */
        if (n != (ssize_t) (end - start))
                return error_set(err, n < 0 ? (int) n : -EIO, "memory of process %d at %" PRIx64 " cannot be read any more",
                                 (int) p->later_at->pid, start);
        piece->pid = (uint32_t) p->later_at->inner_pid;
        piece->address = start;
        piece->size_bytes = end - start;
        pageset_remove(p->later_at->later, start, end);
        p->later_position = end;
        return 0;
}
