/* Files that belong to users, opened by a daemon that runs as root: with no more rights than their
 * owner has. */
#ifndef RM_NODE_USER_FILE_H
#define RM_NODE_USER_FILE_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define USER_NONE ((uid_t) - 1) /* no change of identity */

/* Open a regular file for reading, close-on-exec. Nothing else is ever opened, not even for a
 * moment: opening a FIFO blocks and opening a device can do things. The path is walked and the file
 * opened as `uid` and `gid` without supplementary groups (those of root would open more than the
 * user may see) and without capabilities, and nothing in /proc is opened for a user; USER_NONE: as
 * the caller. May block on a network file system. Changes this thread only, and undoes it before it
 * returns.
 * -EISDIR, -ENOTSUP: not a regular file, or one of /proc; -ELOOP: the path goes through a link of
 * /proc; -EPERM: this process may not act as `uid`; else as open(). */
int user_file_open(const char *path, uid_t uid, gid_t gid, int *ret_fd, struct stat *ret_stat);

/* inotify_add_watch() with the rights of the user. Returns the watch descriptor or a negative
 * errno. */
int user_inotify_add(int inotify_fd, const char *path, uint32_t mask, uid_t uid, gid_t gid);

#endif
