#include "daemon/capsule/init/verify/blocker_scan_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.h"
#include "common/openat.h"
#include "common/proc_count.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/base/mounts.h"
#include "daemon/capsule/init/base/pids.h"
#include "daemon/capsule/init/core.h"
#include "daemon/capsule/init/criu/link_remap.h"
#include "daemon/capsule/init/verify/shared_memory.h"
#include "daemon/capsule/init/verify/sysv.h"

enum {
        MAPS_BYTES = 65536,    /* read at once */
        LINE_BYTES = 8192,
        SPACE_MAPPINGS = 8,
        LOOKS_PER_CLOCK = 16, /* the clock takes the kernel as long as some of them do */
        STUCK_USEC = 3000000, /* a disk that works has answered by then */
};

/* The program's name is filled in at the end, once. */
void scan_note_marked(struct scan *scan, enum blocker_kind kind, const char *detail, uint64_t mark) {
        if (scan->found->kind != BLOCKER_NONE && blocker_is_transient(kind))
                return;
        *scan->found = (struct blocker) { .kind = kind, .pid = scan->pid, .mark = mark };
        (void) text_format(scan->found->detail, sizeof(scan->found->detail), "%s", detail ? detail : "");
}

void scan_note(struct scan *scan, enum blocker_kind kind, const char *detail) {
        scan_note_marked(scan, kind, detail, 0);
}

bool scan_done(struct scan *scan) {
        if (scan->end_cpu_usec > 0 && ++scan->looks % LOOKS_PER_CLOCK == 0 && thread_cpu_usec() > scan->end_cpu_usec) {
                scan->end_cpu_usec = 0;
                scan_note(scan, BLOCKER_TOO_MANY, "open files, locks and mappings take too long");
        }
        if (scan->left == 0)
                return true;
        return scan->found->kind != BLOCKER_NONE && !blocker_is_transient(scan->found->kind);
}

size_t scan_read(const struct scan *scan, char *text, size_t size, const char *fmt, ...) {
        char path[64];
        ssize_t n;
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(path, sizeof(path), fmt, ap);
        va_end(ap);
        n = read_text_at(scan->scope->proc, path, text, size);
        return n > 0 ? (size_t) n : 0;
}

int scan_stat(int dir, const char *name, struct stat *ret) {
        struct statx st;

        if (statx(dir, name, AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st) < 0)
                return -errno;
        *ret = (struct stat) { .st_dev = makedev(st.stx_dev_major, st.stx_dev_minor),
                               .st_ino = st.stx_ino,
                               .st_mode = st.stx_mode,
                               .st_nlink = st.stx_nlink,
                               .st_uid = st.stx_uid,
                               .st_rdev = makedev(st.stx_rdev_major, st.stx_rdev_minor) };
        return 0;
}

DIR *scan_open_dir(const struct scan *scan, const char *what) {
        cleanup_free char *path = xasprintf("%d/%s", (int) scan->pid, what);

        return opendir_at(scan->scope->proc, path);
}

int scan_take(const struct scan *scan, pid_t pid, int fd) {
        cleanup_close int pidfd = scan->scope->frozen ? (int) syscall(SYS_pidfd_open, pid, 0) : -1;

        return pidfd < 0 ? -1 : (int) syscall(SYS_pidfd_getfd, pidfd, fd, 0);
}

bool scan_has_process(const struct scan *scan, pid_t pid) {
        for (size_t i = 0; i < scan->n_pids; i++)
                if (scan->pids[i] == pid)
                        return true;
        return false;
}

/* ---- how much there is ---- */

static void limit(struct scan *scan, size_t n, size_t most, const char *what) {
        char detail[BLOCKER_DETAIL_BYTES];

        if (n <= most)
                return;
        (void) text_format(detail, sizeof(detail), "%zu %s, and there may be %zu", n, what, most);
        scan_note(scan, BLOCKER_TOO_MANY, detail);
}

/* The processes are all counted before the first one is looked at, which takes a moment for
 * each. */
static void scan_numbers(struct scan *scan, const pid_t *pids, size_t n) {
        for (size_t i = 0; i < n && !scan_done(scan); i++) {
                char name[16];
                size_t descriptors;

                scan->pid = pids[i];
                (void) snprintf(name, sizeof(name), "%d", (int) scan->pid);
                descriptors = proc_count_descriptors(scan->scope->proc, name, PROC_DESCRIPTORS_MAX);
                scan->group_descriptors += descriptors;
                scan->group_threads += proc_count_threads(scan->scope->proc, name);
                limit(scan, descriptors, PROC_DESCRIPTORS_MAX, "descriptors in a process");
                limit(scan, scan->group_descriptors, PROC_GROUP_DESCRIPTORS_MAX, "descriptors in the group");
                limit(scan, scan->group_threads, PROC_GROUP_THREADS_MAX, "threads in the group");
        }
}

/* ---- what processes share ---- */

static void scan_shared(struct scan *scan, const pid_t *pids, size_t n) {
        struct shared_memory shared;
        char detail[16];
        bool memory, directories = false;

        if (!scan->scope->frozen || scan_done(scan))
                return;
        memory = shared_memory_find(scan->scope->proc, pids, n, &shared);
        if (!memory)
                directories = shared_directories_find(scan->scope->proc, pids, n, &shared);
        if (!memory && !directories)
                return;
        (void) snprintf(detail, sizeof(detail), "%d", (int) shared.other);
        scan->pid = shared.pid;
        scan_note(scan, directories ? BLOCKER_SHARED_DIRECTORIES : shared.passes ? BLOCKER_VFORK : BLOCKER_SHARED_MEMORY, detail);
}

/* ---- descriptors ---- */

static bool begins(const char *text, const char *with) {
        return strncmp(text, with, strlen(with)) == 0;
}

bool scan_is_own(const struct scan *scan, dev_t dev) {
        for (size_t i = 0; i < scan->scope->n_own; i++)
                if (scan->scope->own[i] == dev)
                        return true;
        return false;
}

/* A lock of a file that other nodes see too is still the source's while the destination restores. A
 * lease also of the capsule's own file: who opens that, as rm-mover does, waits for a holder that
 * is frozen, and breaks it after 45 s. In the scratch: its fdinfo. */
static void scan_locks(struct scan *scan, const char *link) {
        const char *line = strstr(scan->text, "\nlock:");

        while (line && !scan_done(scan)) {
                dev_t dev;
                enum blocker_kind kind = blocker_of_lock(line + 1, &dev);

                if (kind != BLOCKER_NONE && (kind == BLOCKER_LEASE || !scan_is_own(scan, dev)))
                        scan_note(scan, kind, link);
                line = strstr(line + 1, "\nlock:");
        }
}

/* CRIU opens a file anew with the rights of its owner, also one that was made for reading only and
 * opened for writing by the same call, or whose mode has changed since. A mode that says no to the
 * owner is final, whatever it says to the others. The mode as this node knows it, as in
 * scan_size(). */
static void scan_mode(struct scan *scan, int dir, const char *name, const char *link, unsigned access) {
        const Capsule__Spec *spec = scan->scope->spec;
        struct statx st;

        if (statx(dir, name, AT_STATX_DONT_SYNC, STATX_MODE | STATX_UID, &st) == 0 && spec->uid != 0 && st.stx_uid == spec->uid &&
            (st.stx_mode >> 6 & access) != access)
                scan_note_marked(scan, BLOCKER_MODE, link, strtoul(name, NULL, 10));
}

static void scan_open_mode(struct scan *scan, int fds, const char *number, const char *link, unsigned flags) {
        static const unsigned access[O_ACCMODE + 1] = { [O_RDONLY] = R_OK, [O_WRONLY] = W_OK, [O_RDWR] = R_OK | W_OK };

        if (!(flags & O_PATH) && !begins(link, "/proc/") && !begins(link, "/sys/") && !begins(link, "/memfd:"))
                scan_mode(scan, fds, number, link, access[flags & O_ACCMODE]);
}

static unsigned flags_of(const struct scan *scan) {
        const char *text = strstr(scan->text, "flags:");
        unsigned flags = 0;

        if (text)
                (void) sscanf(text, "flags: %o", &flags);
        return flags;
}

/* CRIU opens files before it makes threads. Those of a thread may have either name. Of what has
 * ended it would open those of another process. */
static bool is_of_thread(const struct scan *scan, const char *link) {
        char text[512];
        const char *group;
        int pid, tid;

        if (sscanf(link, "/proc/%d/task/%d", &pid, &tid) == 2)
                return true;
        if (sscanf(link, "/proc/%d/", &pid) != 1 || scan_has_process(scan, pid))
                return false;
        if (scan_read(scan, text, sizeof(text), "%d/status", pid) == 0)
                return true;
        group = identity_field(text, "Tgid");
        return !group || strtol(group, NULL, 10) != pid;
}

static void scan_kernel_file(struct scan *scan, const char *link, bool writes, uint64_t mark) {
        if (kernel_file_is_kept_out(&scan->mounts, link, writes))
                scan_note_marked(scan, BLOCKER_KERNEL_FILE, link, mark);
        else if (begins(link, "/proc/") && is_of_thread(scan, link))
                scan_note_marked(scan, BLOCKER_THREAD_FILE, link, mark);
}

/* CRIU keeps what has no name any more in its images. The size as this node knows it, so that
 * nobody waits for a file server. */
static void scan_size(struct scan *scan, int fds, const char *number, const char *link) {
        struct statx st;

        if (!link_remap_lost_name(link) || begins(link, "/memfd:") ||
            statx(fds, number, AT_STATX_DONT_SYNC, STATX_BLOCKS | STATX_NLINK | STATX_TYPE, &st) < 0)
                return;
        if (S_ISREG(st.stx_mode) && st.stx_nlink == 0 && st.stx_blocks * 512 > DUMP_NAMELESS_MAX_BYTES)
                scan_note(scan, BLOCKER_BIG_FILE, link);
}

/* CRIU takes it for an open socket, or an open FIFO, and asks for what such a descriptor has
 * not. */
static void scan_path_only(struct scan *scan, int fds, const char *number, const char *link, unsigned flags) {
        struct statx st;

        if ((flags & O_PATH) && statx(fds, number, AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
            (S_ISSOCK(st.stx_mode) || S_ISFIFO(st.stx_mode)))
                scan_note(scan, BLOCKER_PATH_ONLY, link);
}

/* CRIU does not know where one packet ends and the next begins. */
static void scan_packets(struct scan *scan, int fds, const char *number, const char *link, unsigned flags) {
        struct statx st;

        if ((flags & O_DIRECT) && statx(fds, number, AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 && S_ISFIFO(st.stx_mode))
                scan_note(scan, BLOCKER_PACKET_PIPE, link);
}

static void scan_file(struct scan *scan, int fds, const char *number, const char *link) {
        unsigned flags;

        if (scan_read(scan, scan->text, SCAN_FDINFO_BYTES, "%d/fdinfo/%.10s", (int) scan->pid, number) == 0)
                return;
        flags = flags_of(scan);
        scan_kernel_file(scan, link, (flags & O_ACCMODE) != O_RDONLY, strtoul(number, NULL, 10));
        scan_contents(scan, fds, number, flags);
        scan_place(scan, link, true);
        scan_open_mode(scan, fds, number, link, flags);
        scan_size(scan, fds, number, link);
        scan_packets(scan, fds, number, link, flags);
        scan_path_only(scan, fds, number, link, flags);
        if (!begins(link, "/memfd:") && !begins(link, "/proc/") && !begins(link, "/sys/"))
                scan_locks(scan, link);
        scan_name(scan, fds, number, link);
}

static void scan_pipe(struct scan *scan, int fds, const char *number, const char *link) {
        (void) scan_read(scan, scan->text, SCAN_FDINFO_BYTES, "%d/fdinfo/%.10s", (int) scan->pid, number);
        scan_packets(scan, fds, number, link, flags_of(scan));
}

/* A process that has ended, and that nobody has waited for, is restored as well. */
static bool is_restored(const struct scan *scan, pid_t pid) {
        char text[512];
        const char *state;

        if (scan_has_process(scan, pid))
                return true;
        if (pid == 1 || scan_read(scan, text, sizeof(text), "%d/status", (int) pid) == 0)
                return false;
        state = identity_field(text, "State");
        return state && strchr(state, 'Z') == state + 1;
}

/* The kernel says -1 of a process that has ended and was waited for. PIDFD_THREAD is O_EXCL. */
static void scan_pidfd(struct scan *scan, const char *number) {
        const char *text;
        char detail[32];
        int pid;

        (void) scan_read(scan, scan->text, SCAN_FDINFO_BYTES, "%d/fdinfo/%.10s", (int) scan->pid, number);
        text = strstr(scan->text, "\nPid:");
        if (!text || sscanf(text, "\nPid: %d", &pid) != 1 || pid < 0)
                return;
        (void) snprintf(detail, sizeof(detail), flags_of(scan) & O_EXCL ? "thread %d" : "process %d", pid);
        if ((flags_of(scan) & O_EXCL) || !is_restored(scan, pid))
                scan_note(scan, BLOCKER_PIDFD, detail);
}

static void scan_watches(struct scan *scan, const char *number) {
        cleanup_free char *line = NULL, *path = xasprintf("%d/fdinfo/%s", (int) scan->pid, number);
        cleanup_file FILE *f = scan->needs ? fopen_at(scan->scope->proc, path) : NULL;
        size_t size = 0;

        while (f && getline(&line, &size, f) > 0 && watches_add(&scan->needs->watches, line))
                scan->left -= scan->left > 1;
}

static void scan_inotify(struct scan *scan, const char *number) {
        scan_watches(scan, number);
        scan_events(scan, number);
}

static void scan_eventfd(struct scan *scan, const char *number) {
        (void) scan_read(scan, scan->text, SCAN_FDINFO_BYTES, "%d/fdinfo/%.10s", (int) scan->pid, number);
        /* CRIU makes an eventfd anew without its flag. Kernels before 6.5 do not tell. */
        if (strstr(scan->text, "eventfd-semaphore: 1"))
                scan_note(scan, BLOCKER_EVENTFD_SEMAPHORE, NULL);
}

/* Memory, terminals and pseudo-terminals are restored; for other devices CRIU would need a
 * plugin. */
static bool device_known(unsigned device_major) {
        return device_major == 1 || device_major == 4 || device_major == 5 || (device_major >= 136 && device_major <= 143);
}

static void scan_device(struct scan *scan, int fds, const char *number, const char *link) {
        struct stat st;

        if (begins(link, "/dev/pts/") && link_remap_lost_name(link))
                scan_note_marked(scan, BLOCKER_HUNG_TERMINAL, link, strtoul(number, NULL, 10));
        else if (scan_stat(fds, number, &st) == 0 &&
                 (S_ISBLK(st.st_mode) || (S_ISCHR(st.st_mode) && !device_known(major(st.st_rdev)))))
                scan_note(scan, BLOCKER_DEVICE, link);
}

/* A userfaultfd is of no use before UFFDIO_API, which the kernel notes among its features. */
static bool is_initialised(struct scan *scan, const char *number) {
        const char *text;
        unsigned long long features;

        (void) scan_read(scan, scan->text, SCAN_FDINFO_BYTES, "%d/fdinfo/%.10s", (int) scan->pid, number);
        text = strstr(scan->text, "API:");
        return !text || sscanf(text, "API: %*x:%llx", &features) != 1 || features != 0;
}

/* rm-mover makes a userfaultfd in a process that it has stopped, takes it out, and closes it there
 * before the process goes on (daemon/pages/remote.c). Until then it is seen here: the process is
 * traced by nobody in this pid namespace, or makes the call, where it runs, or the descriptor is
 * gone by now. */
static bool is_of_tracker(struct scan *scan, int fds, const char *number) {
        const char *state, *tracer;
        char link[PATH_MAX];

        if (!scan->scope->frozen && !is_initialised(scan, number))
                return true;
        if (scan_read(scan, scan->text, SCAN_STATUS_BYTES, "%d/status", (int) scan->pid) == 0)
                return true;
        state = identity_field(scan->text, "State");
        tracer = identity_field(scan->text, "TracerPid");
        if (state && strchr(state, 't') == state + 1 && tracer && strtol(tracer, NULL, 10) == 0)
                return true;
        return readlinkat(fds, number, link, sizeof(link)) < 0;
}

/* The kernel does not tell such a path, nor could anybody open it by that. */
static void note_long_path(struct scan *scan, const char *what, const char *number) {
        char detail[64];

        (void) snprintf(detail, sizeof(detail), "%s%s%.10s", what, *number ? " " : "", number);
        scan_note(scan, BLOCKER_LONG_PATH, detail);
}

static void scan_descriptor(struct scan *scan, int fds, const char *number) {
        char link[PATH_MAX];
        ssize_t n = readlinkat(fds, number, link, sizeof(link) - 1);
        enum blocker_kind kind;

        if (n < 0 && errno == ENAMETOOLONG)
                note_long_path(scan, "descriptor", number);
        if (n <= 0)
                return;
        link[n] = '\0';
        kind = blocker_of_link(link);
        if (kind == BLOCKER_USERFAULTFD && is_of_tracker(scan, fds, number))
                return;
        if (kind != BLOCKER_NONE)
                scan_note_marked(scan, kind, link + (begins(link, "anon_inode:") ? strlen("anon_inode:") : 0),
                                 strtoul(number, NULL, 10));
        else if (strcmp(link, "anon_inode:[eventpoll]") == 0)
                scan_epoll(scan, fds, number);
        else if (strcmp(link, "anon_inode:inotify") == 0)
                scan_inotify(scan, number);
        else if (strcmp(link, "anon_inode:[eventfd]") == 0)
                scan_eventfd(scan, number);
        else if (strcmp(link, "/dev/ptmx") == 0 || strcmp(link, "/dev/pts/ptmx") == 0)
                scan_master(scan, number);
        else if (strcmp(link, "/dev/tty") == 0)
                scan_note_marked(scan, BLOCKER_OWN_TERMINAL, NULL, strtoul(number, NULL, 10));
        else if (begins(link, "/dev/") && !begins(link, "/dev/shm/") && strcmp(link, "/dev/null") != 0)
                scan_device(scan, fds, number, link);
        else if (begins(link, "socket:"))
                scan_socket(scan, fds, number, link);
        else if (begins(link, "pipe:"))
                scan_pipe(scan, fds, number, link);
        else if (strcmp(link, "anon_inode:[pidfd]") == 0)
                scan_pidfd(scan, number);
        else if (link[0] == '/')
                scan_file(scan, fds, number, link);
}

static void scan_descriptors(struct scan *scan) {
        cleanup_dir DIR *dir = scan_open_dir(scan, "fd");
        const char *number;

        while (!scan_done(scan) && (number = next_number(dir))) {
                scan_descriptor(scan, dirfd(dir), number);
                scan->left--;
        }
}

/* An update of what is installed leaves those that run with files that no node has under that
 * name. */
static void scan_installed(struct scan *scan, const char *link) {
        const Capsule__Spec *spec = scan->scope->spec;
        char path[PATH_MAX];

        if (!blocker_of_installed(link, path, sizeof(path)))
                return;
        for (size_t i = 0; i < spec->n_writable; i++)
                if (path_is_below(path, spec->writable[i]))
                        return;
        scan_note(scan, BLOCKER_REPLACED, path);
}

/* ---- mappings, which may have outlived their descriptors ---- */

/* Shared anonymous memory is "/dev/zero (deleted)". */
static void scan_mapped_file(struct scan *scan, const char *line, const char *link) {
        char range[40], path[80];

        if (begins(link, "/dev/") && !begins(link, "/dev/shm/") && !begins(link, "/dev/zero")) {
                scan_note(scan, BLOCKER_DEVICE, link);
        } else if (link_remap_lost_name(link) && !begins(link, "/dev/zero") && sscanf(line, "%39s", range) == 1) {
                (void) snprintf(path, sizeof(path), "%d/map_files/%s", (int) scan->pid, range);
                scan_size(scan, scan->scope->proc, path, link);
                scan_name(scan, scan->scope->proc, path, link);
        }
}

/* CRIU opens the file of a shared mapping for writing if that may be written to. */
static void scan_mapped_mode(struct scan *scan, const char *line, const char *link) {
        char range[40], protection[8], path[80];

        if (sscanf(line, "%39s %7s", range, protection) != 2 || protection[1] != 'w' || protection[3] != 's' ||
            begins(link, "/dev/zero") || begins(link, "/memfd:"))
                return;
        (void) snprintf(path, sizeof(path), "%d/map_files/%s", (int) scan->pid, range);
        scan_mode(scan, scan->scope->proc, path, link, R_OK | W_OK);
}

static void scan_mapping(struct scan *scan, const char *line) {
        const char *name = strstr(line, " anon_inode:");
        enum blocker_kind kind;

        if (!name)
                name = strstr(line, " /secretmem");
        kind = name ? blocker_of_link(name + 1) : BLOCKER_NONE;
        if (kind != BLOCKER_NONE)
                scan_note(scan, kind, name + 1);
        name = strstr(line, " /");
        if (!name)
                return;
        if (strlen(name + 1) >= PATH_MAX)
                note_long_path(scan, "mapping", "");
        scan_installed(scan, name + 1);
        scan_kernel_file(scan, name + 1, false, 0);
        scan_mapped_file(scan, line, name + 1);
        scan_mapped_mode(scan, line, name + 1);
}

/* Takes the whole lines of the scratch buffer; what is left of the last one goes to its begin.
 * Returns how much that is. */
static size_t scan_mapping_lines(struct scan *scan, size_t size) {
        char *line = scan->maps;
        char *end;

        scan->maps[size] = '\0';
        while (!scan_done(scan) && (end = strchr(line, '\n'))) {
                *end = '\0';
                scan_mapping(scan, line);
                scan->vdso |= strstr(line, " [vdso]") != NULL;
                limit(scan, ++scan->group_mappings, PROC_GROUP_MAPPINGS_MAX, "mappings in the group");
                line = end + 1;
        }
        size -= (size_t) (line - scan->maps);
        if (size >= LINE_BYTES)
                note_long_path(scan, "mapping", "");
        if (size >= LINE_BYTES)
                return 0;
        memmove(scan->maps, line, size);
        return size;
}

/* CRIU's parasite is a mapping, too. */
static void scan_space_for_mapping(struct scan *scan, size_t mappings) {
        char text[32];
        size_t most;

        if (scan_read(scan, text, sizeof(text), "sys/vm/max_map_count") == 0)
                return;
        most = strtoul(text, NULL, 10);
        if (mappings + SPACE_MAPPINGS > most)
                scan_note(scan, BLOCKER_SPACE, "mappings, vm.max_map_count");
}

static void scan_mappings(struct scan *scan) {
        size_t before = scan->group_mappings, have = 0;
        cleanup_close int fd = -1;
        char path[32];
        ssize_t n;

        scan->vdso = false;
        snprintf(path, sizeof(path), "%d/maps", (int) scan->pid);
        fd = openat(scan->scope->proc, path, O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && !scan_done(scan) && (n = read(fd, scan->maps + have, MAPS_BYTES)) > 0)
                have = scan_mapping_lines(scan, have + (size_t) n);
        if (scan_done(scan))
                return;
        scan_space_for_mapping(scan, scan->group_mappings - before);
        /* CRIU puts it where it was. This process has one if the kernel gives any. */
        if (!scan->vdso && scan->group_mappings > before && getauxval(AT_SYSINFO_EHDR) != 0)
                scan_note(scan, BLOCKER_VDSO, NULL);
}

/* ---- all of it ---- */

/* A child has no list of operations to undo. PID 1 has one as soon as it has a second thread, as
 * the one that guards a lease is. */
static pid_t child_without_undo(struct scan *scan) {
        if (scan->without_undo <= 0)
                scan->without_undo = fork();
        if (scan->without_undo == 0)
                for (;;)
                        (void) pause();
        return scan->without_undo > 0 ? scan->without_undo : getpid();
}

/* Only that there is a list to undo can be seen, not whether it is empty, and a process of several
 * threads always has one. */
static void scan_undo(struct scan *scan) {
        if (scan->scope->frozen && scan->threads == 1 && sysv_semaphores_exist() &&
            syscall(SYS_kcmp, child_without_undo(scan), scan->pid, KCMP_SYSVSEM, 0, 0) > 0)
                scan_note(scan, BLOCKER_SEM_UNDO, NULL);
}

static void end_child(const struct scan *scan) {
        if (scan->without_undo <= 0)
                return;
        (void) kill(scan->without_undo, SIGKILL);
        (void) waitpid(scan->without_undo, NULL, 0);
}

/* "exe", "cwd", "root"; "" when it cannot be read. */
static void read_place(struct scan *scan, const char *what, char link[PATH_MAX]) {
        char path[32];
        ssize_t n;

        snprintf(path, sizeof(path), "%d/%s", (int) scan->pid, what);
        n = readlinkat(scan->scope->proc, path, link, PATH_MAX - 1);
        if (n < 0 && errno == ENAMETOOLONG)
                note_long_path(scan, what, "");
        link[n > 0 ? n : 0] = '\0';
}

static void scan_directories(struct scan *scan) {
        static const char *const names[] = { "cwd", "root" };
        char link[PATH_MAX];

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                read_place(scan, names[i], link);
                scan_kernel_file(scan, link, false, 0);
                scan_place(scan, link, false);
        }
}

/* CRIU restores no program from a memfd, and fails only at the destination. The program is seen
 * here also while it runs. */
static void scan_program(struct scan *scan) {
        char link[PATH_MAX];

        read_place(scan, "exe", link);
        scan_kernel_file(scan, link, false, 0);
        scan_place(scan, link, true);
        if (strncmp(link, "/memfd:", 7) == 0)
                scan_note(scan, BLOCKER_NO_FILE, NULL);
        scan_installed(scan, link);
}

static void scan_process(struct scan *scan) {
        static void (*const looks[])(struct scan *) = { scan_process_itself, scan_program, scan_directories, scan_descriptors };

        for (size_t i = 0; i < ARRAY_SIZE(looks) && !scan_done(scan); i++)
                looks[i](scan);
        if (!scan_done(scan) && scan->scope->frozen)
                scan_mappings(scan);
        if (!scan_done(scan))
                scan_undo(scan);
}

static void name_process(struct scan *scan) {
        struct blocker *found = scan->found;
        size_t n;

        if (found->pid == 0)
                return;
        n = scan_read(scan, scan->text, BLOCKER_NAME_BYTES + 1, "%d/comm", (int) found->pid);
        if (n > 0 && scan->text[n - 1] == '\n')
                scan->text[n - 1] = '\0';
        snprintf(found->name, sizeof(found->name), "%.*s", BLOCKER_NAME_BYTES - 1, scan->text);
}

/* The mounts of this process: no other is in another mount namespace, which is a blocker
 * itself. */
static void read_mounts(struct scan *scan) {
        cleanup_file FILE *f = fopen_at(scan->scope->proc, "self/mountinfo");
        cleanup_free char *line = NULL;
        size_t size = 0;

        kernel_mounts_parse(&scan->mounts, "");
        while (f && getline(&line, &size, f) > 0)
                kernel_mounts_parse(&scan->mounts, line);
}

void blockers_of_processes(const struct blocker_scope *scope, const pid_t *pids, size_t n, struct blocker *ret,
                           struct dump_needs *ret_needs) {
        cleanup_free char *text = xcalloc(1, SCAN_STATUS_BYTES);
        cleanup_free char *maps = xcalloc(1, MAPS_BYTES + LINE_BYTES + 1);
        struct scan scan = { .scope = scope,
                             .pids = pids,
                             .n_pids = n,
                             .found = ret,
                             .text = text,
                             .maps = maps,
                             .left = scope->budget,
                             .end_cpu_usec = thread_cpu_usec() + scope->cpu_usec,
                             .needs = ret_needs };

        if (ret_needs)
                *ret_needs = (struct dump_needs) { 0 };
        *ret = (struct blocker) { .kind = BLOCKER_NONE };
        scan_numbers(&scan, pids, n);
        scan_shared(&scan, pids, n);
        read_mounts(&scan);
        for (size_t i = 0; i < n && !scan_done(&scan); i++) {
                scan.pid = pids[i];
                scan_process(&scan);
        }
        if (!scan_done(&scan))
                scan_sockets(&scan);
        if (!scan_done(&scan))
                scan_owner(&scan);
        if (!scan_done(&scan))
                scan_nameless(&scan);
        end_child(&scan);
        free(scan.sockets);
        scan_owner_finish(&scan);
        kernel_mounts_finish(&scan.mounts);
        name_process(&scan);
}

static size_t own_file_systems(dev_t *ret, size_t max) {
        static const char *const paths[] = { "/tmp", "/dev/shm", "/run" };
        struct stat st;
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_SIZE(paths) && n < max; i++)
                if (stat(paths[i], &st) == 0)
                        ret[n++] = st.st_dev;
        return n;
}

/* PID 1 has made the session keyring that the payload begins with, empty. One that a process joins
 * later cannot be seen. */
static bool keys_exist(void) {
        return syscall(SYS_keyctl, KEYCTL_READ, KEY_SPEC_SESSION_KEYRING, NULL, 0) > 0;
}

static void scan(const struct core *core, bool frozen, struct blocker *ret, struct dump_needs *ret_needs) {
        cleanup_close int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dev_t own[4];
        struct blocker_scope scope = {
                .proc = proc,
                .spec = core->spec,
                .own = own,
                .n_own = own_file_systems(own, ARRAY_SIZE(own)),
                .frozen = frozen,
                .waits = !frozen && !core->spec->cgroup_v1,
                .budget = frozen ? SIZE_MAX : BLOCKERS_BUDGET,
                .cpu_usec = frozen ? BLOCKERS_FROZEN_CPU_USEC : BLOCKERS_CPU_USEC,
                .empty_messages = core->empty_messages,
                .root = core->payload_pid,
        };
        cleanup_free pid_t *pids = NULL;
        struct blocker of_capsule;
        size_t n = pids_of_group(core->node.cgroup_payload, &pids);

        blockers_of_processes(&scope, pids, n, ret, ret_needs);
        if (ret->kind != BLOCKER_NONE && !blocker_is_transient(ret->kind))
                return;
        sysv_find_blocker(&of_capsule);
        if (of_capsule.kind == BLOCKER_NONE && keys_exist())
                of_capsule = (struct blocker) { .kind = BLOCKER_KEYS };
        if (of_capsule.kind != BLOCKER_NONE)
                *ret = of_capsule;
}

void blocker_scan(const struct core *core, struct blocker *ret) {
        scan(core, false, ret, NULL);
}

static int refuse(const struct blocker *blocker, struct rm_error *error) {
        char text[BLOCKER_TEXT_BYTES];

        if (blocker->kind == BLOCKER_NONE)
                return 0;
        blocker_text(blocker, text);
        return blocker_is_transient(blocker->kind) ? error_set(error, -EAGAIN, "%s: cannot be moved as long as that is so", text)
                                                   : error_set(error, -EOPNOTSUPP, "%s: cannot be moved", text);
}

int blocker_refuse(const struct core *core, struct dump_needs *ret_needs, struct rm_error *error) {
        struct blocker blocker;

        scan(core, true, &blocker, ret_needs);
        return refuse(&blocker, error);
}

int blocker_warn(const struct core *core, const struct blocker *earlier, uint64_t earlier_usec, struct rm_error *error) {
        struct blocker blocker;

        scan(core, false, &blocker, NULL);
        if (blocker_is_marked(blocker.kind) && earlier_usec >= STUCK_USEC && blocker_is_still(earlier, &blocker) &&
            refuse(&blocker, error) < 0)
                return -EBUSY;
        return blocker_is_transient(blocker.kind) ? 0 : refuse(&blocker, error);
}
