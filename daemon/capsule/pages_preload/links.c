/* Lets `criu dump` give a file that has lost its name another one (link_remap.h). CRIU names the
 * file by its descriptor alone, which takes CAP_DAC_READ_SEARCH, and with that it could read any
 * file; by the descriptor's name in /proc it takes no more than the owner of the job may do. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int answer_linkat(int old_dir, const char *old_path, int new_dir, const char *new_path,
                                                         int flags) __asm__("linkat");

int answer_linkat(int old_dir, const char *old_path, int new_dir, const char *new_path, int flags) {
        char path[32];

        if (!(flags & AT_EMPTY_PATH) || *old_path != '\0')
                return (int) syscall(SYS_linkat, old_dir, old_path, new_dir, new_path, flags);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", old_dir);
        return (int) syscall(SYS_linkat, AT_FDCWD, path, new_dir, new_path, AT_SYMLINK_FOLLOW);
}
