#include "daemon/capsule/init/ptys.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

/*
 * The kernel tells a master of the close of the last slave only, so where a process has the slave
 * open nothing happens. A master that is still locked has never had a slave: it refuses the open.
 */
unsigned ptys_hang_up(void) {
        DIR *dir = opendir("/dev/pts");
        unsigned n = 0;

        if (!dir)
                return 0;
        for (struct dirent *entry; (entry = readdir(dir));) {
                int fd;

                if (!isdigit((unsigned char) entry->d_name[0]))
                        continue;
                fd = openat(dirfd(dir), entry->d_name, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
                if (fd < 0)
                        continue;
                close(fd);
                n++;
        }
        (void) closedir(dir);
        return n;
}
