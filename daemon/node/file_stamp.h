/* A file's stamp tells one state of the file from another, without reading it. */
#ifndef RM_NODE_FILE_STAMP_H
#define RM_NODE_FILE_STAMP_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

/* All zero: never looked. */
struct file_stamp {
        int error; /* 0, or why it cannot be opened: a negative errno */
        dev_t dev;
        ino_t ino;
        off_t size_bytes;
        struct timespec written;
        struct timespec changed;
};

/* `st` counts only where `error` is 0. */
struct file_stamp file_stamp_of(int error, const struct stat *st);
/* The same inode, whatever is in it now. */
bool file_stamp_same_file(const struct file_stamp *a, const struct file_stamp *b);
bool file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b);

#endif
