/* The messages that a mover takes from its peer, and from the uffd handler, when pages come later:
 * the peer may be of another version, or send anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../image/memory.h"
#include "../pages/child.h"
#include "../pages/programs.h"
#include "common/frame.h"
#include "common/util.h"
#include "daemon/mover/link_internal.h"
#include "daemon/mover/postcopy.h"
#include "daemon/pages/maps.h"
#include "daemon/pages/pageset.h"

enum {
        PAGE = PAGES_PAGE_BYTES,
        AREA = 8 << 20 >> 12,
        INNER_MAX = 1 << 22, /* pids are lower */
};

/* A mover, in a thread; the test has the other end of its link. */
struct scene {
        char dir[64];
        struct control control;
        struct link link;
        int peer;
        pthread_t thread;
        int r;
        struct rm_error err;
        int listen_fd; /* of a receiver */
        int uffd_handler;
        struct pages *pages; /* of a sender */
        uint64_t later_bytes; /* to come from it */
        struct postcopy_figures figures;
        struct image_writer *writer;
        struct memory image;
        struct child child;
};

static int setup(void **state) {
        struct scene *s = xcalloc(1, sizeof(*s));
        int ends[2];

        (void) signal(SIGPIPE, SIG_IGN);
        strcpy(s->dir, "/tmp/rmd-test-peer.XXXXXX");
        assert_non_null(mkdtemp(s->dir));
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        assert_int_equal(set_nonblock(ends[0], true), 0);
        control_init(&s->control, -1);
        s->link = (struct link) { .control = &s->control, .fd = ends[0] };
        s->peer = ends[1];
        s->uffd_handler = -1;
        *state = s;
        return 0;
}

/* The child has these, too. */
static void hang_up(struct scene *s) {
        (void) shutdown(s->peer, SHUT_RDWR);
        cleanup_close_fd(&s->peer);
        cleanup_close_fd(&s->uffd_handler);
}

/* The result with which the mover has ended. */
static int end(struct scene *s) {
        (void) pthread_join(s->thread, NULL);
        cleanup_close_fd(&s->link.fd);
        return s->r;
}

static int teardown(void **state) {
        struct scene *s = *state;

        hang_up(s);
        pages_destroy(s->pages);
        image_writer_destroy(s->writer);
        if (s->image.data)
                memory_finish(&s->image);
        if (s->child.pid > 0)
                (void) child_end(&s->child);
        assert_int_equal(remove_tree(s->dir), 0);
        free(s);
        return 0;
}

/* ---- the receiver ---- */

static void *be_receiver(void *ctx) {
        struct scene *s = ctx;

        s->r = postcopy_receive(&s->control, &s->link, s->listen_fd, &s->err);
        (void) shutdown(s->link.fd, SHUT_RDWR);
        return NULL;
}

static void receiver_begin(struct scene *s) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        assert_int_equal(postcopy_listen(s->dir, &s->listen_fd, NULL), 0);
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s/" LATER_SOCKET, s->dir);
        s->uffd_handler = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(s->uffd_handler, (const struct sockaddr *) &address, sizeof(address)), 0);
        assert_int_equal(pthread_create(&s->thread, NULL, be_receiver, s), 0);
}

static void piece_say_counted(const struct scene *s, uint32_t pid, uint64_t address, size_t size_bytes, bool count) {
        Rm__MoverPeerMessage message = RM__MOVER_PEER_MESSAGE__INIT;
        Rm__MoverLater m = RM__MOVER_LATER__INIT;
        cleanup_free uint8_t *data = xcalloc(size_bytes + 1, 1);

        for (size_t i = 0; i < size_bytes; i++)
                data[i] = (uint8_t) (i * 7 + i / PAGE);
        m.pid = pid;
        m.address = address;
        m.data = (ProtobufCBinaryData) { .data = data, .len = size_bytes };
        m.count = count;
        message.body_case = RM__MOVER_PEER_MESSAGE__BODY_LATER;
        message.later = &m;
        assert_int_equal(frame_send(s->peer, FRAME_MAGIC_MOVER, &message.base), 0);
}

static void piece_say(const struct scene *s, uint32_t pid, uint64_t address, size_t size_bytes) {
        piece_say_counted(s, pid, address, size_bytes, false);
}

/* 0: the receiver has hung up. */
static size_t piece_receive(const struct scene *s, struct later_piece *ret_head) {
        static struct {
                struct later_piece head;
                uint8_t data[2 * LATER_PIECE_MAX_BYTES];
        } piece;
        ssize_t n = recv(s->uffd_handler, &piece, sizeof(piece), 0);

        if (n <= 0)
                return 0;
        assert_true((size_t) n >= sizeof(piece.head));
        for (size_t i = 0; i < (size_t) n - sizeof(piece.head); i++)
                assert_int_equal(piece.data[i], (uint8_t) (i * 7 + i / PAGE));
        *ret_head = piece.head;
        return (size_t) n;
}

/* Whether the uffd handler gets it, as it is; otherwise the receiver must have ended. */
static bool passes(uint32_t pid, uint64_t address, size_t size_bytes) {
        struct later_piece head = { 0 };
        void *state = NULL;
        struct scene *s;
        size_t n;

        assert_int_equal(setup(&state), 0);
        s = state;
        receiver_begin(s);
        piece_say(s, pid, address, size_bytes);
        n = piece_receive(s, &head);
        if (n > 0) {
                assert_int_equal(n, sizeof(head) + size_bytes);
                assert_true(head.pid == pid && head.address == address && head.size_bytes == size_bytes);
                cleanup_close_fd(&s->uffd_handler);
                assert_int_equal(end(s), 0);
        } else {
                assert_int_equal(end(s), -EPROTO);
                assert_string_equal(error_text(&s->err), "unexpected message from the source");
        }
        assert_int_equal(teardown(&state), 0);
        return n > 0;
}

/* The uffd handler judges pids and addresses: it knows them. */
static void test_pieces(void **state) {
        (void) state;
        assert_true(passes(5, PAGE, PAGE));
        assert_true(passes(5, PAGE, 5 * PAGE));
        assert_true(passes(UINT32_MAX, UINT64_MAX, LATER_PIECE_MAX_BYTES));
        assert_false(passes(5, PAGE, 0));
        assert_false(passes(5, PAGE, 1));
        assert_false(passes(5, PAGE, PAGE - 1));
        assert_false(passes(5, PAGE, PAGE + 1));
        assert_false(passes(5, PAGE, LATER_PIECE_MAX_BYTES - 1));
        assert_false(passes(5, PAGE, LATER_PIECE_MAX_BYTES + 1));
        assert_false(passes(5, PAGE, LATER_PIECE_MAX_BYTES + PAGE));
}

static void message_say(const struct scene *s, Rm__MoverPeerMessage__BodyCase kind) {
        Rm__MoverPeerMessage message = RM__MOVER_PEER_MESSAGE__INIT;
        Rm__MoverAck ack = RM__MOVER_ACK__INIT;
        Rm__MoverLater later = RM__MOVER_LATER__INIT;
        Rm__MoverLaterRequested requested = RM__MOVER_LATER_REQUESTED__INIT;

        message.body_case = kind;
        if (kind == RM__MOVER_PEER_MESSAGE__BODY_ACK)
                message.ack = &ack;
        else if (kind == RM__MOVER_PEER_MESSAGE__BODY_LATER)
                message.later = &later;
        else if (kind == RM__MOVER_PEER_MESSAGE__BODY_LATER_REQUESTED)
                message.later_requested = &requested;
        assert_int_equal(frame_send(s->peer, FRAME_MAGIC_MOVER, &message.base), 0);
}

static void test_no_pieces(void **state) {
        static const Rm__MoverPeerMessage__BodyCase kinds[] = { RM__MOVER_PEER_MESSAGE__BODY__NOT_SET,
                                                                RM__MOVER_PEER_MESSAGE__BODY_ACK,
                                                                RM__MOVER_PEER_MESSAGE__BODY_LATER_REQUESTED };
        struct later_piece head;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                void *inner = NULL;
                struct scene *s;

                assert_int_equal(setup(&inner), 0);
                s = inner;
                receiver_begin(s);
                message_say(s, kinds[i]);
                assert_int_equal(piece_receive(s, &head), 0);
                assert_int_equal(end(s), -EPROTO);
                assert_int_equal(teardown(&inner), 0);
        }
}

/* Without a message, in the middle of one, and with bytes that are none. */
static void test_source_ends(void **state) {
        static const struct {
                size_t size_bytes;
                int result;
        } cases[] = { { 0, -ENODATA }, { 3, -EPIPE }, { FRAME_HEADER_BYTES + 5, -EPIPE } };
        struct later_piece head;

        (void) state;
        for (size_t i = 0; i <= ARRAY_SIZE(cases); i++) {
                Rm__MoverPeerMessage message = RM__MOVER_PEER_MESSAGE__INIT;
                Rm__MoverLater m = RM__MOVER_LATER__INIT;
                cleanup_free uint8_t *frame = NULL;
                void *inner = NULL;
                struct scene *s;
                size_t size;

                assert_int_equal(setup(&inner), 0);
                s = inner;
                m.address = UINT64_MAX;
                message.body_case = RM__MOVER_PEER_MESSAGE__BODY_LATER;
                message.later = &m;
                frame = frame_pack(FRAME_MAGIC_MOVER, &message.base, &size);
                receiver_begin(s);
                if (i == ARRAY_SIZE(cases)) {
                        memset(frame + FRAME_HEADER_BYTES, 0xff, size - FRAME_HEADER_BYTES);
                        assert_int_equal(write_all(s->peer, frame, size), 0);
                } else {
                        assert_true(cases[i].size_bytes < size);
                        assert_int_equal(write_all(s->peer, frame, cases[i].size_bytes), 0);
                        cleanup_close_fd(&s->peer);
                }
                assert_int_equal(piece_receive(s, &head), 0);
                assert_int_equal(end(s), i == ARRAY_SIZE(cases) ? -EBADMSG : cases[i].result);
                assert_int_equal(teardown(&inner), 0);
        }
}

/* A request of the uffd handler goes to the source; an invalid request ends the mover. */
static void test_filler(void **state) {
        const struct later_piece ask = { .pid = 5, .address = 7 * PAGE };
        struct scene *s = *state;
        ProtobufCMessage *message = NULL;
        const Rm__MoverPeerMessage *m;

        receiver_begin(s);
        assert_int_equal(send(s->uffd_handler, &ask, sizeof(ask), 0), sizeof(ask));
        assert_int_equal(frame_receive(s->peer, FRAME_MAGIC_MOVER, FRAME_MAX_MOVER_BYTES, &rm__mover_peer_message__descriptor,
                                       &message),
                         0);
        m = (const Rm__MoverPeerMessage *) message;
        assert_int_equal(m->body_case, RM__MOVER_PEER_MESSAGE__BODY_LATER_REQUESTED);
        assert_true(m->later_requested->pid == 5 && m->later_requested->address == 7 * PAGE);
        protobuf_c_message_free_unpacked(message, NULL);
        assert_int_equal(send(s->uffd_handler, &ask, sizeof(ask) - 1, 0), sizeof(ask) - 1);
        assert_int_equal(frame_receive(s->peer, FRAME_MAGIC_MOVER, FRAME_MAX_MOVER_BYTES, &rm__mover_peer_message__descriptor,
                                       &message),
                         -ENODATA);
        assert_int_equal(end(s), 0);
}

/* The source's word, or 0: it has hung up, or says nothing. */
static uint64_t taken_receive(const struct scene *s) {
        struct pollfd p = { .fd = s->peer, .events = POLLIN };
        ProtobufCMessage *message = NULL;
        const Rm__MoverPeerMessage *m;
        uint64_t bytes;

        if (poll(&p, 1, 0) == 0 ||
            frame_receive(s->peer, FRAME_MAGIC_MOVER, FRAME_MAX_MOVER_BYTES, &rm__mover_peer_message__descriptor, &message) < 0)
                return 0;
        m = (const Rm__MoverPeerMessage *) message;
        assert_int_equal(m->body_case, RM__MOVER_PEER_MESSAGE__BODY_LATER_TAKEN);
        bytes = m->later_taken->bytes;
        protobuf_c_message_free_unpacked(message, NULL);
        return bytes;
}

/* The receiver says what the uffd handler has got, to a source that wants to hear it: else it would
 * not be understood. */
static void test_counts(void **state) {
        (void) state;
        for (int count = 0; count < 2; count++) {
                uint64_t said = 0, passed = 0, bytes;
                struct later_piece head;
                void *inner = NULL;
                struct scene *s;

                assert_int_equal(setup(&inner), 0);
                s = inner;
                receiver_begin(s);
                for (int i = 0; i < 40; i++) {
                        piece_say_counted(s, 5, PAGE, LATER_PIECE_MAX_BYTES, count);
                        assert_int_not_equal(piece_receive(s, &head), 0);
                        passed += LATER_PIECE_MAX_BYTES;
                        while ((bytes = taken_receive(s)) > 0) {
                                assert_in_range(bytes, said + 1, passed);
                                said = bytes;
                        }
                }
                cleanup_close_fd(&s->uffd_handler);
                assert_int_equal(end(s), 0);
                while ((bytes = taken_receive(s)) > 0)
                        said = bytes;
                if (count)
                        assert_in_range(said, passed - (UINT64_C(256) << 10), passed);
                else
                        assert_int_equal(said, 0);
                assert_int_equal(teardown(&inner), 0);
        }
}

/* ---- the sender ---- */

/* The area of the child, at the same address here: its other writes may be below or above. */
static char *area;

/* The child writes all of the area when told. */
static void write_when_reported(int link) {
        for (char c = 1;; c++) {
                memset(area, c, (size_t) AREA * PAGE);
                child_ready(link);
                child_wait(link);
        }
}

static int hook_poll(void *ctx, const char *what, struct rm_error *err) {
        (void) ctx;
        (void) what;
        (void) err;
        return 0;
}

static int hook_idle(void *ctx, struct rm_error *err) {
        (void) ctx;
        (void) err;
        return 0;
}

static void *be_sender(void *ctx) {
        struct scene *s = ctx;

        s->r = postcopy_send(&s->control, &s->link, s->pages, &s->figures, &s->err);
        (void) shutdown(s->link.fd, SHUT_RDWR);
        return NULL;
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

/* Pages that were written since the last round are left. */
static void sender_begin(struct scene *s) {
        static const struct mover_hooks hooks = { .poll = hook_poll, .idle = hook_idle };
        cleanup_free char *procs_file = xasprintf("%s/procs", s->dir), *procs = NULL;
        struct rm_error reason = { 0 };

        area = map_area(AREA);
        s->child = child_begin(write_when_reported);
        assert_int_equal(munmap(area, (size_t) AREA * PAGE), 0);
        procs = xasprintf("%d\n", (int) s->child.pid);
        assert_int_equal(write_file_atomic(procs_file, procs, strlen(procs), 0600, false), 0);
        memory_init(&s->image);
        assert_int_equal(image_writer_create(&s->image.sink, NULL, NULL, &s->writer, NULL), 0);
        assert_int_equal(pages_begin(&(struct pages_group) { procs_file, "" }, s->dir, s->writer, &hooks, &s->pages, &reason,
                                     &s->err),
                         0);
        if (!s->pages)
                fail_msg("%s", error_text(&reason));
        assert_int_equal(pages_rounds(s->pages, &s->err), 0);
        child_go(&s->child);
        child_expect(&s->child);
        stand_still(s->child.pid);
        pages_postpone(s->pages);
        assert_int_equal(pages_send_last(s->pages, &hooks, &s->err), 0);
        assert_int_equal(pages_finish(s->pages, &s->err), 0);
        s->later_bytes = pages_later_bytes(s->pages);
        assert_true(s->later_bytes >= (uint64_t) AREA * PAGE);
        assert_int_equal(pthread_create(&s->thread, NULL, be_sender, s), 0);
}

static void want(const struct scene *s, uint32_t pid, uint64_t address) {
        Rm__MoverPeerMessage message = RM__MOVER_PEER_MESSAGE__INIT;
        Rm__MoverLaterRequested m = RM__MOVER_LATER_REQUESTED__INIT;

        m.pid = pid;
        m.address = address;
        message.body_case = RM__MOVER_PEER_MESSAGE__BODY_LATER_REQUESTED;
        message.later_requested = &m;
        assert_int_equal(frame_send(s->peer, FRAME_MAGIC_MOVER, &message.base), 0);
}

/* Each page must be new. False: the sender has hung up. */
static bool page_come(const struct scene *s, struct pageset *come, uint64_t *ret_start, uint64_t *ret_end) {
        ProtobufCMessage *message = NULL;
        const Rm__MoverLater *m;

        if (frame_receive(s->peer, FRAME_MAGIC_MOVER, FRAME_MAX_MOVER_BYTES, &rm__mover_peer_message__descriptor, &message) < 0)
                return false;
        assert_int_equal(((const Rm__MoverPeerMessage *) message)->body_case, RM__MOVER_PEER_MESSAGE__BODY_LATER);
        m = ((const Rm__MoverPeerMessage *) message)->later;
        assert_int_equal(m->pid, s->child.pid);
        assert_true(m->data.len > 0 && m->data.len <= LATER_PIECE_MAX_BYTES);
        *ret_start = m->address;
        *ret_end = m->address + m->data.len;
        for (uint64_t at = *ret_start; at < *ret_end; at += PAGE)
                assert_false(pageset_has(come, at));
        assert_int_equal(pageset_add(come, *ret_start, *ret_end), 0);
        protobuf_c_message_free_unpacked(message, NULL);
        return true;
}

/* The sender goes on as if there had been no request, from where it was. */
static void test_odd_wishes(void **state) {
        struct scene *s = *state;
        struct pageset *come = pageset_create();
        uint64_t first = 0, start = 0, middle, last_end = 0, turn = 0, top = 0, end_at = 0;
        uint32_t pid;

        sender_begin(s);
        pid = (uint32_t) s->child.pid;
        assert_true(page_come(s, come, &first, &end_at));
        middle = (uintptr_t) area + (uint64_t) AREA / 2 * PAGE;
        want(s, pid, middle);
        do
                assert_true(page_come(s, come, &start, &end_at));
        while (middle < start || middle >= end_at);
        want(s, pid, PAGE); /* nothing is left there */
        want(s, pid, middle); /* has come */
        want(s, pid, 0);
        want(s, pid, UINT64_MAX);
        want(s, pid, UINT64_C(1) << 56);
        want(s, pid + INNER_MAX, start);
        want(s, pid | 0x80000000U, start);
        want(s, UINT32_MAX, start);
        for (last_end = end_at; pageset_bytes(come) < s->later_bytes; last_end = end_at) {
                assert_true(page_come(s, come, &start, &end_at));
                if (start < last_end && turn == 0)
                        turn = last_end;
                top = top < end_at ? end_at : top;
        }
        assert_true(turn == top); /* it went back to what comes before the middle only when it had sent all behind that */
        assert_int_equal(shutdown(s->peer, SHUT_WR), 0);
        assert_false(page_come(s, come, &start, &end_at));
        if (end(s) != 0)
                fail_msg("%s", error_text(&s->err));
        assert_int_equal(s->figures.bytes, pageset_bytes(come));
        assert_int_equal(s->figures.requested, 9);
        pageset_destroy(come);
}

/* In the middle of a page, too. */
static void test_wish(void **state) {
        struct scene *s = *state;
        struct pageset *come = pageset_create();
        uint64_t first = 0, start = 0, end_at = 0, requested;
        unsigned before = 0;

        sender_begin(s);
        assert_true(page_come(s, come, &first, &end_at));
        requested = (uintptr_t) area + (uint64_t) AREA * PAGE * 3 / 4 + 123;
        want(s, (uint32_t) s->child.pid, requested);
        do
                assert_true(page_come(s, come, &start, &end_at) && ++before < 64);
        while (requested < start || requested >= end_at);
        assert_int_equal(start, requested / PAGE * PAGE);
        assert_int_equal(shutdown(s->peer, SHUT_WR), 0);
        while (page_come(s, come, &start, &end_at))
                ;
        assert_int_equal(end(s), -ENODATA); /* not all has come */
        pageset_destroy(come);
}

static void taken_say(const struct scene *s, uint64_t bytes) {
        Rm__MoverPeerMessage message = RM__MOVER_PEER_MESSAGE__INIT;
        Rm__MoverLaterTaken m = RM__MOVER_LATER_TAKEN__INIT;

        m.bytes = bytes;
        message.body_case = RM__MOVER_PEER_MESSAGE__BODY_LATER_TAKEN;
        message.later_taken = &m;
        assert_int_equal(frame_send(s->peer, FRAME_MAGIC_MOVER, &message.base), 0);
}

/* Adds the pages that come while this side reads all, and says nothing: at least one, or the sender
 * hangs up. */
static void take_what_comes(const struct scene *s, struct pageset *come) {
        struct pollfd p = { .fd = s->peer, .events = POLLIN };
        uint64_t start, end_at;
        int limit_msec = 60000;

        while (poll(&p, 1, limit_msec) > 0 && page_come(s, come, &start, &end_at))
                limit_msec = 200;
}

/* However much the destination's kernel lets in, no more is under way than what a page that is
 * waited for may come behind. */
static void test_bounded(void **state) {
        const uint64_t most_bytes = (1 << 20) + LATER_PIECE_MAX_BYTES;
        struct scene *s = *state;
        struct pageset *come = pageset_create();
        uint64_t before = 0;

        s->link.peer_counts_later = true;
        sender_begin(s);
        while (before < s->later_bytes) {
                take_what_comes(s, come);
                assert_in_range(pageset_bytes(come), before + PAGE, before + most_bytes);
                before = pageset_bytes(come);
                taken_say(s, before);
        }
        assert_int_equal(shutdown(s->peer, SHUT_WR), 0);
        assert_int_equal(end(s), 0);
        pageset_destroy(come);
}

/* More than was sent, and less than was said before. */
static void test_odd_counts(void **state) {
        (void) state;
        for (int i = 0; i < 2; i++) {
                struct pageset *come = pageset_create();
                void *inner = NULL;
                struct scene *s;

                assert_int_equal(setup(&inner), 0);
                s = inner;
                s->link.peer_counts_later = true;
                sender_begin(s);
                take_what_comes(s, come);
                taken_say(s, i == 0 ? s->later_bytes + 1 : pageset_bytes(come));
                if (i == 1)
                        taken_say(s, pageset_bytes(come) - 1);
                take_what_comes(s, come);
                assert_int_equal(end(s), -EPROTO);
                pageset_destroy(come);
                assert_int_equal(teardown(&inner), 0);
        }
}

static void test_no_wishes(void **state) {
        static const Rm__MoverPeerMessage__BodyCase kinds[] = { RM__MOVER_PEER_MESSAGE__BODY__NOT_SET,
                                                                RM__MOVER_PEER_MESSAGE__BODY_ACK,
                                                                RM__MOVER_PEER_MESSAGE__BODY_LATER,
                                                                RM__MOVER_PEER_MESSAGE__BODY_LATER_REQUESTED };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                struct pageset *come = pageset_create();
                uint64_t start, end_at;
                void *inner = NULL;
                struct scene *s;

                assert_int_equal(setup(&inner), 0);
                s = inner;
                message_say(s, kinds[i]); /* the last one of process 0 */
                sender_begin(s);
                while (page_come(s, come, &start, &end_at))
                        assert_true(pageset_bytes(come) < s->later_bytes);
                assert_int_equal(end(s), -EPROTO);
                assert_string_equal(error_text(&s->err), "unexpected message from the destination");
                pageset_destroy(come);
                assert_int_equal(teardown(&inner), 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pieces),
                cmocka_unit_test(test_no_pieces),
                cmocka_unit_test(test_source_ends),
                cmocka_unit_test_setup_teardown(test_filler, setup, teardown),
                cmocka_unit_test(test_counts),
                cmocka_unit_test_setup_teardown(test_odd_wishes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_wish, setup, teardown),
                cmocka_unit_test(test_no_wishes),
                cmocka_unit_test_setup_teardown(test_bounded, setup, teardown),
                cmocka_unit_test(test_odd_counts),
        };

        priority_normal();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
