#include "daemon/capsule/init/base/file_identity.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#ifndef AT_HANDLE_FID
#define AT_HANDLE_FID 0x200 /* of file systems that cannot open a file by it, too; from Linux 6.5 on */
#endif

enum { HANDLE_INO64_GEN = 0x81 }; /* of FUSE; as of others that know the birth */

union handle {
        struct file_handle head;
        char bytes[sizeof(struct file_handle) + FILE_HANDLE_MAX];
};

static bool take_handle(int dir_fd, const char *path, int flags, union handle *handle) {
        int mount_id;

        handle->head.handle_bytes = FILE_HANDLE_MAX;
        return name_to_handle_at(dir_fd, path, &handle->head, &mount_id, flags) == 0;
}

void file_identity_take(int dir_fd, const char *path, const struct stat *st, struct file_identity *ret) {
        int flags = *path ? AT_SYMLINK_FOLLOW : AT_EMPTY_PATH;
        union handle handle;
        struct statx x;

        *ret = (struct file_identity) { .inode = st->st_ino };
        if (statx(dir_fd, path, (*path ? 0 : AT_EMPTY_PATH) | AT_STATX_DONT_SYNC, STATX_BTIME, &x) == 0 &&
            (x.stx_mask & STATX_BTIME))
                ret->birth_nsec = x.stx_btime.tv_sec * INT64_C(1000000000) + x.stx_btime.tv_nsec;
        if (!take_handle(dir_fd, path, flags | AT_HANDLE_FID, &handle) && !take_handle(dir_fd, path, flags, &handle))
                return;
        ret->type = handle.head.handle_type;
        ret->bytes = handle.head.handle_bytes;
        memcpy(ret->handle, handle.head.f_handle, ret->bytes);
}

bool file_identity_same(const struct file_identity *a, const struct file_identity *b) {
        bool comparable = a->bytes > 0 && a->bytes == b->bytes && a->type == b->type;

        if (a->inode == 0 || b->inode == 0 || (comparable && memcmp(a->handle, b->handle, a->bytes) == 0))
                return true;
        if (a->inode != b->inode)
                return false;
        if (a->birth_nsec != 0 && b->birth_nsec != 0)
                return a->birth_nsec == b->birth_nsec;
        return !comparable || a->type == HANDLE_INO64_GEN;
}
