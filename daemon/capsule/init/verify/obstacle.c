#include "daemon/capsule/init/verify/obstacle.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "common/text.h"
#include "common/util.h"

static const struct {
        const char *text; /* %s: the detail */
        bool transient;
        bool marked;
} kinds[OBSTACLE_KINDS] = {
        [OBSTACLE_NONE] = { "nothing", false },
        [OBSTACLE_IO_URING] = { "uses io_uring", false },
        [OBSTACLE_USERFAULTFD] = { "uses userfaultfd", false },
        [OBSTACLE_PERF_EVENT] = { "uses performance counters (perf_event_open)", false },
        [OBSTACLE_BPF] = { "uses BPF objects", false },
        [OBSTACLE_FANOTIFY] = { "uses fanotify", false },
        [OBSTACLE_MEMFD_SECRET] = { "uses memfd_secret", false },
        [OBSTACLE_ANON_FILE] = { "has a special file open (%s)", false },
        [OBSTACLE_DEVICE] = { "has the device %s open", false },
        [OBSTACLE_EVENTFD_SEMAPHORE] = { "uses an eventfd with EFD_SEMAPHORE", false },
        [OBSTACLE_POSIX_LOCK] = { "holds a lock (fcntl) of %s", true },
        [OBSTACLE_FLOCK] = { "holds a lock (flock) of %s", true },
        [OBSTACLE_OFD_LOCK] = { "holds a lock (fcntl, open file) of %s", true },
        [OBSTACLE_LEASE] = { "holds a lease of %s", true },
        [OBSTACLE_CLOSED_UNSENT] = { "a connection was closed whose last data is not at its other end yet (TCP port %s)", true,
                                     true },
        [OBSTACLE_COOKED_TERMINAL] = { "has unread data in a terminal that edits, echoes or packs it", true },
        [OBSTACLE_UNREAD_TERMINAL] = { "has unread terminal output of a process that has ended", true },
        [OBSTACLE_UNDER_WAY] = { "has descriptors under way in a socket (SCM_RIGHTS)", true },
        [OBSTACLE_KERNEL_FILE] = { "uses %s, of which the kernel tells CRIU more than its owner", true },
        [OBSTACLE_THREAD_FILE] = { "has %s open, a file of a thread or of what has ended", true },
        [OBSTACLE_HUNG_TERMINAL] = { "has a terminal open whose other end is closed (%s)", true, true },
        [OBSTACLE_OWN_TERMINAL] = { "has the terminal of its session open by the name /dev/tty", true, true },
        [OBSTACLE_BIG_FILE] = { "has a file of more than 1 GiB open that has no name any more (%s)", false },
        [OBSTACLE_PACKET_PIPE] = { "uses a pipe in packet mode (O_DIRECT, %s)", false },
        [OBSTACLE_PIDFD] = { "has a pidfd of %s, which does not move with it", false },
        [OBSTACLE_UNREADABLE] = { "has %s open, which its owner cannot read", false },
        [OBSTACLE_PROTOCOL] = { "has a socket of a protocol that CRIU does not know (%s)", false },
        [OBSTACLE_UNACCEPTED] = { "has not accepted a connection (%s)", true, true },
        [OBSTACLE_OUTSIDE] = { "is connected to a process outside of its group by a Unix socket", true, true },
        [OBSTACLE_UNREAD_CONTROL] = { "has not read messages with credentials or times in a Unix socket (SO_PASSCRED, "
                                      "SO_TIMESTAMP)",
                                      true },
        [OBSTACLE_UNREAD_NETLINK] = { "has not read what the kernel has sent to its netlink socket", true },
        [OBSTACLE_ONE_WAY] = { "sends datagrams to a Unix socket without a name that does not answer (connect, one way)", true,
                               true },
        [OBSTACLE_CORKED] = { "holds back a datagram (UDP_CORK)", true },
        [OBSTACLE_TRACED] = { "is traced by a debugger or another process", false },
        [OBSTACLE_NAMESPACE] = { "has a namespace of its own (%s)", false },
        [OBSTACLE_OTHER_USER] = { "runs as another user or group than its job (a setuid or setgid program)", false },
        [OBSTACLE_CAPABILITIES] = { "has capabilities that its job's owner has not", false },
        [OBSTACLE_NOT_DUMPABLE] = { "keeps its memory from its owner (it is not dumpable, as what was a setuid program)", false },
        [OBSTACLE_SEM_UNDO] = { "may have to undo operations on System V semaphores (SEM_UNDO)", false },
        [OBSTACLE_TOO_MANY] = { "has more than a move can look at (%s)", false },
        [OBSTACLE_NO_FILE] = { "runs a program from memory (memfd_create)", false },
        [OBSTACLE_VFORK] = { "shares its memory with process %s, which runs no program of its own yet (vfork)", true, true },
        [OBSTACLE_SHARED_MEMORY] = { "shares its memory with process %s (clone with CLONE_VM)", false },
        [OBSTACLE_SHARED_DIRECTORIES] = { "shares its working directory with process %s (clone with CLONE_FS)", false },
        [OBSTACLE_FIRST_THREAD] = { "runs on although its first thread has ended", true, true },
        [OBSTACLE_TIMER] = { "has a timer for a thread that has ended (timer_create with SIGEV_THREAD_ID)", false },
        [OBSTACLE_ROOM] = { "has no room left below a limit, which CRIU needs (%s)", false },
        [OBSTACLE_STUCK] = { "waits in the kernel where it cannot be stopped (state D), as for a file server that does not answer, "
                             "or in vfork for its child",
                             true, true },
        [OBSTACLE_REPLACED] = { "uses %s, which was replaced or removed on this node since", false },
        [OBSTACLE_SHM] = { "there is System V shared memory (segment %s)", false },
        [OBSTACLE_SYSV_SIZE] = { "System V semaphores and message queues hold more than a move can carry (%s)", false },
        [OBSTACLE_MQUEUE] = { "there is a POSIX message queue (/%s)", false },
        [OBSTACLE_KEYS] = { "there are keys in the session keyring", false },
};

bool obstacle_is_transient(enum obstacle_kind kind) {
        return kind < OBSTACLE_KINDS && kinds[kind].transient;
}

bool obstacle_is_marked(enum obstacle_kind kind) {
        return kind < OBSTACLE_KINDS && kinds[kind].marked;
}

bool obstacle_is_still(const struct obstacle *earlier, const struct obstacle *later) {
        if (earlier->kind != later->kind)
                return false;
        if (!obstacle_is_marked(later->kind))
                return true;
        return earlier->pid == later->pid && earlier->mark == later->mark && strcmp(earlier->detail, later->detail) == 0;
}

static void make_printable(char *text) {
        for (char *p = text; *p; p++)
                if (*p < ' ' || *p > '~')
                        *p = '?';
}

void obstacle_text(const struct obstacle *obstacle, char *text) {
        const char *form = obstacle->kind < OBSTACLE_KINDS ? kinds[obstacle->kind].text : kinds[OBSTACLE_NONE].text;
        const char *hole = strstr(form, "%s");

        text[0] = '\0';
        if (obstacle->pid > 0)
                (void) text_format(text, OBSTACLE_TEXT_BYTES, "process %d (%.*s) ", (int) obstacle->pid, OBSTACLE_NAME_BYTES,
                                   obstacle->name);
        if (hole)
                (void) text_append(text, OBSTACLE_TEXT_BYTES, "%.*s%.*s%s", (int) (hole - form), form, OBSTACLE_DETAIL_BYTES,
                                   obstacle->detail, hole + 2);
        else
                (void) text_append(text, OBSTACLE_TEXT_BYTES, "%s", form);
        make_printable(text);
}

static bool begins(const char *text, const char *with) {
        return strncmp(text, with, strlen(with)) == 0;
}

/* The table has the names that CRIU knows, and those with a kind of their own; CRIU refuses all
 * others. */
static enum obstacle_kind of_anon_inode(const char *name) {
        static const struct {
                const char *name;
                enum obstacle_kind kind;
        } names[] = {
                { "[eventpoll]", OBSTACLE_NONE },
                { "[eventfd]", OBSTACLE_NONE },
                { "[signalfd]", OBSTACLE_NONE },
                { "[timerfd]", OBSTACLE_NONE },
                { "[pidfd]", OBSTACLE_NONE },
                { "inotify", OBSTACLE_NONE },
                { "[io_uring]", OBSTACLE_IO_URING },
                { "[userfaultfd]", OBSTACLE_USERFAULTFD },
                { "[perf_event]", OBSTACLE_PERF_EVENT },
                { "bpf", OBSTACLE_BPF },
                { "[fanotify]", OBSTACLE_FANOTIFY },
                { "[secretmem]", OBSTACLE_MEMFD_SECRET },
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (begins(name, names[i].name))
                        return names[i].kind;
        return OBSTACLE_ANON_FILE;
}

enum obstacle_kind obstacle_of_link(const char *link) {
        if (begins(link, "anon_inode:"))
                return of_anon_inode(link + strlen("anon_inode:"));
        if (strcmp(link, "/secretmem (deleted)") == 0)
                return OBSTACLE_MEMFD_SECRET;
        /* A namespace ("net:[4026531840]"), or what later kernels invent. */
        if (link[0] != '/' && link[0] != '\0' && !begins(link, "socket:[") && !begins(link, "pipe:["))
                return OBSTACLE_KERNEL_FILE;
        return OBSTACLE_NONE;
}

enum obstacle_kind obstacle_of_lock(const char *line, dev_t *ret_dev) {
        static const struct {
                const char *word;
                enum obstacle_kind kind;
        } words[] = {
                { "POSIX", OBSTACLE_POSIX_LOCK }, { "FLOCK", OBSTACLE_FLOCK }, { "OFDLCK", OBSTACLE_OFD_LOCK },
                { "LEASE", OBSTACLE_LEASE },      { "DELEG", OBSTACLE_LEASE },
        };
        unsigned major_number, minor_number;
        char word[16];

        /* "lock:	1: POSIX  ADVISORY  WRITE 7 00:2f:1234 0 EOF" */
        if (sscanf(line, "lock: %*d: %15s %*s %*s %*d %x:%x:", word, &major_number, &minor_number) != 3)
                return OBSTACLE_NONE;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (strcmp(word, words[i].word) == 0) {
                        *ret_dev = makedev(major_number, minor_number);
                        return words[i].kind;
                }
        return OBSTACLE_NONE;
}

/* Elsewhere CRIU finds such a file again by a link or a copy that it makes beside it. What is
 * installed is read-only in a capsule. */
bool obstacle_of_installed(const char *link, char *ret_path, size_t size_bytes) {
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
