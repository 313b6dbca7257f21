/* Runs a program and reads what it writes. For plugins that run one; linked into each. */
#ifndef RM_PLUGINS_RUN_H
#define RM_PLUGINS_RUN_H

#include <stdbool.h>
#include <stddef.h>

struct run_ops {
        /* In the child, which has /dev/null as its input: becomes the program. When it returns, the
         * child ends with exit status 127. */
        void (*exec)(void *context);
        /* A piece of its output. false: that was too much; the program is killed. */
        bool (*take)(void *context, const char *text, size_t n_bytes);
        bool errors; /* its standard error comes to `take`, too, and otherwise nowhere */
};

/* Waits until the program ends, not until its output is closed: processes that it has started may
 * keep that open. The program is killed when this process ends. `ret_status` is that of waitpid().
 * A negative errno: it could not be started, or waited for. */
int run_program(const struct run_ops *ops, void *context, int *ret_status);

#endif
