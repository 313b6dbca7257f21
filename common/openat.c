#include "common/openat.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"

ssize_t read_text_at(int dir_fd, const char *path, char *ret_text, size_t size_bytes) {
        cleanup_close int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, ret_text, size_bytes - 1);

        ret_text[n > 0 ? n : 0] = '\0';
        return n < 0 ? -errno : n;
}

int write_text_at(int dir_fd, const char *path, const char *text) {
        cleanup_close int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);

        return fd < 0 ? -errno : write_all(fd, text, strlen(text));
}

FILE *fopen_at(int dir_fd, const char *path) {
        cleanup_close int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
        FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

        if (f)
                (void) take_fd(&fd);
        return f;
}

DIR *opendir_at(int dir_fd, const char *path) {
        cleanup_close int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);

        if (dir)
                (void) take_fd(&fd);
        return dir;
}

void cleanup_closedir(DIR **dir) {
        if (*dir)
                (void) closedir(*dir);
}

const char *next_name(DIR *dir) {
        const struct dirent *entry;

        while (dir && (entry = readdir(dir)))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        return entry->d_name;
        return NULL;
}

const char *next_number(DIR *dir) {
        const char *name;

        while ((name = next_name(dir)))
                if (isdigit((unsigned char) name[0]))
                        return name;
        return NULL;
}
