/* A blocker keeps a group from being moved. Here it is a kind, a process
 * and a detail, and in words. Pure. */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_BLOCKER_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_BLOCKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum blocker_kind {
        BLOCKER_NONE,
        /* The next kinds are of a process, seen by what it has open or mapped. */
        BLOCKER_IO_URING,
        BLOCKER_USERFAULTFD,
        BLOCKER_PERF_EVENT,
        BLOCKER_BPF,
        BLOCKER_FANOTIFY,
        BLOCKER_MEMFD_SECRET,
        BLOCKER_ANON_FILE, /* detail: its name */
        BLOCKER_DEVICE,    /* detail: its path */
        BLOCKER_EVENTFD_SEMAPHORE,
        /* The next kinds are of a file that is not the capsule's own; detail: its path. */
        BLOCKER_POSIX_LOCK,
        BLOCKER_FLOCK,
        BLOCKER_OFD_LOCK,
        BLOCKER_LEASE,
        BLOCKER_UNREAD_EVENTS, /* of inotify */
        BLOCKER_UNREAD_TERMINAL, /* CRIU does not carry what is in it */
        BLOCKER_CLOSED_UNSENT, /* a closed TCP connection with data on the way; detail: its port */
        BLOCKER_COOKED_TERMINAL, /* unread data in a terminal that changes it: CRIU writes it there a second time */
        BLOCKER_UNDER_WAY, /* descriptors in a socket's queue, which nobody has looked at */
        BLOCKER_KERNEL_FILE, /* see kernel_file.h; detail: its path */
        /* A file below /proc of a thread, which does not exist yet when CRIU opens files, or of
         * what has ended; detail: its path. */
        BLOCKER_THREAD_FILE,
        BLOCKER_HUNG_TERMINAL, /* a terminal whose master is closed; detail: its path */
        BLOCKER_OWN_TERMINAL,  /* /dev/tty: CRIU wants the process to have the master as well */
        /* A file without a name, which an image would have to hold; detail: its path. */
        BLOCKER_BIG_FILE,
        BLOCKER_PACKET_PIPE, /* detail: its name */
        BLOCKER_PATH_ONLY, /* a socket or FIFO opened by O_PATH; detail: its path */
        BLOCKER_PIDFD, /* of what is not restored with it; detail: the process */
        BLOCKER_MODE, /* an open file whose mode does not let its owner open it so; detail: its path */
        /* An epoll set has a descriptor that its process has closed, and another one still has. */
        BLOCKER_EPOLL,
        BLOCKER_UNREADABLE, /* an open file that its owner could not read: an image may have its contents; detail: its path */
        BLOCKER_UNSEARCHABLE, /* a directory with an open file, or a working directory; detail: its path */
        BLOCKER_LONG_PATH, /* detail: of what */
        /* The next kinds are of a socket. */
        BLOCKER_PROTOCOL, /* detail: which */
        BLOCKER_UNACCEPTED, /* a connection waits for accept(2); detail: where */
        BLOCKER_OUTSIDE, /* a Unix connection with a process that stays */
        BLOCKER_UNREAD_CONTROL, /* messages with credentials or times that nobody has read */
        BLOCKER_UNREAD_NETLINK,
        /* A Unix datagram socket whose peer has no name, and is connected elsewhere. */
        BLOCKER_ONE_WAY,
        BLOCKER_CORKED, /* a UDP datagram that is held back */
        BLOCKER_EMPTY_MESSAGE, /* of a Unix socket, unread: CRIU takes it for the end of the queue */
        BLOCKER_KEYED, /* the kernel signs or encrypts what it sends; detail: by what */
        BLOCKER_URGENT, /* urgent data that nobody has read */
        /* The next kinds are of a process itself. */
        BLOCKER_TRACED,
        BLOCKER_NAMESPACE, /* detail: which */
        BLOCKER_OTHER_USER, /* it runs, or ran, a setuid or setgid program */
        BLOCKER_CAPABILITIES,
        BLOCKER_NOT_DUMPABLE, /* the kernel keeps its memory from its owner, who gets images */
        BLOCKER_SEM_UNDO,
        BLOCKER_TOO_MANY, /* things to look at; detail: of what there are how many, and how many there may be */
        BLOCKER_NO_FILE, /* its program has none: it lies in memory */
        BLOCKER_VFORK, /* it waits for a child that has its memory; detail: the child */
        BLOCKER_SHARED_MEMORY, /* another process has the same memory; detail: which */
        /* Another process has the same working directory and umask; detail: which. */
        BLOCKER_SHARED_DIRECTORIES,
        BLOCKER_FIRST_THREAD, /* it has ended, and others run on */
        BLOCKER_THREAD_APART, /* a thread shares not all with the others of its process; detail: what */
        BLOCKER_EXIT_SIGNAL, /* its parent gets another signal than SIGCHLD at its end; detail: which */
        BLOCKER_ADOPTED, /* it is a child of nobody in the group: CRIU does not look there */
        BLOCKER_VDSO, /* it has unmapped what the kernel maps into every process */
        BLOCKER_TIMER, /* a timer signals a thread that has ended */
        BLOCKER_SPACE, /* below a limit of its own, for CRIU's parasite; detail: of what */
        BLOCKER_STUCK, /* it waits in the kernel where nothing stops it, as for a file server; not seen of what is frozen */
        BLOCKER_REPLACED, /* an installed file that it runs or has mapped is no longer there; detail: its path */
        /* The next kinds are of the capsule. */
        BLOCKER_SHM,
        BLOCKER_SYSV_SIZE,
        BLOCKER_MQUEUE, /* detail: its name */
        BLOCKER_KEYS,
        BLOCKER_KINDS,
};

enum { BLOCKER_NAME_BYTES = 16, BLOCKER_DETAIL_BYTES = 160, BLOCKER_TEXT_BYTES = 320 };

struct blocker {
        enum blocker_kind kind;
        pid_t pid; /* in the capsule; 0: of the capsule as a whole */
        char name[BLOCKER_NAME_BYTES]; /* of the program, as it calls itself */
        char detail[BLOCKER_DETAIL_BYTES]; /* as text_format() makes it fit */
        /* The mark tells it from another one of its kind. Of a stuck thread: how often it has left
         * its processor since it began. Of a connection that nobody accepts: which. */
        uint64_t mark;
};

/* Is the blocker of a kind that mostly is gone within moments (locks), so that another try is worth
 * it? */
bool blocker_is_transient(enum blocker_kind kind);
/* Can blocker_is_still() tell one of this kind from another one? */
bool blocker_is_marked(enum blocker_kind kind);
/* Is the blocker that was found later the one that was found before: of a marked kind, the same one
 * and not another of its kind? */
bool blocker_is_still(const struct blocker *earlier, const struct blocker *later);

/* Writes what it is as a line of printable ASCII without "cannot be moved", whatever names and
 * details hold. `text` gets BLOCKER_TEXT_BYTES, which are enough for every detail. */
void blocker_text(const struct blocker *blocker, char *text);

/* Returns the kind of a descriptor or mapping that reads as `link` in /proc: BLOCKER_NONE when
 * CRIU carries it, or when more must be looked at: an eventfd, a device. `link` ends with its
 * NUL. */
enum blocker_kind blocker_of_link(const char *link);

/* Is what a program or mapping reads as in /proc an installed file that has no name any more? Its
 * path without the mark of that goes to `ret_path`, of `size_bytes`. A path that does not fit there
 * is none: PATH_MAX has room for all. */
bool blocker_of_installed(const char *link, char *ret_path, size_t size_bytes);

/* A line of fdinfo beginning with "lock:"; its file system's device in `ret_dev`. BLOCKER_NONE: it
 * is none. */
enum blocker_kind blocker_of_lock(const char *line, dev_t *ret_dev);

#endif
