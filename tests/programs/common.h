/* The common functions of the test programs: time, hashes, pseudo-random numbers, options and the
 * end of a run. */
#ifndef TEST_PROGRAMS_COMMON_H
#define TEST_PROGRAMS_COMMON_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline int64_t clock_usec(clockid_t id) {
        struct timespec ts;

        if (clock_gettime(id, &ts) < 0)
                abort();
        return (int64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static inline int64_t now_usec(void) {
        return clock_usec(CLOCK_MONOTONIC);
}

/* Sleeps to the end also when signals come in between. */
static inline void pause_usec(int64_t usec) {
        struct timespec left = { .tv_sec = usec / 1000000, .tv_nsec = usec % 1000000 * 1000 };

        if (usec <= 0)
                return;
        while (nanosleep(&left, &left) < 0 && errno == EINTR)
                ;
}

/* FNV-1a, eight bytes at a time where it can. */
#define HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t hash_more(uint64_t hash, const void *data, size_t bytes) {
        const unsigned char *p = data;

        for (; bytes >= 8; bytes -= 8, p += 8) {
                uint64_t word;

                memcpy(&word, p, 8);
                hash = (hash ^ word) * UINT64_C(0x100000001b3);
                hash ^= hash >> 29;
        }
        for (; bytes > 0; bytes--, p++)
                hash = (hash ^ *p) * UINT64_C(0x100000001b3);
        return hash;
}

/* splitmix64: good enough, and the same everywhere. */
static inline uint64_t random_next(uint64_t *state) {
        uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

/* The value of "--name=VALUE" among the arguments, or the fallback. */
static inline const char *option_text(int argc, char **argv, const char *name, const char *fallback) {
        size_t length = strlen(name);

        for (int i = 1; i < argc; i++)
                if (strncmp(argv[i], "--", 2) == 0 && strncmp(argv[i] + 2, name, length) == 0 && argv[i][2 + length] == '=')
                        return argv[i] + 3 + length;
        return fallback;
}

static inline long option_number(int argc, char **argv, const char *name, long fallback) {
        const char *text = option_text(argc, argv, name, NULL);
        char *end;
        long value;

        if (!text)
                return fallback;
        value = strtol(text, &end, 10);
        if (end == text || *end) {
                (void) fprintf(stderr, "%s: --%s=%s is not a number\n", argv[0], name, text);
                exit(2);
        }
        return value;
}

static inline bool option_set(int argc, char **argv, const char *name) {
        for (int i = 1; i < argc; i++)
                if (strncmp(argv[i], "--", 2) == 0 && strcmp(argv[i] + 2, name) == 0)
                        return true;
        return false;
}

#endif
