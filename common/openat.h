/* Reads what lies below an open directory, as files, lists and directories of /proc do. All paths
 * are below `dir_fd`, as for openat(2). */
#ifndef RM_COMMON_OPENAT_H
#define RM_COMMON_OPENAT_H

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Reads as much as one read(2) gives: the kernel makes a file of /proc anew for each. `ret_text`
 * always ends with NUL, after an error it is "". Returns its bytes, or -errno. */
ssize_t read_text_at(int dir_fd, const char *path, char *ret_text, size_t size_bytes);
/* Writes a text into a file that exists, as those of control groups. 0 or -errno. */
int write_text_at(int dir_fd, const char *path, const char *text);

/* Opens a file to be read. NULL: errno says why. */
FILE *fopen_at(int dir_fd, const char *path);
/* Opens a directory, and follows no symbolic link that stands at the end of `path`. NULL: errno
 * says why. */
DIR *opendir_at(int dir_fd, const char *path);

void cleanup_closedir(DIR **dir);
#define cleanup_dir __attribute__((cleanup(cleanup_closedir)))

/* The next name in a directory, but "." and ".."; NULL: there is no more, or `dir` is NULL. */
const char *next_name(DIR *dir);
/* The next name that begins with a digit, as those of processes, threads and descriptors do. */
const char *next_number(DIR *dir);

#endif
