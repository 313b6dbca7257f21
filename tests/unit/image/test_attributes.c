/* Extended attributes of files in trees: carried, bounded, and none but those. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/image/attributes.h"
#include "trees.h"

#define ACCESS "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"

/* linux/posix_acl_xattr.h: a version, then entries, all little endian. */
struct acl {
        uint32_t version;
        struct {
                uint16_t tag;
                uint16_t rights;
                uint32_t id;
        } entries[5];
};

/* The owner and user 1001 may read and write, the group nothing. */
static const struct acl acl = {
        2,
        { { 1, 6, UINT32_MAX }, { 2, 6, 1001 }, { 4, 0, UINT32_MAX }, { 0x10, 6, UINT32_MAX }, { 0x20, 0, UINT32_MAX } }
};

struct places {
        char base[64];
        char *from;
        char *to;
        int from_fd;
        int to_fd;
};

static int setup(void **state) {
        struct places *p = xcalloc(1, sizeof(*p));

        strcpy(p->base, "/tmp/rmd-test-attributes.XXXXXX");
        assert_non_null(mkdtemp(p->base));
        p->from = xasprintf("%s/from", p->base);
        p->to = xasprintf("%s/to", p->base);
        assert_int_equal(mkdir(p->from, 0755), 0);
        assert_int_equal(mkdir(p->to, 0755), 0);
        p->from_fd = open(p->from, O_RDONLY | O_DIRECTORY);
        p->to_fd = open(p->to, O_RDONLY | O_DIRECTORY);
        *state = p;
        return 0;
}

static int teardown(void **state) {
        struct places *p = *state;

        (void) close(p->from_fd);
        (void) close(p->to_fd);
        (void) remove_tree(p->base);
        free(p->from);
        free(p->to);
        free(p);
        return 0;
}

static int saved_state(const struct places *p, struct rm_error *err) {
        struct image_tree_figures figures = { 0 };
        struct memory m;
        int r = trees_store(&m, p->from, NULL, &figures, err);

        if (r == 0)
                r = trees_place(&m, p->to, err);
        memory_finish(&m);
        return r;
}

static void carry_well(const struct places *p) {
        struct rm_error err = { 0 };

        if (saved_state(p, &err) < 0)
                fail_msg("%s", error_text(&err));
}

static void file_put(int dir, const char *name) {
        int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

        assert_true(fd >= 0);
        (void) close(fd);
}

static char *path_of(int dir, const char *name) {
        return xasprintf("/proc/self/fd/%d/%s", dir, name);
}

static void give(int dir, const char *name, const char *attribute, const void *value, size_t bytes) {
        cleanup_free char *path = path_of(dir, name);

        assert_int_equal(setxattr(path, attribute, value, bytes, 0), 0);
}

static ssize_t get(int dir, const char *name, const char *attribute, void *ret_value, size_t bytes) {
        cleanup_free char *path = path_of(dir, name);

        return getxattr(path, attribute, ret_value, bytes);
}

static void has(int dir, const char *name, const char *attribute, const void *value, size_t bytes) {
        char found[300];

        assert_int_equal(get(dir, name, attribute, found, sizeof(found)), bytes);
        assert_memory_equal(found, value, bytes);
}

static void has_not(int dir, const char *name, const char *attribute) {
        assert_int_equal(get(dir, name, attribute, NULL, 0), -1);
        assert_int_equal(errno, ENODATA);
}

static mode_t mode_of(int dir, const char *name) {
        struct stat st;

        assert_int_equal(fstatat(dir, name, &st, 0), 0);
        return st.st_mode & 07777;
}

static void test_carried(void **state) {
        const struct places *p = *state;

        file_put(p->from_fd, "file");
        give(p->from_fd, "file", "user.tag", "a\0b", 3);
        give(p->from_fd, "file", "user.empty", "", 0);
        give(p->from_fd, "file", ACCESS, &acl, sizeof(acl));
        assert_int_equal(linkat(p->from_fd, "file", p->from_fd, "other", 0), 0);
        assert_int_equal(mkfifoat(p->from_fd, "fifo", 0600), 0);
        give(p->from_fd, "fifo", ACCESS, &acl, sizeof(acl));
        give(p->from_fd, ".", "user.top", "x", 1);
        carry_well(p);
        has(p->to_fd, "file", "user.tag", "a\0b", 3);
        has(p->to_fd, "file", "user.empty", "", 0);
        has(p->to_fd, "file", ACCESS, &acl, sizeof(acl));
        has(p->to_fd, "other", ACCESS, &acl, sizeof(acl));
        has(p->to_fd, "fifo", ACCESS, &acl, sizeof(acl));
        has(p->to_fd, ".", "user.top", "x", 1);
        assert_int_equal(mode_of(p->to_fd, "file"), 0660);
        assert_int_equal(mode_of(p->to_fd, "fifo"), 0660);
}

/* A file that was made before the directory got its list has none, on neither side. */
static void test_default_is_not_inherited(void **state) {
        const struct places *p = *state;

        assert_int_equal(mkdirat(p->from_fd, "d", 0700), 0);
        assert_int_equal(mkdirat(p->from_fd, "d/sub", 0750), 0);
        file_put(p->from_fd, "d/file");
        give(p->from_fd, "d", DEFAULT, &acl, sizeof(acl));
        carry_well(p);
        has(p->to_fd, "d", DEFAULT, &acl, sizeof(acl));
        has_not(p->to_fd, "d", ACCESS);
        has_not(p->to_fd, "d/sub", ACCESS);
        has_not(p->to_fd, "d/sub", DEFAULT);
        has_not(p->to_fd, "d/file", ACCESS);
        assert_int_equal(mode_of(p->to_fd, "d/sub"), 0750);
        assert_int_equal(mode_of(p->to_fd, "d/file"), 0600);
}

/* A file that lies at the destination, from an earlier visit, loses its attributes. */
static void test_stale_are_removed(void **state) {
        const struct places *p = *state;

        for (int i = 0; i < 2; i++) {
                int fd = i ? p->to_fd : p->from_fd;

                assert_int_equal(mkdirat(fd, "d", 0700), 0);
                file_put(fd, "file");
                assert_int_equal(mkfifoat(fd, "fifo", 0600), 0);
        }
        file_put(p->from_fd, "d/new");
        give(p->from_fd, "file", "user.kept", "new", 3);
        give(p->to_fd, "file", "user.kept", "older", 5);
        give(p->to_fd, "file", "user.stale", "x", 1);
        give(p->to_fd, "file", ACCESS, &acl, sizeof(acl));
        give(p->to_fd, "fifo", ACCESS, &acl, sizeof(acl));
        give(p->to_fd, "d", "user.stale", "x", 1);
        give(p->to_fd, "d", DEFAULT, &acl, sizeof(acl));
        give(p->to_fd, ".", DEFAULT, &acl, sizeof(acl));
        carry_well(p);
        has(p->to_fd, "file", "user.kept", "new", 3);
        has_not(p->to_fd, "file", "user.stale");
        has_not(p->to_fd, "file", ACCESS);
        has_not(p->to_fd, "fifo", ACCESS);
        has_not(p->to_fd, "d", "user.stale");
        has_not(p->to_fd, "d", DEFAULT);
        has_not(p->to_fd, ".", DEFAULT);
        has_not(p->to_fd, "d/new", ACCESS);
        assert_int_equal(mode_of(p->to_fd, "file"), 0600);
        assert_int_equal(mode_of(p->to_fd, "fifo"), 0600);
}

/* Only root can try: attributes that users cannot give do not travel. */
static void test_those_of_root_stay(void **state) {
        const struct places *p = *state;

        file_put(p->from_fd, "file");
        if (geteuid() == 0)
                give(p->from_fd, "file", "trusted.x", "x", 1);
        give(p->from_fd, "file", "user.x", "x", 1);
        carry_well(p);
        has(p->to_fd, "file", "user.x", "x", 1);
        has_not(p->to_fd, "file", "trusted.x");
}

/* Attributes that are too many for an image are refused, file and reason named, however they are
 * spread. */
static void test_too_much_is_refused(void **state) {
        enum { VALUE_BYTES = 1000, N_THAT_FIT = IMAGE_ATTRIBUTES_MAX_BYTES / (VALUE_BYTES + 6 + IMAGE_ATTRIBUTE_HEAD_BYTES) };
        const struct places *p = *state;
        struct rm_error err = { 0 };
        char value[VALUE_BYTES] = "";
        struct image_object o = { .kind = RM__IMAGE_KIND__IMAGE_KIND_REGULAR, .role = "tmp", .path = "file", .target = "" };
        struct image_attributes a = { 0 };

        file_put(p->from_fd, "file");
        for (unsigned i = 0; i < N_THAT_FIT; i++) {
                char name[] = "user.0";

                name[5] = (char) ('0' + i);
                give(p->from_fd, "file", name, value, sizeof(value));
        }
        carry_well(p);
        assert_int_equal(get(p->to_fd, "file", "user.7", NULL, 0), VALUE_BYTES);
        give(p->from_fd, "file", "user.last", value, 200);
        assert_int_equal(saved_state(p, &err), -E2BIG);
        assert_non_null(strstr(err.text, "tmp:file has more than 8192 bytes of extended attributes"));
        assert_int_equal(image_attributes_read(&o, p->from_fd, "file", &a, NULL), -E2BIG);
        assert_int_equal(a.n, 0);
}

/* A path as long as an image takes, with attributes as large as it takes. */
static void test_largest_head_fits(void **state) {
        static char path[IMAGE_PATH_MAX_BYTES + 1];
        static char value[IMAGE_ATTRIBUTES_MAX_BYTES];
        const char role[] = "a-role-as-long-as-the-name-of-a-role-may-be-with-sixty-three-ch";
        struct image_attribute attributes[2] = { { "user.a", value, 0 }, { "user.b", value, 0 } };
        struct image_object o = { .kind = RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY_END,
                                  .role = role,
                                  .path = path,
                                  .target = "",
                                  .mode = 07777,
                                  .uid = UINT32_MAX,
                                  .gid = UINT32_MAX,
                                  .mtime_sec = INT64_MIN,
                                  .mtime_nsec = 999999999,
                                  .attributes = attributes,
                                  .n_attributes = 2 };
        struct image_writer *w = NULL;
        struct memory m;

        (void) state;
        memset(path, 'x', IMAGE_PATH_MAX_BYTES);
        for (size_t i = 200; i < IMAGE_PATH_MAX_BYTES - 1; i += 200)
                path[i] = '/';
        attributes[1].value_bytes = IMAGE_ATTRIBUTES_MAX_BYTES - 2 * (6 + IMAGE_ATTRIBUTE_HEAD_BYTES);
        memory_init(&m);
        assert_int_equal(image_writer_create(&m.sink, NULL, NULL, &w, NULL), 0);
        assert_int_equal(image_writer_open(w, &o, NULL, NULL), 0);
        attributes[1].value_bytes++;
        assert_int_equal(image_writer_open(w, &o, NULL, NULL), -EBADMSG);
        assert_int_equal(image_writer_end(w, NULL), 0);
        image_writer_destroy(w);
        assert_int_equal(memory_read_nowhere(&m, NULL), 0);
        memory_finish(&m);
}

/* CRIU makes the socket again, without its list: the group would get what a named user had. */
static void test_socket_with_list_is_refused(void **state) {
        const struct places *p = *state;
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        struct rm_error err = { 0 };
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        (void) snprintf(a.sun_path, sizeof(a.sun_path), "%s/sock", p->from);
        assert_int_equal(bind(fd, (struct sockaddr *) &a, sizeof(a)), 0);
        (void) close(fd);
        carry_well(p);
        give(p->from_fd, "sock", ACCESS, &acl, sizeof(acl));
        assert_int_equal(saved_state(p, &err), -EOPNOTSUPP);
        assert_non_null(strstr(err.text, "tmp:sock is a socket with an access control list"));
}

/* proc(5) has no attributes: none are found there, and to set one is refused with the reason. */
static void test_file_system_without(void **state) {
        const struct image_attribute tag = { "user.tag", "x", 1 };
        struct image_object o = { .kind = RM__IMAGE_KIND__IMAGE_KIND_REGULAR, .role = "tmp", .path = "comm", .target = "" };
        struct image_attributes a = { 0 };
        struct rm_error err = { 0 };
        cleanup_close int fd = open("/proc/self/comm", O_RDWR | O_CLOEXEC);

        (void) state;
        assert_int_equal(image_attributes_read(&o, fd, NULL, &a, NULL), 0);
        assert_int_equal(a.n, 0);
        assert_int_equal(image_attributes_set(o.kind, fd, NULL, NULL, 0, "tmp:comm", NULL), 0);
        assert_int_equal(image_attributes_set(o.kind, fd, NULL, &tag, 1, "tmp:comm", &err), -EOPNOTSUPP);
        assert_non_null(
                strstr(err.text, "tmp:comm has the attribute user.tag, which the file system of the destination does not have"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_carried, setup, teardown),
                cmocka_unit_test_setup_teardown(test_default_is_not_inherited, setup, teardown),
                cmocka_unit_test_setup_teardown(test_stale_are_removed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_those_of_root_stay, setup, teardown),
                cmocka_unit_test_setup_teardown(test_too_much_is_refused, setup, teardown),
                cmocka_unit_test(test_largest_head_fits),
                cmocka_unit_test_setup_teardown(test_socket_with_list_is_refused, setup, teardown),
                cmocka_unit_test(test_file_system_without),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
