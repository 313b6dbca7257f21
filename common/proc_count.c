#include "common/proc_count.h"

#include <stdio.h>
#include <sys/stat.h>

#include "common/openat.h"

enum { PATH_BYTES = 64 };

/* "." and "..", which a directory of /proc has too. */
enum { DIRECTORY_LINKS = 2 };

size_t proc_count_descriptors(int proc_fd, const char *name, size_t most) {
        cleanup_dir DIR *dir = NULL;
        char path[PATH_BYTES];
        struct stat st;
        size_t n = 0;

        (void) snprintf(path, sizeof(path), "%s/fd", name);
        if (fstatat(proc_fd, path, &st, 0) < 0)
                return 0;
        if (st.st_size > 0)
                return (size_t) st.st_size;
        dir = opendir_at(proc_fd, path);
        while (n <= most && next_number(dir))
                n++;
        return n;
}

size_t proc_count_threads(int proc_fd, const char *name) {
        char path[PATH_BYTES];
        struct stat st;

        (void) snprintf(path, sizeof(path), "%s/task", name);
        return fstatat(proc_fd, path, &st, 0) < 0 || st.st_nlink < DIRECTORY_LINKS ? 0 : (size_t) st.st_nlink - DIRECTORY_LINKS;
}
