/* The memory that libraft works in, all of which is zero when libraft gets it. */
#ifndef RM_LOG_RAFT_MEMORY_H
#define RM_LOG_RAFT_MEMORY_H

/* Gives libraft this memory, for all logs of the process. It may be called again, also while there
 * is memory of libraft's own: both are freed in the same way. */
void raft_memory_use(void);

#endif
