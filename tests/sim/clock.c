/* The system of rmd's own code in a simulation: clocks and random numbers of the host whose event
 * happens, and neither directories nor files of its own. The linker puts these functions in the
 * place of common/util.c's and libc's (--wrap). */
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "common/util.h"
#include "tests/sim/host.h"

uint64_t __real_now_usec(void);
uint64_t __real_now_real_usec(void);
uint64_t __real_now_boot_usec(void);
ssize_t __real_getrandom(void *data, size_t size_bytes, unsigned flags);
uint64_t __wrap_now_usec(void);
uint64_t __wrap_now_real_usec(void);
uint64_t __wrap_now_boot_usec(void);
ssize_t __wrap_getrandom(void *data, size_t size_bytes, unsigned flags);
long __real_random(void);
long __wrap_random(void);
int __real_write_file_atomic(const char *path, const void *data, size_t size_bytes, mode_t mode, bool durable);
int __wrap_write_file_atomic(const char *path, const void *data, size_t size_bytes, mode_t mode, bool durable);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);

uint64_t __wrap_now_usec(void) {
        return host_current() ? host_awake_usec(host_current()) : __real_now_usec();
}

uint64_t __wrap_now_real_usec(void) {
        return host_current() ? host_real_usec(host_current()) : __real_now_real_usec();
}

uint64_t __wrap_now_boot_usec(void) {
        return host_current() ? host_monotonic_usec(host_current()) : __real_now_boot_usec();
}

ssize_t __wrap_getrandom(void *data, size_t size_bytes, unsigned flags) {
        uint8_t *bytes = data;

        if (!host_current())
                return __real_getrandom(data, size_bytes, flags);
        for (size_t i = 0; i < size_bytes; i++)
                bytes[i] = (uint8_t) timeline_random(host_timeline(host_current()), 256);
        return (ssize_t) size_bytes;
}

long __wrap_random(void) {
        return host_current() ? (long) timeline_random(host_timeline(host_current()), 1U << 31) : __real_random();
}

int __wrap_mkdir(const char *path, mode_t mode) {
        return host_current() ? 0 : __real_mkdir(path, mode);
}

int __wrap_write_file_atomic(const char *path, const void *data, size_t size_bytes, mode_t mode, bool durable) {
        return host_current() ? 0 : __real_write_file_atomic(path, data, size_bytes, mode, durable);
}
