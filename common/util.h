/* Scope-bound cleanup, time, and small helpers for descriptors and strings. */
#ifndef RM_COMMON_UTIL_H
#define RM_COMMON_UTIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline void cleanup_free_ptr(void *p) {
        free(*(void **) p);
}
/* Closes it, unless it is negative, and sets it to -1: its number may soon be another's. */
void cleanup_close_fd(int *fd);
void cleanup_fclose(FILE **f);

#define cleanup_free __attribute__((cleanup(cleanup_free_ptr)))
#define cleanup_close __attribute__((cleanup(cleanup_close_fd)))
#define cleanup_file __attribute__((cleanup(cleanup_fclose)))

/* Ownership moves out of a scope-bound variable. */
#define take_ptr(p)                                                                                                                \
        ({                                                                                                                         \
                typeof(p) _taken = (p);                                                                                            \
                (p) = NULL;                                                                                                        \
                _taken;                                                                                                            \
        })
static inline int take_fd(int *fd) {
        int taken = *fd;

        *fd = -1;
        return taken;
}

/* Monotonic and wall clock, microseconds. */
uint64_t now_usec(void);
uint64_t now_real_usec(void);
/* The processor time that this thread has had, in microseconds. */
uint64_t thread_cpu_usec(void);
/* As now_usec(), but goes on while the machine is suspended. */
uint64_t now_boot_usec(void);
/* Processor time that the calling thread has used, nanoseconds. */
uint64_t thread_nsec(void);

/* Write all of it, through EINTR and short writes. Blocking descriptors. 0 or negative errno. */
int write_all(int fd, const void *data, size_t size_bytes);
/* Read exactly `size_bytes`; -ENODATA when the stream ends before the first byte, -EPIPE when it
 * ends inside. */
int read_all(int fd, void *data, size_t size_bytes);
/* Whole file into a malloc'ed, NUL-terminated buffer owned by the caller. -EFBIG over
 * `max_bytes`. */
int read_file(const char *path, size_t max_bytes, char **ret_data, size_t *ret_size_bytes);
/* Replace `path` at once: temporary file, of this thread alone, fsync when `durable`, rename. */
int write_file_atomic(const char *path, const void *data, size_t size_bytes, mode_t mode, bool durable);
/* Syncs the directory of a file, so that its name, or its removal, survives a loss of power. 0 or
 * -errno. */
int sync_name(const char *path);
/* Write into an existing file (for /proc and /sys). */
int write_text(const char *path, const char *text);
int mkdir_p(const char *path, mode_t mode);
/* Remove a tree; stays on one file system. A path that is not there is fine. */
int remove_tree(const char *path);

/* Readies the standard streams at the start of main. Descriptors 0 to 2 that are closed become
 * /dev/null: otherwise the next file that is opened would get such a number, and messages would be
 * written into it. The C library
 * writes to a stream without a buffer, which stderr is, 128 bytes at a time, and what others write
 * comes in between. From here on each line is one write(2); what does not end a line needs
 * fflush(). */
void stdio_begin(void);
int set_nonblock(int fd, bool on);
int set_cloexec(int fd, bool on);

/* malloc'ed printf; aborts the process when memory is out, as every x-function here does: the
 * kernel overcommits, and a daemon that cannot get a few bytes cannot do anything useful. */
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
void *xcalloc(size_t n, size_t size_bytes);
void *xrealloc(void *p, size_t size_bytes);
char *xstrdup(const char *s); /* NULL gives NULL */
/* Makes room for one more item in a list that has `n` of them, and returns the list, which may have
 * moved. It begins as NULL and is made larger by nobody else: its room doubles. */
void *xgrow(void *list, size_t n, size_t item_bytes);

/* A whole decimal number with nothing around it, in [min, max]; -EINVAL or -ERANGE. */
int parse_i64(const char *text, int64_t min, int64_t max, int64_t *ret_value);
/* "90", "90s", "5m", "2h", "1d", "250ms" to microseconds. */
int parse_duration_usec(const char *text, uint64_t *ret_usec);
/* "4096", "500K", "50M", "1G", "1T" to bytes, by powers of 1024. */
int parse_bytes(const char *text, uint64_t *ret_bytes);
/* A decimal number with or without fraction and exponent. -EINVAL also for what strtod() takes
 * besides: hexadecimal, "inf", "nan" and spaces before it; -ERANGE. */
int parse_decimal(const char *text, double min, double max, double *ret_value);
/* How many bytes of `data` are the mark that some editors write in front of a text in UTF-8: 3 or
 * 0. */
size_t byte_order_mark_bytes(const char *data, size_t size_bytes);
/* Names of nodes, jobs, policies: 1..63 of [A-Za-z0-9._-], beginning with a letter or digit. */
bool name_valid(const char *name);
/* Frees an array of pointers and each of them; NULL ok. */
void free_all(void *array, size_t n);
/* Forgets all of them. */
void names_clear(char ***names, size_t *n);
/* Is it one of them? */
bool names_have(char *const *names, size_t n, const char *name);

#endif
