/* A file's identity tells which file a name means: one that was moved away and another one in its
 * place are two. */
#ifndef RM_DAEMON_CAPSULE_INIT_BASE_FILE_IDENTITY_H
#define RM_DAEMON_CAPSULE_INIT_BASE_FILE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stat;

enum { FILE_HANDLE_MAX = 128 }; /* as MAX_HANDLE_SZ */

/* As the kernel knows the file again (name_to_handle_at(2)): with NFS it is the same on all nodes.
 * Nothing is asked of a server. */
struct file_identity {
        uint64_t inode; /* 0: not known */
        int64_t birth_nsec; /* since the epoch; 0: its file system does not tell */
        int type;
        size_t bytes; /* of `handle`; 0: its file system has none */
        uint8_t handle[FILE_HANDLE_MAX];
};

/* Takes the identity of the file that `path` below `dir_fd` names, links followed, or with "" of
 * `dir_fd` itself. `st` is the file's. */
void file_identity_take(int dir_fd, const char *path, const struct stat *st, struct file_identity *ret);

/* Equal handles, or inode numbers and times of birth. A number that is used again has another
 * handle or birth; handles differ for one file on the server of a file system and its clients, and
 * wherever FUSE is, which makes them anew. One that is not known is the same. */
bool file_identity_same(const struct file_identity *a, const struct file_identity *b);

#endif
