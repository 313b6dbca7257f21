/* The capture side of CRIU's streaming: CRIU is played by this process, which says all it has to
 * say beforehand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include "common/frame.h"
#include "common/util.h"
#include "daemon/mover/capture.h"
#include "daemon/transfer/mover.h"
#include "mover_pair.h"
#include "tests/unit/image/memory.h"

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
        assert_int_equal(capture_listen(s->dir, 0, &s->capture, &err), 0);
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

/* CRIU writes an image with `text` in it, then the hang-up. */
static void criu_dumps(const struct scene *s, const char *text) {
        int sock = fake_criu_connect(s->dir);
        int image = fake_criu_open(sock, "core-1.img");

        assert_true(image >= 0);
        assert_int_equal(write_all(image, text, strlen(text)), 0);
        (void) close(image);
        (void) close(sock);
}

static void say_done(const struct scene *s) {
        Rm__MoverDumpDone done = RM__MOVER_DUMP_DONE__INIT;

        assert_int_equal(frame_send(s->rmd_fd, FRAME_MAGIC_MOVER, &MOVER_COMMAND(&done).base), 0);
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
