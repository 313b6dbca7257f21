/* The capture side of CRIU's streaming: CRIU is played by this process, which says all it has to say beforehand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <endian.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/frame.h"
#include "common/util.h"
#include "daemon/mover/capture.h"
#include "memory.h"

#define LIMIT_SEC 20 /* then the test is ended by SIGALRM */

struct scene {
        char dir[64];
        struct capture *capture;
        struct memory memory;
        struct image_writer *writer;
        struct control control;
        int rmd_fd; /* rmd's end */
        int link_fd[2];
        unsigned calls;
        unsigned done_at; /* rmd says dump_done at this call of progress() */
};

static int setup(void **state) {
        struct scene *s = xcalloc(1, sizeof(*s));
        struct rm_error err = { 0 };
        int pair[2];

        strcpy(s->dir, "/tmp/rmd-test-capture.XXXXXX");
        assert_non_null(mkdtemp(s->dir));
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        assert_int_equal(pipe(s->link_fd), 0);
        control_init(&s->control, pair[0]);
        s->control.started = true;
        s->rmd_fd = pair[1];
        memory_init(&s->memory);
        assert_int_equal(image_writer_create(&s->memory.sink, NULL, NULL, &s->writer, &err), 0);
        assert_int_equal(capture_listen(s->dir, &s->capture, &err), 0);
        (void) alarm(LIMIT_SEC);
        *state = s;
        return 0;
}

static int teardown(void **state) {
        struct scene *s = *state;

        (void) alarm(0);
        capture_destroy(s->capture);
        image_writer_destroy(s->writer);
        memory_finish(&s->memory);
        (void) close(s->control.fd);
        control_finish(&s->control);
        (void) close(s->rmd_fd);
        (void) close(s->link_fd[0]);
        (void) close(s->link_fd[1]);
        assert_int_equal(rmdir(s->dir), 0);
        free(s);
        return 0;
}

static void fd_send(int sock, int fd) {
        char byte = 0;
        struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
        union {
                struct cmsghdr align;
                char room[CMSG_SPACE(sizeof(int))];
        } buffer = { 0 };
        struct msghdr message = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = buffer.room,
                .msg_controllen = sizeof(buffer.room),
        };
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(int));
        assert_int_equal(sendmsg(sock, &message, 0), 1);
}

/* One image with `text` in it, then the hang-up. */
static void criu_dumps(const struct scene *s, const char *text) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        Rm__CriuStreamRequest request = RM__CRIU_STREAM_REQUEST__INIT;
        uint8_t data[64];
        uint32_t size_bytes;
        int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int ends[2];

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s/streamer-capture.sock", s->dir);
        assert_int_equal(connect(sock, (struct sockaddr *) &address, sizeof(address)), 0);
        assert_int_equal(pipe(ends), 0);
        request.filename = (char *) "core-1.img";
        size_bytes = htole32((uint32_t) rm__criu_stream_request__pack(&request, data));
        assert_int_equal(write_all(sock, &size_bytes, sizeof(size_bytes)), 0);
        assert_int_equal(write_all(sock, data, le32toh(size_bytes)), 0);
        fd_send(sock, ends[0]);
        assert_int_equal(write_all(ends[1], text, strlen(text)), 0);
        (void) close(ends[0]);
        (void) close(ends[1]);
        (void) close(sock);
}

static void say_done(const struct scene *s) {
        Rm__MoverDumpDone done = RM__MOVER_DUMP_DONE__INIT;
        Rm__MoverCommand command = RM__MOVER_COMMAND__INIT;

        command.body_case = RM__MOVER_COMMAND__BODY_DUMP_DONE;
        command.dump_done = &done;
        assert_int_equal(frame_send(s->rmd_fd, FRAME_MAGIC_MOVER, &command.base), 0);
}

static void on_progress(void *ctx, const char *name) {
        struct scene *s = ctx;

        if (++s->calls == s->done_at)
                say_done(s);
}

static int on_idle(void *ctx, struct rm_error *err) {
        return 0;
}

static int on_link(void *ctx, struct rm_error *err) {
        return error_set(err, -EPROTO, "nobody should speak");
}

static int run(struct scene *s, struct rm_error *err) {
        const struct capture_hooks hooks = {
                .ctx = s, .idle = on_idle, .link_fd = s->link_fd[0], .link_readable = on_link, .progress = on_progress
        };
        struct capture_figures figures = { 0 };

        return capture_run(s->capture, &s->control, s->writer, &hooks, &figures, err);
}

/* rmd says that CRIU is done, and nothing else comes any more. */
static void done_at(struct scene *s, unsigned call) {
        struct rm_error err = { 0 };

        s->done_at = call;
        criu_dumps(s, "image");
        assert_int_equal(run(s, &err), 0);
        assert_true(s->calls >= call);
}

static void test_done_while_an_image_comes(void **state) {
        done_at(*state, 1);
}

/* Between the last look at what CRIU sends and the next: the capture used to wait for ever. */
static void test_done_as_the_last_image_ends(void **state) {
        done_at(*state, 2);
}

static void test_done_before_all(void **state) {
        struct scene *s = *state;

        say_done(s);
        done_at(s, 0);
}

static void test_done_without_a_dump(void **state) {
        struct scene *s = *state;
        struct rm_error err = { 0 };

        say_done(s);
        assert_int_equal(run(s, &err), -EPROTO);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_done_while_an_image_comes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_done_as_the_last_image_ends, setup, teardown),
                cmocka_unit_test_setup_teardown(test_done_before_all, setup, teardown),
                cmocka_unit_test_setup_teardown(test_done_without_a_dump, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
