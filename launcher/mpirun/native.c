#include "launcher/mpirun/native.h"

#include <stddef.h>
#include <string.h>

#include "common/util.h"

static const struct {
        const char *name;
        enum native_kind kind;
} options[] = {
        /* The options of Open MPI 5.0 with PRRTE 3, in the groups of mpirun(1). A newer mpirun's
         * unknown flags pass too. */
        { "n", NATIVE_RANKS },
        { "np", NATIVE_RANKS },
        { "c", NATIVE_RANKS },

        { "H", NATIVE_REFUSED },
        { "host", NATIVE_REFUSED },
        { "hostfile", NATIVE_REFUSED },
        { "machinefile", NATIVE_REFUSED },
        { "default-hostfile", NATIVE_REFUSED },
        { "dvm", NATIVE_REFUSED },
        { "launch-agent", NATIVE_REFUSED },
        { "app", NATIVE_REFUSED },

        { "mca", NATIVE_PAIR },
        { "gmca", NATIVE_PAIR },
        { "omca", NATIVE_PAIR },
        { "gomca", NATIVE_PAIR },
        { "prtemca", NATIVE_PAIR },
        { "pmixmca", NATIVE_PAIR },
        { "gpmixmca", NATIVE_PAIR },

        { "N", NATIVE_VALUE },
        { "x", NATIVE_VALUE },
        { "am", NATIVE_VALUE },
        { "amca", NATIVE_VALUE },
        { "arch", NATIVE_VALUE },
        { "bind-to", NATIVE_VALUE },
        { "cpu-list", NATIVE_VALUE },
        { "cpu-set", NATIVE_VALUE },
        { "cpus-per-proc", NATIVE_VALUE },
        { "cpus-per-rank", NATIVE_VALUE },
        { "display", NATIVE_VALUE },
        { "display-topo", NATIVE_VALUE },
        { "file", NATIVE_VALUE },
        { "forward-signals", NATIVE_VALUE },
        { "initial-errhandler", NATIVE_VALUE },
        { "map-by", NATIVE_VALUE },
        { "max-restarts", NATIVE_VALUE },
        { "max-vm-size", NATIVE_VALUE },
        { "memory-alloc-kinds", NATIVE_VALUE },
        { "npernode", NATIVE_VALUE },
        { "npersocket", NATIVE_VALUE },
        { "output", NATIVE_VALUE },
        { "output-directory", NATIVE_VALUE },
        { "output-filename", NATIVE_VALUE },
        { "path", NATIVE_VALUE },
        { "personality", NATIVE_VALUE },
        { "ppr", NATIVE_VALUE },
        { "prefix", NATIVE_VALUE },
        { "preload-files", NATIVE_VALUE },
        { "pset", NATIVE_VALUE },
        { "rank-by", NATIVE_VALUE },
        { "rankfile", NATIVE_VALUE },
        { "report-pid", NATIVE_VALUE },
        { "report-uri", NATIVE_VALUE },
        { "runtime-options", NATIVE_VALUE },
        { "spawn-timeout", NATIVE_VALUE },
        { "stdin", NATIVE_VALUE },
        { "stream-buffering", NATIVE_VALUE },
        { "timeout", NATIVE_VALUE },
        { "tmpdir", NATIVE_VALUE },
        { "tune", NATIVE_VALUE },
        { "wd", NATIVE_VALUE },
        { "wdir", NATIVE_VALUE },
        { "with-ft", NATIVE_VALUE },
        { "xterm", NATIVE_VALUE },

        { "p", NATIVE_FLAG },
        { "q", NATIVE_FLAG },
        { "s", NATIVE_FLAG },
        { "v", NATIVE_FLAG },
        { "allow-run-as-root", NATIVE_FLAG },
        { "bind-to-core", NATIVE_FLAG },
        { "bycore", NATIVE_FLAG },
        { "bynode", NATIVE_FLAG },
        { "byslot", NATIVE_FLAG },
        { "continuous", NATIVE_FLAG },
        { "debug", NATIVE_FLAG },
        { "debug-daemons", NATIVE_FLAG },
        { "debug-daemons-file", NATIVE_FLAG },
        { "disable-recovery", NATIVE_FLAG },
        { "display-allocation", NATIVE_FLAG },
        { "display-comm", NATIVE_FLAG },
        { "display-comm-finalize", NATIVE_FLAG },
        { "display-devel-map", NATIVE_FLAG },
        { "display-map", NATIVE_FLAG },
        { "do-not-launch", NATIVE_FLAG },
        { "enable-recovery", NATIVE_FLAG },
        { "fwd-environment", NATIVE_FLAG }, /* this and the next take a value after "=" only */
        { "output-proctable", NATIVE_FLAG },
        { "get-stack-traces", NATIVE_FLAG },
        { "leave-session-attached", NATIVE_FLAG },
        { "merge-stderr-to-stdout", NATIVE_FLAG },
        { "no-aggregate-help", NATIVE_FLAG },
        { "nolocal", NATIVE_FLAG },
        { "nooversubscribe", NATIVE_FLAG },
        { "noprefix", NATIVE_FLAG },
        { "oversubscribe", NATIVE_FLAG },
        { "parsable", NATIVE_FLAG },
        { "parseable", NATIVE_FLAG },
        { "pernode", NATIVE_FLAG },
        { "preload-binary", NATIVE_FLAG },
        { "report-bindings", NATIVE_FLAG },
        { "report-child-jobs-separately", NATIVE_FLAG },
        { "report-state-on-timeout", NATIVE_FLAG },
        { "show-progress", NATIVE_FLAG },
        { "soft", NATIVE_FLAG },
        { "stop-in-app", NATIVE_FLAG },
        { "stop-in-init", NATIVE_FLAG },
        { "stop-on-exec", NATIVE_FLAG },
        { "tag-output", NATIVE_FLAG },
        { "timestamp-output", NATIVE_FLAG },
        { "use-hwthread-cpus", NATIVE_FLAG },
        { "verbose", NATIVE_FLAG },
        { "xml", NATIVE_FLAG },
};

enum native_kind native_lookup(const char *name) {
        enum native_kind found = NATIVE_UNKNOWN;
        size_t size = strlen(name);

        for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
                if (strcmp(options[i].name, name) == 0)
                        return options[i].kind;
                if (size < 2 || strncmp(options[i].name, name, size) != 0)
                        continue;
                if (found != NATIVE_UNKNOWN && found != options[i].kind)
                        found = NATIVE_AMBIGUOUS;
                else
                        found = options[i].kind;
        }
        return found;
}
