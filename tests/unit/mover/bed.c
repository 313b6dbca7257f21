#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "bed.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../pages/child.h"
#include "common/util.h"
#include "daemon/transfer/mover.h"

static char *place(const struct bed *b, const char *name) {
        char *path = xasprintf("%s/%s", b->base, name);

        assert_int_equal(mkdir(path, 0700), 0);
        return path;
}

int bed_setup(void **state) {
        struct bed *b = xcalloc(1, sizeof(*b));

        (void) signal(SIGPIPE, SIG_IGN);
        /* The mover compares pages that the test does not compare itself. */
        assert_int_equal(setenv("RM_COMPARE_PAGES", "1", 1), 0);
        strcpy(b->base, "/tmp/rmd-test-mover.XXXXXX");
        assert_non_null(mkdtemp(b->base));
        b->key_file = xasprintf("%s/key", b->base);
        assert_int_equal(write_file_atomic(b->key_file, "0123456789abcdef0123456789abcdef", 32, 0600, false), 0);
        b->procs = xasprintf("%s/procs", b->base);
        b->images = place(b, "images");
        b->out = place(b, "out");
        b->tree_from = place(b, "from");
        b->tree_to = place(b, "to");
        *state = b;
        return 0;
}

int bed_teardown(void **state) {
        struct bed *b = *state;

        children_end();
        (void) umount2(b->out, MNT_DETACH);
        (void) remove_tree(b->base);
        free(b->key_file);
        free(b->procs);
        free(b->images);
        free(b->out);
        free(b->tree_from);
        free(b->tree_to);
        free(b);
        return 0;
}

static ProtobufCBinaryData bytes(const char *text) {
        return (ProtobufCBinaryData) { .data = (uint8_t *) text, .len = strlen(text) };
}

uint32_t say_receive(struct bed *b, const char *key_file, const char *token) {
        Rm__MoverReceive m = RM__MOVER_RECEIVE__INIT;
        Rm__MoverTree tree = RM__MOVER_TREE__INIT;
        Rm__MoverTree *trees[] = { &tree };
        Rm__MoverEvent *e;
        uint32_t port;

        tree.role = (char *) "tmp";
        tree.path = b->tree_to;
        m.address = (char *) "127.0.0.1";
        m.token = bytes(token);
        m.key_file = (char *) key_file;
        m.second_key_file = (char *) (b->second_key_file ? b->second_key_file : "");
        m.cluster = (char *) "test";
        m.images_dir = b->out;
        m.trees = trees;
        m.n_trees = 1;
        m.accept_timeout_msec = b->accept_timeout_msec;
        m.max_bytes = b->max_bytes;
        pair_say(&b->pair, PAIR_RECEIVE, &MOVER_COMMAND(&m));
        e = pair_receive(&b->pair, PAIR_RECEIVE);
        if (!e || e->body_case != RM__MOVER_EVENT__BODY_LISTENING) {
                if (e)
                        rm__mover_event__free_unpacked(e, NULL);
                return 0;
        }
        port = e->listening->port;
        rm__mover_event__free_unpacked(e, NULL);
        return port;
}

void say_send(struct bed *b, const char *key_file, const char *token, uint32_t port) {
        Rm__MoverSend m = RM__MOVER_SEND__INIT;

        m.host = (char *) "127.0.0.1";
        m.port = port;
        m.token = bytes(token);
        m.key_file = (char *) key_file;
        m.cluster = (char *) "test";
        m.images_dir = b->images;
        m.codec = b->codec;
        pair_say(&b->pair, PAIR_SEND, &MOVER_COMMAND(&m));
}

void say_done(struct bed *b) {
        Rm__MoverDumpDone m = RM__MOVER_DUMP_DONE__INIT;
        Rm__MoverTree tree = RM__MOVER_TREE__INIT;
        Rm__MoverTree *trees[] = { &tree };

        tree.role = (char *) "tmp";
        tree.path = b->tree_from;
        m.trees = trees;
        m.n_trees = 1;
        pair_say(&b->pair, PAIR_SEND, &MOVER_COMMAND(&m));
}

void procs_write(const struct bed *b, const char *procs) {
        assert_int_equal(write_file_atomic(b->procs, procs, strlen(procs), 0600, false), 0);
}

void say_precopy(struct bed *b, const char *procs, bool pages, uint64_t bytes_per_sec) {
        Rm__MoverPrecopy m = RM__MOVER_PRECOPY__INIT;

        procs_write(b, procs);
        m.procs_file = b->procs;
        m.bytes_per_sec = bytes_per_sec;
        m.pages = pages;
        m.postcopy = b->postcopy;
        m.deadline_usec = b->deadline_usec;
        pair_say(&b->pair, PAIR_SEND, &MOVER_COMMAND(&m));
}

void say_expedite(struct bed *b, uint64_t deadline_usec) {
        Rm__MoverExpedite m = RM__MOVER_EXPEDITE__INIT;

        m.deadline_usec = deadline_usec;
        pair_say(&b->pair, PAIR_SEND, &MOVER_COMMAND(&m));
}

void expect(struct bed *b, int side, Rm__MoverEvent__BodyCase kind) {
        Rm__MoverEvent *e = pair_expect(&b->pair, side, kind);

        assert_non_null(e);
        rm__mover_event__free_unpacked(e, NULL);
}

void expect_failure(struct bed *b, int side, const char *text, int *ret_code, bool *ret_end_mark_sent) {
        Rm__MoverEvent *e = pair_receive(&b->pair, side);

        while (e && e->body_case != RM__MOVER_EVENT__BODY_FAILED) {
                rm__mover_event__free_unpacked(e, NULL);
                e = pair_receive(&b->pair, side);
        }
        assert_non_null(e);
        if (!strstr(e->failed->text, text))
                fail_msg("'%s' should say '%s'", e->failed->text, text);
        if (ret_code)
                *ret_code = e->failed->code;
        if (ret_end_mark_sent)
                *ret_end_mark_sent = e->failed->end_mark_sent;
        rm__mover_event__free_unpacked(e, NULL);
}

void connect_unstarted(struct bed *b, const char *environment) {
        uint32_t port;

        pair_start(&b->pair, environment);
        port = say_receive(b, b->key_file, TOKEN);
        assert_int_not_equal(port, 0);
        say_send(b, b->key_file, TOKEN, port);
        expect(b, PAIR_SEND, RM__MOVER_EVENT__BODY_READY);
}

void connect_pair(struct bed *b, const char *environment) {
        connect_unstarted(b, environment);
        pair_say_start(&b->pair);
}

void image_check(const struct bed *b, const char *name, const void *data, size_t size_bytes) {
        cleanup_free char *path = xasprintf("%s/%s", b->out, name);
        cleanup_free char *found = NULL;
        size_t found_bytes = 0;

        assert_int_equal(read_file(path, 64 << 20, &found, &found_bytes), 0);
        assert_int_equal(found_bytes, size_bytes);
        assert_memory_equal(found, data, size_bytes);
}

void finish_failed(struct bed *b) {
        pair_finish(&b->pair, b->codes);
        assert_int_equal(b->codes[PAIR_SEND], 1);
        assert_int_equal(b->codes[PAIR_RECEIVE], 1);
}
