#include "daemon/capsule/init/ptys.h"

#include <fcntl.h>

#include "common/openat.h"
#include "common/util.h"

/*
 * The kernel tells a master of the close of the last slave only, so where a process has the slave
 * open nothing happens. A master that is still locked has never had a slave: it refuses the open.
 */
unsigned ptys_hang_up(void) {
        cleanup_dir DIR *dir = opendir("/dev/pts");
        const char *name;
        unsigned n = 0;

        while ((name = next_number(dir))) {
                cleanup_close int fd = openat(dirfd(dir), name, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);

                n += fd >= 0;
        }
        return n;
}
