#include "daemon/node/core_time.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define TEXT_MAX_BYTES (1U << 20)

/* schedstat: nanoseconds on a core, nanoseconds in a run queue, and how often it ran. The kernel counts a thread that has yielded as waiting in the
 * queue. */
static void add_process(long pid, struct core_time *sum) {
        cleanup_free char *path = xasprintf("/proc/%ld/schedstat", pid);
        cleanup_free char *text = NULL;
        char *end;

        if (read_file(path, TEXT_MAX_BYTES, &text, NULL) < 0)
                return;
        sum->ran_usec += strtoull(text, &end, 10) / 1000;
        sum->waited_usec += strtoull(end, NULL, 10) / 1000;
}

void core_time_read(const char *procs_file, struct core_time *ret) {
        cleanup_free char *text = NULL;
        char *at;

        *ret = (struct core_time) { 0 };
        if (read_file(procs_file, TEXT_MAX_BYTES, &text, NULL) < 0)
                return;
        for (char *line = strtok_r(text, "\n", &at); line; line = strtok_r(NULL, "\n", &at))
                add_process(strtol(line, NULL, 10), ret);
}
