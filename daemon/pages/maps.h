/* The mappings of another process, as far as its pages can be tracked and restored lazily. */
#ifndef RM_DAEMON_PAGES_MAPS_H
#define RM_DAEMON_PAGES_MAPS_H

#include <stddef.h>
#include <stdint.h>

enum { PAGES_PAGE_BYTES = 4096 };

enum map_kind {
        MAP_KIND_LAZY,         /* private and anonymous, heap and stack too: what CRIU restores lazily, unless it is locked */
        MAP_KIND_PRIVATE_FILE, /* private, of a file; private memory in huge pages reads as a file too */
        MAP_KIND_SHARED,       /* shared memory and shared files */
        MAP_KIND_VDSO,         /* the kernel's code in it, if it may be executed */
        MAP_KIND_KERNEL,       /* [vvar] and the like */
};

struct map {
        uint64_t start;
        uint64_t end;
        enum map_kind kind;
};

struct maps {
        struct map *items; /* by address */
        size_t n;
};

/* Parses a line of /proc/PID/maps. 0, or -EBADMSG. */
int map_parse(const char *line, struct map *ret);

/* Reads the present mappings of the process whose directory in /proc this is. Free with
 * maps_finish(). 0; -ESRCH: it has ended, or has no memory any more; or -errno. */
int maps_read(int proc_fd, struct maps *ret);
void maps_finish(struct maps *maps);

/* Where the last mapping of that kind ends; 0: there is none. */
uint64_t maps_end(const struct maps *maps, enum map_kind kind);

#endif
