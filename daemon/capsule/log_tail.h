/* The lines of CRIU's log that a person wants to know: those that tell errors. */
#ifndef RM_DAEMON_CAPSULE_LOG_TAIL_H
#define RM_DAEMON_CAPSULE_LOG_TAIL_H

#include <stddef.h>

/* The last lines with "Error", or, if there is none, with "Warn", without their time stamps, joined
 * by "; ", as many as fit from the end, repetitions left out. Before them stands, of some that tell
 * what a process has, what that is. "" when there is none or the file
 * cannot be read. */
void log_tail_errors(const char *path, char *text, size_t size);

#endif
