#ifndef RM_DAEMON_CAPSULE_INIT_WRITTEN_INTERNAL_H
#define RM_DAEMON_CAPSULE_INIT_WRITTEN_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#define HASH_FUNCTION HASH_SAX /* the usual one falls through cases where the length is not known */
#include <uthash.h>

#include "daemon/capsule/init/file_identity.h"
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
        struct written_handle directory;
        char *name;     /* in the directory, or a whole path if that has no handle */
        unsigned writes; /* how often it was closed by who could write */
        bool told;      /* with the next three, in a report */
        unsigned told_writes;
        uint64_t told_size_bytes;
        int64_t told_mtime_nsec;
        bool others; /* write to it, too */
};

struct written_mount {
        char *path;
        uint64_t file_system;
};

/* What a look needs to find files by their handles. */
struct written_look {
        const Capsule__Spec *spec;
        const struct written_mount *mounts;
        size_t n_mounts;
        const struct written_file *files; /* in the order of the table */
};

/* What is known of each file, in the same order; a name of "" where it was not found. NULL: it takes too long, or cannot be looked at. Free it with
 * capsule__inventory__free_unpacked(). */
Capsule__Inventory *written_look(const struct written_look *look);

#endif
