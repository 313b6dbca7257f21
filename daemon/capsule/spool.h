/* Output of a capsule on the node's disk: segments "NAME.OFFSET", each named by the offset of its
 * first byte. */
#ifndef RM_DAEMON_CAPSULE_SPOOL_H
#define RM_DAEMON_CAPSULE_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SPOOL_SEGMENT_BYTES = 4 * 1024 * 1024 }; /* what has been read goes by whole segments */

/* A spool has one writer (the capsule's PID 1). Readers need only the directory. */
struct spool {
        int dir_fd;       /* not owned */
        char name[16];
        int fd;           /* of the last segment, -1: none */
        uint64_t begin;   /* of the oldest segment */
        uint64_t segment; /* where the last segment begins */
        uint64_t end;
};

/* Starts at `offset`, with no segment. */
void spool_init(struct spool *spool, int dir_fd, const char *name, uint64_t offset);
void spool_finish(struct spool *spool);
/* Moves what `pipe_fd` has (at most `size`) into the spool; never loses what it took. Bytes moved,
 * 0 for end of file, -EAGAIN when the pipe is empty, -errno (-ENOSPC: the pipe keeps it). */
ssize_t spool_splice(struct spool *spool, int pipe_fd, size_t size);
/* Moves what `pipe_fd` has now into the spool. Whoever goes on writing meanwhile does not hold it
 * up: the spool takes no more than the pipe can have in it, which is all that those have written
 * who stand still. 0, or as spool_splice() fails. */
int spool_drain(struct spool *spool, int pipe_fd);
/* Removes segments that end at or before `offset`. */
void spool_trim(struct spool *spool, uint64_t offset);

/* "stdout.00000000000a0000" into its offset. False when it is not a segment of `name`. */
bool spool_segment_parse(const char *file, const char *name, uint64_t *ret_offset);
/* Bytes read at `offset`; 0 at the end; -ERANGE before the oldest segment; -errno. */
ssize_t spool_read(int dir_fd, const char *name, uint64_t offset, void *buffer, size_t size);
/* Finds where the first segment begins that begins after `offset`. -ENOENT: there is none;
 * -errno. */
int spool_next(int dir_fd, const char *name, uint64_t offset, uint64_t *ret_begin);

#endif
