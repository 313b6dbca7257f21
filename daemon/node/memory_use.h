/* Memory of this node: what is free, what processes and their file systems take, and what a move
 * needs. */
#ifndef RM_NODE_MEMORY_USE_H
#define RM_NODE_MEMORY_USE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory that the kernel could give to processes; UINT64_MAX when it does not say. */
uint64_t memory_use_available(void);
/* The own memory of the processes of a group, of which `most` (> 0) are looked at; 0 when nothing
 * can be read. `procs_dir` has cgroup.procs. If there are more, they count as what the kernel has
 * charged the group `charged_dir` with (memory.stat), or, without it (NULL ok), as much each as
 * those that were looked at. */
uint64_t memory_use_processes(const char *procs_dir, const char *charged_dir, size_t most);
/* The used space of the file system at `path`; 0 when it cannot be asked. */
uint64_t memory_use_files(const char *path);

/* The memory that a group needs at the destination while it moves there: until it runs, its image
 * and its memory are both there. With tracked memory each page goes into the process as it comes:
 * it is in both for a moment only, beside the memory that CRIU restores itself. */
static inline uint64_t memory_use_of_move(uint64_t memory_bytes, uint64_t files_bytes, bool tracked) {
        uint64_t once = memory_bytes + memory_bytes / 10 + (UINT64_C(64) << 20);

        return (tracked && once < memory_bytes * 2 ? once : memory_bytes * 2) + files_bytes;
}

#endif
