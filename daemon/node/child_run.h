/* A run of one of rmd's own programs: with a time limit, in a process group of its own, and with a
 * limit on what it may say. Nothing here blocks. */
#ifndef RM_NODE_CHILD_RUN_H
#define RM_NODE_CHILD_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct event_base;
struct child_run;

/* How it ended. Valid during the callback. */
struct child_end {
        bool overran; /* it was killed: its time was over */
        bool flooded; /* it was killed: it wrote more than it may */
        int error; /* a negative errno: nothing is known but these two */
        siginfo_t info;
        const char *output; /* NUL-terminated: what it wrote on its standard output */
        size_t output_bytes;
};

struct child_run_spec {
        const char *program;
        char *const *argv;
        uint64_t timeout_usec;
        size_t output_most_bytes; /* when it writes more it is killed */
        bool ends_group; /* what it has left behind in its process group is killed when it ends */
        /* Called once, from the event loop. The run is over then, and its handle must not be used
         * any more. */
        void (*done)(void *context, const struct child_end *end);
        /* NULL ok. From the event loop, before done(): it was killed because of its time or its
         * output. It may take long to end, or never end, when it waits for a disk or a file
         * server. */
        void (*on_killed)(void *context, const struct child_end *end);
        void *context;
};

/* Negative errno: it was not begun, and nothing is called. Copies what it needs. Its environment
 * has only PATH and LC_ALL; what it writes on standard error goes where that of rmd goes. */
int child_run_start(struct event_base *base, const struct child_run_spec *spec, struct child_run **ret);
/* Kills it with all of its process group; nothing is called any more. It is freed once the kernel
 * has ended it, which the event loop sees. NULL ok. */
void child_run_abandon(struct child_run *run);

/* 0: it ended by itself with status 0. -ETIME, -EFBIG, or -EPROTO with what it said, a line such as
 * "killed after 2.0 s". */
int child_end_error(const struct child_end *end, const char *program, uint64_t timeout_usec, struct rm_error *err);

#endif
