/* The feed of last commands. */
#include "tests/unit/cluster/cluster_test.h"

#include "daemon/log/feed.h"

static Rm__Command *note(const char *text) {
        Rm__Command command = RM__COMMAND__INIT;
        Rm__CmdNote body = RM__CMD_NOTE__INIT;

        body.text = (char *) text;
        command.body_case = RM__COMMAND__BODY_NOTE;
        command.note = &body;
        return (Rm__Command *) message_copy(&command.base);
}

/* How many commands come after `index`; the first and the last. */
static size_t count_after(const struct feed *feed, uint64_t index, uint64_t *ret_first, uint64_t *ret_last) {
        Rm__Command *command;
        uint64_t at = index;
        size_t n = 0;

        while ((command = feed_next(feed, at, &at))) {
                assert_non_null(command->note);
                rm__command__free_unpacked(command, NULL);
                if (n++ == 0)
                        *ret_first = at;
        }
        *ret_last = at;
        return n;
}

static void test_feed(void **state) {
        struct feed *feed = feed_create(8, 1000);
        Rm__Command *command = note("x");
        uint64_t first = 0, last = 0;

        feed_reset(feed, 10);
        assert_true(feed_covers(feed, 10));
        assert_false(feed_covers(feed, 9));
        for (uint64_t i = 1; i <= 5; i++)
                feed_push(feed, 10 + 2 * i, command); /* the log has entries of its own in between */
        assert_true(feed_covers(feed, 10));
        assert_int_equal(count_after(feed, 13, &first, &last), 4);
        assert_int_equal(first, 14);
        assert_int_equal(last, 20);
        assert_int_equal(count_after(feed, 14, &first, &last), 3);
        assert_int_equal(first, 16);
        assert_int_equal(count_after(feed, 20, &first, &last), 0);
        for (uint64_t i = 6; i <= 20; i++)
                feed_push(feed, 10 + 2 * i, command);
        assert_false(feed_covers(feed, 20));
        assert_true(feed_covers(feed, 34));
        assert_int_equal(count_after(feed, 34, &first, &last), 8);
        assert_int_equal(first, 36);
        assert_int_equal(last, 50);
        rm__command__free_unpacked(command, NULL);
        feed_destroy(feed);
}

static void test_feed_large_commands(void **state) {
        struct feed *feed = feed_create(8, 1000);
        cleanup_free char *text = xcalloc(1, 2001);
        Rm__Command *command;

        memset(text, 'x', 2000);
        command = note(text);
        feed_push(feed, 5, command); /* larger than all that may be kept */
        assert_false(feed_covers(feed, 4));
        assert_true(feed_covers(feed, 5));
        rm__command__free_unpacked(command, NULL);
        feed_destroy(feed);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_feed),
                cmocka_unit_test(test_feed_large_commands),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
