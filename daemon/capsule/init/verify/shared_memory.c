#include "daemon/capsule/init/verify/shared_memory.h"

#include <dirent.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/openat.h"
#include "common/util.h"

enum {
        PAIRS_MAX = 64,      /* what has more of them is refused for one of these */
        THREADS_MAX = 16384, /* are looked at together */
};

/* A process that has ended, or is a thread of the kernel, has none. */
static bool has_memory(int proc, pid_t pid) {
        char path[32], text[64];

        (void) snprintf(path, sizeof(path), "%d/statm", (int) pid);
        return read_text_at(proc, path, text, sizeof(text)) > 0 && strtoul(text, NULL, 10) > 0;
}

/* A thread that has a processor may be on its way into the call. */
static bool may_be_in_vfork(int proc, pid_t pid, const char *tid) {
        char path[64], text[128];
        long number;

        (void) snprintf(path, sizeof(path), "%d/task/%.10s/syscall", (int) pid, tid);
        if (read_text_at(proc, path, text, sizeof(text)) <= 0)
                return false;
        number = strtol(text, NULL, 10);
        return strncmp(text, "running", 7) == 0 || number == SYS_vfork || number == SYS_clone || number == SYS_clone3;
}

/* A process whose threads are too many to be looked at may be waiting. */
static bool waits_in_vfork(int proc, pid_t pid, unsigned *threads) {
        cleanup_free char *path = xasprintf("%d/task", (int) pid);
        cleanup_dir DIR *dir = opendir_at(proc, path);
        bool waits = false;
        const char *tid;

        while (!waits && (tid = next_number(dir)))
                waits = ++*threads > THREADS_MAX || may_be_in_vfork(proc, pid, tid);
        return waits;
}

static long compare(int type, pid_t a, pid_t b) {
        return syscall(SYS_kcmp, a, b, type, 0, 0);
}

/* kcmp(2) orders processes by what they may share, as KCMP_VM: 1 is less, 2 is greater. Returns the
 * place of the process among the `n` ordered ones; `ret_same` says whether the one there has the
 * same. */
static size_t place_of(int type, pid_t pid, const pid_t *ordered, size_t n, bool *ret_same) {
        size_t low = 0, high = n;

        *ret_same = false;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                long order = compare(type, pid, ordered[middle]);

                if (order == 0) {
                        *ret_same = true;
                        return middle;
                }
                if (order == 2)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

bool shared_memory_find(int proc, const pid_t *pids, size_t n, struct shared_memory *ret) {
        cleanup_free pid_t *ordered = xcalloc(n + 1, sizeof(*ordered));
        size_t n_ordered = 0, pairs = 0;
        unsigned threads = 0;
        bool found = false;

        for (size_t i = 0; i < n && pairs < PAIRS_MAX && (!found || ret->passes); i++) {
                bool same;
                size_t at = place_of(KCMP_VM, pids[i], ordered, n_ordered, &same);

                if (!same) {
                        memmove(&ordered[at + 1], &ordered[at], (n_ordered++ - at) * sizeof(*ordered));
                        ordered[at] = pids[i];
                        continue;
                }
                if (!has_memory(proc, pids[i]))
                        continue;
                *ret = (struct shared_memory) { .pid = ordered[at], .other = pids[i] };
                pairs++;
                ret->passes = waits_in_vfork(proc, ret->pid, &threads) || waits_in_vfork(proc, ret->other, &threads);
                /* A child of vfork(2) may have run its program since. */
                found = found || ret->passes || compare(KCMP_VM, ret->pid, ret->other) == 0;
        }
        return found;
}

bool shared_directories_find(int proc, const pid_t *pids, size_t n, struct shared_memory *ret) {
        cleanup_free pid_t *ordered = xcalloc(n + 1, sizeof(*ordered));
        size_t n_ordered = 0;

        for (size_t i = 0; i < n; i++) {
                bool same;
                size_t at;

                if (!has_memory(proc, pids[i]))
                        continue;
                at = place_of(KCMP_FS, pids[i], ordered, n_ordered, &same);
                if (same) {
                        *ret = (struct shared_memory) { .pid = ordered[at], .other = pids[i] };
                        return true;
                }
                memmove(&ordered[at + 1], &ordered[at], (n_ordered++ - at) * sizeof(*ordered));
                ordered[at] = pids[i];
        }
        return false;
}
