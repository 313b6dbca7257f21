#include "daemon/capsule/init/base/pids.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compare.h"
#include "common/openat.h"
#include "common/util.h"

enum { GAP_PIDS = 1000, FIRST_PID = 20000, LOW_PID = 300, PID_MAX_DEFAULT = 32768 };

struct list {
        unsigned *pids;
        size_t n;
};

static void add(struct list *list, unsigned pid) {
        list->pids = xgrow(list->pids, list->n, sizeof(*list->pids));
        list->pids[list->n++] = pid;
}

bool pids_read_stat(const char *pid, struct pids_stat *ret) {
        cleanup_free char *path = xasprintf("/proc/%s/stat", pid);
        cleanup_free char *text = NULL;
        const char *begin, *end;

        if (read_file(path, 4096, &text, NULL) < 0)
                return false;
        begin = strchr(text, '(');
        end = strrchr(text, ')'); /* the name before it may hold anything */
        if (!begin || !end ||
            sscanf(end + 1, " %c %d %u %u %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %u", &ret->state, &ret->parent,
                   &ret->group, &ret->session, &ret->threads) != 5)
                return false;
        (void) snprintf(ret->name, sizeof(ret->name), "%.*s", (int) (end - begin - 1), begin + 1);
        return true;
}

/* Groups and sessions whose leader is gone still keep its number. */
static void add_group_and_session(struct list *list, const char *pid) {
        struct pids_stat stat;

        if (!pids_read_stat(pid, &stat))
                return;
        add(list, stat.group);
        add(list, stat.session);
}

static void add_numbers(struct list *list, const char *path, bool threads) {
        cleanup_dir DIR *dir = opendir(path);
        const char *name;

        while ((name = next_number(dir))) {
                cleanup_free char *below = xasprintf("%s/%s/task", path, name);

                add(list, (unsigned) strtoul(name, NULL, 10));
                if (!threads)
                        continue;
                add_group_and_session(list, name);
                add_numbers(list, below, false);
        }
}

/* The gap that begins at `from` or at the end of what reaches into it; 0 when there is none below
 * `limit`. */
static unsigned gap_from(const unsigned *taken, size_t n, unsigned from, unsigned limit) {
        for (size_t i = 0; i < n; i++)
                if (taken[i] >= from && taken[i] < from + GAP_PIDS)
                        from = taken[i] + 1;
        return from + GAP_PIDS <= limit ? from : 0;
}

unsigned pids_find_gap_in(unsigned *taken, size_t n, unsigned pid_max) {
        unsigned gap;

        qsort(taken, n, sizeof(*taken), compare_u32);
        gap = gap_from(taken, n, FIRST_PID, pid_max);
        if (gap == 0)
                gap = gap_from(taken, n, LOW_PID, pid_max);
        return gap;
}

unsigned pids_find_gap(void) {
        struct list list = { 0 };
        unsigned pid_max = PID_MAX_DEFAULT;
        cleanup_file FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
        unsigned gap;

        if (f && fscanf(f, "%u", &pid_max) != 1)
                pid_max = PID_MAX_DEFAULT;
        add_numbers(&list, "/proc", true);
        gap = pids_find_gap_in(list.pids, list.n, pid_max);
        free(list.pids);
        return gap;
}

size_t pids_of_group(int group_fd, pid_t **ret) {
        cleanup_file FILE *f = fopen_at(group_fd, "cgroup.procs");
        pid_t *pids = NULL;
        size_t n = 0;
        int pid;

        while (f && fscanf(f, "%d", &pid) == 1) {
                if (pid <= 0) /* one outside of our pid namespace */
                        continue;
                pids = xgrow(pids, n, sizeof(*pids));
                pids[n++] = pid;
        }
        *ret = pids;
        return n;
}

/* FNV-1a of each; their order does not matter. */
uint64_t pids_fingerprint(const pid_t *pids, size_t n) {
        uint64_t sum = 1;

        for (size_t i = 0; i < n; i++) {
                uint64_t hash = (UINT64_C(0xcbf29ce484222325) ^ (uint64_t) pids[i]) * UINT64_C(0x100000001b3);
                struct pids_stat stat = { 0 };
                char pid[16];

                (void) snprintf(pid, sizeof(pid), "%d", (int) pids[i]);
                if (!pids_read_stat(pid, &stat))
                        continue;
                for (const char *p = stat.name; *p; p++)
                        hash = (hash ^ (uint8_t) *p) * UINT64_C(0x100000001b3);
                sum += hash ^ hash >> 29;
        }
        return sum != 0 ? sum : 1;
}
