#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_WRITTEN_INTERNAL_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_WRITTEN_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#define HASH_FUNCTION HASH_SAX /* the usual one falls through cases where the length is not known */
#include <uthash.h>

#include "daemon/capsule/init/base/file_identity.h"
#include "proto/capsule.pb-c.h"

/* A file handle of the kernel's (name_to_handle_at(2)) in a file system. Unused bytes are 0. */
struct written_handle {
        uint64_t file_system;
        int32_t type;
        uint32_t bytes;
        uint8_t handle[FILE_HANDLE_MAX];
};

struct written_file {
        UT_hash_handle hh;
        struct written_handle key;
        struct written_handle directory; /* without bytes: `name` is a whole path */
        char *name;
        int64_t first_nsec; /* when the first of these events was read, since the epoch */
        unsigned writes; /* how often somebody who could write has closed it */
        bool reported;       /* the next three are of the last report */
        unsigned reported_writes;
        uint64_t reported_size_bytes;
        int64_t reported_mtime_nsec;
        bool others; /* somebody else writes to it too, so that it is never cut back */
};

struct written_mount {
        char *path;
        uint64_t file_system;
};

struct written_scan {
        const Capsule__Spec *spec;
        const struct written_mount *mounts;
        size_t n_mounts;
        struct written_file *const *files; /* the ones that were written last come first */
        size_t n;
        int stuck_fd; /* of the child of an earlier look that a file system keeps; -1: none */
};

/* Tells of each file that is found under its name, in the order of `files`, as soon as that is
 * known. */
typedef void (*written_found_fn)(void *arg, size_t i, Capsule__ClosedFile *found);
void written_scan(struct written_scan *scan, written_found_fn found, void *arg);

#endif
