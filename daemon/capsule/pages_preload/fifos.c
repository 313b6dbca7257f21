/* Tells `criu dump` FIFOs of several file systems apart. CRIU knows a FIFO by the lower 32 bits of
 * its inode number alone, and saves the data of a number once: the data of a FIFO of /dev/shm is
 * lost where one of /tmp has the same number, which file systems in memory count from 1. So CRIU
 * gets a number here that also depends on the device. It is the same for the descriptor and for the
 * name, which CRIU compares. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Under the names by which CRIU calls libc. */
__attribute__((visibility("default"))) int answer_fstat(int fd, struct stat *ret) __asm__("fstat64");
__attribute__((visibility("default"))) int answer_fstatat(int dir_fd, const char *path, struct stat *ret,
                                                          int flags) __asm__("fstatat64");

/* Knuth's multiplicative hash spreads devices, which are small numbers in a row, over 32 bits. */
#define SPREAD UINT32_C(2654435761)

/* Is this a pipe without a name? These are all of one file system, and have their numbers among
 * themselves. */
static bool is_nameless_pipe(const struct stat *st) {
        static dev_t device;
        struct stat own;
        int ends[2];

        if (device == 0 && pipe(ends) == 0) {
                if (syscall(SYS_fstat, ends[0], &own) == 0)
                        device = own.st_dev;
                (void) close(ends[0]);
                (void) close(ends[1]);
        }
        return st->st_dev == device;
}

static int numbered(int result, struct stat *st) {
        if (result == 0 && S_ISFIFO(st->st_mode) && !is_nameless_pipe(st))
                st->st_ino ^= (uint32_t) st->st_dev * SPREAD; /* numbers of one device stay different */
        return result;
}

int answer_fstat(int fd, struct stat *ret) {
        return numbered((int) syscall(SYS_fstat, fd, ret), ret);
}

int answer_fstatat(int dir_fd, const char *path, struct stat *ret, int flags) {
        return numbered((int) syscall(SYS_newfstatat, dir_fd, path, ret, flags), ret);
}
