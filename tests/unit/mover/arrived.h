/* The memory of processes, as it has arrived. */
#ifndef RM_TESTS_MOVER_ARRIVED_H
#define RM_TESTS_MOVER_ARRIVED_H

#include "bed.h"

/* The file with the pages of this process. malloc'ed. */
char *arrived(const struct bed *b, pid_t pid);

/* Byte by byte with what the process has, which stands still. */
void compare(const struct bed *b, pid_t pid);

#endif
