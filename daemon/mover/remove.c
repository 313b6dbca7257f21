/* The program that removes directories with the memory of groups, so that rmd does not: the kernel
 * frees it in the process that removes the last name. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/mover/mover.h"

#define MOUNTS_MAX 64U /* one above the other; each earlier rmd leaves one at most */

int mover_remove(const char *dir) {
        int r = remove_tree(dir);

        if (r < 0)
                log_error("cannot remove %s: %s", dir, strerror(-r));
        return r;
}

/* Until all others have closed what is mounted: this process then closes it last, by its end. */
static void hold(int parent_fd) {
        char word;

        while (read(parent_fd, &word, 1) < 0 && errno == EINTR)
                ;
}

int mover_unmount(const char *dir) {
        int held[MOUNTS_MAX], ends[2], r = 0;
        size_t n = 0;
        pid_t pid;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        while (r == 0 && n < MOUNTS_MAX) {
                int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

                r = fd >= 0 && umount2(dir, MNT_DETACH) == 0 ? 0 : -errno;
                if (r == 0)
                        held[n++] = fd;
                else
                        cleanup_close_fd(&fd);
        }
        pid = n > 0 ? fork() : -1;
        if (pid == 0) {
                (void) close(ends[1]);
                hold(ends[0]);
                _exit(0);
        }
        while (n > 0)
                (void) close(held[--n]);
        (void) close(ends[0]);
        (void) close(ends[1]);
        if (r == 0 || r == -EINVAL || r == -ENOENT) /* nothing is mounted there any more, or nothing is there */
                return 0;
        log_error("cannot unmount %s: %s", dir, strerror(-r));
        return r;
}
