#include "daemon/capsule/init/verify/blocker.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "common/text.h"
#include "common/util.h"

static const struct {
        const char *text; /* %s: the detail */
        bool transient;
        bool marked;
} kinds[BLOCKER_KINDS] = {
        [BLOCKER_NONE] = { "nothing", false },
        [BLOCKER_IO_URING] = { "uses io_uring", false },
        [BLOCKER_USERFAULTFD] = { "uses userfaultfd", false },
        [BLOCKER_PERF_EVENT] = { "uses performance counters (perf_event_open)", false },
        [BLOCKER_BPF] = { "uses BPF objects", false },
        [BLOCKER_FANOTIFY] = { "uses fanotify", false },
        [BLOCKER_MEMFD_SECRET] = { "uses memfd_secret", false },
        [BLOCKER_ANON_FILE] = { "has a special file open (%s)", false },
        [BLOCKER_DEVICE] = { "has the device %s open", false },
        [BLOCKER_EVENTFD_SEMAPHORE] = { "uses an eventfd with EFD_SEMAPHORE", false },
        [BLOCKER_POSIX_LOCK] = { "holds a lock (fcntl) of %s", true },
        [BLOCKER_FLOCK] = { "holds a lock (flock) of %s", true },
        [BLOCKER_OFD_LOCK] = { "holds a lock (fcntl, open file) of %s", true },
        [BLOCKER_LEASE] = { "holds a lease of %s", true },
        [BLOCKER_CLOSED_UNSENT] = { "a connection was closed whose last data is not at its other end yet (TCP port %s)", true,
                                    true },
        [BLOCKER_UNREAD_EVENTS] = { "has not read events of files that it watches (inotify)", true },
        [BLOCKER_COOKED_TERMINAL] = { "has unread data in a terminal that edits, echoes or packs it", true },
        [BLOCKER_UNREAD_TERMINAL] = { "has unread terminal output of a process that has ended", true },
        [BLOCKER_UNDER_WAY] = { "has descriptors under way in a socket (SCM_RIGHTS)", true },
        [BLOCKER_KERNEL_FILE] = { "uses %s, of which the kernel tells CRIU more than its owner", true, true },
        [BLOCKER_THREAD_FILE] = { "has %s open, a file of a thread or of what has ended", true, true },
        [BLOCKER_HUNG_TERMINAL] = { "has a terminal open whose other end is closed (%s)", true, true },
        [BLOCKER_OWN_TERMINAL] = { "has the terminal of its session open by the name /dev/tty", true, true },
        [BLOCKER_BIG_FILE] = { "has a file of more than 1 GiB open that has no name any more (%s)", false },
        [BLOCKER_PACKET_PIPE] = { "uses a pipe in packet mode (O_DIRECT, %s)", false },
        [BLOCKER_PATH_ONLY] = { "has a socket or FIFO open by its path only (O_PATH, %s)", false },
        [BLOCKER_PIDFD] = { "has a pidfd of %s, which does not move with it", false },
        [BLOCKER_MODE] = { "has %s open in a way that its mode does not allow its owner", true, true },
        [BLOCKER_EPOLL] = { "watches by epoll what it has closed and another process has open (descriptor %s)", true, true },
        [BLOCKER_UNREADABLE] = { "has %s open, which its owner cannot read", false },
        [BLOCKER_UNSEARCHABLE] = { "is in, or has a file open in, the directory %s, which its owner may not search", false },
        [BLOCKER_LONG_PATH] = { "has a path of more than 4095 bytes (%s)", false },
        [BLOCKER_PROTOCOL] = { "has a socket of a protocol that CRIU does not know (%s)", false },
        [BLOCKER_UNACCEPTED] = { "has not accepted a connection (%s)", true, true },
        [BLOCKER_OUTSIDE] = { "is connected to a process outside of its group by a Unix socket", true, true },
        [BLOCKER_UNREAD_CONTROL] = { "has not read messages with credentials or times in a Unix socket (SO_PASSCRED, "
                                     "SO_TIMESTAMP)",
                                     true },
        [BLOCKER_UNREAD_NETLINK] = { "has not read what the kernel has sent to its netlink socket", true },
        [BLOCKER_ONE_WAY] = { "sends datagrams to a Unix socket without a name that does not answer (connect, one way)", true,
                              true },
        [BLOCKER_EMPTY_MESSAGE] = { "has not read a message without data in a Unix socket", true },
        [BLOCKER_KEYED] = { "has a TCP socket whose data the kernel signs or encrypts (%s)", false },
        [BLOCKER_URGENT] = { "has not read urgent data of a connection (MSG_OOB)", true },
        [BLOCKER_CORKED] = { "holds back a datagram (UDP_CORK)", true },
        [BLOCKER_TRACED] = { "is traced by a debugger or another process", false },
        [BLOCKER_NAMESPACE] = { "has a namespace of its own (%s)", false },
        [BLOCKER_OTHER_USER] = { "runs as another user or group than its job (a setuid or setgid program)", false },
        [BLOCKER_CAPABILITIES] = { "has capabilities that its job's owner has not", false },
        [BLOCKER_NOT_DUMPABLE] = { "keeps its memory from its owner (it is not dumpable, as what was a setuid program)", false },
        [BLOCKER_SEM_UNDO] = { "may have to undo operations on System V semaphores (SEM_UNDO)", false },
        [BLOCKER_TOO_MANY] = { "has more than a move can look at (%s)", false },
        [BLOCKER_NO_FILE] = { "runs a program from memory (memfd_create)", false },
        [BLOCKER_VFORK] = { "shares its memory with process %s, which runs no program of its own yet (vfork)", true, true },
        [BLOCKER_SHARED_MEMORY] = { "shares its memory with process %s (clone with CLONE_VM)", false },
        [BLOCKER_SHARED_DIRECTORIES] = { "shares its working directory with process %s (clone with CLONE_FS)", false },
        [BLOCKER_FIRST_THREAD] = { "runs on although its first thread has ended", true, true },
        [BLOCKER_THREAD_APART] = { "has a thread with %s of its own (unshare)", false },
        [BLOCKER_EXIT_SIGNAL] = { "was made by clone with another signal than SIGCHLD for its end (%s)", false },
        [BLOCKER_ADOPTED] = { "is not below the first process of its group (PID 1 has adopted it)", false },
        [BLOCKER_VDSO] = { "has unmapped what the kernel maps into every process (vDSO)", false },
        [BLOCKER_TIMER] = { "has a timer for a thread that has ended (timer_create with SIGEV_THREAD_ID)", false },
        [BLOCKER_SPACE] = { "has no room left below a limit, which CRIU needs (%s)", false },
        [BLOCKER_STUCK] = { "waits in the kernel where it cannot be stopped (state D), as for a file server that does not answer, "
                            "or in vfork for its child",
                            true, true },
        [BLOCKER_REPLACED] = { "uses %s, which was replaced or removed on this node since", false },
        [BLOCKER_SHM] = { "there is System V shared memory (segment %s)", false },
        [BLOCKER_SYSV_SIZE] = { "System V semaphores and message queues hold more than a move can carry (%s)", false },
        [BLOCKER_MQUEUE] = { "there is a POSIX message queue (/%s)", false },
        [BLOCKER_KEYS] = { "there are keys in the session keyring", false },
};

bool blocker_is_transient(enum blocker_kind kind) {
        return kind < BLOCKER_KINDS && kinds[kind].transient;
}

bool blocker_is_marked(enum blocker_kind kind) {
        return kind < BLOCKER_KINDS && kinds[kind].marked;
}

bool blocker_is_still(const struct blocker *earlier, const struct blocker *later) {
        if (earlier->kind != later->kind)
                return false;
        if (!blocker_is_marked(later->kind))
                return true;
        return earlier->pid == later->pid && earlier->mark == later->mark && strcmp(earlier->detail, later->detail) == 0;
}

static void make_printable(char *text) {
        for (char *p = text; *p; p++)
                if (*p < ' ' || *p > '~')
                        *p = '?';
}

void blocker_text(const struct blocker *blocker, char *text) {
        const char *form = blocker->kind < BLOCKER_KINDS ? kinds[blocker->kind].text : kinds[BLOCKER_NONE].text;
        const char *hole = strstr(form, "%s");

        text[0] = '\0';
        if (blocker->pid > 0)
                (void) text_format(text, BLOCKER_TEXT_BYTES, "process %d (%.*s) ", (int) blocker->pid, BLOCKER_NAME_BYTES,
                                   blocker->name);
        if (hole)
                (void) text_append(text, BLOCKER_TEXT_BYTES, "%.*s%.*s%s", (int) (hole - form), form, BLOCKER_DETAIL_BYTES,
                                   blocker->detail, hole + 2);
        else
                (void) text_append(text, BLOCKER_TEXT_BYTES, "%s", form);
        make_printable(text);
}

static bool begins(const char *text, const char *with) {
        return strncmp(text, with, strlen(with)) == 0;
}

/* The table has the names that CRIU knows, and those with a kind of their own; CRIU refuses all
 * others. */
static enum blocker_kind of_anon_inode(const char *name) {
        static const struct {
                const char *name;
                enum blocker_kind kind;
        } names[] = {
                { "[eventpoll]", BLOCKER_NONE },
                { "[eventfd]", BLOCKER_NONE },
                { "[signalfd]", BLOCKER_NONE },
                { "[timerfd]", BLOCKER_NONE },
                { "[pidfd]", BLOCKER_NONE },
                { "inotify", BLOCKER_NONE },
                { "[io_uring]", BLOCKER_IO_URING },
                { "[userfaultfd]", BLOCKER_USERFAULTFD },
                { "[perf_event]", BLOCKER_PERF_EVENT },
                { "bpf", BLOCKER_BPF },
                { "[fanotify]", BLOCKER_FANOTIFY },
                { "[secretmem]", BLOCKER_MEMFD_SECRET },
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (begins(name, names[i].name))
                        return names[i].kind;
        return BLOCKER_ANON_FILE;
}

enum blocker_kind blocker_of_link(const char *link) {
        if (begins(link, "anon_inode:"))
                return of_anon_inode(link + strlen("anon_inode:"));
        if (strcmp(link, "/secretmem (deleted)") == 0)
                return BLOCKER_MEMFD_SECRET;
        /* A namespace ("net:[4026531840]"), or what later kernels invent. */
        if (link[0] != '/' && link[0] != '\0' && !begins(link, "socket:[") && !begins(link, "pipe:["))
                return BLOCKER_KERNEL_FILE;
        return BLOCKER_NONE;
}

enum blocker_kind blocker_of_lock(const char *line, dev_t *ret_dev) {
        static const struct {
                const char *word;
                enum blocker_kind kind;
        } words[] = {
                { "POSIX", BLOCKER_POSIX_LOCK }, { "FLOCK", BLOCKER_FLOCK }, { "OFDLCK", BLOCKER_OFD_LOCK },
                { "LEASE", BLOCKER_LEASE },      { "DELEG", BLOCKER_LEASE },
        };
        unsigned major_number, minor_number;
        char word[16];

        /* "lock:	1: POSIX  ADVISORY  WRITE 7 00:2f:1234 0 EOF" */
        if (sscanf(line, "lock: %*d: %15s %*s %*s %*d %x:%x:", word, &major_number, &minor_number) != 3)
                return BLOCKER_NONE;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (strcmp(word, words[i].word) == 0) {
                        *ret_dev = makedev(major_number, minor_number);
                        return words[i].kind;
                }
        return BLOCKER_NONE;
}

/* Elsewhere CRIU finds such a file again by a link or a copy that it makes beside it. What is
 * installed is read-only in a capsule. */
bool blocker_of_installed(const char *link, char *ret_path, size_t size_bytes) {
        static const char mark[] = " (deleted)";
        size_t n = strlen(link);

        if (!begins(link, "/usr/") || n < sizeof(mark) - 1 || strcmp(link + n - (sizeof(mark) - 1), mark) != 0)
                return false;
        n -= sizeof(mark) - 1;
        if (n >= size_bytes)
                return false;
        memcpy(ret_path, link, n);
        ret_path[n] = '\0';
        return true;
}
