#include "daemon/node/memory_use.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "common/util.h"

#define TEXT_MAX_BYTES (1U << 20)

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

static uint64_t process_memory(long pid) {
        cleanup_free char *path = xasprintf("/proc/%ld/status", pid);
        cleanup_free char *text = NULL;
        uint64_t bytes = 0;

        if (read_file(path, TEXT_MAX_BYTES, &text, NULL) == 0)
                (void) kib_of(text, "\nRssAnon:", &bytes);
        return bytes;
}

uint64_t memory_use_processes(const char *procs_file) {
        cleanup_free char *text = NULL;
        uint64_t sum = 0;
        char *at;

        if (read_file(procs_file, TEXT_MAX_BYTES, &text, NULL) < 0)
                return 0;
        for (char *line = strtok_r(text, "\n", &at); line; line = strtok_r(NULL, "\n", &at))
                sum += process_memory(strtol(line, NULL, 10));
        return sum;
}

uint64_t memory_use_files(const char *path) {
        struct statvfs st;

        return statvfs(path, &st) < 0 ? 0 : (uint64_t) (st.f_blocks - st.f_bfree) * st.f_frsize;
}
