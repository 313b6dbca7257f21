#include "daemon/requests/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/util.h"

#define LIMITS_MAX_BYTES 16384U

static const struct {
        const char *name; /* as in /proc/PID/limits */
        uint32_t resource;
} limits[] = {
        { "Max cpu time", RLIMIT_CPU },
        { "Max file size", RLIMIT_FSIZE },
        { "Max data size", RLIMIT_DATA },
        { "Max stack size", RLIMIT_STACK },
        { "Max core file size", RLIMIT_CORE },
        { "Max resident set", RLIMIT_RSS },
        { "Max processes", RLIMIT_NPROC },
        { "Max open files", RLIMIT_NOFILE },
        { "Max locked memory", RLIMIT_MEMLOCK },
        { "Max address space", RLIMIT_AS },
        { "Max file locks", RLIMIT_LOCKS },
        { "Max pending signals", RLIMIT_SIGPENDING },
        { "Max msgqueue size", RLIMIT_MSGQUEUE },
        { "Max nice priority", RLIMIT_NICE },
        { "Max realtime priority", RLIMIT_RTPRIO },
        { "Max realtime timeout", RLIMIT_RTTIME },
};

/* "unlimited" or a number, and what follows it. */
static const char *parse_value(const char *text, uint64_t *ret_value) {
        char *end = NULL;

        text += strspn(text, " ");
        if (strncmp(text, "unlimited", 9) == 0) {
                *ret_value = RLIM_INFINITY;
                return text + 9;
        }
        *ret_value = strtoull(text, &end, 10);
        return end == text ? NULL : end;
}

static Rm__Rlimit *parse_line(const char *line) {
        for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
                size_t n = strlen(limits[i].name);
                uint64_t soft, hard;
                const char *rest;
                Rm__Rlimit *limit;

                if (strncmp(line, limits[i].name, n) != 0)
                        continue;
                rest = parse_value(line + n, &soft);
                if (!rest || !parse_value(rest, &hard))
                        return NULL;
                limit = xcalloc(1, sizeof(*limit));
                rm__rlimit__init(limit);
                limit->resource = limits[i].resource;
                limit->soft = soft;
                limit->hard = hard;
                return limit;
        }
        return NULL;
}

int limits_parse(Rm__JobSpec *spec, const char *text) {
        Rm__Rlimit **list = xcalloc(ARRAY_SIZE(limits), sizeof(Rm__Rlimit *));
        size_t n = 0;

        for (const char *line = text; line && *line && n < ARRAY_SIZE(limits); line = strchr(line, '\n')) {
                Rm__Rlimit *limit;

                line += strspn(line, "\n");
                limit = parse_line(line);
                if (limit)
                        list[n++] = limit;
        }
        if (n == 0) {
                free(list);
                return -EINVAL;
        }
        for (size_t i = 0; i < spec->n_rlimits; i++)
                rm__rlimit__free_unpacked(spec->rlimits[i], NULL);
        free(spec->rlimits);
        spec->rlimits = list;
        spec->n_rlimits = n;
        return 0;
}

int limits_take(Rm__JobSpec *spec, pid_t pid) {
        cleanup_free char *path = xasprintf("/proc/%d/limits", (int) pid);
        cleanup_free char *text = NULL;
        int r = read_file(path, LIMITS_MAX_BYTES, &text, NULL);

        return r < 0 ? r : limits_parse(spec, text);
}
