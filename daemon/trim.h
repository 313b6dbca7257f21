/* Give back memory that was needed only for a while. */
#ifndef RM_DAEMON_TRIM_H
#define RM_DAEMON_TRIM_H

/* Pages of programs and libraries that cannot be written are dropped from this process; those that
 * are needed again are read back, one by one, from the page cache. Free memory of the heap goes
 * back to the kernel. Safe at any time; costs some page faults. */
void trim_memory(void);

#endif
