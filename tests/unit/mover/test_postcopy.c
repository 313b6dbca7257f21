/* Memory that is left in the freeze, and follows: what has come is compared with what the process
 * has, which stands still. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../pages/child.h"
#include "../pages/programs.h"
#include "arrived.h"
#include "common/util.h"
#include "daemon/pages/later.h"
#include "daemon/pages/maps.h"
#include "daemon/pages/page_store.h"
#include "daemon/pages/pageset.h"

enum {
        PAGE = PAGES_PAGE_BYTES,
        AREA = 32 << 20 >> 12,
        FULL_USEC = 100000, /* until all sockets on the way are full */
        /* A page comes behind the megabyte that may be under way when a page is asked for, and what
         * the uffd handler's own socket holds */
        SOON_BYTES = 3 << 19,
};

static int setup(void **state) {
        struct bed *b;

        (void) bed_setup(state);
        b = *state;
        b->codec = RM__MOVER_CODEC__MOVER_CODEC_NONE;
        assert_int_equal(mount("none", b->out, "tmpfs", 0, "size=1g"), 0);
        return 0;
}

static void write_all_pages(int link) {
        char *area = map_area(AREA);

        memset(area, 1, (size_t) AREA * PAGE);
        child_ready(link);
        for (size_t round = 0;; round++)
                for (size_t i = 0; i < AREA; i++)
                        memcpy(area + i * PAGE + i % (PAGE - sizeof(round)), &round, sizeof(round));
}

static void write_a_page(int link) {
        char *area = map_area(AREA);

        memset(area, 1, (size_t) AREA * PAGE);
        child_ready(link);
        for (char c = 0;; c++) {
                area[5 * PAGE] = c;
                (void) usleep(1000);
        }
}

static void stand_still(pid_t pid) {
        assert_int_equal(kill(pid, SIGSTOP), 0);
        for (;;) {
                cleanup_free char *line = child_status(pid, "State");

                if (strchr(line, 'T'))
                        return;
                (void) usleep(1000);
        }
}

static uint64_t precopy(struct bed *b, const struct child *child) {
        cleanup_free char *procs = xasprintf("%d\n", (int) child->pid);
        Rm__MoverEvent *e;
        uint64_t later_bytes;

        b->postcopy = true;
        connect_unstarted(b, NULL);
        say_precopy(b, procs, true, 0);
        e = pair_expect(&b->pair, PAIR_SEND, RM__MOVER_EVENT__BODY_PRECOPIED);
        assert_non_null(e);
        later_bytes = e->precopied->figures->later_bytes;
        rm__mover_event__free_unpacked(e, NULL);
        return later_bytes;
}

/* The anonymous memory of the process: in a sanitized build much is not the area's. */
static uint64_t anonymous_bytes(pid_t pid) {
        cleanup_free char *line = child_status(pid, "RssAnon");

        return strtoull(strchr(line, ':') + 1, NULL, 10) << 10;
}

/* The bytes that are to come, as the receiver reports them. */
static uint64_t freeze(struct bed *b, const struct child *child) {
        Rm__MoverEvent *received;
        uint64_t later_bytes;
        int sock, inventory;

        stand_still(child->pid);
        pair_say_start(&b->pair);
        sock = fake_criu_connect(b->images);
        inventory = fake_criu_open(sock, "inventory.img");
        assert_int_equal(write_all(inventory, "inventory", 9), 0);
        (void) close(inventory);
        (void) close(sock);
        say_done(b);
        expect(b, PAIR_SEND, RM__MOVER_EVENT__BODY_ACKNOWLEDGED);
        received = pair_expect(&b->pair, PAIR_RECEIVE, RM__MOVER_EVENT__BODY_RECEIVED);
        assert_non_null(received);
        later_bytes = received->received->figures->later_bytes;
        rm__mover_event__free_unpacked(received, NULL);
        return later_bytes;
}

/* ---- the uffd handler's part ---- */

static struct pageset *later_of(const struct bed *b, pid_t pid) {
        cleanup_free char *path = xasprintf("%s/later/%d", b->out, (int) pid);
        cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct pageset *later = NULL;

        assert_int_equal(pageset_load(fd, &later), 0);
        return later;
}

static int uffd_handler_connect(const struct bed *b) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s/" LATER_SOCKET, b->out);
        assert_int_equal(connect(fd, (const struct sockaddr *) &address, sizeof(address)), 0);
        return fd;
}

/* False when there are no more. */
static bool piece_take(int fd, struct page_store *store, struct pageset *left, pid_t pid, uint64_t *ret_start, uint64_t *ret_end) {
        static struct {
                struct later_piece head;
                uint8_t data[LATER_PIECE_MAX_BYTES];
        } piece;
        ssize_t n = recv(fd, &piece, sizeof(piece), 0);

        if (n <= 0)
                return false;
        assert_int_equal(piece.head.pid, pid);
        assert_int_equal(n, sizeof(piece.head) + piece.head.size_bytes);
        *ret_start = piece.head.address;
        *ret_end = *ret_start + piece.head.size_bytes;
        for (uint64_t at = *ret_start; at < *ret_end; at += PAGE)
                assert_true(pageset_has(left, at)); /* none twice */
        pageset_remove(left, *ret_start, *ret_end);
        assert_int_equal(page_store_write(store, *ret_start, piece.data, piece.head.size_bytes), 0);
        return true;
}

/* Asks for pages now and then, from behind, after others had to wait for this side. */
static void take_all(int fd, const struct bed *b, pid_t pid, uint64_t sum_bytes) {
        cleanup_free char *path = arrived(b, pid);
        struct pageset *left = later_of(b, pid);
        struct page_store *store;
        uint64_t start = 0, end = 0, requested = 0, since_bytes = 0;
        bool waits = false;

        assert_int_equal(pageset_bytes(left), sum_bytes);
        assert_int_equal(page_store_adopt(open(path, O_RDWR | O_CLOEXEC), &store), 0);
        for (unsigned i = 0; pageset_bytes(left) > 0; i++) {
                if (i % 100 == 0 && pageset_next(left, end + (6 << 20), PAGE, &requested, &end)) {
                        const struct later_piece ask = { .pid = (uint32_t) pid, .address = requested };

                        (void) usleep(FULL_USEC);
                        assert_int_equal(send(fd, &ask, sizeof(ask), 0), sizeof(ask));
                        waits = true;
                        since_bytes = 0;
                }
                assert_true(piece_take(fd, store, left, pid, &start, &end));
                since_bytes += end - start;
                if (requested >= start && requested < end)
                        waits = false;
                if (waits)
                        assert_in_range(since_bytes, 0, SOON_BYTES);
        }
        pageset_destroy(left);
        page_store_destroy(store);
}

/* `without_rmd`: it goes before the uffd handler comes. */
static void move_all(struct bed *b, bool without_rmd) {
        struct child child = child_begin(write_all_pages);
        uint64_t expected = precopy(b, &child), bytes;
        int fd;

        assert_true(expected >= (uint64_t) AREA * PAGE);
        bytes = freeze(b, &child);
        /* The kernel's count may be off by a batch of each processor. */
        assert_in_range(bytes, (uint64_t) AREA * PAGE, anonymous_bytes(child.pid) + (1 << 20));
        for (int i = 0; i < 2 && without_rmd; i++) {
                (void) close(b->pair.fds[i]);
                b->pair.fds[i] = -1;
        }
        fd = uffd_handler_connect(b);
        take_all(fd, b, child.pid, bytes);
        (void) close(fd);
        pair_finish(&b->pair, b->codes);
        assert_int_equal(b->codes[PAIR_SEND], 0);
        assert_int_equal(b->codes[PAIR_RECEIVE], 0);
        compare(b, child.pid);
        assert_int_equal(child_end(&child), SIGKILL);
}

static void test_all_later(void **state) {
        move_all(*state, false);
}

static void test_without_rmd(void **state) {
        move_all(*state, true);
}

/* Rounds are worth it. */
static void test_nothing_later(void **state) {
        struct bed *b = *state;
        struct child child = child_begin(write_a_page);

        assert_int_equal(precopy(b, &child), 0);
        assert_int_equal(freeze(b, &child), 0);
        pair_finish(&b->pair, b->codes);
        assert_int_equal(b->codes[PAIR_SEND], 0);
        assert_int_equal(b->codes[PAIR_RECEIVE], 0);
        compare(b, child.pid);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* The uffd handler is hung up on: it has not got all, and knows it. */
static void hang_up_seen(int fd) {
        static uint8_t junk[sizeof(struct later_piece) + LATER_PIECE_MAX_BYTES];
        ssize_t n;

        do
                n = recv(fd, junk, sizeof(junk), 0);
        while (n > 0);
        (void) close(fd);
}

static void test_source_dies(void **state) {
        struct bed *b = *state;

        for (int i = 0; i < 3; i++) {
                struct child child = child_begin(write_all_pages);
                cleanup_free char *before = xasprintf("%s/pages", b->out), *later = xasprintf("%s/later", b->out),
                                  *sock = xasprintf("%s/" LATER_SOCKET, b->out);
                int fd;

                (void) precopy(b, &child);
                assert_true(freeze(b, &child) > 0);
                fd = uffd_handler_connect(b);
                if (i == 0)
                        assert_int_equal(kill(b->pair.pids[PAIR_SEND], SIGKILL), 0);
                else if (i == 1)
                        assert_int_equal(kill(b->pair.pids[PAIR_RECEIVE], SIGKILL), 0);
                else
                        assert_int_equal(kill(child.pid, SIGKILL), 0);
                hang_up_seen(fd);
                pair_finish(&b->pair, b->codes);
                assert_int_equal(child_end(&child), SIGKILL);
                assert_int_equal(remove_tree(before), 0);
                assert_int_equal(remove_tree(later), 0);
                (void) unlink(sock);
        }
}

/* The uffd handler dies: both end. */
static void test_filler_dies(void **state) {
        struct bed *b = *state;
        struct child child = child_begin(write_all_pages);

        (void) precopy(b, &child);
        assert_true(freeze(b, &child) > 0);
        (void) close(uffd_handler_connect(b));
        pair_finish(&b->pair, b->codes);
        assert_true(b->codes[PAIR_SEND] < 128 && b->codes[PAIR_RECEIVE] < 128);
        assert_int_equal(child_end(&child), SIGKILL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_all_later, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_without_rmd, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_nothing_later, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_source_dies, setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_filler_dies, setup, bed_teardown),
        };

        priority_normal();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
