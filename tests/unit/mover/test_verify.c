/* rm-mover reads a store again: what it says of each checkpoint, and what it leaves of one that is
 * damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../pages/child.h"
#include "../pages/programs.h"
#include "common/util.h"
#include "daemon/mover/mover.h"
#include "daemon/transfer/mover.h"
#include "group.h"
#include "saved.h"

enum { PAGES = 1024, PAGE = 4096 };

static void write_when_reported(int link) {
        char *area = map_area(PAGES);

        for (char c = 1;; c++) {
                memset(area, c, (size_t) PAGES / 4 * (c == 1 ? 4 : 1) * PAGE);
                child_ready(link);
                child_wait(link);
        }
}

/* Two checkpoints; the second consists of blocks of both. */
static void make_two(struct saved *s) {
        struct child child = child_begin(write_when_reported);

        save_begin(s, NULL);
        rm__mover_event__free_unpacked(checkpoint_make(s, 1, &child.pid, 1), NULL);
        let_run(child.pid);
        let_write(&child);
        rm__mover_event__free_unpacked(checkpoint_make(s, 2, &child.pid, 1), NULL);
        say_release(s);
        save_expect(s, RM__MOVER_EVENT__BODY_RELEASED);
        assert_int_equal(save_end(s), 0);
        assert_int_equal(child_end(&child), SIGKILL);
}

/* The event after progress; caller frees. */
static Rm__MoverEvent *verify(struct saved *s, const char *environment, Rm__MoverEvent__BodyCase kind) {
        Rm__MoverVerify m = RM__MOVER_VERIFY__INIT;
        Rm__MoverStore store;
        Rm__MoverEvent *e;

        pair_start_as(&s->bed->pair, mover_verify, true, environment);
        store_fill(s, &store);
        m.store = &store;
        pair_say(&s->bed->pair, PAIR_SEND, &MOVER_COMMAND(&m));
        e = pair_expect(&s->bed->pair, PAIR_SEND, kind);
        assert_non_null(e);
        pair_finish(&s->bed->pair, s->bed->codes);
        return e;
}

/* `texts`: for checkpoints 1 and 2, what the verdict must say; "" good, NULL: there is none. */
static void verdicts_are(struct saved *s, const char *const texts[2]) {
        Rm__MoverEvent *e = verify(s, NULL, RM__MOVER_EVENT__BODY_VERIFIED);
        size_t n = 0;

        for (uint64_t number = 1; number <= 2; number++) {
                const Rm__MoverVerdict *v;

                if (!texts[number - 1])
                        continue;
                assert_true(n < e->verified->n_verdicts);
                v = e->verified->verdicts[n++];
                assert_int_equal(v->checkpoint, number);
                if (*texts[number - 1] ? !strstr(v->text, texts[number - 1]) || v->code >= 0 : v->code != 0)
                        fail_msg("checkpoint %u: %d '%s', not '%s'", (unsigned) number, v->code, v->text, texts[number - 1]);
        }
        assert_int_equal(n, e->verified->n_verdicts);
        rm__mover_event__free_unpacked(e, NULL);
}

static bool is_there(const struct saved *s, const char *name) {
        cleanup_free char *path = xasprintf("%s/%s", s->store, name);

        return access(path, F_OK) == 0;
}

static void test_good(void **state) {
        struct saved *s = *state;

        make_two(s);
        verdicts_are(s, (const char *const[]) { "", "" });
        verdicts_are(s, (const char *const[]) { "", "" });
}

/* The older one is as good as it was; of the damaged one nothing is left that a restore could
 * take. */
static void test_newer_damaged(void **state) {
        struct saved *s = *state;

        make_two(s);
        store_flip(s, "pack-2", 100);
        verdicts_are(s, (const char *const[]) { "", "pack-2" });
        assert_false(is_there(s, "manifest-2"));
        assert_true(is_there(s, "pack-1"));
        verdicts_are(s, (const char *const[]) { "", NULL });
}

/* Which both need. */
static void test_shared_blocks_damaged(void **state) {
        struct saved *s = *state;
        struct stat st;
        cleanup_free char *path = xasprintf("%s/pack-1", s->store);

        make_two(s);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(unlink(path), 0);
        verdicts_are(s, (const char *const[]) { "pack-1", "pack-1" });
        assert_false(is_there(s, "manifest-1"));
        assert_false(is_there(s, "manifest-2"));
}

static void test_manifest_damaged(void **state) {
        struct saved *s = *state;

        make_two(s);
        store_flip(s, "manifest-1", 60);
        verdicts_are(s, (const char *const[]) { "manifest-1", "" });
}

/* An error in rm-mover itself is not the checkpoints' fault. */
static void test_fails(void **state) {
        struct saved *s = *state;
        Rm__MoverEvent *e;

        make_two(s);
        e = verify(s, "RM_FAULT=mover.verify.open:fail", RM__MOVER_EVENT__BODY_FAILED);
        rm__mover_event__free_unpacked(e, NULL);
        verdicts_are(s, (const char *const[]) { "", "" });
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_good, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_newer_damaged, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_shared_blocks_damaged, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_manifest_damaged, saved_setup, saved_teardown),
                cmocka_unit_test_setup_teardown(test_fails, saved_setup, saved_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
