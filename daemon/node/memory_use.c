#include "daemon/node/memory_use.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/util.h"

#define TEXT_MAX_BYTES (1U << 20)
/* More than as many processes as the kernel allows (PID_MAX_LIMIT) take up. */
#define PROCS_MAX_BYTES (64U << 20)

/* The value of "NAME:  N kB" in a text of such lines. */
static bool kib_of(const char *text, const char *name, uint64_t *ret_bytes) {
        const char *at = strstr(text, name);

        if (!at)
                return false;
        *ret_bytes = strtoull(at + strlen(name), NULL, 10) * 1024;
        return true;
}

uint64_t memory_use_available(void) {
        cleanup_free char *text = NULL;
        uint64_t bytes = UINT64_MAX;

        if (read_file("/proc/meminfo", TEXT_MAX_BYTES, &text, NULL) == 0)
                (void) kib_of(text, "\nMemAvailable:", &bytes);
        return bytes;
}

/* "SIZE RESIDENT SHARED ..." in pages. /proc/PID/status has it too, and takes the kernel three
 * times as long. */
static uint64_t process_memory(long pid) {
        cleanup_free char *path = xasprintf("/proc/%ld/statm", pid);
        cleanup_free char *text = NULL;
        uint64_t resident, shared;
        char *end;

        if (read_file(path, TEXT_MAX_BYTES, &text, NULL) < 0)
                return 0;
        (void) strtoull(text, &end, 10);
        resident = strtoull(end, &end, 10);
        shared = strtoull(end, NULL, 10);
        return resident > shared ? (resident - shared) * (uint64_t) sysconf(_SC_PAGESIZE) : 0;
}

/* Pages that processes have in common count once. */
static bool charged(const char *dir, uint64_t *ret_bytes) {
        static const char *const names[] = { "\nanon ", "\ntotal_rss " }; /* v2, v1 */
        cleanup_free char *path = xasprintf("%s/memory.stat", dir);
        cleanup_free char *text = NULL, *lines = NULL;

        if (read_file(path, TEXT_MAX_BYTES, &text, NULL) < 0)
                return false;
        lines = xasprintf("\n%s", text);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                const char *at = strstr(lines, names[i]);

                if (!at)
                        continue;
                *ret_bytes = strtoull(at + strlen(names[i]), NULL, 10);
                return true;
        }
        return false;
}

static size_t count_lines(const char *text) {
        size_t n = 0;

        while ((text = strchr(text, '\n'))) {
                text++;
                n++;
        }
        return n;
}

uint64_t memory_use_processes(const char *procs_dir, const char *charged_dir, size_t most) {
        cleanup_free char *path = xasprintf("%s/cgroup.procs", procs_dir);
        cleanup_free char *text = NULL;
        uint64_t sum = 0, all;
        size_t n, step, scanned_at = 0;
        char *line;

        if (read_file(path, PROCS_MAX_BYTES, &text, NULL) < 0)
                return 0;
        n = count_lines(text);
        step = n / most + (n % most > 0);
        line = text;
        for (size_t i = 0; i < n; i++) {
                if (i % step == 0) {
                        sum += process_memory(strtol(line, NULL, 10));
                        scanned_at++;
                }
                line = strchr(line, '\n') + 1;
        }
        if (scanned_at == n)
                return sum;
        if (charged_dir && charged(charged_dir, &all))
                return all > sum ? all : sum;
        return scanned_at > 0 ? sum / scanned_at * n : 0;
}

uint64_t memory_use_files(const char *path) {
        struct statvfs st;

        return statvfs(path, &st) < 0 ? 0 : (uint64_t) (st.f_blocks - st.f_bfree) * st.f_frsize;
}
