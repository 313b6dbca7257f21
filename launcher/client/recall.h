/* A record of the output that was delivered of a stream, from some offset on, so that output that
 * comes again can be compared with it. A little is kept in memory, more in a temporary file without
 * a name; if that fails, the record is forgotten, which is never an error. */
#ifndef RM_LAUNCHER_CLIENT_RECALL_H
#define RM_LAUNCHER_CLIENT_RECALL_H

#include <stddef.h>
#include <stdint.h>

/* Without a file, what is kept in memory. */
#define RECALL_MEMORY_BYTES (64U << 20)
/* In the file, which may be twice as large, so long as what was dropped is less than what is
 * kept. */
#define RECALL_FILE_BYTES (UINT64_C(1) << 30)

/* Empty, at offset 0. `directory` (copied): where the file may be; NULL: nowhere. */
struct recall *recall_create(const char *directory);
void recall_destroy(struct recall *recall); /* NULL ok */

/* The kept bytes are [begin, end) of the stream; the next ones are at the end. */
uint64_t recall_begin(const struct recall *recall);
uint64_t recall_end(const struct recall *recall);
/* Why there is not more, for strerror(); 0: it never failed. */
int recall_error(const struct recall *recall);

/* Bytes that were delivered. If they cannot be kept, neither is what came before. */
void recall_add(struct recall *recall, const void *data, size_t size_bytes);
/* Bytes before `offset` are not needed any more. */
void recall_drop(struct recall *recall, uint64_t offset);
/* Bytes from `offset` on were of another attempt: the stream goes on there. */
void recall_cut(struct recall *recall, uint64_t offset);
/* Empty, at that offset. */
void recall_reset(struct recall *recall, uint64_t offset);

/* How many of the first bytes of `data` are those of the stream from `offset` on; all of these must
 * be kept. 0, or -errno of the file. */
int recall_compare(const struct recall *recall, uint64_t offset, const void *data, size_t size_bytes, size_t *ret_equal_bytes);

#endif
