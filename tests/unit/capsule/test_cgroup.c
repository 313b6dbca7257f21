/* Where a node keeps the control groups of its capsules, by the mounts that it finds. Each case has
 * a mount namespace of its own, in which no other tree of control groups is mounted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/openat.h"
#include "common/util.h"
#include "daemon/capsule/cgroup.h"

#define GROUP "rmd-test-cgroup"

static char base[] = "/tmp/rmd-test-cgroup.XXXXXX";

static void must(bool ok, const char *what) {
        if (!ok) {
                perror(what);
                _exit(2);
        }
}

static void mount_tree(const char *path) {
        must(mkdir_p(path, 0755) == 0, path);
        must(mount("none", path, "cgroup2", 0, NULL) == 0, "mount cgroup2");
}

static void hide(const char *path) {
        must(mount("none", path, "tmpfs", 0, NULL) == 0, "mount tmpfs");
}

/* Only the last one of these is a tree that its path leads to. */
static void hidden_by_another(void) {
        mount_tree("a");
        hide("a");
        mount_tree("seen");
}
static void hidden_with_its_directory(void) {
        mount_tree("b/a");
        hide("b");
        mount_tree("seen");
}
static void hidden_by_another_tree_of_files(void) {
        mount_tree("a");
        must(mount("/tmp", "a", NULL, MS_BIND, NULL) == 0, "bind /tmp");
        mount_tree("seen");
}
static void nothing_hidden(void) {
        mount_tree("seen");
        mount_tree("later");
}
/* The test is in a group of which the mount shows the part below it. */
static void part_of_a_tree(void) {
        must(mkdir("tree", 0755) == 0, "mkdir tree");
        mount_tree("tree");
        (void) mkdir("tree/" GROUP, 0755);
        must(write_text_at(AT_FDCWD, "tree/" GROUP "/cgroup.procs", "0") == 0, "enter the group");
        must(mkdir("seen", 0755) == 0 && mount("tree/" GROUP, "seen", NULL, MS_BIND, NULL) == 0, "bind a group");
        hide("tree");
}

static void enter_mounts(void) {
        must(unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "unshare");
        (void) umount2("/sys/fs/cgroup", MNT_DETACH);
        must(chdir(base) == 0, base);
        hide(".");
        must(chdir(base) == 0, base);
}

static void report_parent(void (*set_up)(void), int fd) {
        char *path = NULL;

        enter_mounts();
        set_up();
        must(cgroup_find_parent(&path, NULL) == 0, "cgroup_find_parent");
        must(write(fd, path, strlen(path)) > 0, "write");
        free(path);
        _exit(0);
}

/* The processes that were in the group have ended. */
static void remove_group(void (*set_up)(void), int fd) {
        (void) set_up;
        (void) fd;
        enter_mounts();
        mount_tree("tree");
        (void) rmdir("tree/" GROUP);
        _exit(0);
}

static void in_child(void (*fn)(void (*set_up)(void), int fd), void (*set_up)(void), int fd) {
        pid_t pid = fork();
        int status;

        assert_true(pid >= 0);
        if (pid == 0)
                fn(set_up, fd);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static char *found_by(void (*set_up)(void)) {
        char text[4096] = "";
        int pipe_fds[2];

        assert_int_equal(pipe(pipe_fds), 0);
        in_child(report_parent, set_up, pipe_fds[1]);
        (void) close(pipe_fds[1]);
        assert_true(read(pipe_fds[0], text, sizeof(text) - 1) >= 0);
        (void) close(pipe_fds[0]);
        return xstrdup(text);
}

static void test_mounts(void **state) {
        void (*const set_ups[])(void) = { hidden_by_another, hidden_with_its_directory, hidden_by_another_tree_of_files,
                                          nothing_hidden, part_of_a_tree };
        cleanup_free char *seen = xasprintf("%s/seen/", base);

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(set_ups); i++) {
                cleanup_free char *path = found_by(set_ups[i]);

                if (strncmp(path, seen, strlen(seen)) != 0 || strstr(path, GROUP "/"))
                        fail_msg("case %zu: found %s", i, path);
        }
        in_child(remove_group, NULL, -1);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_mounts) };
        int r;

        if (!mkdtemp(base))
                return 1;
        r = cmocka_run_group_tests(tests, NULL, NULL);
        (void) rmdir(base);
        return r;
}
