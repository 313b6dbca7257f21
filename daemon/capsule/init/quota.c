#include "daemon/capsule/init/quota.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/openat.h"
#include "common/util.h"

/* rmd confirms 4 MiB behind what the reader has (job/outputs.c), and a window of 1 MiB is under
 * way. */
#define READ_AT_ONCE_BYTES (UINT64_C(6) << 20)
/* The reserve is at most one part in so many of the file system: of a small one the configured
 * reserve could be all. */
#define RESERVE_MOST 4

int quota_mark(int spool_fd, uid_t uid) {
        return fchown(spool_fd, (uid_t) -1, uid) < 0 ? -errno : 0;
}

/* Calls itself for the directories of the user in that of all spools. */
static uint64_t sum_files(int dir_fd, const char *name, uid_t uid, bool top) {
        cleanup_dir DIR *dir = opendir_at(dir_fd, name);
        const char *below;
        uint64_t sum = 0;

        while ((below = next_name(dir))) {
                struct stat st;

                if (below[0] == '.' || fstatat(dirfd(dir), below, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                if (top && S_ISDIR(st.st_mode) && st.st_gid == uid)
                        sum += sum_files(dirfd(dir), below, uid, false);
                else if (!top && S_ISREG(st.st_mode))
                        sum += (uint64_t) st.st_size;
        }
        return sum;
}

static uint64_t minus(uint64_t a, uint64_t b) {
        return a > b ? a - b : 0;
}

/* Returns how much may be taken of the file system. Output that is read at once may come nearer to
 * the reserve, or all would wait for those that nobody reads. */
static uint64_t space_left(const Capsule__Spec *spec, int spool_fd, bool read_at_once) {
        struct statvfs fs;
        uint64_t reserve, most;

        if (spec->spool_reserve == 0 || fstatvfs(spool_fd, &fs) < 0)
                return UINT64_MAX;
        most = (uint64_t) fs.f_blocks * fs.f_frsize / RESERVE_MOST;
        reserve = spec->spool_reserve < most ? spec->spool_reserve : most;
        return minus((uint64_t) fs.f_bavail * fs.f_frsize, read_at_once ? reserve : reserve + reserve / 2);
}

static uint64_t least(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

uint64_t quota_scan(const Capsule__Spec *spec, int spool_fd, uint64_t unread, Capsule__Stall *ret_why) {
        bool read_at_once = unread < READ_AT_ONCE_BYTES;
        uint64_t left = least(QUOTA_SLICE_BYTES, space_left(spec, spool_fd, read_at_once));

        *ret_why = left > 0 ? CAPSULE__STALL__STALL_NONE : CAPSULE__STALL__STALL_RESERVE;
        if (left == 0)
                return 0;
        if (read_at_once) /* up to there it need not look again */
                return least(left, READ_AT_ONCE_BYTES - unread);
        if (spec->spool_max > 0)
                left = least(left, minus(spec->spool_max, sum_files(spool_fd, "..", spec->uid, true)));
        if (left == 0)
                *ret_why = CAPSULE__STALL__STALL_QUOTA;
        return left;
}
