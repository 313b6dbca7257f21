#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/private.h"

/* Whoever forks while this is done has children that are not seen; they are at the next pass. */
enum { PASSES = 8 };

static bool is_bound(const cpu_set_t *now, const cpu_set_t *cpus, bool keep_narrower) {
        cpu_set_t both;

        CPU_AND(&both, now, cpus);
        return CPU_EQUAL(now, keep_narrower ? &both : cpus);
}

/* Every thread of one process. Returns how many were elsewhere before. */
static unsigned bind_process(int pid, const cpu_set_t *cpus, bool keep_narrower, int *error) {
        cleanup_free char *path = xasprintf("/proc/%d/task", pid);
        DIR *dir = opendir(path);
        unsigned changed = 0;

        for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
                int tid = atoi(entry->d_name);
                cpu_set_t now;

                if (tid <= 0 || sched_getaffinity(tid, sizeof(now), &now) < 0 || is_bound(&now, cpus, keep_narrower))
                        continue;
                if (sched_setaffinity(tid, sizeof(*cpus), cpus) == 0)
                        changed++;
                else if (errno != ESRCH)
                        *error = -errno;
        }
        if (dir)
                (void) closedir(dir);
        return changed;
}

int capsule_bind(struct capsule *capsule, const cpu_set_t *cpus, bool keep_narrower) {
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
                                changed += bind_process(pid, cpus, keep_narrower, &error);
        }
        return error;
}
