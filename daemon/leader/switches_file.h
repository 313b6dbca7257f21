/* The file that [cluster] topology names, read again when it has changed. A bad one changes
 * nothing: what it said before stays. */
#ifndef RM_LEADER_SWITCHES_FILE_H
#define RM_LEADER_SWITCHES_FILE_H

#include <stdbool.h>

#include "daemon/config/config.h"

struct switches_file;

/* Reads the file. `config` is borrowed. */
struct switches_file *switches_file_create(const struct config *config);
void switches_file_destroy(struct switches_file *file); /* NULL ok */

/* Has the file changed? To be called about once a second: one that changes is read only when it
 * looks the same at two calls in a row, so that nothing is made of what is still being written.
 * True: it was read, and what follows may be different. */
bool switches_file_scan(struct switches_file *file);

/* The switches of the last good reading; none, where there never was one. Valid until the next
 * look. */
const struct switches *switches_file_list(const struct switches_file *file);
/* Why the last reading was not taken, with file and line; NULL: it was. Valid until the next
 * look. */
const char *switches_file_error(const struct switches_file *file);

#endif
