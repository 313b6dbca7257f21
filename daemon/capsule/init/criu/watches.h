/* The files that the inotify watches of a frozen group lead to. The kernel names what is watched by
 * a handle only, and to open a handle takes CAP_DAC_READ_SEARCH, with which CRIU could read any
 * file. So PID 1 opens the handles, and tells CRIU the paths in the form of a cache that CRIU keeps
 * of such things (irmap-cache in its work directory). */
#ifndef RM_DAEMON_CAPSULE_INIT_CRIU_WATCHES_H
#define RM_DAEMON_CAPSULE_INIT_CRIU_WATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/capsule.pb-c.h"

struct rm_error;

/* So many different files are looked for. CRIU cannot dump a group that watches more. */
enum { WATCHES_MAX = 4096, WATCHES_HANDLE_BYTES = 128 };

struct watch_handle {
        uint64_t inode;
        uint32_t device; /* as in the kernel: major << 20 | minor */
        int32_t type; /* of file_handle */
        uint32_t bytes;
        uint8_t handle[WATCHES_HANDLE_BYTES];
};

struct watches {
        struct watch_handle *handles; /* each file once */
        size_t n;
};

/* Adds what a line of an inotify descriptor's fdinfo names; another line adds nothing. False: there
 * is room for no more. */
bool watches_add(struct watches *watches, const char *line);
void watches_finish(struct watches *watches);

/* Writes the cache for what these name into `dir_fd`, or removes it if that is nothing. 0, or
 * -errno: -ENOENT if one of them has no path any more that the owner can reach, without which CRIU
 * cannot dump the group; -ETIMEDOUT for a file system that does not answer. */
int watches_report(const struct watches *watches, const Capsule__Spec *spec, int dir_fd, struct rm_error *error);

#endif
