/* Files below one directory of a host of the virtual world, on its disk: where rmd and rm-mover
 * keep checkpoints. Directories are there as long as there are files in them. What is written,
 * renamed or removed is safe from a loss of power after files_sync() only. */
#ifndef RM_TESTS_SIM_FILES_H
#define RM_TESTS_SIM_FILES_H

#include "tests/sim/disk.h"

/* Paths are below it. */
#define FILES_ROOT "/nonexistent/checkpoints"

/* Makes it, or replaces all of it. */
void files_write(const struct host *host, const char *path, const void *data, size_t size_bytes);
/* NULL: there is no such file. `safe`: what a loss of power would leave. Valid until any file is
 * changed. */
const void *files_read(const struct host *host, const char *path, bool safe, size_t *ret_bytes);
/* Renames a file, or a directory with all that is below it, which goes where no file is. False:
 * there is none. */
bool files_rename(const struct host *host, const char *from, const char *to);
bool files_remove(const struct host *host, const char *path);
void files_remove_tree(const struct host *host, const char *dir);
/* Is there a file below it? */
bool files_is_dir(const struct host *host, const char *dir);
/* The names in a directory, each once, malloc'ed, as the list is; NULL: there is no such
 * directory. */
char **files_list(const struct host *host, const char *dir, size_t *ret_n);
void files_list_free(char **names, size_t n);
void files_sync(const struct host *host, event_fn done, event_fn drop, void *userdata);

#endif
