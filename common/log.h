/* Log lines of the daemons: to stderr, with the sd-daemon level prefix when it is not a terminal. */
#ifndef RM_COMMON_LOG_H
#define RM_COMMON_LOG_H

#include <stdint.h>
#include <syslog.h>

/* The one piece of process-wide state we allow ourselves: how much is logged, under which name, and how large a file may become.
 * `name` is not copied. */
void log_setup(const char *name, int max_level);
/* When standard error is a regular file of more than this, it is emptied before the next line: for a file that others may make
 * grow, on a file system that others need. 0: never. */
void log_limit_file(uint64_t bytes);
/* One line. Control characters in it come out as \n, \xHH (common/text.h), so that no text from outside can pass for a line of its own. */
void log_write(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_ERR, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)

#endif
