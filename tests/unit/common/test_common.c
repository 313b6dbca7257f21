/* The leaf code: numbers, names, durations, whole reads and writes, frames, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/frame.h"
#include "common/log.h"
#include "common/openat.h"
#include "common/text.h"
#include "common/util.h"
#include "proto/state.pb-c.h"

static void test_decimals(void **state) {
        static const struct {
                const char *text;
                int code;
                double value;
        } cases[] = {
                { "0", 0, 0 },         { "1.5", 0, 1.5 },    { ".5e1", 0, 5 },        { "+2", 0, 2 },
                { "", -EINVAL, 0 },    { " 1", -EINVAL, 0 }, { "0x10", -EINVAL, 0 },  { "nan", -EINVAL, 0 },
                { "inf", -EINVAL, 0 }, { "1x", -EINVAL, 0 }, { "1,5", -EINVAL, 0 },   { "1e", -EINVAL, 0 },
                { "-1", -ERANGE, 0 },  { "11", -ERANGE, 0 }, { "1e999", -ERANGE, 0 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                double v = 0;

                assert_int_equal(parse_decimal(cases[i].text, 0, 10, &v), cases[i].code);
                assert_true(v == cases[i].value);
        }
}

static void test_numbers(void **state) {
        static const struct {
                const char *text;
                int64_t min;
                int64_t max;
                int code;
                int64_t value;
        } cases[] = {
                { "0", 0, 10, 0, 0 },
                { "10", 0, 10, 0, 10 },
                { "-3", -5, 5, 0, -3 },
                { "9223372036854775807", INT64_MIN, INT64_MAX, 0, INT64_MAX },
                { "11", 0, 10, -ERANGE, 0 },
                { "-1", 0, 10, -ERANGE, 0 },
                { "9223372036854775808", INT64_MIN, INT64_MAX, -ERANGE, 0 },
                { "", 0, 10, -EINVAL, 0 },
                { NULL, 0, 10, -EINVAL, 0 },
                { " 1", 0, 10, -EINVAL, 0 },
                { "1 ", 0, 10, -EINVAL, 0 },
                { "+1", 0, 10, -EINVAL, 0 },
                { "-", -10, 10, -EINVAL, 0 },
                { "--1", -10, 10, -EINVAL, 0 },
                { "0x1", 0, 10, -EINVAL, 0 },
                { "1e3", 0, 10000, -EINVAL, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int64_t v = 77;

                assert_int_equal(parse_i64(cases[i].text, cases[i].min, cases[i].max, &v), cases[i].code);
                assert_true(v == (cases[i].code ? 77 : cases[i].value));
        }
}

static void test_durations(void **state) {
        static const struct {
                const char *text;
                int code;
                uint64_t usec;
        } cases[] = {
                { "0", 0, 0 },
                { "90", 0, 90000000 },
                { "90s", 0, 90000000 },
                { "250ms", 0, 250000 },
                { "5m", 0, 300000000 },
                { "2h", 0, UINT64_C(7200000000) },
                { "1d", 0, UINT64_C(86400000000) },
                { "", -EINVAL, 0 },
                { NULL, -EINVAL, 0 },
                { "s", -EINVAL, 0 },
                { "-1s", -EINVAL, 0 },
                { "1 s", -EINVAL, 0 },
                { "1.5s", -EINVAL, 0 },
                { "1S", -EINVAL, 0 },
                { "1w", -EINVAL, 0 },
                { "18446744073709551616", -ERANGE, 0 },
                { "18446744073709551615", -ERANGE, 0 },
                { "999999999999999d", -ERANGE, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t v = 77;

                assert_int_equal(parse_duration_usec(cases[i].text, &v), cases[i].code);
                assert_true(v == (cases[i].code ? 77 : cases[i].usec));
        }
}

static void test_bytes(void **state) {
        static const struct {
                const char *text;
                int code;
                uint64_t bytes;
        } cases[] = {
                { "0", 0, 0 },
                { "4096", 0, 4096 },
                { "500K", 0, 512000 },
                { "50M", 0, 52428800 },
                { "3G", 0, UINT64_C(3221225472) },
                { "1T", 0, UINT64_C(1099511627776) },
                { "", -EINVAL, 0 },
                { "M", -EINVAL, 0 },
                { "-1", -EINVAL, 0 },
                { "5m", -EINVAL, 0 },
                { "5 M", -EINVAL, 0 },
                { "5MB", -EINVAL, 0 },
                { "99999999T", -ERANGE, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t v = 77;

                assert_int_equal(parse_bytes(cases[i].text, &v), cases[i].code);
                assert_true(v == (cases[i].code ? 77 : cases[i].bytes));
        }
}

static void test_names(void **state) {
        static const char *const good[] = { "a", "n1", "1", "n1.example.org", "a_b-c.d", "A" };
        static const char *const bad[] = { "", ".", "-a", "_a", ".a", "a b", "a/b", "a\n", "\xc3\xa9", "a:1", "a%s" };
        char text[65];

        for (size_t i = 0; i < ARRAY_SIZE(good); i++)
                assert_true(name_valid(good[i]));
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_false(name_valid(bad[i]));
        assert_false(name_valid(NULL));
        memset(text, 'a', sizeof(text));
        text[63] = 0;
        assert_true(name_valid(text));
        text[63] = 'a';
        text[64] = 0;
        assert_false(name_valid(text));
}

static void test_errors(void **state) {
        struct rm_error err = { 0 };
        char word[600];

        assert_int_equal(error_set(NULL, -EINVAL, "x"), -EINVAL);
        assert_int_equal(error_sys(NULL, -EIO, "x"), -EIO);
        assert_int_equal(error_prefix(NULL, "x"), 0);
        error_clear(NULL);
        assert_non_null(error_text(NULL));
        err.code = -ENOENT;
        assert_string_equal(error_text(&err), "No such file or directory");
        assert_int_equal(error_sys(&err, -EACCES, "cannot open %s", "/x"), -EACCES);
        assert_string_equal(error_text(&err), "cannot open /x: Permission denied");
        assert_int_equal(error_prefix(&err, "move %d", 7), -EACCES);
        assert_string_equal(error_text(&err), "move 7: cannot open /x: Permission denied");
        /* A text that is too long is never written beyond its room. */
        memset(word, 'x', sizeof(word) - 1);
        word[sizeof(word) - 1] = 0;
        for (unsigned i = 0; i < 5; i++)
                (void) error_prefix(&err, "%s", word);
        assert_int_equal(strlen(err.text), RM_ERROR_TEXT_BYTES - 1);
        (void) error_sys(&err, -EIO, "%s%s", word, word);
        assert_int_equal(strlen(err.text), RM_ERROR_TEXT_BYTES - 1);
        error_clear(&err);
        assert_int_equal(err.code, 0);
        assert_string_equal(err.text, "");
}

/* The message says what failed and why, and that it is cut, whatever the length of a path that a
 * user has made. */
static void test_long_path_hides_why(void **state) {
        struct rm_error err = { 0 };
        char path[PATH_MAX];

        (void) state;
        memset(path, 'd', sizeof(path) - 1);
        path[sizeof(path) - 1] = 0;
        (void) error_sys(&err, -ENOENT, "cannot open '%s/input'", path);
        assert_ptr_equal(strstr(err.text, "cannot open 'ddd"), err.text);
        assert_non_null(strstr(err.text, TEXT_CUT_MARK "ddd"));
        assert_string_equal(strstr(err.text, "/input"), "/input': No such file or directory");
        (void) error_prefix(&err, "job 7");
        assert_ptr_equal(strstr(err.text, "job 7: cannot open 'ddd"), err.text);
        assert_string_equal(strstr(err.text, "/input"), "/input': No such file or directory");
        assert_int_equal(strlen(err.text), RM_ERROR_TEXT_BYTES - 1);
}

static void test_cut_texts(void **state) {
        char text[16];

        (void) state;
        assert_int_equal(text_format(text, sizeof(text), "%s", "123456789012345"), 15);
        assert_string_equal(text, "123456789012345");
        assert_int_equal(text_format(text, sizeof(text), "%s", "1234567890abcdef"), 15);
        assert_string_equal(text, "12345[...]bcdef");
        (void) text_append(text, sizeof(text), "%d", 7);
        assert_string_equal(text, "12345[...]cdef7");
        /* A character is there as a whole or not at all. */
        (void) text_format(text, sizeof(text), "%s", "1234\xc3\xa4 and some \xe2\x82\xac 12");
        assert_string_equal(text, "1234[...] 12");
        /* No room for the mark. */
        assert_int_equal(text_format(text, 4, "%s", "abcdef"), 3);
        assert_string_equal(text, "abc");
        assert_int_equal(text_format(text, 1, "%s", "abcdef"), 0);
        assert_string_equal(text, "");
}

/* A descriptor that was closed before the end of its scope gives its number to another, which stays
 * open. */
static void test_descriptors(void **state) {
        int other;

        (void) state;
        {
                cleanup_close int fd = dup(STDIN_FILENO);
                int number = fd;

                assert_true(fd >= 0);
                cleanup_close_fd(&fd);
                assert_int_equal(fd, -1);
                other = dup(STDIN_FILENO);
                assert_int_equal(other, number);
        }
        assert_true(fcntl(other, F_GETFD) >= 0);
        (void) close(other);
}

static void test_files(void **state) {
        char dir[] = "/var/tmp/test-common-XXXXXX"; /* on an overlay, as the root of a stateless node */
        struct stat st;
        size_t bytes = 0;

        assert_non_null(mkdtemp(dir));
        cleanup_free char *path = xasprintf("%s/a/b/c", dir);
        cleanup_free char *file = xasprintf("%s/f", path);
        cleanup_free char *loop = xasprintf("%s/out", path);
        cleanup_free char *data = NULL;
        cleanup_free char *again = NULL;
        cleanup_free char *large = xcalloc(1, 100000);

        assert_int_equal(mkdir_p(path, 0700), 0);
        assert_int_equal(mkdir_p(path, 0700), 0);
        assert_int_equal(write_file_atomic(file, "one", 3, 0600, true), 0);
        assert_int_equal(stat(file, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(read_file(file, 3, &data, &bytes), 0);
        assert_int_equal(bytes, 3);
        assert_string_equal(data, "one");
        assert_int_equal(write_file_atomic(file, large, 100000, 0644, false), 0);
        assert_int_equal(read_file(file, 99999, &again, NULL), -EFBIG);
        assert_int_equal(read_file(file, 100000, &again, &bytes), 0);
        assert_int_equal(bytes, 100000);
        assert_int_equal(write_text(file, "x"), 0);
        assert_int_equal(mkdir_p(file, 0700), 0 /* it exists; what it is shows when it is used */);
        free(take_ptr(again));
        assert_int_equal(read_file("/nonexistent", 10, &again, NULL), -ENOENT);
        assert_int_equal(read_file(dir, 10, &again, NULL), -EISDIR);
        /* A tree is removed, what its links point to is not. */
        assert_int_equal(symlink("/etc", loop), 0);
        assert_int_equal(remove_tree(dir), 0);
        assert_int_equal(stat(dir, &st), -1);
        assert_int_equal(stat("/etc", &st), 0);
        assert_int_equal(remove_tree(dir), 0);
}

static void *write_slowly(void *arg) {
        int fd = *(int *) arg;

        for (unsigned i = 0; i < 10; i++) {
                (void) !write(fd, "x", 1);
                (void) usleep(1000);
        }
        (void) close(fd);
        return NULL;
}

static void test_read_all(void **state) {
        int fds[2];
        pthread_t thread;
        char buf[10];

        assert_int_equal(pipe(fds), 0);
        assert_int_equal(pthread_create(&thread, NULL, write_slowly, &fds[1]), 0);
        assert_int_equal(read_all(fds[0], buf, 7), 0);
        assert_int_equal(read_all(fds[0], buf, 7), -EPIPE);
        assert_int_equal(read_all(fds[0], buf, 7), -ENODATA);
        assert_int_equal(read_all(fds[0], buf, 0), 0);
        (void) pthread_join(thread, NULL);
        (void) close(fds[0]);
}

#define MAGIC FRAME_MAGIC_LOCAL

static int send_and_receive(const void *data, size_t bytes, uint32_t max_bytes, ProtobufCMessage **ret_message) {
        int fds[2];
        int r;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        assert_int_equal(write_all(fds[1], data, bytes), 0);
        (void) close(fds[1]);
        r = frame_receive(fds[0], MAGIC, max_bytes, &rm__cmd_note__descriptor, ret_message);
        (void) close(fds[0]);
        return r;
}

static void test_frames(void **state) {
        Rm__CmdNote note = RM__CMD_NOTE__INIT;
        ProtobufCMessage *message = NULL;
        size_t bytes;
        cleanup_free uint8_t *frame = NULL;
        uint32_t payload;

        note.text = (char *) "hello";
        frame = frame_pack(MAGIC, &note.base, &bytes);
        assert_int_equal(frame_header_read(frame, MAGIC, 100, &payload), 0);
        assert_int_equal(payload, bytes - FRAME_HEADER_BYTES);
        assert_int_equal(frame_header_read(frame, MAGIC, payload, &payload), 0);
        assert_int_equal(frame_header_read(frame, MAGIC, payload - 1, &payload), -EMSGSIZE);
        assert_int_equal(frame_header_read(frame, FRAME_MAGIC_PEER, 100, &payload), -EPROTO);
        assert_int_equal(send_and_receive(frame, bytes, 100, &message), 0);
        assert_string_equal(((Rm__CmdNote *) message)->text, "hello");
        protobuf_c_message_free_unpacked(message, NULL);
        /* Cut at every byte. */
        assert_int_equal(send_and_receive(frame, 0, 100, &message), -ENODATA);
        for (size_t n = 1; n < bytes; n++)
                assert_int_equal(send_and_receive(frame, n, 100, &message), -EPIPE);
        frame[FRAME_HEADER_BYTES] = 0xff; /* not a message */
        assert_int_equal(send_and_receive(frame, bytes, 100, &message), -EBADMSG);
        frame_header_write(frame, MAGIC, UINT32_MAX);
        assert_int_equal(send_and_receive(frame, bytes, FRAME_MAX_LOCAL_BYTES, &message), -EMSGSIZE);
        /* An empty message is a message. */
        frame_header_write(frame, MAGIC, 0);
        assert_int_equal(send_and_receive(frame, FRAME_HEADER_BYTES, 100, &message), 0);
        protobuf_c_message_free_unpacked(message, NULL);
}

static void test_texts(void **state) {
        static const struct {
                const char *text, *escaped; /* NULL: plain */
        } cases[] = {
                { "", NULL },
                { "a name-1.2_3 \\ ~", NULL },
                { "W\xc3\xa4rme \xe2\x82\xac \xf0\x9f\x98\x80", NULL },
                { "a\nb\tc\rd", "a\\nb\\tc\\rd" },
                { "\033[31m\177", "\\x1b[31m\\x7f" },
                { "\xc2\x9b"
                  "31m",
                  "\\xc2\\x9b31m" },           /* CSI, as one character of UTF-8 */
                { "\x9b"
                  "31m",
                  "\\x9b31m" },                    /* and as a byte */
                { "\xe2\x80\xa8x", "\\xe2\\x80\\xa8x" },         /* line separator */
                { "\xc0\x8a", "\\xc0\\x8a" },                   /* newline, overlong */
                { "\xed\xa0\x80", "\\xed\\xa0\\x80" },          /* surrogate */
                { "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },  /* behind the last one */
                { "\xe2\x82", "\\xe2\\x82" },                   /* cut short */
        };
        char out[64];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *want = cases[i].escaped ? cases[i].escaped : cases[i].text;

                assert_int_equal(text_is_plain(cases[i].text), !cases[i].escaped);
                assert_int_equal(text_escape(cases[i].text, out, sizeof(out)), strlen(want));
                assert_string_equal(out, want);
        }
        assert_int_equal(text_escape("ab\n", out, 4), 2); /* never half of an escape */
        assert_string_equal(out, "ab");
        assert_int_equal(text_escape("\xe2\x82\xac", out, 3), 0);
        assert_int_equal(text_escape("abc", out, 1), 0);
}

static void test_iso_time(void **state) {
        cleanup_free char *some = text_iso_time(UINT64_C(1795262014123456));
        cleanup_free char *first = text_iso_time(0);

        assert_string_equal(some, "2026-11-21T11:53:34.123456Z");
        assert_string_equal(first, "1970-01-01T00:00:00.000000Z");
}

/* The output of log_write() for a text, as a reader of the log gets it. */
static size_t logged(const char *text, char *ret_log, size_t size_bytes) {
        int pipes[2], old = dup(STDERR_FILENO);
        ssize_t n;

        assert_int_equal(pipe(pipes), 0);
        assert_true(old >= 0 && dup2(pipes[1], STDERR_FILENO) >= 0);
        log_info("job 1 of alice: %s, 1 ranks", text);
        assert_true(dup2(old, STDERR_FILENO) >= 0);
        (void) close(old);
        (void) close(pipes[1]);
        n = read(pipes[0], ret_log, size_bytes - 1);
        (void) close(pipes[0]);
        assert_true(n > 0);
        ret_log[n] = 0;
        return (size_t) n;
}

static void test_user_forges_log_line(void **state) {
        char log[8192];
        char longest[4096];
        size_t n = logged("x\n2026-01-01T00:00:00.000 rmd[1] error: FORGED\033[31m\x9b"
                          "2J",
                          log, sizeof(log));

        assert_ptr_equal(strchr(log, '\n'), log + n - 1); /* one line */
        assert_null(strchr(log, '\033'));
        assert_null(strchr(log, '\x9b'));
        assert_non_null(strstr(log, "x\\n2026-01-01"));
        memset(longest, '\n', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = 0;
        n = logged(longest, log, sizeof(log));
        assert_ptr_equal(strchr(log, '\n'), log + n - 1);
}

/* A reader below a directory gets the begin of a file, and never the directory that a link leads
 * to. */
static void test_openat(void **state) {
        char dir[] = "/tmp/test-openat-XXXXXX", text[8];
        cleanup_free char *file = NULL, *link = NULL;
        cleanup_close int dir_fd = -1;
        cleanup_file FILE *f = NULL;
        unsigned names = 0, numbers = 0;

        assert_non_null(mkdtemp(dir));
        file = xasprintf("%s/17", dir);
        link = xasprintf("%s/below", dir);
        assert_int_equal(write_file_atomic(file, "0123456789", 10, 0644, false), 0);
        assert_int_equal(symlink("/tmp", link), 0);
        dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(dir_fd >= 0);

        assert_int_equal(read_text_at(dir_fd, "17", text, sizeof(text)), sizeof(text) - 1);
        assert_string_equal(text, "0123456");
        assert_int_equal(read_text_at(dir_fd, "none", text, sizeof(text)), -ENOENT);
        assert_string_equal(text, "");
        assert_int_equal(read_text_at(dir_fd, ".", text, sizeof(text)), -EISDIR);
        assert_int_equal(write_text_at(dir_fd, "17", "ab"), 0);
        assert_int_equal(write_text_at(dir_fd, "none", "ab"), -ENOENT);
        f = fopen_at(dir_fd, "17");
        assert_non_null(f);
        assert_int_equal(fgetc(f), 'a');
        assert_null(fopen_at(dir_fd, "none"));
        assert_int_equal(errno, ENOENT);

        assert_null(opendir_at(dir_fd, "below"));
        assert_null(opendir_at(dir_fd, "17"));
        assert_null(opendir_at(dir_fd, "none"));
        assert_null(next_name(NULL));
        for (cleanup_dir DIR *all = opendir_at(dir_fd, "."); next_name(all);)
                names++;
        for (cleanup_dir DIR *all = opendir_at(dir_fd, "."); next_number(all);)
                numbers++;
        assert_int_equal(names, 2);
        assert_int_equal(numbers, 1);
        assert_int_equal(remove_tree(dir), 0);
}

static void test_grow(void **state) {
        cleanup_free unsigned *list = NULL;

        for (unsigned n = 0; n < 5000; n++) {
                list = xgrow(list, n, sizeof(*list));
                list[n] = n; /* what is behind the room is found by the sanitizers */
        }
        for (unsigned n = 0; n < 5000; n++)
                assert_int_equal(list[n], n);
        list = xgrow(list, 3, sizeof(*list));
        assert_int_equal(list[4999], 4999);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_texts),
                cmocka_unit_test(test_user_forges_log_line),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_decimals),
                cmocka_unit_test(test_durations),
                cmocka_unit_test(test_bytes),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_errors),
                cmocka_unit_test(test_long_path_hides_why),
                cmocka_unit_test(test_cut_texts),
                cmocka_unit_test(test_files),
                cmocka_unit_test(test_read_all),
                cmocka_unit_test(test_frames),
                cmocka_unit_test(test_descriptors),
                cmocka_unit_test(test_iso_time),
                cmocka_unit_test(test_openat),
                cmocka_unit_test(test_grow),
        };

        return cmocka_run_group_tests_name("common", tests, NULL, NULL);
}
