/* Removes directories that hold the memory of groups, in processes of their own: the kernel takes
 * 0.4 s for each GiB that it frees, and would block the event loop so long. */
#ifndef RM_TRANSFER_REMOVER_H
#define RM_TRANSFER_REMOVER_H

#include "common/error.h"

struct event_base;
struct remover;

/* `program` is rm-mover. */
struct remover *remover_create(struct event_base *base, const char *program);
/* Directories that still wait are left; processes that remove go on. NULL ok. */
void remover_destroy(struct remover *remover);

/* Gives the directory another name at once, so that its own is free, and returns that; NULL if
 * there is no such directory. The caller frees it, or passes it to remover_add(). */
char *remover_set_aside(struct remover *remover, const char *dir);
/* Removes what was set aside; takes the name over. A failure is logged. NULL ok. */
void remover_add(struct remover *remover, char *aside);

/* Takes all mounts off `dir` before it returns; what they held is freed after that, unless no
 * process can be started. Blocks for some milliseconds. */
void remover_unmount(const char *program, const char *dir);

#endif
