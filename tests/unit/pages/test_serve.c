/* The server of lazy restores: programs that begin without their pages, as CRIU leaves them, and
 * check each one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "common/util.h"
#include "daemon/pages/later.h"
#include "daemon/pages/maps.h"
#include "daemon/pages/passing.h"
#include "daemon/pages/serve.h"

enum {
        PAGE = PAGES_PAGE_BYTES,
        PAGES = 8192,
        PID = 4711, /* in the image */
        FINISHED = 0x52535446,
        BLOCK = 64,
        MOVED_TIMES = 3000,
};

/* The address of the memory is known to both. Two mappings, so that no piece may go over the edge
 * between them. */
static char *area;

static bool is_zero(size_t page) {
        return page % 37 == 5;
}

static uint64_t word_of(size_t page) {
        return is_zero(page) ? 0 : page * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static bool page_is(const char *at, size_t page) {
        const uint64_t *words = (const uint64_t *) (const void *) at;

        for (size_t i = 0; i < PAGE / sizeof(*words); i++)
                if (words[i] != (is_zero(page) ? 0 : word_of(page) + i))
                        return false;
        return true;
}

static struct page_store *make_store(void) {
        uint64_t words[PAGE / sizeof(uint64_t)];
        struct page_store *store;

        assert_int_equal(page_store_create("test", &store), 0);
        for (size_t page = 0; page < PAGES; page++) {
                for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                        words[i] = word_of(page) + i;
                if (!is_zero(page))
                        assert_int_equal(page_store_write(store, (uint64_t) (uintptr_t) area + page * PAGE, words, PAGE), 0);
        }
        return store;
}

static struct page_store *make_empty_store(void) {
        struct page_store *store;

        assert_int_equal(page_store_create("empty", &store), 0);
        return store;
}

/* ---- the process that is restored ---- */

static void say_pid(int link, int32_t pid) {
        child_assert(write_all(link, &pid, sizeof(pid)) == 0);
}

static void register_range(int uffd, const char *start, size_t pages) {
        struct uffdio_register r = { .range = { .start = (uint64_t) (uintptr_t) start, .len = pages * PAGE },
                                     .mode = UFFDIO_REGISTER_MODE_MISSING };

        child_assert(ioctl(uffd, UFFDIO_REGISTER, &r) == 0);
}

/* The child becomes lazy as CRIU's restorer makes it. Until it says FINISHED, the server gives only
 * pages that are asked for. */
static void become_lazy_in_part(int link, size_t registered) {
        struct uffdio_api api = { .api = UFFD_API,
                                  .features = UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_UNMAP |
                                              UFFD_FEATURE_EVENT_REMOVE };
        int uffd = (int) syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

        child_assert(uffd >= 0 && ioctl(uffd, UFFDIO_API, &api) == 0);
        child_assert(mmap(area, (size_t) PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                     area);
        child_assert(mprotect(area + (size_t) (PAGES / 3) * PAGE, PAGES / 3 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
        register_range(uffd, area, PAGES / 3);
        if (registered > PAGES / 3)
                register_range(uffd, area + (size_t) (PAGES / 3) * PAGE, registered - PAGES / 3);
        child_ready(link);
        say_pid(link, -1234);
        say_pid(link, PID);
        child_assert(passing_send(link, "", 1, uffd) == 0);
        (void) close(uffd);
}

static void become_lazy(int link) {
        become_lazy_in_part(link, PAGES);
}

static void check_pages(const char *at, size_t first, size_t n) {
        for (size_t i = 0; i < n; i++)
                child_assert(page_is(at + i * PAGE, first + i));
}

static uint32_t draw(uint32_t *seed, uint32_t limit) {
        *seed = *seed * 1664525 + 1013904223;
        return (*seed >> 8) % limit;
}

static void read_all_pages(int link) {
        become_lazy(link);
        say_pid(link, FINISHED);
        check_pages(area, 0, PAGES);
        child_wait(link); /* also when nothing is missing any more */
        check_pages(area, 0, PAGES);
        child_ready(link);
}

static void *check_in_thread(void *ctx) {
        uint32_t seed = (uint32_t) (uintptr_t) ctx;

        for (int i = 0; i < 3000; i++) {
                size_t page = draw(&seed, PAGES);

                child_assert(page_is(area + page * PAGE, page));
        }
        return NULL;
}

static void read_in_threads(int link) {
        pthread_t all[4];

        become_lazy(link);
        say_pid(link, FINISHED);
        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                child_assert(pthread_create(&all[i], NULL, check_in_thread, area + i) == 0);
        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                (void) pthread_join(all[i], NULL);
        child_wait(link);
        check_pages(area, 0, PAGES);
        child_ready(link);
}

/* Blocks of it are moved, given back, mapped anew, written and inherited. */
static void change(int link) {
        enum { BLOCKS = PAGES / BLOCK };
        bool gone[BLOCKS] = { false };
        char *spare = mmap(NULL, BLOCK * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        static const char zeros[PAGE];
        uint32_t seed = 3;
        int status;

        become_lazy(link);
        for (int i = 0; i < 60; i++) {
                size_t block = draw(&seed, BLOCKS - 1) / 4 * 4; /* not over the edge of the mappings */
                char *at = area + block * BLOCK * PAGE;
                pid_t pid;

                if (gone[block])
                        continue;
                switch (draw(&seed, 4)) {
                case 0:
                        child_assert(mremap(at, BLOCK * PAGE, BLOCK * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, spare) == spare);
                        if (draw(&seed, 2) == 0)
                                check_pages(spare, block * BLOCK, BLOCK);
                        child_assert(mremap(spare, BLOCK * PAGE, BLOCK * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
                        child_assert(mmap(spare, BLOCK * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                                          0) == spare);
                        break;
                case 1:
                        child_assert(madvise(at, BLOCK * PAGE, MADV_DONTNEED) == 0);
                        gone[block] = true;
                        break;
                case 2:
                        child_assert(munmap(at, BLOCK * PAGE) == 0);
                        child_assert(mmap(at, BLOCK * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                                          0) == at);
                        gone[block] = true;
                        break;
                default:
                        if (i % 4 != 0)
                                break;
                        pid = fork();
                        if (pid == 0) {
                                for (size_t k = 0; k < BLOCKS; k++)
                                        if (!gone[k])
                                                check_pages(area + k * BLOCK * PAGE, k * BLOCK, BLOCK);
                                _exit(0);
                        }
                        child_assert(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
                }
        }
        say_pid(link, FINISHED);
        for (size_t k = 0; k < BLOCKS; k++)
                for (size_t i = 0; i < BLOCK && gone[k]; i++)
                        child_assert(memcmp(area + (k * BLOCK + i) * PAGE, zeros, PAGE) == 0);
        for (size_t k = 0; k < BLOCKS; k++)
                if (!gone[k])
                        check_pages(area + k * BLOCK * PAGE, k * BLOCK, BLOCK);
        child_wait(link);
        child_ready(link);
}

/* Blocks are moved and nothing is read while the server gives them. */
static void move_all_the_time(int link) {
        enum { BLOCKS = PAGES / BLOCK };
        char *spare = mmap(NULL, BLOCK * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        uint32_t seed = 5;

        become_lazy(link);
        say_pid(link, FINISHED);
        for (int i = 0; i < MOVED_TIMES; i++) {
                char *at = area + (size_t) draw(&seed, BLOCKS / 4) * 4 * BLOCK * PAGE; /* not over the edge of the mappings */

                child_assert(mremap(at, BLOCK * PAGE, BLOCK * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, spare) == spare);
                child_assert(mremap(spare, BLOCK * PAGE, BLOCK * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
        }
        child_wait(link);
        check_pages(area, 0, PAGES);
        child_ready(link);
}

/* The kernel reads and writes memory that is missing. */
static void let_kernel_touch(int link) {
        int ends[2];
        char byte;

        child_assert(pipe2(ends, O_CLOEXEC) == 0);
        become_lazy(link);
        say_pid(link, FINISHED);
        for (size_t page = 1; page < PAGES; page += 2) {
                char data[PAGE];

                child_assert(write(ends[1], area + page * PAGE, PAGE) == PAGE);
                child_assert(read(ends[0], data, PAGE) == PAGE);
                child_assert(page_is(data, page));
                byte = area[page * PAGE - 1];
                child_assert(write(ends[1], &byte, 1) == 1 && read(ends[0], area + page * PAGE - 1, 1) == 1);
        }
        check_pages(area, 0, PAGES);
        child_wait(link);
        child_ready(link);
}

static void end_early(int link) {
        become_lazy(link);
        say_pid(link, FINISHED);
        child_assert(page_is(area, 0));
        _exit(0);
}

/* ---- the server ---- */

static void test_programs(void **state) {
        static void (*const programs[])(int link) = { read_all_pages, read_in_threads, change, move_all_the_time,
                                                      let_kernel_touch };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
                struct serve *serve = serve_create(NULL, NULL);
                struct child child;
                struct rm_error err = { 0 };

                serve_add(serve, PID, make_store());
                serve_expedite(serve, PID, (uint64_t) (uintptr_t) area + 100 * PAGE, (uint64_t) (uintptr_t) area + 200 * PAGE);
                serve_expedite(serve, PID + 1, 0, PAGE); /* not one of them */
                child = child_begin(programs[i]);
                if (serve_accept(serve, child.link, &err) < 0 || serve_run(serve, &err) < 0)
                        fail_msg("%s", err.text);
                assert_int_equal(serve_missing_bytes(serve), 0);
                child_go(&child);
                child_expect(&child);
                child_finish(&child);
                serve_destroy(serve);
        }
}

/* ---- pages that come later ---- */

/* The other end: what is waited for first, then the rest, until it is hung up on. `odd`: also
 * pieces that nobody may take as they are. */
struct source {
        pthread_t thread;
        int fd;
        struct page_store *store;
        size_t pages; /* sends so many and hangs up */
        bool odd;
};

static void piece_send(struct source *source, struct pageset *left, uint64_t start, uint64_t end) {
        struct {
                struct later_piece head;
                uint8_t data[LATER_PIECE_MAX_BYTES];
        } piece = { .head = { .pid = PID, .size_bytes = (uint32_t) (end - start), .address = start } };

        for (uint64_t at = start; at < end; at += PAGE)
                if (page_store_has(source->store, at))
                        (void) page_store_read(source->store, at, piece.data + (at - start), PAGE);
        pageset_remove(left, start, end);
        (void) send(source->fd, &piece, sizeof(piece.head) + (end - start), MSG_NOSIGNAL);
        if (source->odd) {
                memset(piece.data, 0xff, sizeof(piece.data)); /* once more, and of another process */
                (void) send(source->fd, &piece, sizeof(piece.head) + (end - start), MSG_NOSIGNAL);
                piece.head.pid = PID + 1;
                (void) send(source->fd, &piece, sizeof(piece.head) + (end - start), MSG_NOSIGNAL);
        }
        source->pages -= (end - start) / PAGE < source->pages ? (end - start) / PAGE : source->pages;
}

static void *be_source(void *ctx) {
        struct source *source = ctx;
        struct pageset *left = pageset_create();
        uint64_t start = (uint64_t) (uintptr_t) area, end, first = start, last = start + (uint64_t) PAGES * PAGE;
        struct later_piece requested;

        (void) pageset_add(left, first, last);
        while (source->pages > 0 && pageset_next(left, first, 4 * PAGE, &start, &end)) {
                struct pollfd p = { .fd = source->fd, .events = POLLIN };

                if (poll(&p, 1, 0) > 0 && recv(source->fd, &requested, sizeof(requested), 0) != (ssize_t) sizeof(requested))
                        break;
                if (p.revents && pageset_has(left, requested.address))
                        assert_true(pageset_next(left, requested.address, 2 * PAGE, &start, &end));
                piece_send(source, left, start, end);
        }
        if (source->pages > 0) /* as rm-mover does */
                while (recv(source->fd, &requested, sizeof(requested), 0) > 0)
                        ;
        (void) close(source->fd);
        pageset_destroy(left);
        return NULL;
}

/* Every third page is here; `pages`: how many of the others come. */
static void serve_with_source(struct serve *serve, struct source *source, size_t pages, bool odd, struct serve_left *left) {
        uint64_t start = (uint64_t) (uintptr_t) area;
        struct pageset *later = pageset_create();
        struct page_store *here = make_store();
        int ends[2];

        for (size_t i = 0; i < PAGES; i++)
                if (i % 3 != 0) {
                        assert_int_equal(page_store_drop(here, start + i * PAGE, start + (i + 1) * PAGE), 0);
                        assert_int_equal(pageset_add(later, start + i * PAGE, start + (i + 1) * PAGE), 0);
                }
        serve_add(serve, PID, here);
        serve_later(serve, PID, later);
        serve_later(serve, PID + 1, pageset_create()); /* not one of them */
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        *source = (struct source) { .fd = ends[1], .store = make_store(), .pages = pages, .odd = odd };
        serve_from(serve, ends[0], left);
        assert_true(atomic_load(&left->bytes) == (PAGES - (PAGES + 2) / 3) * PAGE);
        assert_int_equal(pthread_create(&source->thread, NULL, be_source, source), 0);
}

static void source_end(struct source *source) {
        (void) pthread_join(source->thread, NULL);
        page_store_destroy(source->store);
}

static void test_later(void **state) {
        static void (*const programs[])(int link) = { read_all_pages, read_in_threads, change, let_kernel_touch, end_early };

        (void) state;
        for (size_t i = 0; i < 2 * ARRAY_SIZE(programs); i++) {
                void (*program)(int link) = programs[i / 2];
                struct serve *serve = serve_create(NULL, NULL);
                struct serve_left left = { 0 };
                struct source source;
                struct child child = child_begin(program);
                struct rm_error err = { 0 };

                serve_with_source(serve, &source, SIZE_MAX, i % 2 != 0, &left);
                if (serve_accept(serve, child.link, &err) < 0 ||
                    serve_fetch(serve, PID, (uint64_t) (uintptr_t) area, (uint64_t) (uintptr_t) area + 2 * PAGE) < 0 ||
                    serve_run(serve, &err) < 0)
                        fail_msg("program %zu: %s", i, err.text);
                assert_int_equal(serve_missing_bytes(serve), 0);
                assert_true(atomic_load(&left.bytes) == 0);
                if (program == read_all_pages)
                        assert_true(atomic_load(&left.faults) > 0 && atomic_load(&left.p99_usec) > 0);
                if (program != end_early) {
                        child_go(&child);
                        child_expect(&child);
                }
                child_finish(&child);
                serve_destroy(serve);
                source_end(&source);
        }
}

/* The process does not go on without the pages that have not come. */
static void test_source_lost(void **state) {
        static const size_t sent[] = { 1, 100, PAGES - 100 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(sent); i++) {
                struct serve *serve = serve_create(NULL, NULL);
                struct serve_left left = { 0 };
                struct source source;
                struct child child = child_begin(read_all_pages);
                struct rm_error err = { 0 };
                int r;

                serve_with_source(serve, &source, sent[i], false, &left);
                r = serve_accept(serve, child.link, &err);
                if (r == 0)
                        r = serve_run(serve, &err);
                assert_int_equal(r, -EPIPE);
                assert_true(atomic_load(&left.bytes) > 0);
                (void) kill(child.pid, SIGKILL); /* as PID 1 does, before the last userfaultfd is closed */
                assert_int_equal(child_end(&child), SIGKILL);
                serve_destroy(serve);
                source_end(&source);
        }
}

static void test_bad_pieces(void **state) {
        static const struct later_piece heads[] = {
                { PID, PAGE, 1 },        { PID, PAGE, STORE_END }, { PID, PAGE, UINT64_MAX - PAGE + 1 },
                { PID, 2 * PAGE, PAGE }, { PID, PAGE - 1, PAGE },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
                struct serve *serve = serve_create(NULL, NULL);
                struct pageset *later = pageset_create();
                struct serve_left left = { 0 };
                uint8_t message[sizeof(struct later_piece) + PAGE] = { 0 };
                int ends[2];

                memcpy(message, &heads[i], sizeof(heads[i]));
                assert_int_equal(pageset_add(later, PAGE, 3 * PAGE), 0);
                serve_add(serve, PID, make_empty_store());
                serve_later(serve, PID, later);
                assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
                serve_from(serve, ends[0], &left);
                assert_true(send(ends[1], message, sizeof(message) - (heads[i].size_bytes % PAGE != 0), 0) > 0);
                (void) close(ends[1]);
                assert_int_equal(serve_fetch(serve, PID, PAGE, 2 * PAGE), -EBADMSG);
                serve_destroy(serve);
        }
}

static void read_when_reported(int link) {
        become_lazy_in_part(link, PAGES / 3);
        say_pid(link, FINISHED);
        child_wait(link);
        check_pages(area, 0, PAGES);
        child_ready(link);
}

/* CRIU forgets to register a mapping that it has made at its final place by chance. */
static void test_unregistered_mapping(void **state) {
        struct serve *serve = serve_create(NULL, NULL);
        uint64_t start = (uint64_t) (uintptr_t) area;
        struct child child;
        struct rm_error err = { 0 };

        (void) state;
        serve_add(serve, PID, make_store());
        child = child_begin(read_when_reported);
        assert_int_equal(serve_accept(serve, child.link, &err), 0);
        assert_int_equal(serve_register(serve, PID + 1, start, start + PAGE), -ESRCH);
        assert_int_equal(serve_register(serve, PID, start, start + (uint64_t) PAGES * PAGE), 0);
        assert_int_equal(serve_run(serve, &err), 0);
        child_go(&child);
        child_expect(&child);
        child_finish(&child);
        serve_destroy(serve);
}

static void test_process_ends(void **state) {
        struct serve *serve = serve_create(NULL, NULL);
        struct child child;
        struct rm_error err = { 0 };

        (void) state;
        serve_add(serve, PID, make_store());
        serve_add(serve, PID + 1, make_empty_store()); /* CRIU never speaks of it: it had ended */
        child = child_begin(end_early);
        assert_int_equal(serve_accept(serve, child.link, &err), 0);
        assert_int_equal(serve_run(serve, &err), 0);
        child_finish(&child);
        serve_destroy(serve);
}

/* ---- what CRIU may say ---- */

/* PID is to be restored, with the pages of `store`. */
static int accept_bytes(struct page_store *store, const void *data, size_t size, int descriptor, bool with_second) {
        struct serve *serve = serve_create(NULL, NULL);
        struct rm_error err = { 0 };
        int ends[2], r;

        serve_add(serve, PID, store);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        assert_int_equal(passing_send(ends[1], data, size, -1), 0);
        if (with_second)
                assert_int_equal(passing_send(ends[1], "", 1, descriptor), 0);
        (void) close(ends[1]);
        r = serve_accept(serve, ends[0], &err);
        (void) close(ends[0]);
        serve_destroy(serve);
        return r;
}

static void test_bad_messages(void **state) {
        const int32_t pid = PID, stranger = PID + 1, finished = FINISHED;
        cleanup_close int other = open("/dev/null", O_RDWR | O_CLOEXEC);
        cleanup_close int uffd = (int) syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
        struct uffdio_api api = { .api = UFFD_API };

        (void) state;
        assert_int_equal(ioctl(uffd, UFFDIO_API, &api), 0);
        assert_int_equal(accept_bytes(make_empty_store(), "", 1, -1, false), -ECANCELED);
        assert_int_equal(accept_bytes(make_empty_store(), &pid, sizeof(pid), -1, false), -ECANCELED);
        assert_int_equal(accept_bytes(make_empty_store(), &pid, sizeof(pid), -1, true), -EPROTO);
        assert_int_equal(accept_bytes(make_empty_store(), &pid, sizeof(pid), other, true), -EPROTO);
        assert_int_equal(accept_bytes(make_empty_store(), &finished, sizeof(finished), -1, false), 0);
        /* Other processes than those whose pages there are. */
        assert_int_equal(accept_bytes(make_empty_store(), &pid, sizeof(pid), uffd, true), -ECANCELED);
        assert_int_equal(accept_bytes(make_empty_store(), &stranger, sizeof(stranger), uffd, true), -EPROTO);
        assert_int_equal(accept_bytes(make_store(), &finished, sizeof(finished), -1, false), -EPROTO);
}

/* ---- who holds duplicates ---- */

/* Descriptors that are served now, and how many there were. */
struct holder {
        int served[8];
        size_t n_served;
        size_t n_begun;
        int copying; /* -1: none */
};

static int on_began(void *ctx, int uffd, int file, int parent_uffd) {
        struct holder *holder = ctx;

        assert_int_equal(holder->copying, -1);
        if (parent_uffd >= 0) {
                assert_int_equal(parent_uffd, holder->served[0]);
                holder->copying = uffd;
        }

        assert_true(passing_is_userfaultfd(uffd) && file >= 0 && holder->n_served < ARRAY_SIZE(holder->served));
        for (size_t i = 0; i < holder->n_served; i++)
                assert_int_not_equal(holder->served[i], uffd);
        holder->served[holder->n_served++] = uffd;
        holder->n_begun++;
        return 0;
}

static int on_copied(void *ctx, int uffd) {
        struct holder *holder = ctx;

        assert_int_equal(holder->copying, uffd);
        holder->copying = -1;
        return 0;
}

static int on_ended(void *ctx, int uffd) {
        struct holder *holder = ctx;
        size_t i = 0;

        assert_int_equal(holder->copying, -1);

        while (i < holder->n_served && holder->served[i] != uffd)
                i++;
        assert_true(i < holder->n_served);
        holder->served[i] = holder->served[--holder->n_served];
        return 0;
}

static void fork_and_check(void) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                check_pages(area, 0, PAGES);
                _exit(0);
        }
        child_assert(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static void fork_twice(int link) {
        become_lazy(link);
        fork_and_check(); /* while all is missing */
        say_pid(link, FINISHED);
        fork_and_check();
        child_wait(link);
        child_ready(link);
}

static void test_holder_is_told(void **state) {
        struct holder holder = { .copying = -1 };
        const struct serve_ops ops = { .ctx = &holder, .began = on_began, .copied = on_copied, .ended = on_ended };
        struct serve *serve = serve_create(&ops, NULL);
        struct child child;
        struct rm_error err = { 0 };

        (void) state;
        serve_add(serve, PID, make_store());
        child = child_begin(fork_twice);
        assert_int_equal(serve_accept(serve, child.link, &err), 0);
        assert_in_range(holder.n_begun, 2, 3); /* the second fork may come when nothing is missing any more */
        assert_int_equal(serve_run(serve, &err), 0);
        assert_int_equal(holder.n_served, 0);
        child_go(&child);
        child_expect(&child);
        child_finish(&child);
        serve_destroy(serve);
}

/* The memory that a program may have copied by forking is bounded. */
static void test_forks_are_bounded(void **state) {
        const struct serve_ops ops = { .max_bytes = (uint64_t) PAGES * PAGE };
        struct serve *serve = serve_create(&ops, NULL);
        struct child child;
        struct rm_error err = { 0 };

        (void) state;
        serve_add(serve, PID, make_store());
        child = child_begin(fork_twice);
        assert_int_equal(serve_accept(serve, child.link, &err), -ENOMEM);
        assert_int_equal(child_end(&child), SIGKILL);
        serve_destroy(serve);
}

/* ---- servers that die ---- */

static void serve_until_killed(int uffd, int store_file, atomic_uint *in_hand, useconds_t usec) {
        pid_t pid = fork();

        if (pid == 0) {
                struct serve *serve = serve_create(NULL, in_hand);
                struct page_store *store;

                child_assert(page_store_adopt(store_file, &store) == 0);
                child_assert(serve_resume(serve, uffd, store) == 0);
                (void) serve_run(serve, NULL);
                _exit(0);
        }
        assert_true(pid > 0);
        (void) usleep(usec);
        (void) kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Each goes on where the one before was killed; the program never sees a wrong byte, nor waits for
 * ever. */
static void test_servers_die(void **state) {
        atomic_uint *in_hand = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        unsigned resumed = 0;

        (void) state;
        for (unsigned i = 0; i < 20; i++) {
                struct page_store *store = make_store();
                struct child child = child_begin(read_in_threads);
                int32_t words[2];
                int uffd, none;
                char byte;

                assert_int_equal(passing_receive(child.link, words, sizeof(words), &none), 0);
                assert_int_equal(words[1], PID);
                assert_int_equal(passing_receive(child.link, &byte, 1, &uffd), 0);
                assert_int_equal(passing_receive(child.link, words, sizeof(words[0]), &none), 0);
                atomic_store(in_hand, 0);
                for (unsigned k = 0; k < 4 && atomic_load(in_hand) == 0; k++)
                        serve_until_killed(uffd, page_store_fd(store), in_hand, 300 + (i * 7919 + k * 104729) % 3000);
                if (atomic_load(in_hand) == 0) {
                        struct serve *serve = serve_create(NULL, in_hand);
                        struct rm_error err = { 0 };
                        struct page_store *rest;

                        assert_int_equal(page_store_adopt(fcntl(page_store_fd(store), F_DUPFD_CLOEXEC, 3), &rest), 0);
                        assert_int_equal(serve_resume(serve, uffd, rest), 0);
                        if (serve_run(serve, &err) < 0)
                                fail_msg("%s", err.text);
                        child_go(&child);
                        child_expect(&child);
                        serve_destroy(serve);
                        resumed++;
                        child_finish(&child);
                } else {
                        /* The order is this one: the child would run on zeros. */
                        assert_int_equal(child_end(&child), SIGKILL);
                        (void) close(uffd);
                }
                page_store_destroy(store);
        }
        assert_true(resumed >= 10);
        (void) munmap(in_hand, PAGE);
}

static void read_hole(int link) {
        become_lazy(link);
        child_assert(page_is(area + 5 * PAGE, 5));
        child_ready(link);
        child_wait(link);
}

/* A fault that a server had read when it died is told to no other, and others hold the userfaultfd
 * open. */
static void test_lost_fault(void **state) {
        struct serve *serve = serve_create(NULL, NULL);
        struct child child = child_begin(read_hole);
        struct pollfd p = { .fd = child.link, .events = POLLIN };
        struct uffd_msg m;
        struct rm_error err = { 0 };
        int32_t pids[2];
        int uffd, none;
        char byte;

        (void) state;
        assert_true(is_zero(5));
        assert_int_equal(passing_receive(child.link, pids, sizeof(pids), &none), 0);
        assert_int_equal(passing_receive(child.link, &byte, 1, &uffd), 0);
        assert_int_equal(poll(&(struct pollfd) { .fd = uffd, .events = POLLIN }, 1, 10000), 1);
        assert_int_equal(read(uffd, &m, sizeof(m)), sizeof(m));
        assert_int_equal(m.event, UFFD_EVENT_PAGEFAULT);
        assert_int_equal(serve_resume(serve, fcntl(uffd, F_DUPFD_CLOEXEC, 3), make_store()), 0);
        assert_int_equal(serve_run(serve, &err), 0);
        /* On a busy machine it asks again when all else is given, and nobody serves it any more. */
        assert_in_range(serve_figures(serve)->faults, 0, 1);
        (void) close(uffd);
        assert_int_equal(poll(&p, 1, 10000), 1);
        child_expect(&child);
        child_go(&child);
        child_finish(&child);
        serve_destroy(serve);
}

static int set_up(void **state) {
        (void) state;
        area = mmap(NULL, (size_t) PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return area == MAP_FAILED ? -1 : 0;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_programs),          cmocka_unit_test(test_later),
                cmocka_unit_test(test_source_lost),       cmocka_unit_test(test_bad_pieces),
                cmocka_unit_test(test_process_ends),      cmocka_unit_test(test_bad_messages),
                cmocka_unit_test(test_servers_die),       cmocka_unit_test(test_lost_fault),
                cmocka_unit_test(test_holder_is_told),    cmocka_unit_test(test_unregistered_mapping),
                cmocka_unit_test(test_forks_are_bounded),
        };

        priority_normal();
        return cmocka_run_group_tests_name("pages-serve", tests, set_up, NULL);
}
