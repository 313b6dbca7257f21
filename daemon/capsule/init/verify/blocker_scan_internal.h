/* The files that look for blockers share this: one look, and the parts of /proc that it reads. */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_BLOCKERS_INTERNAL_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_BLOCKERS_INTERNAL_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "daemon/capsule/init/verify/blocker_scan.h"
#include "daemon/capsule/init/verify/kernel_file.h"

enum {
        SCAN_STATUS_BYTES = 16384, /* of a thread: with a line of thousands of groups */
        /* Locks come last; who has dozens of them on one file is found by the first. */
        SCAN_FDINFO_BYTES = 4096,
};

/* An open file that its owner may not be able to read. */
struct suspect {
        pid_t pid;
        int fd;
};

/* An open or mapped file that seems to have lost its name. */
struct nameless {
        char *link;
        dev_t dev;
        ino_t ino;
        nlink_t n_links;
};

/* A socket that a process has open. */
struct own_socket {
        uint64_t inode;
        pid_t pid;
        int fd;
        bool of_unix;
};

struct searched;

struct scan {
        const struct blocker_scope *scope;
        const pid_t *pids; /* all that are looked at */
        size_t n_pids;
        struct blocker *found;
        char *text;             /* SCAN_STATUS_BYTES, scratch */
        char *maps;             /* scratch */
        pid_t pid;              /* being looked at */
        struct suspect *suspects; /* to be opened by the owner */
        size_t n_suspects;
        struct nameless *nameless; /* to be looked for by the owner */
        size_t n_nameless;
        struct searched *searched; /* directories that the owner must be able to search, by their paths */
        struct own_socket *sockets;
        size_t n_sockets;
        uint64_t end_cpu_usec; /* 0: it has passed */
        unsigned looks;        /* for that */
        size_t group_descriptors, group_threads, group_mappings; /* so far */
        unsigned threads;
        bool vdso; /* the process has it mapped */
        size_t left;            /* of the budget */
        struct dump_needs *needs; /* NULL: nobody wants to know */
        struct kernel_mounts mounts;
        pid_t without_undo; /* a child, to compare others with; 0: not needed so far */
};

/* Notes a blocker. `detail`: NULL ok. A blocker that stays is kept before one that will pass, and
 * one that was found earlier before one that is found later. */
void scan_note(struct scan *scan, enum blocker_kind kind, const char *detail);
/* As scan_note(); `mark` tells the blocker from another one of its kind. */
void scan_note_marked(struct scan *scan, enum blocker_kind kind, const char *detail, uint64_t mark);
/* True when a blocker is found that stays, or enough was looked at. */
bool scan_done(struct scan *scan);
/* Returns the bytes that were read of a file below /proc, the text ended by NUL; 0 if it cannot be
 * read. */
size_t scan_read(const struct scan *scan, char *text, size_t size, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Takes what this node knows of an open file: its device, inode, mode, links and owner. PID 1 does
 * not wait for a file server here. 0 or -errno. */
int scan_stat(int dir, const char *name, struct stat *ret);
/* Opens a directory of the process being looked at; NULL if it has none. */
DIR *scan_open_dir(const struct scan *scan, const char *what);
bool scan_has_process(const struct scan *scan, pid_t pid);

/* Is this one of the file systems that no other node sees? */
bool scan_is_own(const struct scan *scan, dev_t dev);

/* Notes an open or mapped file that may have lost the name that it was opened by: `link`. It is
 * `number` in the directory that is open as `fds`. */
void scan_name(struct scan *scan, int fds, const char *number, const char *link);
/* Looks for the names of all of these, as the owner. */
void scan_nameless(struct scan *scan);

/* Looks at the identity, the threads, the timers and the limits of the process. */
void scan_process_itself(struct scan *scan);

/* Notes an open file of which CRIU may copy the contents into the image, which its owner may have,
 * if it has lost its name by then. CRIU opens it anew for that, with capabilities that the owner
 * has not, and what was opened by O_PATH or for writing only need not be his to read. The name may
 * go at any moment, so it does not matter whether it has gone. */
void scan_contents(struct scan *scan, int fds, const char *number, unsigned flags);
/* Notes the directory of an open file, or a working directory: CRIU comes back to it by its path,
 * with the rights of the owner. Only of processes that run, so that no freeze waits for it. */
void scan_place(struct scan *scan, const char *link, bool of_file);
/* Asks the owner of what was noted: may he read it, and go there? */
void scan_owner(struct scan *scan);
/* Forgets what was noted for the owner. */
void scan_owner_finish(struct scan *scan);

/* Opens what the process has open as `fd` once more. -1: it has not, or is not frozen; before, that
 * could wait for an exec(2). The caller closes it. */
int scan_take(const struct scan *scan, pid_t pid, int fd);

/* Looks at what an epoll set watches. Its descriptor is `number` in the directory that is open as
 * `fds`. */
void scan_epoll(struct scan *scan, int fds, const char *number);

/* Looks for output that the last process has written to a terminal before it closed it, as a rank
 * that ends does, and for unread data that the terminal would change when CRIU writes it there
 * again. `number` is the descriptor of its master. */
void scan_master(struct scan *scan, const char *number);

/* Looks for events in the inotify instance with that number that nobody has read. */
void scan_events(struct scan *scan, const char *number);

/* Notes an open socket. Its descriptor is `number` in the directory that is open as `fds`, its link
 * in /proc is `link`. */
void scan_socket(struct scan *scan, int fds, const char *number, const char *link);
/* Looks at all sockets that were noted, when all processes were looked at. */
void scan_sockets(struct scan *scan);

#endif
