/* Times, sizes and texts of others, as people like to read them. */
#ifndef RM_LAUNCHER_RMCTL_HUMAN_H
#define RM_LAUNCHER_RMCTL_HUMAN_H

#include <stddef.h>
#include <stdint.h>

/* All strings are malloc'ed. */

/* "3m ago", "just now"; "-" for 0. Both are real times. */
char *human_ago(uint64_t when_usec, uint64_t now_usec);
/* "0.281 s", "12 s", "3m 05s", "1h 02m", "2d 03h". */
char *human_duration(uint64_t usec);
/* Like human_duration(), but never finer than seconds. */
char *human_elapsed(uint64_t usec);
/* "512 B", "30.0 MiB". */
char *human_bytes(uint64_t bytes);
/* `text` without anything that moves a terminal's cursor or colours it. */
char *human_clean(const char *text);
/* Columns of a terminal that `text` takes. */
size_t human_width(const char *text);
/* `text` cut to `width` columns, with an ellipsis when something is lost. */
char *human_cut(const char *text, size_t width);

#endif
