/* Writes files and forces them to the disk, in a thread of its own: a disk takes some hundredths of
 * a second for that, which the loop must not wait. */
#ifndef RM_JOB_FILE_WRITER_H
#define RM_JOB_FILE_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

struct file_writer;

/* Called from the loop, exactly once for every file_writer_add(): 0 or a negative errno; -ECANCELED
 * from file_writer_destroy(). */
typedef void (*file_written_fn)(void *userdata, int code);

int file_writer_create(struct event_base *base, struct file_writer **ret);
/* Waits for the file that is being written; the others are not. NULL ok. */
void file_writer_destroy(struct file_writer *writer);

/* Files are written in the order they come, mode 0600, each under its name when all of it is on the
 * disk, and the name too. `path` and `data` are malloc'ed and taken over. */
void file_writer_add(struct file_writer *writer, char *path, uint8_t *data, size_t size_bytes, file_written_fn done,
                     void *userdata);
/* The name of a file, whose contents are on the disk: as it was renamed, say. `path` as above. */
void file_writer_sync_name(struct file_writer *writer, char *path, file_written_fn done, void *userdata);

#endif
