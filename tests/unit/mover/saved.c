#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "saved.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/mover/mover.h"
#include "daemon/mover/store_stream.h"
#include "daemon/transfer/mover.h"
#include "group.h"

int saved_setup(void **state) {
        struct saved *s = xcalloc(1, sizeof(*s));
        void *bed = NULL;

        (void) bed_setup(&bed);
        s->bed = bed;
        s->bed->codec = RM__MOVER_CODEC__MOVER_CODEC_NONE;
        s->store = xasprintf("%s/store", s->bed->base);
        s->memory_bytes = 1U << 30;
        s->key_file = s->bed->key_file;
        /* Offsets are addresses: too large for most file systems. */
        assert_int_equal(mount("none", s->bed->out, "tmpfs", 0, "size=1g"), 0);
        *state = s;
        return 0;
}

int saved_teardown(void **state) {
        struct saved *s = *state;
        void *bed = s->bed;

        (void) bed_teardown(&bed);
        free(s->store);
        free(s);
        return 0;
}

void store_fill(const struct saved *s, Rm__MoverStore *ret) {
        rm__mover_store__init(ret);
        ret->dir = s->store;
        ret->key_file = (char *) s->key_file;
        ret->cluster = (char *) "test";
        ret->job = 7;
        ret->capsule = 2;
        ret->uid = 1000;
}

/* ---- saving ---- */

void save_begin(struct saved *s, const char *environment) {
        Rm__MoverSave m = RM__MOVER_SAVE__INIT;
        Rm__MoverStore store;

        pair_start_as(&s->pair, mover_save, true, environment);
        store_fill(s, &store);
        m.store = &store;
        m.images_dir = s->bed->images;
        m.bytes_per_sec = s->bytes_per_sec;
        pair_say(&s->pair, PAIR_SEND, &MOVER_COMMAND(&m));
        save_expect(s, RM__MOVER_EVENT__BODY_READY);
}

void say_checkpoint(struct saved *s, uint64_t number, const pid_t *pids, size_t n) {
        Rm__MoverPrecopy m = RM__MOVER_PRECOPY__INIT;
        cleanup_free uint64_t *keep = xcalloc(number + 1, sizeof(*keep));
        Rm__MoverTree tree = RM__MOVER_TREE__INIT;
        Rm__MoverTree *trees[] = { &tree };
        cleanup_free char *procs = procs_of(pids, n);

        procs_write(s->bed, procs);
        tree.role = (char *) "tmp";
        tree.path = s->bed->tree_from;
        m.trees = trees;
        m.n_trees = 1;
        m.procs_file = s->bed->procs;
        m.memory_bytes = s->memory_bytes;
        m.pages = true;
        m.checkpoint = number;
        /* The checkpoints that were made before it. */
        for (uint64_t i = 1; i < number; i++)
                keep[m.n_keep++] = i;
        m.keep = keep;
        pair_say(&s->pair, PAIR_SEND, &MOVER_COMMAND(&m));
}

/* The dump is done. */
void say_captured(struct saved *s) {
        Rm__MoverDumpDone m = RM__MOVER_DUMP_DONE__INIT;
        Rm__MoverTree tree = RM__MOVER_TREE__INIT;
        Rm__MoverTree *trees[] = { &tree };

        tree.role = (char *) "tmp";
        tree.path = s->bed->tree_from;
        m.trees = trees;
        m.n_trees = 1;
        m.saved_state = (ProtobufCBinaryData) { .data = (uint8_t *) (uintptr_t) SAVED_STATE, .len = SAVED_STATE_BYTES };
        pair_say(&s->pair, PAIR_SEND, &MOVER_COMMAND(&m));
}

void say_release(struct saved *s) {
        Rm__MoverRelease m = RM__MOVER_RELEASE__INIT;

        pair_say(&s->pair, PAIR_SEND, &MOVER_COMMAND(&m));
}

Rm__MoverEvent *save_receive(struct saved *s, Rm__MoverEvent__BodyCase kind) {
        Rm__MoverEvent *e = pair_receive(&s->pair, PAIR_SEND);

        if (e && e->body_case == RM__MOVER_EVENT__BODY_FAILED && kind != RM__MOVER_EVENT__BODY_FAILED)
                fail_msg("%s", e->failed->text);
        assert_non_null(e);
        assert_int_equal(e->body_case, kind);
        return e;
}

void save_expect(struct saved *s, Rm__MoverEvent__BodyCase kind) {
        rm__mover_event__free_unpacked(save_receive(s, kind), NULL);
}

void save_fails(struct saved *s, const char *text) {
        Rm__MoverEvent *e = pair_receive(&s->pair, PAIR_SEND);

        while (e && e->body_case != RM__MOVER_EVENT__BODY_FAILED) {
                rm__mover_event__free_unpacked(e, NULL);
                e = pair_receive(&s->pair, PAIR_SEND);
        }
        assert_non_null(e);
        if (!strstr(e->failed->text, text))
                fail_msg("'%s' should say '%s'", e->failed->text, text);
        rm__mover_event__free_unpacked(e, NULL);
        assert_int_equal(save_end(s), 1);
}

int save_end(struct saved *s) {
        int codes[2];

        pair_finish(&s->pair, codes);
        return codes[PAIR_SEND];
}

void checkpoint_ahead(struct saved *s, uint64_t number, const pid_t *pids, size_t n) {
        say_checkpoint(s, number, pids, n);
        save_expect(s, RM__MOVER_EVENT__BODY_PRECOPIED);
}

void checkpoint_freeze(struct saved *s) {
        pair_say_start(&s->pair);
        group_dump(s->bed->images);
        say_captured(s);
}

Rm__MoverEvent *checkpoint_make(struct saved *s, uint64_t number, const pid_t *pids, size_t n) {
        Rm__MoverEvent *e;

        checkpoint_ahead(s, number, pids, n);
        for (size_t i = 0; i < n; i++)
                stand_still(pids[i]);
        checkpoint_freeze(s);
        save_expect(s, RM__MOVER_EVENT__BODY_CAPTURED);
        e = save_receive(s, RM__MOVER_EVENT__BODY_STORED);
        assert_int_equal(e->stored->checkpoint, number);
        return e;
}

/* ---- loading ---- */

void load_begin(struct saved *s, uint64_t number) {
        static const char token[] = TOKEN;
        Rm__MoverLoad m = RM__MOVER_LOAD__INIT;
        Rm__MoverStore store;
        cleanup_free char *before = xasprintf("%s/pages", s->bed->out);

        assert_int_equal(remove_tree(before), 0);
        pair_start_as(&s->bed->pair, mover_load, false, NULL);
        m.port = say_receive(s->bed, s->bed->key_file, TOKEN);
        store_fill(s, &store);
        m.store = &store;
        m.checkpoint = number;
        m.host = (char *) "127.0.0.1";
        m.token = (ProtobufCBinaryData) { .data = (uint8_t *) (uintptr_t) token, .len = sizeof(token) - 1 };
        pair_say(&s->bed->pair, PAIR_SEND, &MOVER_COMMAND(&m));
}

void load_make(struct saved *s, uint64_t number) {
        struct bed *b = s->bed;
        Rm__MoverEvent *e;

        load_begin(s, number);
        e = pair_expect(&b->pair, PAIR_SEND, RM__MOVER_EVENT__BODY_LOADING);
        assert_non_null(e);
        assert_int_equal(e->loading->saved_state.len, SAVED_STATE_BYTES);
        assert_memory_equal(e->loading->saved_state.data, SAVED_STATE, SAVED_STATE_BYTES);
        assert_true(e->loading->raw_bytes > 0);
        rm__mover_event__free_unpacked(e, NULL);
        expect(b, PAIR_SEND, RM__MOVER_EVENT__BODY_ACKNOWLEDGED);
        expect(b, PAIR_RECEIVE, RM__MOVER_EVENT__BODY_RECEIVED);
        pair_finish(&b->pair, b->codes);
        assert_int_equal(b->codes[PAIR_SEND], 0);
        assert_int_equal(b->codes[PAIR_RECEIVE], 0);
        image_check(b, "inventory.img", "inventory", 9);
}

/* ---- what is there ---- */

char *stored_numbers(const struct saved *s) {
        struct store *store = NULL;
        Rm__MoverStore described;
        struct rm_error err = { 0 };
        char *text = xstrdup("");
        uint64_t *numbers = NULL;
        size_t n = 0;

        store_fill(s, &described);
        assert_int_equal(store_stream_open(&described, &store, &err), 0);
        assert_int_equal(store_list(store, &numbers, &n, &err), 0);
        for (size_t i = 0; i < n; i++) {
                char *longer = xasprintf("%s%llu ", text, (unsigned long long) numbers[i]);

                if (store_verify(store, numbers[i], NULL, NULL, &err) < 0)
                        fail_msg("%s", error_text(&err));
                free(text);
                text = longer;
        }
        free(numbers);
        store_close(store);
        return text;
}

void let_run(pid_t pid) {
        assert_int_equal(kill(pid, SIGCONT), 0);
}

void let_write(const struct child *child) {
        child_go(child);
        child_expect(child);
}

void store_flip(const struct saved *s, const char *name, off_t at) {
        cleanup_free char *path = xasprintf("%s/%s", s->store, name);
        cleanup_close int fd = open(path, O_RDWR | O_CLOEXEC);
        uint8_t byte;

        assert_true(fd >= 0);
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 1;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}
