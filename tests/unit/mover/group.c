#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "group.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/util.h"
#include "mover_pair.h"

enum { DRAIN_MSEC = 20000 };

char *procs_of(const pid_t *pids, size_t n) {
        char *text = xstrdup("");

        for (size_t i = 0; i < n; i++) {
                char *longer = xasprintf("%s%d\n", text, (int) pids[i]);

                free(text);
                text = longer;
        }
        return text;
}

void stand_still(pid_t pid) {
        assert_int_equal(kill(pid, SIGSTOP), 0);
        for (;;) {
                cleanup_free char *line = child_status(pid, "State");

                if (strchr(line, 'T'))
                        return;
                (void) usleep(1000);
        }
}

/* CRIU's part, without pages. The sender has begun with the freeze when it takes what is in the
 * pipe. */
void group_dump_files(const char *images_dir, const void *entries, size_t size) {
        static const uint8_t magic[] = { 0x19, 0x43, 0x56, 0x54, 0x38, 0x31, 0x30, 0x56 };
        int sock = fake_criu_connect(images_dir);
        int files, inventory, waiting = 0;

        assert_true(sock >= 0);
        files = fake_criu_open(sock, "files.img");
        assert_true(files >= 0);
        assert_int_equal(write_all(files, magic, sizeof(magic)), 0);
        assert_int_equal(write_all(files, entries, size), 0);
        (void) close(files);
        inventory = fake_criu_open(sock, "inventory.img");
        assert_true(inventory >= 0);
        assert_int_equal(write_all(inventory, "inventory", 9), 0);
        for (int i = 0; i < DRAIN_MSEC && ioctl(inventory, FIONREAD, &waiting) == 0 && waiting > 0; i++)
                (void) usleep(1000);
        assert_int_equal(waiting, 0);
        (void) close(inventory);
        (void) close(sock);
}

void group_dump(const char *images_dir) {
        group_dump_files(images_dir, "", 0);
}

/* In the same pid namespace there are others who make processes. */
struct child child_with_pid(void (*function)(int link), pid_t pid) {
        cleanup_free char *last = xasprintf("%d", (int) pid - 1);

        for (int i = 0; i < 100; i++) {
                struct child child;

                assert_int_equal(write_text("/proc/sys/kernel/ns_last_pid", last), 0);
                child = child_begin(function);
                if (child.pid == pid)
                        return child;
                assert_int_equal(child_end(&child), SIGKILL);
        }
        fail_msg("the pid %d does not come again", (int) pid);
        return (struct child) { 0 };
}

void check_free(const struct child *child) {
        cleanup_free char *path = xasprintf("/proc/%d/smaps", (int) child->pid);
        cleanup_free char *smaps = NULL;

        assert_int_equal(read_file(path, 1U << 24, &smaps, NULL), 0);
        assert_null(strstr(smaps, " uw"));
}
