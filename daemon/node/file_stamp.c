#include "daemon/node/file_stamp.h"

struct file_stamp file_stamp_of(int error, const struct stat *st) {
        struct file_stamp scan = { .error = error };

        if (error == 0) {
                scan.dev = st->st_dev;
                scan.ino = st->st_ino;
                scan.size_bytes = st->st_size;
                scan.written = st->st_mtim;
                scan.changed = st->st_ctim;
        }
        return scan;
}

static bool times_equal(const struct timespec *a, const struct timespec *b) {
        return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool file_stamp_same_file(const struct file_stamp *a, const struct file_stamp *b) {
        return a->error == b->error && a->dev == b->dev && a->ino == b->ino;
}

bool file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b) {
        return file_stamp_same_file(a, b) && a->size_bytes == b->size_bytes && times_equal(&a->written, &b->written) &&
               times_equal(&a->changed, &b->changed);
}
