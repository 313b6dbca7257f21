/* Programs that a daemon starts, without its signal settings and without its other open files. */
#ifndef RM_COMMON_CHILD_H
#define RM_COMMON_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct child_spec {
        const char *program;
        char *const *argv;
        char *const *environment;
        int streams[3]; /* what it has as 0, 1 and 2; -1: /dev/null to read from, or what this process writes to */
        bool leads_group; /* a process group of its own, with what it starts itself */
};

/* 0, or a negative errno. The caller closes `*ret_pidfd` and waits for the child. */
int child_start(const struct child_spec *spec, pid_t *ret_pid, int *ret_pidfd);

#endif
