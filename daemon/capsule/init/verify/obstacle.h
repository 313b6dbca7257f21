/* A blocker ("obstacle" in this code) keeps a group from being moved. Here it is a kind, a process
 * and a detail, and in words. Pure. */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_OBSTACLE_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_OBSTACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum obstacle_kind {
        OBSTACLE_NONE,
        /* The next kinds are of a process, seen by what it has open or mapped. */
        OBSTACLE_IO_URING,
        OBSTACLE_USERFAULTFD,
        OBSTACLE_PERF_EVENT,
        OBSTACLE_BPF,
        OBSTACLE_FANOTIFY,
        OBSTACLE_MEMFD_SECRET,
        OBSTACLE_ANON_FILE, /* detail: its name */
        OBSTACLE_DEVICE,    /* detail: its path */
        OBSTACLE_EVENTFD_SEMAPHORE,
        /* The next kinds are of a file that is not the capsule's own; detail: its path. */
        OBSTACLE_POSIX_LOCK,
        OBSTACLE_FLOCK,
        OBSTACLE_OFD_LOCK,
        OBSTACLE_LEASE,
        OBSTACLE_UNREAD_TERMINAL, /* CRIU does not carry what is in it */
        OBSTACLE_CLOSED_UNSENT, /* a closed TCP connection with data on the way; detail: its port */
        OBSTACLE_COOKED_TERMINAL, /* unread data in a terminal that changes it: CRIU writes it there a second time */
        OBSTACLE_UNDER_WAY, /* descriptors in a socket's queue, which nobody has looked at */
        OBSTACLE_KERNEL_FILE, /* see kernel_file.h; detail: its path */
        /* A file below /proc of a thread, which does not exist yet when CRIU opens files, or of
         * what has ended; detail: its path. */
        OBSTACLE_THREAD_FILE,
        OBSTACLE_HUNG_TERMINAL, /* a terminal whose master is closed; detail: its path */
        OBSTACLE_OWN_TERMINAL,  /* /dev/tty: CRIU wants the process to have the master as well */
        /* A file without a name, which an image would have to hold; detail: its path. */
        OBSTACLE_BIG_FILE,
        OBSTACLE_PACKET_PIPE, /* detail: its name */
        OBSTACLE_PIDFD, /* of what is not restored with it; detail: the process */
        OBSTACLE_UNREADABLE, /* an open file that its owner could not read: an image may have its contents; detail: its path */
        /* The next kinds are of a socket. */
        OBSTACLE_PROTOCOL, /* detail: which */
        OBSTACLE_UNACCEPTED, /* a connection waits for accept(2); detail: where */
        OBSTACLE_OUTSIDE, /* a Unix connection with a process that stays */
        OBSTACLE_UNREAD_CONTROL, /* messages with credentials or times that nobody has read */
        OBSTACLE_UNREAD_NETLINK,
        /* A Unix datagram socket whose peer has no name, and is connected elsewhere. */
        OBSTACLE_ONE_WAY,
        OBSTACLE_CORKED, /* a UDP datagram that is held back */
        /* The next kinds are of a process itself. */
        OBSTACLE_TRACED,
        OBSTACLE_NAMESPACE, /* detail: which */
        OBSTACLE_OTHER_USER, /* it runs, or ran, a setuid or setgid program */
        OBSTACLE_CAPABILITIES,
        OBSTACLE_NOT_DUMPABLE, /* the kernel keeps its memory from its owner, who gets images */
        OBSTACLE_SEM_UNDO,
        OBSTACLE_TOO_MANY, /* things to look at; detail: of what there are how many, and how many there may be */
        OBSTACLE_NO_FILE, /* its program has none: it lies in memory */
        OBSTACLE_VFORK, /* it waits for a child that has its memory; detail: the child */
        OBSTACLE_SHARED_MEMORY, /* another process has the same memory; detail: which */
        /* Another process has the same working directory and umask; detail: which. */
        OBSTACLE_SHARED_DIRECTORIES,
        OBSTACLE_FIRST_THREAD, /* it has ended, and others run on */
        OBSTACLE_TIMER, /* a timer signals a thread that has ended */
        OBSTACLE_ROOM, /* below a limit of its own, for CRIU's parasite; detail: of what */
        OBSTACLE_STUCK, /* it waits in the kernel where nothing stops it, as for a file server; not seen of what is frozen */
        OBSTACLE_REPLACED, /* an installed file that it runs or has mapped is no longer there; detail: its path */
        /* The next kinds are of the capsule. */
        OBSTACLE_SHM,
        OBSTACLE_SYSV_SIZE,
        OBSTACLE_MQUEUE, /* detail: its name */
        OBSTACLE_KEYS,
        OBSTACLE_KINDS,
};

enum { OBSTACLE_NAME_BYTES = 16, OBSTACLE_DETAIL_BYTES = 160, OBSTACLE_TEXT_BYTES = 320 };

struct obstacle {
        enum obstacle_kind kind;
        pid_t pid; /* in the capsule; 0: of the capsule as a whole */
        char name[OBSTACLE_NAME_BYTES]; /* of the program, as it calls itself */
        char detail[OBSTACLE_DETAIL_BYTES]; /* as text_format() makes it fit */
        /* The mark tells it from another one of its kind. Of a stuck thread: how often it has left
         * its processor since it began. Of a connection that nobody accepts: which. */
        uint64_t mark;
};

/* Is the blocker of a kind that mostly is gone within moments (locks), so that another try is worth
 * it? */
bool obstacle_is_transient(enum obstacle_kind kind);
/* Can obstacle_is_still() tell one of this kind from another one? */
bool obstacle_is_marked(enum obstacle_kind kind);
/* Is the blocker that was found later the one that was found before: of a marked kind, the same one
 * and not another of its kind? */
bool obstacle_is_still(const struct obstacle *earlier, const struct obstacle *later);

/* Writes what it is as a line of printable ASCII without "cannot be moved", whatever names and
 * details hold. `text` gets OBSTACLE_TEXT_BYTES, which are enough for every detail. */
void obstacle_text(const struct obstacle *obstacle, char *text);

/* Returns the kind of a descriptor or mapping that reads as `link` in /proc: OBSTACLE_NONE when
 * CRIU carries it, or when more must be looked at: an eventfd, a device. `link` ends with its
 * NUL. */
enum obstacle_kind obstacle_of_link(const char *link);

/* Is what a program or mapping reads as in /proc an installed file that has no name any more? Its
 * path without the mark of that goes to `ret_path`, of `size_bytes`. A path that does not fit there
 * is none: PATH_MAX has room for all. */
bool obstacle_of_installed(const char *link, char *ret_path, size_t size_bytes);

/* A line of fdinfo beginning with "lock:"; its file system's device in `ret_dev`. OBSTACLE_NONE: it
 * is none. */
enum obstacle_kind obstacle_of_lock(const char *line, dev_t *ret_dev);

#endif
