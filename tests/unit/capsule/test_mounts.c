/* The mounts that PID 1 makes read-only, in a mount namespace of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/init/base/mounts.h"

static char base[] = "/var/tmp/rmd-test-mounts.XXXXXX";

static int set_up(void **state) {
        assert_non_null(mkdtemp(base));
        assert_int_equal(unshare(CLONE_NEWNS), 0);
        assert_int_equal(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
        assert_int_equal(mount("none", base, "tmpfs", 0, NULL), 0);
        assert_int_equal(chdir(base), 0);
        return 0;
}

static int tear_down(void **state) {
        assert_int_equal(chdir("/"), 0);
        assert_int_equal(umount2(base, MNT_DETACH), 0);
        assert_int_equal(rmdir(base), 0);
        return 0;
}

static void protect(void) {
        cleanup_free char *home = xasprintf("%s/home", base);
        char *writable[] = { home };
        Capsule__Spec spec = CAPSULE__SPEC__INIT;

        spec.writable = writable;
        spec.n_writable = 1;
        assert_int_equal(mounts_protect(&spec, NULL), 0);
}

static bool is_read_only(const char *path) {
        struct statvfs st;

        assert_int_equal(statvfs(path, &st), 0);
        return st.f_flag & ST_RDONLY;
}

/* The kernel has told of a change of the mounts since the last call. */
static bool have_changed(int mountinfo) {
        struct pollfd changed = { .fd = mountinfo, .events = POLLPRI };

        assert_true(poll(&changed, 1, 0) >= 0);
        return changed.revents & POLLPRI;
}

static void add(const char *path, const char *type, unsigned long flags) {
        assert_int_equal(mkdir(path, 0755), 0);
        assert_int_equal(mount(type ? "none" : base, path, type, flags, NULL), 0);
}

/* PID 1 looks at all mounts when the kernel tells of a change, in a child, and a restore is the
 * worst time for that. So what is read-only already is left alone. */
static void test_again(void **state) {
        cleanup_close int mountinfo = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);

        assert_int_equal(mkdir("home", 0755), 0);
        protect();
        assert_true(is_read_only("."));
        assert_false(is_read_only("home"));
        assert_true(have_changed(mountinfo));
        protect();
        assert_false(have_changed(mountinfo));

        assert_int_equal(mount("none", "home", "tmpfs", 0, NULL), 0);
        assert_true(have_changed(mountinfo));
        protect();
        assert_false(have_changed(mountinfo));
        assert_false(is_read_only("home"));
}

/* Mounts that the node makes later arrive with its flags. */
static void test_later(void **state) {
        cleanup_close int mountinfo = -1;

        assert_int_equal(mount("none", ".", "tmpfs", MS_REMOUNT | MS_BIND, NULL), 0);
        add("plain", "tmpfs", 0);
        add("read-only", "tmpfs", MS_RDONLY);
        add("bound", NULL, MS_BIND);
        add("no-atime", "tmpfs", MS_NOATIME);
        protect();
        assert_true(is_read_only("plain"));
        assert_true(is_read_only("read-only"));
        assert_true(is_read_only("bound"));
        assert_true(is_read_only("no-atime"));
        mountinfo = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        assert_false(have_changed(mountinfo));
        protect();
        assert_false(have_changed(mountinfo));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_again),
                cmocka_unit_test(test_later),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
