/* A pair of movers, with rmd and CRIU played by the test: what goes right, and what is said when
 * something goes wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bed.h"
#include "common/frame.h"
#include "common/util.h"
#include "daemon/image/place.h"
#include "daemon/mover/mover.h"
#include "daemon/transfer/mover.h"

#define PAGES_BYTES (3U << 20)

/* The memory of this very process goes ahead. */
static void say_precopy_self(struct bed *b, uint64_t bytes_per_sec) {
        cleanup_free char *procs = xasprintf("%d\n999999999\n", (int) getpid());

        say_precopy(b, procs, false, bytes_per_sec);
}

static char *pages_make(void) {
        char *pages = xcalloc(1, PAGES_BYTES);

        for (size_t i = 0; i < PAGES_BYTES; i++)
                pages[i] = (char) ((i / 4096) % 3 == 0 ? 0 : i * 7 + i / 4096);
        return pages;
}

/* Several images at once, one of them large, one empty, as CRIU does it. */
static void dump(struct bed *b, const char *pages) {
        int sock = fake_criu_connect(b->images);
        int inventory;
        int empty;
        int big;

        assert_true(sock >= 0);
        inventory = fake_criu_open(sock, "inventory.img");
        empty = fake_criu_open(sock, "empty.img");
        big = fake_criu_open(sock, "pages-1.img");
        assert_true(inventory >= 0 && empty >= 0 && big >= 0);
        assert_int_equal(write_all(inventory, "inv", 3), 0);
        (void) write_all(big, pages, PAGES_BYTES); /* the other side may be gone */
        (void) close(empty);
        (void) write_all(inventory, "entory", 6);
        (void) close(inventory);
        (void) close(big);
        (void) close(sock);
}

static void test_a_move(void **state) {
        struct bed *b = *state;
        cleanup_free char *pages = pages_make();
        cleanup_free char *file = xasprintf("%s/file", b->tree_from);
        cleanup_free char *arrived = xasprintf("%s/file", b->tree_to);
        Rm__MoverEvent *e;
        struct stat st;

        assert_int_equal(write_file_atomic(file, "contents", 8, 0640, false), 0);
        connect_pair(b, NULL);
        dump(b, pages);
        say_done(b);
        expect(b, PAIR_SEND, RM__MOVER_EVENT__BODY_SENT);
        e = pair_expect(&b->pair, PAIR_SEND, RM__MOVER_EVENT__BODY_ACKNOWLEDGED);
        assert_non_null(e);
        assert_int_equal(e->acknowledged->figures->images_raw_bytes, PAGES_BYTES + 9);
        assert_true(e->acknowledged->figures->zero_bytes >= PAGES_BYTES / 4);
        assert_true(e->acknowledged->figures->wire_bytes < PAGES_BYTES * 3 / 4);
        rm__mover_event__free_unpacked(e, NULL);
        expect(b, PAIR_RECEIVE, RM__MOVER_EVENT__BODY_RECEIVED);
        pair_finish(&b->pair, b->codes);
        assert_int_equal(b->codes[PAIR_SEND], 0);
        assert_int_equal(b->codes[PAIR_RECEIVE], 0);
        image_check(b, "pages-1.img", pages, PAGES_BYTES);
        image_check(b, "inventory.img", "inventory", 9);
        image_check(b, "empty.img", "", 0);
        assert_int_equal(stat(arrived, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0640);
}

/* A move with that codec. What it saved, and the bytes that went through each codec. */
static uint64_t saved_by(struct bed *b, Rm__MoverCodec codec, const char *pages, uint64_t *ret_lz4, uint64_t *ret_zstd) {
        const Rm__MoverFigures *f;
        Rm__MoverEvent *e;
        uint64_t saved;

        b->codec = codec;
        connect_pair(b, NULL);
        dump(b, pages);
        say_done(b);
        e = pair_expect(&b->pair, PAIR_SEND, RM__MOVER_EVENT__BODY_ACKNOWLEDGED);
        assert_non_null(e);
        f = e->acknowledged->figures;
        *ret_lz4 = f->lz4_bytes;
        *ret_zstd = f->zstd_bytes;
        saved = f->saved_bytes;
        assert_true(saved <= f->lz4_bytes + f->zstd_bytes);
        assert_in_range(f->wire_bytes + saved, PAGES_BYTES / 2, PAGES_BYTES);
        rm__mover_event__free_unpacked(e, NULL);
        pair_finish(&b->pair, b->codes);
        assert_int_equal(b->codes[PAIR_SEND], 0);
        assert_int_equal(b->codes[PAIR_RECEIVE], 0);
        image_check(b, "pages-1.img", pages, PAGES_BYTES);
        image_check(b, "inventory.img", "inventory", 9);
        return saved;
}

static void test_codecs(void **state) {
        struct bed *b = *state;
        cleanup_free char *pages = pages_make();
        uint64_t lz4 = 0;
        uint64_t zstd = 0;

        assert_int_equal(saved_by(b, RM__MOVER_CODEC__MOVER_CODEC_NONE, pages, &lz4, &zstd), 0);
        assert_int_equal(lz4 + zstd, 0);
        assert_true(saved_by(b, RM__MOVER_CODEC__MOVER_CODEC_LZ4, pages, &lz4, &zstd) > PAGES_BYTES / 4);
        assert_true(lz4 > PAGES_BYTES / 2 && zstd == 0);
        assert_true(saved_by(b, RM__MOVER_CODEC__MOVER_CODEC_ZSTD, pages, &lz4, &zstd) > PAGES_BYTES / 4);
        assert_true(zstd > PAGES_BYTES / 2 && lz4 == 0);
        (void) saved_by(b, RM__MOVER_CODEC__MOVER_CODEC_AUTO, pages, &lz4, &zstd);
}

/* ---- a receiver that was made before there were codecs ---- */

static int socket_listen(uint32_t *ret_port) {
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(a);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_int_equal(bind(fd, (struct sockaddr *) &a, sizeof(a)), 0);
        assert_int_equal(listen(fd, 1), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *) &a, &size), 0);
        *ret_port = ntohs(a.sin_port);
        return fd;
}

/* The welcome names no codecs. */
static int older_welcome(int listen_fd) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
        Rm__MoverPeerMessage message = RM__MOVER_PEER_MESSAGE__INIT;
        Rm__MoverWelcome welcome = RM__MOVER_WELCOME__INIT;
        ProtobufCMessage *hello = NULL;

        assert_true(fd >= 0);
        assert_int_equal(frame_receive(fd, FRAME_MAGIC_MOVER, FRAME_MAX_MOVER_BYTES, &rm__mover_peer_message__descriptor, &hello),
                         0);
        protobuf_c_message_free_unpacked(hello, NULL);
        welcome.version = 1;
        message.body_case = RM__MOVER_PEER_MESSAGE__BODY_WELCOME;
        message.welcome = &welcome;
        assert_int_equal(frame_send(fd, FRAME_MAGIC_MOVER, &message.base), 0);
        return fd;
}

static int fd_read(void *ctx, void *ret_data, size_t size_bytes, struct rm_error *err) {
        int r = read_all(*(int *) ctx, ret_data, size_bytes);

        return r < 0 ? error_sys(err, r, "read") : 0;
}

static void older_receive(struct bed *b, int *fd, struct image_figures *ret_figures) {
        const struct image_source source = { .ctx = fd, .read = fd_read };
        struct image_place *place = image_place_create();
        struct image_reader *reader = NULL;
        struct rm_error err = { 0 };

        image_place_images(place, b->out);
        image_place_tree(place, "tmp", b->tree_to);
        assert_int_equal(image_reader_create(&source, image_place_target(place), NULL, &reader, &err), 0);
        assert_int_equal(image_reader_run(reader, &err), 0);
        *ret_figures = *image_reader_figures(reader);
        image_reader_destroy(reader);
        image_place_destroy(place);
}

static void test_older_receiver(void **state) {
        struct bed *b = *state;
        cleanup_free char *pages = pages_make();
        struct image_figures figures = { 0 };
        uint32_t port = 0;
        int listen_fd = socket_listen(&port);
        pid_t criu;
        int fd;

        b->codec = RM__MOVER_CODEC__MOVER_CODEC_ZSTD;
        pair_start(&b->pair, NULL);
        say_send(b, "", TOKEN, port);
        fd = older_welcome(listen_fd);
        expect(b, PAIR_SEND, RM__MOVER_EVENT__BODY_READY);
        pair_say_start(&b->pair);
        /* The dump runs in another process, since this one has to take the stream meanwhile. */
        criu = fork();
        if (criu == 0) {
                dump(b, pages);
                say_done(b);
                _exit(0);
        }
        older_receive(b, &fd, &figures);
        assert_int_equal(waitpid(criu, NULL, 0), criu);
        assert_int_equal(figures.saved_bytes, 0);
        assert_int_equal(figures.coded_bytes[IMAGE_CODEC_LZ4] + figures.coded_bytes[IMAGE_CODEC_ZSTD], 0);
        image_check(b, "pages-1.img", pages, PAGES_BYTES);
        (void) close(fd);
        (void) close(listen_fd);
        pair_finish(&b->pair, b->codes);
}

static void test_wrong_token(void **state) {
        struct bed *b = *state;
        uint32_t port;

        b->accept_timeout_msec = 2000;
        pair_start(&b->pair, NULL);
        port = say_receive(b, b->key_file, TOKEN);
        say_send(b, b->key_file, "b token of a move", port);
        expect_failure(b, PAIR_SEND, "token", NULL, NULL);
        /* The receiver goes on waiting for the right one. */
        expect_failure(b, PAIR_RECEIVE, "no mover connected", NULL, NULL);
        finish_failed(b);
}

static void test_wrong_key(void **state) {
        struct bed *b = *state;
        cleanup_free char *other = xasprintf("%s/other", b->base);
        uint32_t port;

        assert_int_equal(write_file_atomic(other, "xxxxxxxxxxxxxxxx0123456789abcdef", 32, 0600, false), 0);
        pair_start(&b->pair, NULL);
        port = say_receive(b, b->key_file, TOKEN);
        say_send(b, other, TOKEN, port);
        expect_failure(b, PAIR_SEND, "not of this cluster", NULL, NULL);
        pair_say_abort(&b->pair, PAIR_RECEIVE, "enough");
        expect_failure(b, PAIR_RECEIVE, "enough", NULL, NULL);
        finish_failed(b);
}

/* While the key is changed, a receiver knows both; its second may be gone again before rmd is
 * started anew. */
static void test_second_key(void **state) {
        struct bed *b = *state;
        cleanup_free char *newer = xasprintf("%s/newer", b->base);

        assert_int_equal(write_file_atomic(newer, "xxxxxxxxxxxxxxxx0123456789abcdef", 32, 0600, false), 0);
        for (unsigned i = 0; i < 3; i++) {
                uint32_t port;

                pair_start(&b->pair, NULL);
                b->second_key_file = i == 0 ? newer : i == 1 ? b->key_file : "/nonexistent";
                port = say_receive(b, i == 1 ? newer : b->key_file, TOKEN);
                say_send(b, i == 0 ? newer : b->key_file, TOKEN, port);
                expect(b, PAIR_SEND, RM__MOVER_EVENT__BODY_READY);
                expect(b, PAIR_RECEIVE, RM__MOVER_EVENT__BODY_READY);
                pair_say_abort(&b->pair, PAIR_SEND, "enough");
                expect_failure(b, PAIR_SEND, "enough", NULL, NULL);
                expect_failure(b, PAIR_RECEIVE, "before its end mark", NULL, NULL);
                finish_failed(b);
        }
}

static int stranger(uint32_t port, const char *text) {
        struct sockaddr_in a = { .sin_family = AF_INET,
                                 .sin_port = htons((uint16_t) port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_int_equal(connect(fd, (struct sockaddr *) &a, sizeof(a)), 0);
        (void) write_all(fd, text, strlen(text));
        return fd;
}

/* Strangers may connect, and send nothing, garbage or much of it: the right peer still gets in, at
 * once. */
static void test_strangers_do_not_hold_up(void **state) {
        struct bed *b = *state;
        cleanup_free char *pages = pages_make();
        int fds[40];
        uint64_t start_usec;
        uint32_t port;

        pair_start(&b->pair, NULL);
        port = say_receive(b, b->key_file, TOKEN);
        for (unsigned i = 0; i < 40; i++)
                fds[i] = stranger(port, i % 2 ? "GET / HTTP/1.0\r\n\r\n" : "");
        start_usec = now_usec();
        say_send(b, b->key_file, TOKEN, port);
        expect(b, PAIR_SEND, RM__MOVER_EVENT__BODY_READY);
        /* Each of them may keep silent for all of this time. */
        assert_true(now_usec() - start_usec < MOVER_TIMEOUT_MSEC * 500U);
        pair_say_start(&b->pair);
        dump(b, pages);
        say_done(b);
        expect(b, PAIR_SEND, RM__MOVER_EVENT__BODY_ACKNOWLEDGED);
        pair_finish(&b->pair, b->codes);
        assert_int_equal(b->codes[PAIR_SEND], 0);
        assert_int_equal(b->codes[PAIR_RECEIVE], 0);
        for (unsigned i = 0; i < 40; i++)
                (void) close(fds[i]);
}

static void test_abort_at_the_source(void **state) {
        struct bed *b = *state;
        bool end_mark_sent = true;
        int code = 0;

        connect_pair(b, NULL);
        pair_say_abort(&b->pair, PAIR_SEND, "the user changed his mind");
        expect_failure(b, PAIR_SEND, "changed his mind", &code, &end_mark_sent);
        assert_int_equal(code, -ECANCELED);
        assert_false(end_mark_sent);
        expect_failure(b, PAIR_RECEIVE, "end mark", NULL, NULL);
        finish_failed(b);
}

static void test_abort_at_the_destination(void **state) {
        struct bed *b = *state;

        connect_pair(b, NULL);
        pair_say_abort(&b->pair, PAIR_RECEIVE, "no more room");
        expect_failure(b, PAIR_RECEIVE, "no more room", NULL, NULL);
        expect_failure(b, PAIR_SEND, "the destination: aborted: no more room", NULL, NULL);
        finish_failed(b);
}

static void test_dump_without_criu(void **state) {
        struct bed *b = *state;

        connect_pair(b, NULL);
        say_done(b);
        expect_failure(b, PAIR_SEND, "CRIU never connected", NULL, NULL);
        expect_failure(b, PAIR_RECEIVE, "end mark", NULL, NULL);
        finish_failed(b);
}

/* The reason arrives at both ends, and CRIU is not left hanging. */
static void test_destination_full(void **state) {
        struct bed *b = *state;
        cleanup_free char *pages = pages_make();

        if (mount("none", b->out, "tmpfs", 0, "size=1m") < 0)
                skip();
        connect_pair(b, NULL);
        dump(b, pages);
        say_done(b);
        expect_failure(b, PAIR_RECEIVE, "No space left on device", NULL, NULL);
        expect_failure(b, PAIR_SEND, "the destination: write pages-1.img", NULL, NULL);
        finish_failed(b);
}

static void test_peer_killed(void **state) {
        struct bed *b = *state;
        bool end_mark_sent = true;

        connect_pair(b, NULL);
        assert_int_equal(kill(b->pair.pids[PAIR_RECEIVE], SIGKILL), 0);
        expect_failure(b, PAIR_SEND, "other node", NULL, &end_mark_sent);
        assert_false(end_mark_sent);
        pair_finish(&b->pair, b->codes);
        assert_int_equal(b->codes[PAIR_SEND], 1);
        assert_int_equal(b->codes[PAIR_RECEIVE], 128 + SIGKILL);
}

static void test_rmd_gone(void **state) {
        struct bed *b = *state;

        connect_pair(b, NULL);
        pair_finish(&b->pair, b->codes); /* closes the sockets */
        assert_int_equal(b->codes[PAIR_SEND], 1);
        assert_int_equal(b->codes[PAIR_RECEIVE], 1);
}

static void test_nonsense_from_rmd(void **state) {
        struct bed *b = *state;

        pair_start(&b->pair, NULL);
        (void) write_all(b->pair.fds[PAIR_SEND], "this is no frame", 16);
        expect_failure(b, PAIR_SEND, "rmd", NULL, NULL);
        pair_say_start(&b->pair);
        say_send(b, b->key_file, "short", 1);
        (void) say_receive(b, b->key_file, "short");
        pair_finish(&b->pair, b->codes);
        assert_int_equal(b->codes[PAIR_SEND], 1);
        assert_int_equal(b->codes[PAIR_RECEIVE], 1);
}

static void go_ahead(struct bed *b, int flags, uint64_t bytes_per_sec) {
        char *pages = mmap(NULL, PAGES_BYTES, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
        cleanup_free char *pattern = pages_make();
        Rm__MoverFigures *f;
        Rm__MoverEvent *e;

        assert_ptr_not_equal(pages, MAP_FAILED);
        memcpy(pages, pattern, PAGES_BYTES);
        connect_unstarted(b, NULL);
        say_precopy_self(b, bytes_per_sec);
        e = pair_expect(&b->pair, PAIR_SEND, RM__MOVER_EVENT__BODY_PRECOPIED);
        assert_non_null(e);
        f = e->precopied->figures;
        assert_true(f->ahead_bytes > 0 && f->ahead_rounds > 0);
        if (bytes_per_sec > 0)
                assert_in_range(f->ahead_bytes * 1000000 / f->ahead_usec, bytes_per_sec / 10, bytes_per_sec / 2 * 3);
        rm__mover_event__free_unpacked(e, NULL);
        memset(pages + 5 * 4096, 'n', 4096);
        memset(pages + 77 * 4096 + 8, 'w', 1);
        pair_say_start(&b->pair);
        dump(b, pages);
        say_done(b);
        e = pair_expect(&b->pair, PAIR_SEND, RM__MOVER_EVENT__BODY_ACKNOWLEDGED);
        assert_non_null(e);
        f = e->acknowledged->figures;
        assert_int_equal(f->have_bytes + f->zero_bytes, PAGES_BYTES - 2 * 4096);
        assert_true(f->wire_bytes - f->ahead_bytes < 64 << 10);
        assert_true(f->raw_bytes >= PAGES_BYTES && f->raw_bytes < PAGES_BYTES + 100);
        rm__mover_event__free_unpacked(e, NULL);
        pair_finish(&b->pair, b->codes);
        assert_int_equal(b->codes[PAIR_SEND], 0);
        assert_int_equal(b->codes[PAIR_RECEIVE], 0);
        image_check(b, "pages-1.img", pages, PAGES_BYTES);
        (void) munmap(pages, PAGES_BYTES);
}

/* Pages that went ahead are not sent again; pages that have changed since are. */
static void test_memory_goes_ahead(void **state) {
        go_ahead(*state, MAP_PRIVATE, 0);
}

static void test_memory_goes_ahead_slowly(void **state) {
        struct bed *b = *state;

        b->codec = RM__MOVER_CODEC__MOVER_CODEC_NONE; /* or there is too little of it to be slow */
        go_ahead(*state, MAP_PRIVATE, 4 << 20);
}

static void test_shared_memory_goes_ahead(void **state) {
        go_ahead(*state, MAP_SHARED, 0);
}

/* Processes that cannot be read cost nothing but time in the freeze. */
static void test_nothing_goes_ahead(void **state) {
        struct bed *b = *state;
        cleanup_free char *pages = pages_make();
        Rm__MoverPrecopy m = RM__MOVER_PRECOPY__INIT;

        m.procs_file = (char *) "/nonexistent/cgroup.procs";
        connect_unstarted(b, NULL);
        pair_say(&b->pair, PAIR_SEND, &MOVER_COMMAND(&m));
        expect(b, PAIR_SEND, RM__MOVER_EVENT__BODY_PRECOPIED);
        pair_say_start(&b->pair);
        dump(b, pages);
        say_done(b);
        expect(b, PAIR_SEND, RM__MOVER_EVENT__BODY_ACKNOWLEDGED);
        pair_finish(&b->pair, b->codes);
        assert_int_equal(b->codes[PAIR_RECEIVE], 0);
        image_check(b, "pages-1.img", pages, PAGES_BYTES);
}

/* The destination is full while the processes still run. */
static void test_destination_full_ahead(void **state) {
        struct bed *b = *state;

        if (mount("none", b->out, "tmpfs", 0, "size=64k") < 0)
                skip();
        connect_unstarted(b, NULL);
        say_precopy_self(b, 0);
        expect_failure(b, PAIR_RECEIVE, "No space left on device", NULL, NULL);
        expect_failure(b, PAIR_SEND, "the destination: write pre-copied blocks", NULL, NULL);
        finish_failed(b);
}

/* The driver of the move must know whether the destination may have all of it. */
static void test_end_mark_is_told(void **state) {
        struct bed *b = *state;
        cleanup_free char *pages = pages_make();
        bool end_mark_sent = false;

        connect_pair(b, "RM_FAULT=mover.receive.end:fail");
        dump(b, pages);
        say_done(b);
        expect_failure(b, PAIR_SEND, "the destination: fault point", NULL, &end_mark_sent);
        assert_true(end_mark_sent);
        expect_failure(b, PAIR_RECEIVE, "fault point", NULL, NULL);
        finish_failed(b);
        connect_pair(b, "RM_FAULT=mover.send.end:fail");
        dump(b, pages);
        say_done(b);
        expect_failure(b, PAIR_SEND, "fault point", NULL, &end_mark_sent);
        assert_false(end_mark_sent);
        expect_failure(b, PAIR_RECEIVE, "end mark", NULL, NULL);
        finish_failed(b);
}

/* Every fault point, as failure and as death: both ends come to an end, and never both with
 * success. */
static void fault_try(struct bed *b, const char *point, const char *action) {
        cleanup_free char *environment = xasprintf("RM_FAULT=%s:%s", point, action);
        cleanup_free char *pages = pages_make();
        Rm__MoverEvent *e = NULL;
        bool sending = strstr(point, "send") != NULL;
        int side = sending ? PAIR_SEND : PAIR_RECEIVE;
        uint32_t port;
        int sock;

        /* The receiver hears nothing of the first one. */
        b->accept_timeout_msec = strcmp(point, "mover.send.connect") == 0 ? 2000 : 0;
        pair_start(&b->pair, environment);
        port = say_receive(b, b->key_file, TOKEN);
        if (port != 0)
                say_send(b, b->key_file, TOKEN, port);
        if (port != 0)
                e = pair_expect(&b->pair, PAIR_SEND, RM__MOVER_EVENT__BODY_READY);
        if (e) {
                rm__mover_event__free_unpacked(e, NULL);
                say_precopy_self(b, 0);
                e = pair_expect(&b->pair, PAIR_SEND, RM__MOVER_EVENT__BODY_PRECOPIED);
        }
        if (e) {
                rm__mover_event__free_unpacked(e, NULL);
                pair_say_start(&b->pair);
                sock = fake_criu_connect(b->images);
                if (sock >= 0) {
                        int fd = fake_criu_open(sock, "pages-1.img");

                        (void) write_all(fd, pages, PAGES_BYTES);
                        (void) close(fd);
                        (void) close(sock);
                }
                say_done(b);
        }
        for (int i = 0; i < 2 && port != 0; i++)
                while ((e = pair_receive(&b->pair, i)))
                        rm__mover_event__free_unpacked(e, NULL);
        pair_finish(&b->pair, b->codes);
        assert_int_equal(b->codes[side], strcmp(action, "kill") == 0 ? 128 + SIGKILL : 1);
        if (strcmp(point, "mover.send.sent") != 0)
                assert_int_not_equal(b->codes[1 - side], 0);
}

static void test_fault_points(void **state) {
        static const char *const points[] = {
                "mover.send.connect",   "mover.send.start",   "mover.send.images", "mover.send.trees",
                "mover.send.end",       "mover.send.precopy", "mover.send.sent",   "mover.receive.listen",
                "mover.receive.accept", "mover.receive.data", "mover.receive.end",
        };
        struct bed *b = *state;

        (void) setenv("RM_TEST_QUIET", "1", 1);
        for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
                fault_try(b, points[i], "fail");
                fault_try(b, points[i], "kill");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_move, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_codecs, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_older_receiver, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_wrong_token, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_wrong_key, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_second_key, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_strangers_do_not_hold_up, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_abort_at_the_source, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_abort_at_the_destination, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_dump_without_criu, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_destination_full, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_peer_killed, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_rmd_gone, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_nonsense_from_rmd, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_memory_goes_ahead, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_memory_goes_ahead_slowly, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_shared_memory_goes_ahead, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_nothing_goes_ahead, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_destination_full_ahead, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_end_mark_is_told, bed_setup, bed_teardown),
                cmocka_unit_test_setup_teardown(test_fault_points, bed_setup, bed_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
