#include "daemon/move/capacity.h"

#include <inttypes.h>
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

static uint64_t process_memory(long pid) {
        cleanup_free char *path = xasprintf("/proc/%ld/status", pid);
        cleanup_free char *text = NULL;
        uint64_t bytes = 0;

        if (read_file(path, TEXT_MAX_BYTES, &text, NULL) == 0)
                (void) kib_of(text, "\nRssAnon:", &bytes);
        return bytes;
}

uint64_t capacity_processes(const char *procs_file) {
        cleanup_free char *text = NULL;
        uint64_t sum = 0;
        char *at;

        if (read_file(procs_file, TEXT_MAX_BYTES, &text, NULL) < 0)
                return 0;
        for (char *line = strtok_r(text, "\n", &at); line; line = strtok_r(NULL, "\n", &at))
                sum += process_memory(strtol(line, NULL, 10));
        return sum;
}

uint64_t capacity_used(const char *path) {
        struct statvfs st;

        return statvfs(path, &st) < 0 ? 0 : (uint64_t) (st.f_blocks - st.f_bfree) * st.f_frsize;
}

void capacity_here(const char *images_dir, struct capacity_free *ret) {
        cleanup_free char *text = NULL;
        struct statvfs st;

        *ret = (struct capacity_free) { .memory_bytes = UINT64_MAX, .images_bytes = UINT64_MAX };
        if (read_file("/proc/meminfo", TEXT_MAX_BYTES, &text, NULL) == 0)
                (void) kib_of(text, "\nMemAvailable:", &ret->memory_bytes);
        if (statvfs(images_dir, &st) == 0)
                ret->images_bytes = (uint64_t) st.f_bavail * st.f_frsize;
}

int capacity_check(const struct capacity_need *need, const struct capacity_free *free, struct rm_error *err) {
        uint64_t images_bytes = need->ahead ? need->memory_bytes * 2 + need->files_bytes : need->memory_bytes;
        uint64_t memory_bytes = need->memory_bytes * 2 + need->files_bytes;

        if (images_bytes > free->images_bytes)
                return error_set(err, -ENOSPC,
                                 "no room for an image of %" PRIu64 " MB in the image directory (%" PRIu64 " MB are free)",
                                 images_bytes / 1000000, free->images_bytes / 1000000);
        if (memory_bytes > free->memory_bytes)
                return error_set(err, -ENOSPC,
                                 "not enough memory: %" PRIu64 " MB are needed during the move, %" PRIu64 " MB are free",
                                 memory_bytes / 1000000, free->memory_bytes / 1000000);
        return 0;
}
