/* The body is taken out of a job, put back, and kept on the disk meanwhile. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "common/util.h"
#include "daemon/job/body.h"
#include "daemon/job/body_store.h"

static char *letters(char letter, size_t n) {
        char *text = xcalloc(1, n + 1);

        memset(text, letter, n);
        return text;
}

static Rm__JobSpec *new_spec(const char *const *argv, const char *const *env, const char *cwd) {
        Rm__JobSpec *spec = xcalloc(1, sizeof(*spec));

        rm__job_spec__init(spec);
        spec->ranks = 3;
        message_set_string(&spec->cwd, cwd);
        for (; *argv; argv++) {
                spec->argv = xrealloc(spec->argv, (spec->n_argv + 1) * sizeof(*spec->argv));
                spec->argv[spec->n_argv++] = xstrdup(*argv);
        }
        for (; *env; env++) {
                spec->env = xrealloc(spec->env, (spec->n_env + 1) * sizeof(*spec->env));
                spec->env[spec->n_env++] = xstrdup(*env);
        }
        return spec;
}

static bool same(const Rm__JobSpec *a, const Rm__JobSpec *b) {
        size_t n = rm__job_spec__get_packed_size(a);
        cleanup_free uint8_t *x = xcalloc(1, n + 1);
        cleanup_free uint8_t *y = xcalloc(1, n + 1);

        if (rm__job_spec__get_packed_size(b) != n)
                return false;
        (void) rm__job_spec__pack(a, x);
        (void) rm__job_spec__pack(b, y);
        return memcmp(x, y, n) == 0;
}

/* Split and joined it is what it was; returns how much of it stays in the state. */
static size_t check_round(const char *const *argv, const char *const *env, const char *cwd, Rm__JobSpec **ret_split) {
        Rm__JobSpec *spec = new_spec(argv, env, cwd);
        Rm__JobSpec *before = (Rm__JobSpec *) message_copy(&spec->base);
        Rm__JobSpec *after;
        size_t size_bytes = 0;
        cleanup_free uint8_t *data = body_split(spec, &size_bytes);

        assert_int_equal(spec->n_env, 0);
        assert_int_equal(spec->body_bytes, size_bytes);
        assert_int_equal(spec->body_digest.len, data ? STATE_DIGEST_BYTES : 0);
        assert_true(spec->n_argv > 0);
        if (data) {
                after = body_join(spec, data, size_bytes);
                assert_non_null(after);
                assert_true(same(before, after));
                rm__job_spec__free_unpacked(after, NULL);
        } else {
                assert_true(same(before, spec));
        }
        rm__job_spec__free_unpacked(before, NULL);
        size_bytes = rm__job_spec__get_packed_size(spec);
        if (ret_split)
                *ret_split = spec;
        else
                rm__job_spec__free_unpacked(spec, NULL);
        return size_bytes;
}

static void test_split_and_join(void **state) {
        static const char *const short_argv[] = { "mpirun", "-n", "3", "", "a.out", NULL };
        static const char *const env[] = { "A=1", "PASSWORD=secret", "", NULL };
        static const char *const none[] = { NULL };
        cleanup_free char *word = letters('w', 100000);
        cleanup_free char *dir = letters('/', 3000);
        const char *long_argv[] = { "mpirun", word, word, NULL };
        Rm__JobSpec *spec = NULL;

        (void) check_round(short_argv, none, "/home", NULL); /* nothing to take out */
        (void) check_round(short_argv, env, "/home", &spec);
        assert_int_equal(spec->n_argv, 5);
        assert_false(spec->argv_cut || spec->cwd_cut);
        assert_string_equal(spec->cwd, "/home");
        rm__job_spec__free_unpacked(spec, NULL);
        assert_true(check_round(long_argv, env, dir, &spec) < 2000);
        assert_true(spec->argv_cut && spec->cwd_cut);
        assert_string_equal(spec->argv[0], "mpirun");
        assert_int_equal(spec->n_argv, 2);
        assert_string_equal(spec->argv[1] + strlen(spec->argv[1]) - 4, "w...");
        assert_string_equal(spec->cwd + strlen(spec->cwd) - 4, "/...");
        rm__job_spec__free_unpacked(spec, NULL);
}

/* Every length around the edge: short words, words of two-byte letters, and that it is always told
 * when there was more. */
static void test_cut(void **state) {
        static const char *const env[] = { "A=1", NULL };

        for (size_t n = BODY_ARGV_SHOWN_BYTES - 20; n < BODY_ARGV_SHOWN_BYTES + 20; n++) {
                cleanup_free char *word = letters('w', n);
                const char *argv[] = { "a", word, "b", "", NULL };
                Rm__JobSpec *spec = NULL;

                (void) check_round(argv, env, "/", &spec);
                assert_int_equal(spec->argv_cut, 2 + n + 1 + 2 + 1 > BODY_ARGV_SHOWN_BYTES);
                if (spec->argv_cut)
                        assert_non_null(strstr(spec->argv[spec->n_argv - 1], "..."));
                rm__job_spec__free_unpacked(spec, NULL);
                for (size_t i = 0; i + 1 < n; i += 2)
                        memcpy(word + i, "\xc3\xa4", 2);
                (void) check_round(argv, env, "/", &spec);
                for (size_t i = 0; spec->argv_cut && spec->argv[1][i] && !strchr(".w", spec->argv[1][i]); i += 2)
                        assert_memory_equal(spec->argv[1] + i, "\xc3\xa4", 2);
                rm__job_spec__free_unpacked(spec, NULL);
        }
}

/* Digests and cuts that a client sends are not believed. */
static void test_forged(void **state) {
        static const char *const argv[] = { "true", NULL };
        static const char *const none[] = { NULL };
        Rm__JobSpec *spec = new_spec(argv, none, "/");
        size_t size_bytes = 0;

        spec->body_digest.data = (uint8_t *) letters('d', 5);
        spec->body_digest.len = 5;
        spec->body_bytes = 7;
        spec->argv_cut = spec->cwd_cut = true;
        assert_null(body_split(spec, &size_bytes));
        assert_int_equal(spec->body_digest.len, 0);
        assert_false(spec->body_bytes || spec->argv_cut || spec->cwd_cut);
        assert_null(body_join(spec, (const uint8_t *) "\xff\xff\xff", 3));
        rm__job_spec__free_unpacked(spec, NULL);
}

/* ---- on the disk ---- */

static bool keep_none(void *userdata, const uint8_t *digest) {
        return false;
}

static bool keep_one(void *userdata, const uint8_t *digest) {
        return memcmp(userdata, digest, STATE_DIGEST_BYTES) == 0;
}

static size_t count_files(const char *dir) {
        DIR *d = opendir(dir);
        const struct dirent *entry;
        size_t n = 0;

        while ((entry = readdir(d)))
                n += entry->d_name[0] != '.';
        (void) closedir(d);
        return n;
}

static struct event_base *base;

static void on_stored(void *userdata, int code) {
        int *ret_code = userdata;

        assert_int_equal(*ret_code, 1); /* once */
        *ret_code = code;
}

static void put(struct body_store *store, const char *text, uint8_t *ret_digest) {
        int code = 1;

        body_digest((const uint8_t *) text, strlen(text), ret_digest);
        body_store_put_safely(store, ret_digest, (uint8_t *) xstrdup(text), strlen(text), on_stored, &code);
        while (code == 1)
                (void) event_base_loop(base, EVLOOP_ONCE);
        assert_int_equal(code, 0);
        assert_true(body_store_has(store, ret_digest));
}

static void check_there(struct body_store *store, const uint8_t *digest, const char *text) {
        cleanup_free uint8_t *data = NULL;
        size_t n = 0;

        assert_int_equal(body_store_get(store, digest, &data, &n), 0);
        assert_int_equal(n, strlen(text));
        assert_memory_equal(data, text, n);
}

static char *file_of(const char *dir, const uint8_t *digest) {
        char name[2 * STATE_DIGEST_BYTES + 1];

        for (size_t i = 0; i < STATE_DIGEST_BYTES; i++)
                (void) snprintf(name + 2 * i, 3, "%02x", digest[i]);
        return xasprintf("%s/%s", dir, name);
}

static void test_store(void **state) {
        char top[] = "/tmp/test-body-XXXXXX";
        uint8_t a[STATE_DIGEST_BYTES], b[STATE_DIGEST_BYTES];
        struct body_store *store = NULL;
        uint8_t *data = NULL;
        struct stat st;
        size_t n = 0;

        assert_non_null(mkdtemp(top));
        cleanup_free char *dir = xasprintf("%s/launch", top);
        cleanup_free char *leftover = xasprintf("%s/launch/0123.tmp.77", top);

        assert_int_equal(mkdir(dir, 0755), 0); /* by an administrator, say */
        assert_int_equal(write_file_atomic(leftover, "x", 1, 0644, false), 0);
        assert_int_equal(body_store_open(base, dir, &store, NULL), 0);
        assert_int_equal(count_files(dir), 0);
        put(store, "PASSWORD=secret", a);
        put(store, "PASSWORD=secret", a);
        put(store, "B=2", b);
        assert_int_equal(count_files(dir), 2);
        assert_int_equal(body_store_bytes(store), 18);
        assert_int_equal(stat(dir, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
        cleanup_free char *file = file_of(dir, a);
        assert_int_equal(stat(file, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        body_store_close(store);

        /* After a restart all is there; what is damaged is not, and goes. */
        assert_int_equal(body_store_open(base, dir, &store, NULL), 0);
        check_there(store, a, "PASSWORD=secret");
        check_there(store, b, "B=2");
        assert_int_equal(write_file_atomic(file, "PASSWORD=changed", 16, 0600, false), 0);
        assert_int_equal(body_store_get(store, a, &data, &n), -ENOENT);
        assert_false(body_store_has(store, a));
        assert_int_equal(count_files(dir), 1);
        put(store, "PASSWORD=secret", a);
        assert_int_equal(unlink(file), 0);
        assert_int_equal(body_store_get(store, a, &data, &n), -ENOENT);
        put(store, "PASSWORD=secret", a);

        body_store_sweep(store, keep_one, a);
        assert_true(body_store_has(store, a));
        assert_false(body_store_has(store, b));
        body_store_sweep(store, keep_none, NULL);
        assert_int_equal(count_files(dir), 0);
        assert_int_equal(body_store_bytes(store), 0);
        body_store_close(store);
        (void) remove_tree(top);
}

/* Callers that wait for a body that is being written are answered, also at the end. */
static void test_closed_while_writing(void **state) {
        char top[] = "/tmp/test-body-XXXXXX";
        struct body_store *store = NULL;
        int codes[100];

        assert_non_null(mkdtemp(top));
        assert_int_equal(body_store_open(base, top, &store, NULL), 0);
        for (int i = 0; i < 100; i++) {
                char *text = xasprintf("N=%d", i);
                uint8_t digest[STATE_DIGEST_BYTES];

                codes[i] = 1;
                body_digest((const uint8_t *) text, strlen(text), digest);
                body_store_put_safely(store, digest, (uint8_t *) text, strlen(text), on_stored, &codes[i]);
        }
        body_store_close(store);
        for (int i = 0; i < 100; i++)
                assert_int_equal(codes[i], -ECANCELED);
        (void) remove_tree(top);
}

/* Where nothing can be written those who launch a job have it all the same, those who promise to
 * keep it say no. */
static void test_unwritable(void **state) {
        char top[] = "/tmp/test-body-XXXXXX";
        uint8_t a[STATE_DIGEST_BYTES], b[STATE_DIGEST_BYTES];
        struct body_store *store = NULL;
        int code = 1;

        assert_non_null(mkdtemp(top));
        cleanup_free char *dir = xasprintf("%s/launch", top);

        assert_int_equal(body_store_open(base, dir, &store, NULL), 0);
        assert_int_equal(rmdir(dir), 0);
        body_digest((const uint8_t *) "A=1", 3, a);
        body_digest((const uint8_t *) "B=2", 3, b);
        body_store_put(store, a, (const uint8_t *) "A=1", 3);
        check_there(store, a, "A=1");
        body_store_put_safely(store, b, (uint8_t *) xstrdup("B=2"), 3, on_stored, &code);
        while (code == 1)
                (void) event_base_loop(base, EVLOOP_ONCE);
        assert_int_equal(code, -ENOENT);
        assert_false(body_store_has(store, b));
        body_store_sweep(store, keep_none, NULL);
        assert_false(body_store_has(store, a));
        body_store_close(store);
        (void) remove_tree(top);
}

static ino_t inode_of(const char *path) {
        struct stat st;

        assert_int_equal(stat(path, &st), 0);
        return st.st_ino;
}

/* A body that is kept in memory only, was written without waiting for the disk, or lies there from
 * before, is not safe yet: it is written, or refused, as if it were not there. */
static void test_not_safe_yet(void **state) {
        char top[] = "/tmp/test-body-XXXXXX";
        uint8_t in_memory[STATE_DIGEST_BYTES], on_disk[STATE_DIGEST_BYTES];
        struct body_store *store = NULL;
        int code = 1;
        ino_t before;

        (void) state;
        assert_non_null(mkdtemp(top));
        cleanup_free char *dir = xasprintf("%s/launch", top);

        assert_int_equal(body_store_open(base, dir, &store, NULL), 0);
        assert_int_equal(rmdir(dir), 0);
        body_digest((const uint8_t *) "A=1", 3, in_memory);
        body_store_put(store, in_memory, (const uint8_t *) "A=1", 3);
        body_store_put_safely(store, in_memory, (uint8_t *) xstrdup("A=1"), 3, on_stored, &code);
        while (code == 1)
                (void) event_base_loop(base, EVLOOP_ONCE);
        assert_int_equal(code, -ENOENT);
        check_there(store, in_memory, "A=1");
        assert_int_equal(mkdir(dir, 0700), 0);
        put(store, "A=1", in_memory);
        assert_int_equal(count_files(dir), 1);
        assert_int_equal(body_store_bytes(store), 3);

        body_digest((const uint8_t *) "B=2", 3, on_disk);
        cleanup_free char *file = file_of(dir, on_disk);
        body_store_put(store, on_disk, (const uint8_t *) "B=2", 3);
        before = inode_of(file);
        put(store, "B=2", on_disk);
        assert_int_not_equal(inode_of(file), before);
        before = inode_of(file);
        put(store, "B=2", on_disk); /* it is now */
        assert_int_equal(inode_of(file), before);
        body_store_close(store);

        assert_int_equal(body_store_open(base, dir, &store, NULL), 0);
        put(store, "B=2", on_disk);
        assert_int_not_equal(inode_of(file), before);
        assert_int_equal(count_files(dir), 2);
        body_store_close(store);
        (void) remove_tree(top);
}

static void test_many(void **state) {
        char top[] = "/tmp/test-body-XXXXXX";
        struct body_store *store = NULL;
        uint8_t digests[200][STATE_DIGEST_BYTES];

        assert_non_null(mkdtemp(top));
        assert_int_equal(body_store_open(base, top, &store, NULL), 0);
        for (int i = 0; i < 200; i++) {
                cleanup_free char *text = xasprintf("N=%d", i);

                body_digest((const uint8_t *) text, strlen(text), digests[i]);
                body_store_put(store, digests[i], (const uint8_t *) text, strlen(text));
        }
        for (int i = 0; i < 200; i++) {
                cleanup_free char *text = xasprintf("N=%d", i);

                check_there(store, digests[i], text);
        }
        body_store_close(store);
        (void) remove_tree(top);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_split_and_join),
                cmocka_unit_test(test_cut),
                cmocka_unit_test(test_forged),
                cmocka_unit_test(test_store),
                cmocka_unit_test(test_closed_while_writing),
                cmocka_unit_test(test_unwritable),
                cmocka_unit_test(test_not_safe_yet),
                cmocka_unit_test(test_many),
        };
        int r;

        base = event_base_new();
        r = cmocka_run_group_tests(tests, NULL, NULL);
        event_base_free(base);
        return r;
}
