/* The uffd handler: a child of PID 1 that gives restored processes the memory that they lack
 * (daemon/pages/serve.h), while they run. */
#ifndef RM_DAEMON_CAPSULE_INIT_MEMORY_UFFD_HANDLER_H
#define RM_DAEMON_CAPSULE_INIT_MEMORY_UFFD_HANDLER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/pages/serve.h"

/* The socket's name in the work directories of PID 1 and of CRIU: it has to have that name
 * there. */
#define UFFD_HANDLER_SOCKET "lazy-pages.socket"

/* The part of one process in what is missing. */
struct uffd_handler_part {
        pid_t pid; /* in the image; 0: it is restored already */
        int uffd;  /* -1: CRIU is to pass it */
        int store;
        int parent_uffd; /* -1, or: what that one lacks is still to be copied into its store */
        struct pageset *later; /* NULL, or: what is not in the store yet; the uffd handler's */
};

struct uffd_handler_job {
        int say_fd;           /* to PID 1, of type SOCK_SEQPACKET: struct uffd_handler_word, some with a descriptor */
        int listen_fd;        /* CRIU connects here; -1: all is restored */
        pid_t criu_pid;       /* nobody else may */
        atomic_uint *in_hand; /* shared with PID 1; see serve.h */
        struct serve_left *left; /* likewise */
        int later_fd;         /* to rm-mover, from which these come; -1: there are none */
        uint64_t max_bytes;   /* see serve.h */
        const struct uffd_handler_part *parts;
        size_t n_parts;
};

enum uffd_handler_say {
        UFFD_HANDLER_UFFD,     /* a process is served: its userfaultfd */
        UFFD_HANDLER_STORE,    /* the next word: its store */
        UFFD_HANDLER_COPIED,   /* its store has what it lacks; only of one with a parent */
        UFFD_HANDLER_ENDED,    /* nothing of it is missing any more, or it has ended */
        UFFD_HANDLER_RESTORED, /* CRIU has restored all, and is not needed any more */
        UFFD_HANDLER_FAILED,   /* the last word */
        UFFD_HANDLER_CRIU_ENDED, /* the last word: CRIU has ended early, and says why itself */
};

struct uffd_handler_word {
        enum uffd_handler_say say;
        int parent; /* of UFFD_HANDLER_UFFD: key of the process that has forked it; -1: none */
        int key;    /* of the process; that of a part that was restored already is the number of its userfaultfd */
        char text[240];
};

/* Runs the uffd handler in a child of PID 1, of whose descriptors it keeps only those of `job`.
 * Ends with 0 when nothing is missing any more. */
_Noreturn void uffd_handler_run(struct uffd_handler_job *job);

#endif
