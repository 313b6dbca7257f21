/* Writes to the memory of processes that are no page faults: process_vm_writev(2) and those to
 * /proc/PID/mem look a page up first and write into it then, and what runs in between, or waits
 * for a processor or for the page that it copies from, may take any time. So that a page can be
 * read, each call that was under way when it was told must be over. The kernel does not tell
 * that, but where a thread is that is not on a processor (/proc/PID/stack). */
#ifndef RM_MOVER_CALLS_H
#define RM_MOVER_CALLS_H

#include <stdint.h>

struct calls;

struct calls *calls_create(void); /* never NULL */
void calls_destroy(struct calls *calls); /* NULL ok */

/* Looks at all threads of the processes that `procs_file` names. 0 or -errno. */
int calls_scan(struct calls *calls, const char *procs_file);

/* All calls that began before this time are over, as far as looks at those threads tell. A kernel
 * that does not say where they are: the time of the last look. */
uint64_t calls_over_usec(const struct calls *calls);

#endif
