/* A file whose reads past the page cache take as long as a test wants: of FUSE, with direct_io,
 * in plain words of its protocol. */
#ifndef RM_TESTS_UNIT_MOVER_FUSE_FILE_H
#define RM_TESTS_UNIT_MOVER_FUSE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fuse_file {
        int fd; /* of the device */
        char *path;
        uint64_t read_id; /* of the request that waits */
};

/* `dir`: a directory on a file system that may have devices. False: this machine has no FUSE. */
bool fuse_file_begin(struct fuse_file *f, const char *dir);
void fuse_file_end(struct fuse_file *f);
/* Aborts the file system after a failure: a process that reads it is not killed before it has an
 * answer. */
void fuse_file_abort(const char *dir);

/* Answers all requests but those of this kind (FUSE_..., linux/fuse.h), until one comes: it waits
 * then. */
void fuse_file_await(struct fuse_file *f, uint32_t opcode);
void fuse_file_await_read(struct fuse_file *f);
/* A waiting read ends with this error; 0: none. */
void fuse_file_fail(const struct fuse_file *f, int error);
/* The read gets so many bytes of this value. */
void fuse_file_answer(const struct fuse_file *f, uint8_t value, size_t size_bytes);

#endif
