/* The controllers of control groups that bound the payload of a capsule, as far as this host lets
 * rmd have them. */
#ifndef RM_DAEMON_CAPSULE_CONTROLLERS_H
#define RM_DAEMON_CAPSULE_CONTROLLERS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct rm_error;

enum controller {
        CONTROLLER_MEMORY,
        CONTROLLER_PIDS,
        CONTROLLER_CPUSET,

        CONTROLLER_COUNT,
};

/* The places of the capsules' groups in the hierarchy of each controller; NULL: this host has none
 * for us. In a v2 tree that is the directory that also holds the capsules' other groups; a v1
 * hierarchy has one of its own, in which a capsule has the same leaves. */
struct controllers {
        char *parent[CONTROLLER_COUNT];
        bool v1[CONTROLLER_COUNT];
        /* The place where a capsule has a group with "cpu" while it is slowed down (slow.h); it may
         * not be made yet. NULL: no v1 hierarchy has it. */
        char *cpu_v1;
};

/* Finds them; those of the v2 tree `cgroup_parent` is in are switched on, from the nearest group
 * above it that has them. That fails where a process stands in a group between. */
void controllers_find(struct controllers *ret, const char *cgroup_parent);
void controllers_finish(struct controllers *controllers);

/* Names the directories of a capsule by controller, malloc'ed; NULL: none. */
void controllers_name(const struct controllers *controllers, const char *id, const char *cgroup_dir,
                      char *ret_dirs[CONTROLLER_COUNT]);
/* Makes the capsule's groups (`cgroup_dir` is made already), with both leaves. A controller that
 * fails here is taken for one that is not there, with a warning. */
void controllers_make(const struct controllers *controllers, const char *id, const char *cgroup_dir,
                      char *ret_dirs[CONTROLLER_COUNT]);
/* Removes those that are not below `cgroup_dir`; -EBUSY while processes remain. Gone is fine. */
int controllers_remove(char *const dirs[CONTROLLER_COUNT], const char *cgroup_dir);

/* The controller `name` for the group `dir` of a v2 tree, switched on from the nearest group above
 * it that has it. False: not to be had. */
bool controllers_enable(const char *dir, const char *name);
/* Writes into the file `name` of a group. 0 or -errno. */
int controllers_write(const char *dir, const char *name, const char *text);

/* Limits one group, a directory such as DIR/payload; UINT64_MAX: no limit. Negative errno. */
int controllers_limit_memory(const char *dir, uint64_t bytes);
/* Limits the memory of one group as well; when memory is out, all of the group is killed, where the
 * kernel can do that (v2): what is left of an MPI job is of no use. */
int controllers_set_memory(const char *dir, uint64_t bytes);
int controllers_set_pids(const char *dir, uint64_t pids);
int controllers_set_cpus(const char *dir, const cpu_set_t *cpus);

/* "0-3,8" of a set; malloc'ed. */
char *controllers_cpu_list(const cpu_set_t *cpus);

#endif
