/* The flags of mappings that /proc/PID/maps does not tell. smaps has them ("VmFlags:"), but looks
 * at every page of the process for its other lines, which takes some 10 ms per GiB. So the flags
 * are kept while the process runs, and joined with maps when it is frozen.
 *
 * For rm-mover, and for the library in CRIU: needs nothing but libc, and no failure ends the
 * process. */
#ifndef RM_DAEMON_PAGES_VMFLAGS_H
#define RM_DAEMON_PAGES_VMFLAGS_H

#include <stddef.h>
#include <stdint.h>

/* [start, end) */
struct vmflags_range {
        uint64_t start;
        uint64_t end;
};

/* A whole file, malloc'ed and NUL-terminated; `ret_size_bytes` NULL ok. 0, -EFBIG (over 256 MiB),
 * or -errno. */
int vmflags_read_file(int fd, char **ret, size_t *ret_size_bytes);

/* Reduces the text of smaps, in place, to two lines for each mapping: the line that maps has, too,
 * and the line of its flags. Returns the new size. */
size_t vmflags_reduce(char *smaps);

/* Keeps them for the process whose directory in /proc this is: as `name` in `dir_fd`, which all may
 * read, in place of what was kept before. 0; -ESRCH: it has ended; -EOPNOTSUPP: it has memory that
 * must not be restored lazily (a shadow stack, or what MADV_WIPEONFORK was said of); or -errno. */
int vmflags_save(int proc_fd, int dir_fd, const char *name);

/* Flags that were kept, for the mappings of today: as vmflags_reduce(), malloc'ed. `locked_bytes`:
 * how much of its memory is locked today. -ESTALE: this cannot be told from what was kept, as a
 * mapping is not among it, or is of droppable memory, or memory has been locked since. */
int vmflags_join(const char *kept, const char *maps, uint64_t locked_bytes, char **ret);

/* The ranges that CRIU restores lazily, by reduced lines; neighbours are one range. malloc'ed, in
 * ascending order. -EOPNOTSUPP as above; -EBADMSG: a line is not as the kernel writes it. */
int vmflags_lazy(const char *reduced, struct vmflags_range **ret, size_t *ret_n);

#endif
