#include "daemon/node/core_time.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define TEXT_MAX_BYTES (1U << 20)

/* schedstat: nanoseconds on a core, nanoseconds in a run queue, and how often it ran. The kernel
 * counts a thread that has yielded as waiting in the queue. */
static void add_process(long pid, struct core_time *sum) {
        cleanup_free char *path = xasprintf("/proc/%ld/schedstat", pid);
        cleanup_free char *text = NULL;
        char *end;

        if (read_file(path, TEXT_MAX_BYTES, &text, NULL) < 0)
                return;
        sum->ran_usec += strtoull(text, &end, 10) / 1000;
        sum->waited_usec += strtoull(end, NULL, 10) / 1000;
}

int core_time_read(const char *procs_file, size_t most, struct core_time *ret) {
        struct core_time sum = { 0 };
        cleanup_free char *text = NULL;
        size_t n = 0;
        char *at;
        int r = read_file(procs_file, TEXT_MAX_BYTES, &text, NULL);

        if (r == -EFBIG)
                return -E2BIG;
        for (char *line = r == 0 ? strtok_r(text, "\n", &at) : NULL; line; line = strtok_r(NULL, "\n", &at)) {
                if (n++ == most)
                        return -E2BIG;
                add_process(strtol(line, NULL, 10), &sum);
        }
        *ret = sum;
        return 0;
}
