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
        /* A broken stream gives the same line for each file. */
        if (strncmp(text, line, length) == 0 && (text[length] == ';' || text[length] == '\0'))
                return;
        memmove(text + length + separator, text, had + 1);
        memcpy(text, line, length);
        if (separator)
                memcpy(text + length, "; ", separator);
}

/* Takes the lines with this word, without the time stamp and the pid before the word. */
static void take_lines(char *lines, const char *word, char *text, size_t size) {
        for (;;) {
                char *newline = strrchr(lines, '\n');
                char *found = strstr(newline ? newline + 1 : lines, word);

                if (found)
                        prepend(text, size, found);
                if (!newline)
                        return;
                *newline = '\0';
        }
}

/* CRIU alone sees these, and its words tell only who knows its source what a process has. */
static void explain(char *text, size_t size) {
        static const struct {
                const char *error, *words;
        } known[] = {
                { "sys_recvmsg failed: truncated",
                  "a Unix socket has an unread datagram that is longer than its receiver may send (SO_SNDBUF)" },
                { "has uprobes vma", "a program of the group has probes of an administrator's (uprobes)" },
                { "Can't stat path: Permission denied", "a file is mapped from a directory that its owner may not search" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (strstr(text, known[i].error)) {
                        if (strlen(text) + strlen(known[i].words) + sizeof("; ") > size)
                                text[0] = '\0';
                        prepend(text, size, known[i].words);
                        return;
                }
}

void log_tail_errors(const char *path, char *text, size_t size) {
        static const char *const words[] = { "Error (", "Warn  (" };
        cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
        char tail[TAIL_BYTES + 1], lines[TAIL_BYTES + 1];
        struct stat st;
        ssize_t n;

        text[0] = '\0';
        if (fd < 0 || fstat(fd, &st) < 0)
                return;
        n = pread(fd, tail, TAIL_BYTES, st.st_size > TAIL_BYTES ? st.st_size - TAIL_BYTES : 0);
        if (n <= 0)
                return;
        tail[n] = '\0';
        for (size_t i = 0; i < ARRAY_SIZE(words) && text[0] == '\0'; i++) {
                memcpy(lines, tail, (size_t) n + 1);
                take_lines(lines, words[i], text, size);
        }
        explain(text, size);
}
