/* Looks at what the processes of a group have open, by a child of rm-mover that is in a control
 * group of theirs: a group with much open, or many locks, pays for the look with processor time of
 * its own. */
#ifndef RM_MOVER_DESCRIPTORS_H
#define RM_MOVER_DESCRIPTORS_H

#include "daemon/mover/procs.h"

struct descriptors;

/* `group_dir`: a control group into which the child goes; empty: it stays in rm-mover's. 0 or
 * -errno; what it then cannot enter fails the first look. */
int descriptors_start(const char *group_dir, struct descriptors **ret);
/* As procs_reads_direct(), of the process whose directory in /proc `proc_fd` is. -EPIPE, also: the
 * child is gone, as when the group was removed. */
int descriptors_read_direct(const struct descriptors *d, int proc_fd, struct procs_budget *budget, char ret_path[PROCS_PATH_BYTES]);
/* Waits for the child's end. NULL ok. */
void descriptors_end(struct descriptors *d);

#endif
