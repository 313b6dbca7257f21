#include "daemon/capsule/init/ranks/launched.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "common/openat.h"
#include "common/util.h"
#include "daemon/capsule/init/base/pids.h"

#define DAEMON "prted"

static int compare(const void *a, const void *b) {
        const struct launched_process *x = a, *y = b;

        return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static const struct launched_process *find(const struct launched_process *all, size_t n, pid_t pid) {
        const struct launched_process key = { .pid = pid };

        return bsearch(&key, all, n, sizeof(*all), compare);
}

/* The child of a daemon that it is, or descends from; NULL: none. The table may have changed while
 * it was read: then a chain is broken, or a circle. */
static const struct launched_process *find_child(const struct launched_process *all, size_t n, pid_t pid) {
        const struct launched_process *process = find(all, n, pid);

        for (size_t steps = 0; process && steps < n; steps++) {
                const struct launched_process *parent = find(all, n, process->parent);

                if (parent && parent->daemon)
                        return process;
                process = parent;
        }
        return NULL;
}

int launched_count_unknown(struct launched_process *all, size_t n, const pid_t *known, size_t n_known) {
        cleanup_free bool *is_known = xcalloc(n + 1, sizeof(*is_known));
        bool any = false;
        int unknown = 0;

        if (n > 0)
                qsort(all, n, sizeof(*all), compare);
        for (size_t i = 0; i < n_known; i++) {
                const struct launched_process *child = find_child(all, n, known[i]);

                if (child)
                        is_known[child - all] = true;
        }
        for (size_t i = 0; i < n; i++) {
                const struct launched_process *parent = find(all, n, all[i].parent);

                any |= all[i].daemon;
                unknown += parent && parent->daemon && !all[i].daemon && !is_known[i];
        }
        return any ? unknown : -1;
}

static bool is_below(const struct launched_process *all, size_t n, const struct launched_process *process, pid_t root) {
        for (size_t steps = 0; process && steps < n; steps++) {
                if (process->pid == root || process->parent == root)
                        return true;
                process = find(all, n, process->parent);
        }
        return false;
}

size_t launched_ranks(struct launched_process *all, size_t n, pid_t root) {
        cleanup_free bool *is_rank = xcalloc(n + 1, sizeof(*is_rank));
        size_t ranks = 0;

        if (n > 0)
                qsort(all, n, sizeof(*all), compare);
        for (size_t i = 0; i < n; i++) {
                const struct launched_process *parent = find(all, n, all[i].parent);

                is_rank[i] = parent && parent->daemon && !all[i].daemon && !all[i].ended && is_below(all, n, parent, root);
        }
        for (size_t i = 0; i < n; i++)
                if (is_rank[i]) {
                        struct launched_process rank = all[i];

                        all[i] = all[ranks];
                        all[ranks++] = rank;
                }
        return ranks;
}

static bool read_process(const char *pid, struct launched_process *ret) {
        struct pids_stat stat;

        if (!pids_read_stat(pid, &stat))
                return false;
        *ret = (struct launched_process) {
                .pid = (pid_t) strtol(pid, NULL, 10),
                .parent = stat.parent,
                .daemon = strcmp(stat.name, DAEMON) == 0,
                .ended = stat.state == 'Z' || stat.state == 'X',
                .group = stat.group,
                .threads = stat.threads,
        };
        return true;
}

size_t launched_read(struct launched_process **ret) {
        struct launched_process *all = NULL;
        cleanup_dir DIR *dir = opendir("/proc");
        const char *pid;
        size_t n = 0;

        while ((pid = next_number(dir))) {
                all = xgrow(all, n, sizeof(*all));
                n += read_process(pid, &all[n]);
        }
        *ret = all;
        return n;
}

int launched_scan(const pid_t *known, size_t n_known) {
        cleanup_free struct launched_process *all = NULL;
        size_t n = launched_read(&all);

        return n > 0 ? launched_count_unknown(all, n, known, n_known) : -1;
}
