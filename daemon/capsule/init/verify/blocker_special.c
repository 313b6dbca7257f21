/* Sets of epoll(7) and terminals that CRIU does not carry, or not as they are now. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "common/openat.h"
#include "common/util.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/verify/blocker_scan_internal.h"

enum {
        NUMBERS_MAX = 1 << 20, /* what a process may have open, unless somebody has raised fs.nr_open */
};

/* ---- epoll ---- */

/* Is the number open here for what the set has by it? Files that have no name have one inode
 * together, and only kcmp(2) tells them apart. */
static bool is_target(const struct scan *scan, int fds, const struct kcmp_epoll_slot *target, const char *number, uint64_t inode) {
        struct stat st;

        if (scan->scope->frozen)
                return syscall(SYS_kcmp, scan->pid, scan->pid, KCMP_EPOLL_TFD, strtoul(number, NULL, 10), target) == 0;
        return scan_stat(fds, number, &st) == 0 && st.st_ino == inode;
}

/* Has the process the target of a set by any number? */
static bool has_target(struct scan *scan, int fds, const struct kcmp_epoll_slot *target, uint64_t inode) {
        cleanup_dir DIR *dir = NULL;
        char own[16];
        const char *number;
        bool found;

        (void) snprintf(own, sizeof(own), "%u", target->tfd);
        found = is_target(scan, fds, target, own, inode);
        if (!found)
                dir = scan_open_dir(scan, "fd");
        while (!found && !scan_done(scan) && (number = next_number(dir)))
                found = is_target(scan, fds, target, number, inode);
        return found;
}

/* Has its parent the set, by the same number? It shows the same line then. CRIU looks for targets
 * in the process that it saves first. */
static bool is_inherited(struct scan *scan, const char *number, const char *line) {
        cleanup_free char *path = NULL, *other = NULL;
        cleanup_file FILE *f = NULL;
        const char *parent;
        size_t size = 0;

        if (scan_read(scan, scan->text, SCAN_STATUS_BYTES, "%d/status", (int) scan->pid) == 0)
                return false;
        parent = identity_field(scan->text, "PPid");
        if (!parent || !scan_has_process(scan, (pid_t) atoi(parent)))
                return false;
        path = xasprintf("%d/fdinfo/%s", atoi(parent), number);
        f = fopen_at(scan->scope->proc, path);
        while (f && getline(&other, &size, f) > 0)
                if (strcmp(line, other) == 0)
                        return true;
        return false;
}

/* How often each number was seen in a set so far: it is there several times, if it was closed and
 * opened in between while another process had it open. */
struct numbers {
        uint32_t *seen;
        size_t n;
};

static uint32_t count_number(struct numbers *numbers, uint32_t number) {
        if (number >= NUMBERS_MAX)
                return 0;
        for (; numbers->n <= number; numbers->n++) {
                numbers->seen = xgrow(numbers->seen, numbers->n, sizeof(*numbers->seen));
                numbers->seen[numbers->n] = 0;
        }
        return numbers->seen[number]++;
}

/* A set keeps what was put into it as long as any process has that open. */
void scan_epoll(struct scan *scan, int fds, const char *number) {
        cleanup_free char *line = NULL, *path = xasprintf("%d/fdinfo/%s", (int) scan->pid, number);
        cleanup_file FILE *f = fopen_at(scan->scope->proc, path);
        struct kcmp_epoll_slot target = { .efd = (uint32_t) atoi(number) };
        struct numbers numbers = { 0 };
        uint64_t inode;
        char detail[16];
        size_t size = 0;
        bool found = false;

        while (f && !found && !scan_done(scan) && getline(&line, &size, f) > 0) {
                if (sscanf(line, "tfd: %u events: %*x data: %*x pos:%*d ino:%" SCNx64, &target.tfd, &inode) != 2)
                        continue;
                target.toff = count_number(&numbers, target.tfd);
                scan->left -= scan->left > 1;
                found = !has_target(scan, fds, &target, inode) && !is_inherited(scan, number, line);
        }
        free(numbers.seen);
        if (!found)
                return;
        (void) snprintf(detail, sizeof(detail), "%u", target.tfd);
        scan_note_marked(scan, BLOCKER_EPOLL, detail, (uint64_t) target.efd << 32 | target.tfd);
}

/* ---- terminals ---- */

/* CRIU takes what waits at either end of a terminal out of it, and writes it into it again: what is
 * typed is echoed and edited a second time, and what was printed gets its ends of lines once more;
 * in packet mode the byte that tells of a packet becomes a part of it. A terminal in raw mode, as
 * mpirun's are, changes nothing. */
static bool is_changed_again(int master, bool readable) {
        const tcflag_t printed = ONLCR | OCRNL | OLCUC | ONOCR | ONLRET | TABDLY;
        struct termios settings;
        cleanup_close int slave = -1;
        int unread = 0, packets = 0;

        if (tcgetattr(master, &settings) < 0)
                return false;
        if (readable && ioctl(master, TIOCGPKT, &packets) == 0 && packets)
                return true;
        if (readable && (settings.c_oflag & OPOST) && (settings.c_oflag & printed))
                return true;
        if (!(settings.c_lflag & (ECHO | ICANON | ISIG)))
                return false;
        slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
        return slave >= 0 && ioctl(slave, FIONREAD, &unread) == 0 && unread > 0;
}

void scan_master(struct scan *scan, const char *number) {
        cleanup_close int fd = scan_take(scan, scan->pid, atoi(number));
        struct pollfd state = { .fd = fd, .events = POLLIN };

        if (fd < 0 || poll(&state, 1, 0) < 0)
                return;
        if (state.revents & POLLHUP) {
                if (state.revents & POLLIN)
                        scan_note(scan, BLOCKER_UNREAD_TERMINAL, NULL);
        } else if (is_changed_again(fd, state.revents & POLLIN)) {
                scan_note(scan, BLOCKER_COOKED_TERMINAL, NULL);
        }
}

/* ---- inotify ---- */

/* CRIU drops what waits there. */
void scan_events(struct scan *scan, const char *number) {
        cleanup_close int fd = scan_take(scan, scan->pid, atoi(number));
        int unread = 0;

        if (fd >= 0 && ioctl(fd, FIONREAD, &unread) == 0 && unread > 0)
                scan_note(scan, BLOCKER_UNREAD_EVENTS, NULL);
}
