#include "common/proc_count.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 64 };

/* "." and "..", which a directory of /proc has too. */
enum { DIRECTORY_LINKS = 2 };

size_t proc_count_descriptors(int proc_fd, const char *name, size_t most) {
        char path[PATH_BYTES];
        const struct dirent *entry;
        struct stat st;
        size_t n = 0;
        DIR *dir;
        int fd;

        (void) snprintf(path, sizeof(path), "%s/fd", name);
        if (fstatat(proc_fd, path, &st, 0) < 0)
                return 0;
        if (st.st_size > 0)
                return (size_t) st.st_size;
        fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dir = fd < 0 ? NULL : fdopendir(fd);
        while (dir && n <= most && (entry = readdir(dir)))
                n += entry->d_name[0] != '.';
        if (dir)
                (void) closedir(dir);
        else if (fd >= 0)
                (void) close(fd);
        return n;
}

size_t proc_count_threads(int proc_fd, const char *name) {
        char path[PATH_BYTES];
        struct stat st;

        (void) snprintf(path, sizeof(path), "%s/task", name);
        return fstatat(proc_fd, path, &st, 0) < 0 || st.st_nlink < DIRECTORY_LINKS ? 0 : (size_t) st.st_nlink - DIRECTORY_LINKS;
}
