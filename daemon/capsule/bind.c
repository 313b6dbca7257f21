#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/openat.h"
#include "common/util.h"
#include "daemon/capsule/private.h"

/* A process that forks while this is done has children that are not seen; they are bound at the
 * next pass. */
enum { PASSES = 8 };

struct binding {
        const cpu_set_t *cpus;
        const cpu_set_t *was; /* NULL: none */
        bool keep_narrower;
};

/* The CPUs that a thread which now has `now` is to have. */
static cpu_set_t requested(const struct binding *binding, const cpu_set_t *now) {
        cpu_set_t both;

        CPU_AND(&both, now, binding->cpus);
        if (binding->keep_narrower && CPU_COUNT(&both) > 0 && !(binding->was && CPU_EQUAL(now, binding->was)))
                return both;
        return *binding->cpus;
}

/* Every thread of one process. Returns how many were elsewhere before. */
static unsigned bind_process(int pid, const struct binding *binding, int *error) {
        cleanup_free char *path = xasprintf("/proc/%d/task", pid);
        cleanup_dir DIR *dir = opendir(path);
        unsigned changed = 0;
        const char *name;

        while ((name = next_number(dir))) {
                int tid = atoi(name);
                cpu_set_t now, next;

                if (sched_getaffinity(tid, sizeof(now), &now) < 0)
                        continue;
                next = requested(binding, &now);
                if (CPU_EQUAL(&next, &now))
                        continue;
                if (sched_setaffinity(tid, sizeof(next), &next) == 0)
                        changed++;
                else if (errno != ESRCH)
                        *error = -errno;
        }
        return changed;
}

int capsule_bind(struct capsule *capsule, const cpu_set_t *cpus, bool keep_narrower, const cpu_set_t *was) {
        const struct binding binding = { .cpus = cpus, .was = was, .keep_narrower = keep_narrower };
        cleanup_free char *path = xasprintf("%s/payload/cgroup.procs", capsule->cgroup_dir);
        unsigned changed = 1;
        int error = 0;

        for (int pass = 0; pass < PASSES && changed > 0 && error == 0; pass++) {
                cleanup_file FILE *f = fopen(path, "re");
                int pid;

                if (!f)
                        return -errno;
                changed = 0;
                while (fscanf(f, "%d", &pid) == 1)
                        if (pid > 0) /* 0: outside of our pid namespace */
                                changed += bind_process(pid, &binding, &error);
        }
        return error;
}
