#include "daemon/pages/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/pages/later.h"
#include "daemon/pages/maps.h"
#include "daemon/pages/passing.h"

/* The range of addresses that programs have: the kernel refuses a range that goes beyond. */
#define USER_BEGIN UINT64_C(0x10000)
#define USER_END ((UINT64_C(1) << 47) - PAGES_PAGE_BYTES)

enum {
        PUSH_BYTES = 256 << 10,
        FAULT_BYTES = 16 * PAGES_PAGE_BYTES, /* a page that is waited for, and some that follow it */
        EVENTS_MAX = 16,
        TASKS_MAX = 4096, /* as each has a copy of what its parent lacks, and CRIU may name any */
        PIECES_MAX = 4,   /* taken at once; a thread that waits for a page that is here waits for them */
        WAITS_MAX = 64,   /* faults whose time is taken at once */
        TIMES = 128,      /* four for each power of two */
        FINISHED = 0x52535446, /* in place of a pid, of which there are fewer */
};

struct span {
        uint64_t start;
        uint64_t end;
};

struct task {
        pid_t pid; /* in the image; 0: forked since, or taken over */
        int uffd;  /* -1: not restored yet */
        struct page_store *store;
        uint64_t position;    /* what is behind it is given next */
        uint64_t piece_bytes; /* that one mapping probably has */
        struct span *urgent;
        size_t n_urgent;
        size_t urgent_done;
        struct pageset *later; /* never NULL: what is to come into the store, from serve->later_fd */
        TAILQ_ENTRY(task) entry;
};

/* A page that comes later, and the process that waits for it. */
struct wait {
        const struct task *task; /* NULL: free */
        uint64_t address;
        uint64_t since_usec;
};

struct piece {
        struct later_piece head;
        uint8_t data[LATER_PIECE_MAX_BYTES];
};

struct serve {
        const struct serve_ops *ops;
        atomic_uint *in_hand;
        TAILQ_HEAD(, task) tasks;
        size_t n_tasks;
        struct task *child; /* to be given what its parent lacks, before anything else happens; NULL: none */
        struct task *parent;
        struct pollfd *polls;
        struct serve_figures figures;
        bool restored;
        int later_fd; /* -1: nothing is to come */
        struct serve_left *left; /* NULL: without serve_from() */
        struct wait waits[WAITS_MAX];
        uint64_t times[TIMES]; /* how often a wait lasted about so long */
        struct piece piece;
        uint8_t data[PUSH_BYTES];
};

/* ---- tasks ---- */

struct serve *serve_create(const struct serve_ops *ops, atomic_uint *in_hand) {
        struct serve *serve = xcalloc(1, sizeof(*serve));

        serve->ops = ops;
        serve->in_hand = in_hand;
        serve->later_fd = -1;
        TAILQ_INIT(&serve->tasks);
        return serve;
}

static struct task *add_task(struct serve *serve, pid_t pid, int uffd, struct page_store *store) {
        struct task *task = xcalloc(1, sizeof(*task));

        task->pid = pid;
        task->uffd = uffd;
        task->store = store;
        task->piece_bytes = PUSH_BYTES;
        task->later = pageset_create();
        TAILQ_INSERT_TAIL(&serve->tasks, task, entry);
        serve->n_tasks++;
        return task;
}

static uint64_t missing_bytes(const struct task *task) {
        return page_store_bytes(task->store) + pageset_bytes(task->later);
}

static uint64_t later_bytes(const struct serve *serve) {
        const struct task *task;
        uint64_t bytes = 0;

        TAILQ_FOREACH (task, &serve->tasks, entry)
                bytes += pageset_bytes(task->later);
        return bytes;
}

/* Tells how many bytes are left, also when the program has given up the last of the pages that were
 * to come. The other end may close then. */
static void report_left(struct serve *serve) {
        uint64_t bytes = serve->later_fd >= 0 ? later_bytes(serve) : 0;

        if (serve->left)
                atomic_store(&serve->left->bytes, bytes);
        if (bytes == 0)
                cleanup_close_fd(&serve->later_fd);
}

static void free_task(struct serve *serve, struct task *task) {
        TAILQ_REMOVE(&serve->tasks, task, entry);
        serve->n_tasks--;
        for (size_t i = 0; i < WAITS_MAX; i++)
                if (serve->waits[i].task == task)
                        serve->waits[i].task = NULL;
        pageset_destroy(task->later);
        cleanup_close_fd(&task->uffd);
        page_store_destroy(task->store);
        free(task->urgent);
        free(task);
}

static int begin_task(const struct serve *serve, const struct task *task, const struct task *parent) {
        const struct serve_ops *ops = serve->ops;

        return ops && ops->began ? ops->began(ops->ctx, task->uffd, page_store_fd(task->store), parent ? parent->uffd : -1) : 0;
}

static int end_task(struct serve *serve, struct task *task) {
        const struct serve_ops *ops = serve->ops;
        int r = task->uffd >= 0 && ops && ops->ended ? ops->ended(ops->ctx, task->uffd) : 0;

        free_task(serve, task);
        return r;
}

void serve_destroy(struct serve *serve) {
        struct task *task;

        if (!serve)
                return;
        while ((task = TAILQ_FIRST(&serve->tasks)))
                free_task(serve, task);
        cleanup_close_fd(&serve->later_fd);
        free(serve->polls);
        free(serve);
}

static struct task *find_task(struct serve *serve, pid_t pid) {
        struct task *task;

        TAILQ_FOREACH (task, &serve->tasks, entry)
                if (task->pid == pid)
                        return task;
        return NULL;
}

void serve_add(struct serve *serve, pid_t pid, struct page_store *store) {
        (void) add_task(serve, pid, -1, store);
}

void serve_expedite(struct serve *serve, pid_t pid, uint64_t start, uint64_t end) {
        struct task *task = find_task(serve, pid);

        if (!task)
                return;
        task->urgent = xgrow(task->urgent, task->n_urgent, sizeof(*task->urgent));
        task->urgent[task->n_urgent++] = (struct span) { .start = start, .end = end };
}

uint64_t serve_missing_bytes(const struct serve *serve) {
        const struct task *task;
        uint64_t bytes = 0;

        TAILQ_FOREACH (task, &serve->tasks, entry)
                bytes += missing_bytes(task);
        return bytes;
}

const struct serve_figures *serve_figures(const struct serve *serve) {
        return &serve->figures;
}

/* ---- giving pages ---- */

static void wake(const struct task *task, uint64_t start, uint64_t end) {
        struct uffdio_range range = { .start = start, .len = end - start };

        (void) ioctl(task->uffd, UFFDIO_WAKE, &range);
}

/* Tries once. Returns how many bytes the process has now, or an error: -EAGAIN: an event is to be
 * read first. */
static int64_t copy(struct serve *serve, struct task *task, uint64_t start, uint64_t size_bytes) {
        struct uffdio_copy c = { .dst = start, .src = (uint64_t) (uintptr_t) serve->data, .len = size_bytes };

        if (ioctl(task->uffd, UFFDIO_COPY, &c) == 0)
                return (int64_t) size_bytes;
        return errno == EAGAIN && c.copy > 0 ? c.copy : -errno;
}

/* Gives a run of pages that are there, or some of it from its start. -EAGAIN: an event is to be
 * read first. */
static int give(struct serve *serve, struct task *task, uint64_t start, uint64_t end) {
        uint64_t size = end - start < task->piece_bytes ? end - start : task->piece_bytes;
        int64_t n = page_store_read(task->store, start, serve->data, size);

        if (n < 0)
                return (int) n;
        /* A copy must be within one mapping, and the mappings are not known here. */
        while ((n = copy(serve, task, start, size)) == -ENOENT && size > PAGES_PAGE_BYTES)
                size = size / 2 / PAGES_PAGE_BYTES * PAGES_PAGE_BYTES;
        /* The mapping may have been moved just now: then an event tells that, and nothing may be
         * dropped before. The kernel looks for the mapping first, and for such events only at the
         * beginning of a call. */
        if (n == -ENOENT)
                n = copy(serve, task, start, size);
        task->piece_bytes = n > 0 && size * 2 <= PUSH_BYTES ? size * 2 : size;
        if (n > 0) {
                serve->figures.bytes += (uint64_t) n;
                return page_store_drop(task->store, start, start + (uint64_t) n);
        }
        if (n != -EEXIST && n != -ENOENT)
                return (int) n;
        /* The process has that page already, or nothing is missing in that mapping. */
        wake(task, start, start + PAGES_PAGE_BYTES);
        return page_store_drop(task->store, start, start + PAGES_PAGE_BYTES);
}

static int give_zeros(const struct task *task, uint64_t address) {
        struct uffdio_zeropage z = { .range = { .start = address, .len = PAGES_PAGE_BYTES } };

        if (ioctl(task->uffd, UFFDIO_ZEROPAGE, &z) == 0)
                return 0;
        if (errno != EEXIST && errno != ENOENT)
                return -errno;
        wake(task, address, address + PAGES_PAGE_BYTES);
        return 0;
}

/* ---- pages that come later ---- */

void serve_later(struct serve *serve, pid_t pid, struct pageset *later) {
        struct task *task = find_task(serve, pid);

        if (!task) {
                pageset_destroy(later);
                return;
        }
        pageset_destroy(task->later);
        task->later = later;
}

void serve_from(struct serve *serve, int fd, struct serve_left *left) {
        serve->later_fd = fd;
        serve->left = left;
        report_left(serve);
}

/* If it is lost, since too many are asked for, the page comes in its turn. */
static void ask_for(const struct serve *serve, const struct task *task, uint64_t address) {
        const struct later_piece requested = { .pid = (uint32_t) task->pid, .address = address };

        (void) send(serve->later_fd, &requested, sizeof(requested), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void note_wait(struct serve *serve, const struct task *task, uint64_t address) {
        struct wait *slot = NULL;

        for (size_t i = 0; i < WAITS_MAX; i++) {
                if (serve->waits[i].task == task && serve->waits[i].address == address)
                        return;
                if (!serve->waits[i].task)
                        slot = &serve->waits[i];
        }
        if (slot)
                *slot = (struct wait) { task, address, now_usec() };
}

/* Four for each power of two. */
static unsigned time_index(uint64_t usec) {
        unsigned power = 63U - (unsigned) __builtin_clzll(usec | 4);
        unsigned i = (power - 2) * 4 + (unsigned) ((usec | 4) >> (power - 2) & 3);

        return i < TIMES ? i : TIMES - 1;
}

static uint64_t time_end(unsigned i) {
        return (UINT64_C(5) + i % 4) << (i / 4);
}

static void note_came(struct serve *serve, const struct task *task, uint64_t start, uint64_t end) {
        uint64_t now = now_usec(), faults, sum = 0;

        for (size_t i = 0; i < WAITS_MAX; i++) {
                struct wait *wait = &serve->waits[i];

                if (wait->task != task || wait->address < start || wait->address >= end)
                        continue;
                wait->task = NULL;
                atomic_fetch_add(&serve->left->faults, 1);
                serve->times[time_index(now - wait->since_usec)]++;
        }
        faults = atomic_load(&serve->left->faults);
        for (unsigned i = 0; i < TIMES && faults > 0; i++) {
                sum += serve->times[i];
                atomic_store(&serve->left->p99_usec, time_end(i));
                if (sum * 100 >= faults * 99)
                        return;
        }
}

/* Takes the part of a piece that was still to come; other pages the program has given up since, or
 * moved, or they were asked for twice. */
static int take_piece(struct serve *serve, const struct piece *piece, struct task **ret_task) {
        uint64_t start = piece->head.address, end = start + piece->head.size_bytes, first, last;
        struct task *task = piece->head.pid > 0 ? find_task(serve, (pid_t) piece->head.pid) : NULL;
        int r = 0;

        *ret_task = task;
        if (start % PAGES_PAGE_BYTES || end < start || end > STORE_END)
                return -EBADMSG;
        for (uint64_t at = start; r == 0 && task && pageset_next(task->later, at, end - at, &first, &last) && first < end;
             at = last) {
                last = last < end ? last : end;
                r = page_store_write(task->store, first, piece->data + (first - start), last - first);
                if (r == 0)
                        pageset_remove(task->later, first, last);
                serve->figures.later_bytes += last - first;
                if (last == end)
                        break;
        }
        return r;
}

/* -EAGAIN: there is none now. */
static int receive_piece(struct serve *serve, bool wait, struct task **ret_task) {
        ssize_t n = recv(serve->later_fd, &serve->piece, sizeof(serve->piece), wait ? 0 : MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
                return -EAGAIN;
        if (n < 0)
                return errno == ECONNRESET ? -EPIPE : -errno;
        if (n == 0)
                return -EPIPE;
        if ((size_t) n < sizeof(serve->piece.head) || serve->piece.head.size_bytes != (size_t) n - sizeof(serve->piece.head) ||
            serve->piece.head.size_bytes % PAGES_PAGE_BYTES)
                return -EBADMSG;
        return take_piece(serve, &serve->piece, ret_task);
}

/* Pages that an event is about are not to be given while that is carried out. */
static int fetch(struct serve *serve, struct task *task, uint64_t start, uint64_t end) {
        uint64_t first, last, asked = UINT64_MAX;
        int r = 0;

        while ((r == 0 || r == -EAGAIN) && start < end && pageset_next(task->later, start, PAGES_PAGE_BYTES, &first, &last) &&
               first < end) {
                struct task *of;

                if (serve->later_fd < 0)
                        return -EPIPE;
                if (first != asked)
                        ask_for(serve, task, first);
                asked = first;
                r = receive_piece(serve, true, &of);
        }
        if (r == 0 || r == -EAGAIN)
                report_left(serve);
        return r == -EAGAIN ? 0 : r;
}

int serve_fetch(struct serve *serve, pid_t pid, uint64_t start, uint64_t end) {
        struct task *task = find_task(serve, pid);

        return task ? fetch(serve, task, start, end) : 0;
}

/* Gives pages to threads that wait for them now, or will touch them soon. Pages that cannot be
 * given yet remain in the store. */
static int give_piece(struct serve *serve, struct task *task, uint64_t at, uint64_t end) {
        uint64_t first, last;
        int r = 0;

        while (r == 0 && at < end && page_store_next(task->store, at, end - at, &first, &last) && first < end) {
                r = give(serve, task, first, last < end ? last : end);
                at = first;
        }
        return r == -EAGAIN ? 0 : r;
}

/* The pages are given only where a thread waits: not all mappings are registered with the kernel
 * yet, and only those certainly are. */
static int give_waited(struct serve *serve, struct task *task, uint64_t start, uint64_t end) {
        int r = 0;

        for (size_t i = 0; i < WAITS_MAX && r == 0; i++) {
                uint64_t address = serve->waits[i].address;

                if (serve->waits[i].task == task && address >= start && address < end && page_store_has(task->store, address))
                        r = give(serve, task, address, address + PAGES_PAGE_BYTES);
        }
        return r == -EAGAIN ? 0 : r;
}

/* Takes the pages that have come. */
static int take_later(struct serve *serve, struct rm_error *err) {
        struct task *task = NULL;
        int r = 0;

        for (unsigned i = 0; serve->later_fd >= 0 && r == 0 && i < PIECES_MAX; i++) {
                uint64_t start, end;

                r = receive_piece(serve, false, &task);
                if (r < 0 || !task)
                        continue;
                start = serve->piece.head.address;
                end = start + serve->piece.head.size_bytes;
                if (task->uffd >= 0)
                        r = serve->restored ? give_piece(serve, task, start, end) : give_waited(serve, task, start, end);
                note_came(serve, task, start, end);
                r = r == -ESRCH ? 0 : r;
        }
        if (r == -EPIPE && later_bytes(serve) == 0)
                r = -EAGAIN;
        if (r < 0 && r != -EAGAIN)
                return error_sys(err, r, "get the pages that are still at the source of the move");
        report_left(serve);
        return 0;
}

/* -EAGAIN: the event that is in the way wakes the thread that waits, or it is woken here and asks
 * again. */
static int on_fault(struct serve *serve, struct task *task, uint64_t address) {
        uint64_t start, end;
        int r;

        address = address / PAGES_PAGE_BYTES * PAGES_PAGE_BYTES;
        serve->figures.faults++;
        if (pageset_has(task->later, address)) {
                note_wait(serve, task, address);
                ask_for(serve, task, address);
                return 0;
        }
        if (!page_store_has(task->store, address))
                r = give_zeros(task, address);
        else if (page_store_next(task->store, address, FAULT_BYTES, &start, &end))
                r = give(serve, task, start, end);
        else
                r = -EIO;
        if (r == -EAGAIN) {
                wake(task, address, address + PAGES_PAGE_BYTES);
                r = 0;
        }
        return r;
}

/* ---- events ---- */

static bool has_space(const struct serve *serve, uint64_t bytes) {
        uint64_t max = serve->ops ? serve->ops->max_bytes : 0;

        return serve->n_tasks <= TASKS_MAX && (max == 0 || serve_missing_bytes(serve) + bytes <= max);
}

/* Can be done again from the start: nothing is given or dropped before it is complete. */
static int copy_to_child(struct serve *serve) {
        const struct serve_ops *ops = serve->ops;
        struct task *child = serve->child;
        int r;

        if (!child)
                return 0;
        serve->child = NULL;
        if (!has_space(serve, missing_bytes(serve->parent)))
                return -ENOMEM;
        r = fetch(serve, serve->parent, 0, STORE_END);
        if (r == 0)
                r = page_store_copy(serve->parent->store, child->store);
        return r == 0 && ops && ops->copied ? ops->copied(ops->ctx, child->uffd) : r;
}

/* After an error its userfaultfd stays open in a process that holds a duplicate, or here: it must
 * not run on zeros before it is killed. */
static int on_fork(struct serve *serve, struct task *task, int uffd) {
        struct page_store *store;
        int r = page_store_create("pages of a child", &store);

        if (r < 0)
                return r;
        serve->child = add_task(serve, 0, uffd, store);
        serve->parent = task;
        return begin_task(serve, serve->child, task);
}

static int on_remap(struct serve *serve, struct task *task, uint64_t from, uint64_t to, uint64_t size_bytes) {
        int r;

        if (from == to)
                return 0;
        pageset_remove(task->later, to, to + size_bytes);
        r = fetch(serve, task, from, from + size_bytes);
        return r < 0 ? r : page_store_move(task->store, from, to, size_bytes);
}

static int on_event(struct serve *serve, struct task *task, const struct uffd_msg *m) {
        switch (m->event) {
        case UFFD_EVENT_PAGEFAULT:
                return on_fault(serve, task, m->arg.pagefault.address);
        case UFFD_EVENT_FORK:
                return on_fork(serve, task, (int) m->arg.fork.ufd);
        case UFFD_EVENT_REMAP:
                return on_remap(serve, task, m->arg.remap.from, m->arg.remap.to, m->arg.remap.len);
        case UFFD_EVENT_REMOVE:
        case UFFD_EVENT_UNMAP:
                pageset_remove(task->later, m->arg.remove.start, m->arg.remove.end);
                return page_store_drop(task->store, m->arg.remove.start, m->arg.remove.end);
        default:
                return -EPROTO;
        }
}

static void hold(struct serve *serve, unsigned n) {
        if (serve->in_hand)
                atomic_store(serve->in_hand, n);
}

/* Carries out messages one by one: a message behind a fork may remove from the parent pages that
 * the child must have. */
static int carry_out(struct serve *serve, struct task *task, const struct uffd_msg *messages, size_t n, bool faults) {
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                if ((messages[i].event == UFFD_EVENT_PAGEFAULT) != faults)
                        continue;
                r = copy_to_child(serve);
                if (r == 0)
                        r = on_event(serve, task, &messages[i]);
        }
        return r;
}

/* Reads all messages that are there. Faults come behind the events that were read with them: one of
 * these may have changed the page at their address. A fault that is lost is found again
 * (serve_resume()), an event is not; the copy after a fork, which takes long, can be made again. */
static int read_events(struct serve *serve, struct task *task) {
        struct uffd_msg messages[EVENTS_MAX];
        ssize_t n;
        int r;

        hold(serve, 1);
        n = read(task->uffd, messages, sizeof(messages));
        if (n < 0) {
                hold(serve, 0);
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        }
        r = carry_out(serve, task, messages, (size_t) n / sizeof(*messages), false);
        if (r < 0)
                return r; /* it remains in hand */
        hold(serve, 0);
        r = copy_to_child(serve);
        return r < 0 ? r : carry_out(serve, task, messages, (size_t) n / sizeof(*messages), true);
}

/* ---- the order of things ---- */

/* The next run: what is urgent, then the rest by address; what was moved to lower addresses comes
 * at the end. */
static bool next_run(struct task *task, uint64_t *ret_start, uint64_t *ret_end) {
        while (task->urgent_done < task->n_urgent) {
                struct span *span = &task->urgent[task->urgent_done];

                if (page_store_next(task->store, span->start, PUSH_BYTES, ret_start, ret_end) && *ret_start < span->end) {
                        *ret_end = *ret_end < span->end ? *ret_end : span->end;
                        span->start = *ret_start; /* what is given is no more found from there */
                        return true;
                }
                task->urgent_done++;
        }
        if (!page_store_next(task->store, task->position, PUSH_BYTES, ret_start, ret_end) &&
            !page_store_next(task->store, 0, PUSH_BYTES, ret_start, ret_end))
                return false;
        task->position = *ret_start;
        return true;
}

static int push(struct serve *serve, struct task *task) {
        uint64_t start, end;
        int r;

        if (!next_run(task, &start, &end))
                return 0;
        r = give(serve, task, start, end);
        return r == -EAGAIN ? 0 : r;
}

/* `tasks` are those polled, in their order: others come behind them. */
static int attend_polled(struct serve *serve, size_t n, struct rm_error *err) {
        struct task *task = TAILQ_FIRST(&serve->tasks);

        for (size_t i = 0; i < n; i++, task = TAILQ_NEXT(task, entry)) {
                int r = 0;

                /* Another process that has the descriptor has made it block. */
                if (serve->polls[i].revents & POLLERR)
                        r = -EPROTO;
                else if (serve->polls[i].revents)
                        r = read_events(serve, task);
                if (r < 0 && r != -ESRCH)
                        return error_sys(err, r, "give pages to process %d of the image", (int) task->pid);
        }
        return 0;
}

/* Nothing can be given before more comes, or a page is asked for. */
static bool idles(const struct serve *serve) {
        const struct task *task;

        TAILQ_FOREACH (task, &serve->tasks, entry)
                if (task->uffd < 0 || page_store_bytes(task->store) > 0 || missing_bytes(task) == 0)
                        return false;
        return true;
}

/* Attends to threads that wait for a page, or for an event to be seen, of all processes; and to
 * pages that have come. */
static int attend(struct serve *serve, struct rm_error *err) {
        const struct task *task;
        size_t n = 0;
        int ready, r = 0;

        serve->polls = xrealloc(serve->polls, (serve->n_tasks + 2) * sizeof(*serve->polls));
        TAILQ_FOREACH (task, &serve->tasks, entry)
                serve->polls[n++] = (struct pollfd) { .fd = task->uffd, .events = POLLIN };
        serve->polls[n] = (struct pollfd) { .fd = serve->later_fd, .events = POLLIN };
        ready = poll(serve->polls, n + 1, idles(serve) ? -1 : 0);
        if (ready < 0 && errno != EINTR)
                return error_sys(err, -errno, "look for faults");
        if (ready > 0)
                r = attend_polled(serve, n, err);
        return r == 0 && ready > 0 && serve->later_fd >= 0 ? take_later(serve, err) : r;
}

/* A piece for each process, and between two pieces all that is asked for; a process that has all it
 * lacked, or has ended, is served no more. */
static int serve_tasks(struct serve *serve, struct rm_error *err) {
        struct task *task, *next;

        for (task = TAILQ_FIRST(&serve->tasks); task; task = next) {
                int r = attend(serve, err);

                if (r < 0)
                        return r;
                r = task->uffd >= 0 ? push(serve, task) : 0;
                next = TAILQ_NEXT(task, entry);
                if (r < 0 && r != -ESRCH)
                        return error_sys(err, r, "give pages to process %d of the image", (int) task->pid);
                r = r == -ESRCH || task->uffd < 0 || missing_bytes(task) == 0 ? end_task(serve, task) : 0;
                if (r < 0)
                        return error_sys(err, r, "tell that a process is complete");
        }
        return 0;
}

int serve_run(struct serve *serve, struct rm_error *err) {
        uint64_t begin_usec = now_usec();
        int r = 0;

        while (r == 0 && !TAILQ_EMPTY(&serve->tasks)) {
                r = serve_tasks(serve, err);
                if (r == 0)
                        report_left(serve);
        }
        serve->figures.usec += now_usec() - begin_usec;
        return r;
}

int serve_resume(struct serve *serve, int uffd, struct page_store *store) {
        const struct task *task = add_task(serve, 0, uffd, store);

        if (fcntl(uffd, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        /* Faults that the other server had read are not reported again: so all threads are woken,
         * and ask again. */
        wake(task, USER_BEGIN, USER_END);
        return 0;
}

static struct task *find_served(struct serve *serve, int uffd) {
        struct task *task;

        TAILQ_FOREACH (task, &serve->tasks, entry)
                if (task->uffd == uffd)
                        return task;
        return NULL;
}

int serve_copy(struct serve *serve, int uffd, int parent_uffd) {
        serve->child = find_served(serve, uffd);
        serve->parent = find_served(serve, parent_uffd);
        return serve->parent ? copy_to_child(serve) : -ENOENT;
}

/* ---- CRIU ---- */

static int receive_criu(int fd, void *data, size_t size_bytes, int *ret_descriptor, struct rm_error *err) {
        int r = passing_receive(fd, data, size_bytes, ret_descriptor);

        if (r == -EPIPE || r == -ECONNRESET)
                return error_set(err, -ECANCELED, "CRIU has ended before it had restored all");
        return r < 0 ? error_sys(err, r, "hear from CRIU") : 0;
}

/* CRIU runs as the job's owner: it may say anything. */
static int accept_task(struct serve *serve, int fd, pid_t pid, struct rm_error *err) {
        cleanup_close int uffd = -1;
        struct task *task = find_task(serve, pid);
        char byte;
        int r = receive_criu(fd, &byte, 1, &uffd, err);

        if (r < 0)
                return r;
        if (!task)
                return error_set(err, -EPROTO, "CRIU restores the process %d, whose memory did not come with the image", (int) pid);
        if (uffd < 0 || !passing_is_userfaultfd(uffd) || task->uffd >= 0)
                return error_set(err, -EPROTO, "what CRIU sent for process %d is no userfaultfd, or its second", (int) pid);
        if (fcntl(uffd, F_SETFL, O_NONBLOCK) < 0)
                return error_sys(err, -errno, "prepare a userfaultfd");
        task->uffd = take_fd(&uffd);
        r = begin_task(serve, task, NULL);
        return r < 0 ? error_sys(err, r, "pass a userfaultfd on") : 0;
}

static int check_all_restored(const struct serve *serve, struct rm_error *err) {
        const struct task *task;

        TAILQ_FOREACH (task, &serve->tasks, entry)
                if (task->uffd < 0 && missing_bytes(task) > 0)
                        return error_set(err, -EPROTO, "CRIU has not restored the process %d, whose memory came with the image",
                                         (int) task->pid);
        return 0;
}

static int accept_next(struct serve *serve, int fd, struct rm_error *err) {
        int descriptor;
        int32_t pid;
        int r = receive_criu(fd, &pid, sizeof(pid), &descriptor, err);

        cleanup_close_fd(&descriptor);
        if (r < 0)
                return r;
        if (pid == FINISHED) {
                serve->restored = true;
                return check_all_restored(serve, err);
        }
        if (pid < 0)
                return 0; /* one that has ended and was not waited for: it has no memory */
        return accept_task(serve, fd, (pid_t) pid, err);
}

/* Until one of the processes, or CRIU, has something to say. */
static int await(struct serve *serve, int fd, bool *ret_criu) {
        cleanup_free struct pollfd *polls = xcalloc(serve->n_tasks + 2, sizeof(*polls));
        const struct task *task;
        nfds_t n = 0;

        polls[n++] = (struct pollfd) { .fd = fd, .events = POLLIN };
        TAILQ_FOREACH (task, &serve->tasks, entry)
                polls[n++] = (struct pollfd) { .fd = task->uffd, .events = POLLIN };
        polls[n++] = (struct pollfd) { .fd = serve->later_fd, .events = POLLIN };
        if (poll(polls, n, -1) < 0)
                return errno == EINTR ? 0 : -errno;
        *ret_criu = polls[0].revents != 0;
        return 0;
}

int serve_accept(struct serve *serve, int fd, struct rm_error *err) {
        while (!serve->restored) {
                struct task *task;
                bool criu = false;
                int r = await(serve, fd, &criu);

                if (r < 0)
                        return error_sys(err, r, "wait for CRIU");
                if (criu)
                        r = accept_next(serve, fd, err);
                if (r < 0)
                        return r;
                if (serve->later_fd >= 0)
                        r = take_later(serve, err);
                if (r < 0)
                        return r;
                TAILQ_FOREACH (task, &serve->tasks, entry) {
                        r = task->uffd < 0 ? 0 : read_events(serve, task);
                        if (r < 0 && r != -ESRCH)
                                return error_sys(err, r, "give pages to process %d of the image", (int) task->pid);
                }
        }
        return 0;
}

int serve_register(struct serve *serve, pid_t pid, uint64_t start, uint64_t end) {
        struct uffdio_register range = { .range = { .start = start, .len = end - start }, .mode = UFFDIO_REGISTER_MODE_MISSING };
        const struct task *task = find_task(serve, pid);
        uint64_t first, last;

        if (!task || task->uffd < 0)
                return -ESRCH;
        /* CRIU takes away what it has used itself, meanwhile. */
        if ((!page_store_next(task->store, start, PAGES_PAGE_BYTES, &first, &last) || first >= end) &&
            (!pageset_next(task->later, start, PAGES_PAGE_BYTES, &first, &last) || first >= end))
                return 0;
        return ioctl(task->uffd, UFFDIO_REGISTER, &range) < 0 ? -errno : 0;
}
