/* Files of the kernel's own file systems (proc, sysfs, cgroup ...). Many of these ask what the
 * process that opened them may do, not the one that reads: after a restore that is CRIU, with
 * capabilities that the job's owner has not. */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_KERNEL_FILE_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_KERNEL_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* The points where such file systems are mounted. */
struct kernel_mounts {
        char **points;
        size_t n;
};

/* Adds those that the text of a mountinfo file names to `mounts`, which begins as zeros and in
 * which /proc and /sys always are. */
void kernel_mounts_parse(struct kernel_mounts *mounts, const char *mountinfo);
void kernel_mounts_finish(struct kernel_mounts *mounts);

/* Is what /proc names so (of a descriptor, mapping or directory) such a file, but none of the few
 * that programs keep open and that tell everybody the same? `writes`: it is open for writing, which
 * no such file may be. CRIU opens no file by a name that leads to another one, so the name
 * decides. */
bool kernel_file_is_kept_out(const struct kernel_mounts *mounts, const char *link, bool writes);

#endif
