#include "daemon/capsule/log_tail.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"

enum { TAIL_BYTES = 16 * 1024 };

static void prepend(char *text, size_t size, const char *line) {
        size_t had = strlen(text);
        size_t length = strlen(line);
        size_t separator = had > 0 ? 2 : 0;

        if (had + separator + length >= size)
                return;
        /* One broken stream gives the same line for each file. */
        if (strncmp(text, line, length) == 0 && (text[length] == ';' || text[length] == '\0'))
                return;
        memmove(text + length + separator, text, had + 1);
        memcpy(text, line, length);
        if (separator)
                memcpy(text + length, "; ", separator);
}

void log_tail_errors(const char *path, char *text, size_t size) {
        cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
        char tail[TAIL_BYTES + 1];
        struct stat st;
        ssize_t n;

        text[0] = '\0';
        if (fd < 0 || fstat(fd, &st) < 0)
                return;
        n = pread(fd, tail, TAIL_BYTES, st.st_size > TAIL_BYTES ? st.st_size - TAIL_BYTES : 0);
        if (n <= 0)
                return;
        tail[n] = '\0';
        for (;;) {
                char *newline = strrchr(tail, '\n');
                /* Without the time stamp and the pid before it. */
                char *error = strstr(newline ? newline + 1 : tail, "Error (");

                if (error)
                        prepend(text, size, error);
                if (!newline)
                        return;
                *newline = '\0';
        }
}
