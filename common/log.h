/* Log lines of the daemons: to stderr, with the sd-daemon level prefix when it is not a terminal.
 *
 * Much of what is logged is caused by users and by strangers, often in unforeseen ways. So each
 * line of the source that logs has a rate of its own (log_limit_work), unless it says another one
 * by log_limited(). */
#ifndef RM_COMMON_LOG_H
#define RM_COMMON_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <syslog.h>

#include "common/log_rate.h"

#define LOG_TEXT_BYTES 2048U /* of a line; a longer one is cut, with a mark */

/* The one piece of process-wide state we allow ourselves: how much is logged, how often, under
 * which name, and how large a file may become. `name` is not copied. */
void log_setup(const char *name, int max_level);
/* When standard error is a regular file of more than this, it is emptied before the next line: for
 * a file that others may make grow, on a file system that others need. 0: never. */
void log_limit_file(uint64_t bytes);
/* Writes one line to the log. Control characters in it come out as \n, \xHH (common/text.h), so
 * that no text from outside can pass for a line of its own. */
void log_write(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Returns whether lines of this level are written. */
bool log_writes(int level);
/* From now on no line is left out for its rate: for programs that write only for the user who has
 * started them. */
void log_write_all(void);
bool log_writes_all(void);

#define log_at(level, ...)                                                                                                         \
        do {                                                                                                                       \
                static struct log_rate log_rate_here;                                                                              \
                log_rated(&log_rate_here, &log_limit_work, (level), __VA_ARGS__);                                                  \
        } while (0)
#define log_error(...) log_at(LOG_ERR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

#endif
