#include "daemon/capsule/init/verify/obstacles_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
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
        ROOM_MAPPINGS = 8,
        LOOKS_PER_CLOCK = 16, /* the clock takes the kernel as long as some of them do */
        STUCK_USEC = 3000000, /* a disk that works has answered by then */
        SUSPECTS_USEC = 5000000,
};

/* The program's name is filled in at the end, once. */
void look_note_marked(struct look *look, enum obstacle_kind kind, const char *detail, uint64_t mark) {
        if (look->found->kind != OBSTACLE_NONE && obstacle_is_transient(kind))
                return;
        *look->found = (struct obstacle) { .kind = kind, .pid = look->pid, .mark = mark };
        (void) text_format(look->found->detail, sizeof(look->found->detail), "%s", detail ? detail : "");
}

void look_note(struct look *look, enum obstacle_kind kind, const char *detail) {
        look_note_marked(look, kind, detail, 0);
}

bool look_done(struct look *look) {
        if (look->end_cpu_usec > 0 && ++look->looks % LOOKS_PER_CLOCK == 0 && thread_cpu_usec() > look->end_cpu_usec) {
                look->end_cpu_usec = 0;
                look_note(look, OBSTACLE_TOO_MANY, "open files, locks and mappings take too long");
        }
        if (look->left == 0)
                return true;
        return look->found->kind != OBSTACLE_NONE && !obstacle_is_transient(look->found->kind);
}

size_t look_read(const struct look *look, char *text, size_t size, const char *fmt, ...) {
        char path[64];
        ssize_t n;
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(path, sizeof(path), fmt, ap);
        va_end(ap);
        n = read_text_at(look->scope->proc, path, text, size);
        return n > 0 ? (size_t) n : 0;
}

DIR *look_open_dir(const struct look *look, const char *what) {
        cleanup_free char *path = xasprintf("%d/%s", (int) look->pid, what);

        return opendir_at(look->scope->proc, path);
}

bool look_has_process(const struct look *look, pid_t pid) {
        for (size_t i = 0; i < look->n_pids; i++)
                if (look->pids[i] == pid)
                        return true;
        return false;
}

/* ---- how much there is ---- */

static void limit(struct look *look, size_t n, size_t most, const char *what) {
        char detail[OBSTACLE_DETAIL_BYTES];

        if (n <= most)
                return;
        (void) text_format(detail, sizeof(detail), "%zu %s, and there may be %zu", n, what, most);
        look_note(look, OBSTACLE_TOO_MANY, detail);
}

/* The processes are all counted before the first one is looked at, which takes a moment for
 * each. */
static void look_at_numbers(struct look *look, const pid_t *pids, size_t n) {
        for (size_t i = 0; i < n && !look_done(look); i++) {
                char name[16];
                size_t descriptors;

                look->pid = pids[i];
                (void) snprintf(name, sizeof(name), "%d", (int) look->pid);
                descriptors = proc_count_descriptors(look->scope->proc, name, PROC_DESCRIPTORS_MAX);
                look->group_descriptors += descriptors;
                look->group_threads += proc_count_threads(look->scope->proc, name);
                limit(look, descriptors, PROC_DESCRIPTORS_MAX, "descriptors in a process");
                limit(look, look->group_descriptors, PROC_GROUP_DESCRIPTORS_MAX, "descriptors in the group");
                limit(look, look->group_threads, PROC_GROUP_THREADS_MAX, "threads in the group");
        }
}

/* ---- what processes share ---- */

static void look_at_shared(struct look *look, const pid_t *pids, size_t n) {
        struct shared_memory shared;
        char detail[16];
        bool memory, directories = false;

        if (!look->scope->frozen || look_done(look))
                return;
        memory = shared_memory_find(look->scope->proc, pids, n, &shared);
        if (!memory)
                directories = shared_directories_find(look->scope->proc, pids, n, &shared);
        if (!memory && !directories)
                return;
        (void) snprintf(detail, sizeof(detail), "%d", (int) shared.other);
        look->pid = shared.pid;
        look_note(look,
                  directories     ? OBSTACLE_SHARED_DIRECTORIES
                  : shared.passes ? OBSTACLE_VFORK
                                  : OBSTACLE_SHARED_MEMORY,
                  detail);
}

/* ---- descriptors ---- */

static bool begins(const char *text, const char *with) {
        return strncmp(text, with, strlen(with)) == 0;
}

static bool is_own(const struct look *look, dev_t dev) {
        for (size_t i = 0; i < look->scope->n_own; i++)
                if (look->scope->own[i] == dev)
                        return true;
        return false;
}

/* A lock of a file that other nodes see too is still the source's while the destination restores. A
 * lease also of the capsule's own file: who opens that, as rm-mover does, waits for a holder that
 * is frozen, and breaks it after 45 s. In the scratch: its fdinfo. */
static void look_at_locks(struct look *look, const char *link) {
        const char *line = strstr(look->text, "\nlock:");

        while (line && !look_done(look)) {
                dev_t dev;
                enum obstacle_kind kind = obstacle_of_lock(line + 1, &dev);

                if (kind != OBSTACLE_NONE && (kind == OBSTACLE_LEASE || !is_own(look, dev)))
                        look_note(look, kind, link);
                line = strstr(line + 1, "\nlock:");
        }
}

/* CRIU copies the contents of a file that has lost its name into the image, which its owner may
 * have. It opens it anew for that, with capabilities that the owner has not, and what was opened by
 * O_PATH or for writing only need not be his to read. The name may go at any moment, so it does not
 * matter whether it has gone. */
static void look_at_contents(struct look *look, int fds, const char *number, unsigned flags) {
        struct stat st;

        if (!(flags & O_PATH) && (flags & O_ACCMODE) != O_WRONLY)
                return;
        /* The owner of a file may give himself the right. */
        if (fstatat(fds, number, &st, 0) < 0 || !S_ISREG(st.st_mode) || st.st_uid == look->scope->spec->uid)
                return;
        look->suspects = xgrow(look->suspects, look->n_suspects, sizeof(*look->suspects));
        look->suspects[look->n_suspects++] = (struct suspect) { look->pid, atoi(number) };
}

/* The file may have lost the name that it was opened by. */
static void look_at_name(struct look *look, int fds, const char *number, const char *link) {
        struct stat st;

        if (look->needs && !look->needs->remap && link_remap_lost_name(link) && fstatat(fds, number, &st, 0) == 0)
                look->needs->remap = link_remap_applies(&st);
}

static unsigned flags_of(const struct look *look) {
        const char *text = strstr(look->text, "flags:");
        unsigned flags = 0;

        if (text)
                (void) sscanf(text, "flags: %o", &flags);
        return flags;
}

/* CRIU opens files before it makes threads. Those of a thread may have either name. Of what has
 * ended it would open those of another process. */
static bool is_of_thread(const struct look *look, const char *link) {
        char text[512];
        const char *group;
        int pid, tid;

        if (sscanf(link, "/proc/%d/task/%d", &pid, &tid) == 2)
                return true;
        if (sscanf(link, "/proc/%d/", &pid) != 1 || look_has_process(look, pid))
                return false;
        if (look_read(look, text, sizeof(text), "%d/status", pid) == 0)
                return true;
        group = identity_field(text, "Tgid");
        return !group || strtol(group, NULL, 10) != pid;
}

static void look_at_kernel_file(struct look *look, const char *link, bool writes) {
        if (kernel_file_is_kept_out(&look->mounts, link, writes))
                look_note(look, OBSTACLE_KERNEL_FILE, link);
        else if (begins(link, "/proc/") && is_of_thread(look, link))
                look_note(look, OBSTACLE_THREAD_FILE, link);
}

/* CRIU keeps what has no name any more in its images. The size as this node knows it, so that
 * nobody waits for a file server. */
static void look_at_size(struct look *look, int fds, const char *number, const char *link) {
        struct statx st;

        if (!link_remap_lost_name(link) || begins(link, "/memfd:") ||
            statx(fds, number, AT_STATX_DONT_SYNC, STATX_BLOCKS | STATX_NLINK | STATX_TYPE, &st) < 0)
                return;
        if (S_ISREG(st.stx_mode) && st.stx_nlink == 0 && st.stx_blocks * 512 > DUMP_NAMELESS_MAX_BYTES)
                look_note(look, OBSTACLE_BIG_FILE, link);
}

/* CRIU does not know where one packet ends and the next begins. */
static void look_at_packets(struct look *look, int fds, const char *number, const char *link, unsigned flags) {
        struct statx st;

        if ((flags & O_DIRECT) && statx(fds, number, AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 && S_ISFIFO(st.stx_mode))
                look_note(look, OBSTACLE_PACKET_PIPE, link);
}

static void look_at_file(struct look *look, int fds, const char *number, const char *link) {
        unsigned flags;

        if (look_read(look, look->text, LOOK_FDINFO_BYTES, "%d/fdinfo/%.10s", (int) look->pid, number) == 0)
                return;
        flags = flags_of(look);
        look_at_kernel_file(look, link, (flags & O_ACCMODE) != O_RDONLY);
        look_at_contents(look, fds, number, flags);
        look_at_size(look, fds, number, link);
        look_at_packets(look, fds, number, link, flags);
        if (!begins(link, "/memfd:") && !begins(link, "/proc/") && !begins(link, "/sys/"))
                look_at_locks(look, link);
        look_at_name(look, fds, number, link);
}

static void look_at_pipe(struct look *look, int fds, const char *number, const char *link) {
        (void) look_read(look, look->text, LOOK_FDINFO_BYTES, "%d/fdinfo/%.10s", (int) look->pid, number);
        look_at_packets(look, fds, number, link, flags_of(look));
}

/* A process that has ended, and that nobody has waited for, is restored as well. */
static bool is_restored(const struct look *look, pid_t pid) {
        char text[512];
        const char *state;

        if (look_has_process(look, pid))
                return true;
        if (pid == 1 || look_read(look, text, sizeof(text), "%d/status", (int) pid) == 0)
                return false;
        state = identity_field(text, "State");
        return state && strchr(state, 'Z') == state + 1;
}

/* The kernel says -1 of a process that has ended and was waited for. PIDFD_THREAD is O_EXCL. */
static void look_at_pidfd(struct look *look, const char *number) {
        const char *text;
        char detail[32];
        int pid;

        (void) look_read(look, look->text, LOOK_FDINFO_BYTES, "%d/fdinfo/%.10s", (int) look->pid, number);
        text = strstr(look->text, "\nPid:");
        if (!text || sscanf(text, "\nPid: %d", &pid) != 1 || pid < 0)
                return;
        (void) snprintf(detail, sizeof(detail), flags_of(look) & O_EXCL ? "thread %d" : "process %d", pid);
        if ((flags_of(look) & O_EXCL) || !is_restored(look, pid))
                look_note(look, OBSTACLE_PIDFD, detail);
}

static void look_at_watches(struct look *look, const char *number) {
        cleanup_free char *line = NULL, *path = xasprintf("%d/fdinfo/%s", (int) look->pid, number);
        cleanup_file FILE *f = look->needs ? fopen_at(look->scope->proc, path) : NULL;
        size_t size = 0;

        while (f && getline(&line, &size, f) > 0 && watches_add(&look->needs->watches, line))
                look->left -= look->left > 1;
}

static void look_at_eventfd(struct look *look, const char *number) {
        (void) look_read(look, look->text, LOOK_FDINFO_BYTES, "%d/fdinfo/%.10s", (int) look->pid, number);
        /* CRIU makes an eventfd anew without its flag. Kernels before 6.5 do not tell. */
        if (strstr(look->text, "eventfd-semaphore: 1"))
                look_note(look, OBSTACLE_EVENTFD_SEMAPHORE, NULL);
}

/* Memory, terminals and pseudo-terminals are restored; for other devices CRIU would need a
 * plugin. */
static bool device_known(unsigned device_major) {
        return device_major == 1 || device_major == 4 || device_major == 5 || (device_major >= 136 && device_major <= 143);
}

static void look_at_device(struct look *look, int fds, const char *number, const char *link) {
        struct stat st;

        if (begins(link, "/dev/pts/") && link_remap_lost_name(link))
                look_note_marked(look, OBSTACLE_HUNG_TERMINAL, link, strtoul(number, NULL, 10));
        else if (fstatat(fds, number, &st, 0) == 0 &&
                 (S_ISBLK(st.st_mode) || (S_ISCHR(st.st_mode) && !device_known(major(st.st_rdev)))))
                look_note(look, OBSTACLE_DEVICE, link);
}

/* CRIU takes what waits at either end of a terminal out of it, and writes it into it again: what is
 * typed is echoed and edited a second time, and what was printed gets its ends of lines once more;
 * in packet mode the byte that tells of a packet becomes a part of it. A terminal in raw mode, as
 * mpirun's are, changes nothing. */
static bool is_changed_again(int master, bool readable) {
        const tcflag_t printed = ONLCR | OCRNL | OLCUC | ONOCR | ONLRET | TABDLY;
        struct termios settings;
        cleanup_close int slave = -1;
        int unread = 0, packets = 0;

        if (tcgetattr(master, &settings) < 0)
                return false;
        if (readable && ioctl(master, TIOCGPKT, &packets) == 0 && packets)
                return true;
        if (readable && (settings.c_oflag & OPOST) && (settings.c_oflag & printed))
                return true;
        if (!(settings.c_lflag & (ECHO | ICANON | ISIG)))
                return false;
        slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
        return slave >= 0 && ioctl(slave, FIONREAD, &unread) == 0 && unread > 0;
}

/* Looks for output that the last process has written to a terminal before it closed it, as a rank
 * that ends does, and for unread data that the terminal would change when CRIU writes it there
 * again. */
static void look_at_master(struct look *look, const char *number) {
        cleanup_close int pidfd = look->scope->frozen ? (int) syscall(SYS_pidfd_open, look->pid, 0) : -1;
        cleanup_close int fd = pidfd < 0 ? -1 : (int) syscall(SYS_pidfd_getfd, pidfd, atoi(number), 0);
        struct pollfd state = { .fd = fd, .events = POLLIN };

        if (fd < 0 || poll(&state, 1, 0) < 0)
                return;
        if (state.revents & POLLHUP) {
                if (state.revents & POLLIN)
                        look_note(look, OBSTACLE_UNREAD_TERMINAL, NULL);
        } else if (is_changed_again(fd, state.revents & POLLIN)) {
                look_note(look, OBSTACLE_COOKED_TERMINAL, NULL);
        }
}

/* A userfaultfd is of no use before UFFDIO_API, which the kernel notes among its features. */
static bool is_initialised(struct look *look, const char *number) {
        const char *text;
        unsigned long long features;

        (void) look_read(look, look->text, LOOK_FDINFO_BYTES, "%d/fdinfo/%.10s", (int) look->pid, number);
        text = strstr(look->text, "API:");
        return !text || sscanf(text, "API: %*x:%llx", &features) != 1 || features != 0;
}

/* rm-mover makes a userfaultfd in a process that it has stopped, takes it out, and closes it there
 * before the process goes on (daemon/pages/remote.c). Until then it is seen here: the process is
 * traced by nobody in this pid namespace, or makes the call, where it runs, or the descriptor is
 * gone by now. */
static bool is_of_tracker(struct look *look, int fds, const char *number) {
        const char *state, *tracer;
        char link[PATH_MAX];

        if (!look->scope->frozen && !is_initialised(look, number))
                return true;
        if (look_read(look, look->text, LOOK_STATUS_BYTES, "%d/status", (int) look->pid) == 0)
                return true;
        state = identity_field(look->text, "State");
        tracer = identity_field(look->text, "TracerPid");
        if (state && strchr(state, 't') == state + 1 && tracer && strtol(tracer, NULL, 10) == 0)
                return true;
        return readlinkat(fds, number, link, sizeof(link)) < 0;
}

static void look_at_descriptor(struct look *look, int fds, const char *number) {
        char link[PATH_MAX];
        ssize_t n = readlinkat(fds, number, link, sizeof(link) - 1);
        enum obstacle_kind kind;

        if (n <= 0)
                return;
        link[n] = '\0';
        kind = obstacle_of_link(link);
        if (kind == OBSTACLE_USERFAULTFD && is_of_tracker(look, fds, number))
                return;
        if (kind != OBSTACLE_NONE)
                look_note(look, kind, link + (begins(link, "anon_inode:") ? strlen("anon_inode:") : 0));
        else if (strcmp(link, "anon_inode:inotify") == 0)
                look_at_watches(look, number);
        else if (strcmp(link, "anon_inode:[eventfd]") == 0)
                look_at_eventfd(look, number);
        else if (strcmp(link, "/dev/ptmx") == 0 || strcmp(link, "/dev/pts/ptmx") == 0)
                look_at_master(look, number);
        else if (strcmp(link, "/dev/tty") == 0)
                look_note_marked(look, OBSTACLE_OWN_TERMINAL, NULL, strtoul(number, NULL, 10));
        else if (begins(link, "/dev/") && !begins(link, "/dev/shm/") && strcmp(link, "/dev/null") != 0)
                look_at_device(look, fds, number, link);
        else if (begins(link, "socket:"))
                look_at_socket(look, fds, number, link);
        else if (begins(link, "pipe:"))
                look_at_pipe(look, fds, number, link);
        else if (strcmp(link, "anon_inode:[pidfd]") == 0)
                look_at_pidfd(look, number);
        else if (link[0] == '/')
                look_at_file(look, fds, number, link);
}

static void look_at_descriptors(struct look *look) {
        cleanup_dir DIR *dir = look_open_dir(look, "fd");
        const char *number;

        while (!look_done(look) && (number = next_number(dir))) {
                look_at_descriptor(look, dirfd(dir), number);
                look->left--;
        }
}

/* An update of what is installed leaves those that run with files that no node has under that
 * name. */
static void look_at_installed(struct look *look, const char *link) {
        const Capsule__Spec *spec = look->scope->spec;
        char path[PATH_MAX];

        if (!obstacle_of_installed(link, path, sizeof(path)))
                return;
        for (size_t i = 0; i < spec->n_writable; i++)
                if (path_is_below(path, spec->writable[i]))
                        return;
        look_note(look, OBSTACLE_REPLACED, path);
}

/* ---- mappings, which may have outlived their descriptors ---- */

/* Shared anonymous memory is "/dev/zero (deleted)". */
static void look_at_mapped_file(struct look *look, const char *line, const char *link) {
        char range[40], path[80];

        if (begins(link, "/dev/") && !begins(link, "/dev/shm/") && !begins(link, "/dev/zero")) {
                look_note(look, OBSTACLE_DEVICE, link);
        } else if (link_remap_lost_name(link) && !begins(link, "/dev/zero") && sscanf(line, "%39s", range) == 1) {
                (void) snprintf(path, sizeof(path), "%d/map_files/%s", (int) look->pid, range);
                look_at_size(look, look->scope->proc, path, link);
                look_at_name(look, look->scope->proc, path, link);
        }
}

static void look_at_mapping(struct look *look, const char *line) {
        const char *name = strstr(line, " anon_inode:");
        enum obstacle_kind kind;

        if (!name)
                name = strstr(line, " /secretmem");
        kind = name ? obstacle_of_link(name + 1) : OBSTACLE_NONE;
        if (kind != OBSTACLE_NONE)
                look_note(look, kind, name + 1);
        name = strstr(line, " /");
        if (!name)
                return;
        look_at_installed(look, name + 1);
        look_at_kernel_file(look, name + 1, false);
        look_at_mapped_file(look, line, name + 1);
}

/* Takes the whole lines of the scratch buffer; what is left of the last one goes to its begin.
 * Returns how much that is. */
static size_t look_at_mapping_lines(struct look *look, size_t size) {
        char *line = look->maps;
        char *end;

        look->maps[size] = '\0';
        while (!look_done(look) && (end = strchr(line, '\n'))) {
                *end = '\0';
                look_at_mapping(look, line);
                limit(look, ++look->group_mappings, PROC_GROUP_MAPPINGS_MAX, "mappings in the group");
                line = end + 1;
        }
        size -= (size_t) (line - look->maps);
        if (size >= LINE_BYTES)
                return 0;
        memmove(look->maps, line, size);
        return size;
}

/* CRIU's parasite is a mapping, too. */
static void look_at_room_for_mapping(struct look *look, size_t mappings) {
        char text[32];
        size_t most;

        if (look_read(look, text, sizeof(text), "sys/vm/max_map_count") == 0)
                return;
        most = strtoul(text, NULL, 10);
        if (mappings + ROOM_MAPPINGS > most)
                look_note(look, OBSTACLE_ROOM, "mappings, vm.max_map_count");
}

static void look_at_mappings(struct look *look) {
        size_t before = look->group_mappings, have = 0;
        cleanup_close int fd = -1;
        char path[32];
        ssize_t n;

        snprintf(path, sizeof(path), "%d/maps", (int) look->pid);
        fd = openat(look->scope->proc, path, O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && !look_done(look) && (n = read(fd, look->maps + have, MAPS_BYTES)) > 0)
                have = look_at_mapping_lines(look, have + (size_t) n);
        if (!look_done(look))
                look_at_room_for_mapping(look, look->group_mappings - before);
}

/* ---- all of it ---- */

/* A child has no list of operations to undo. PID 1 has one as soon as it has a second thread, as
 * the one that guards a lease is. */
static pid_t child_without_undo(struct look *look) {
        if (look->without_undo <= 0)
                look->without_undo = fork();
        if (look->without_undo == 0)
                for (;;)
                        (void) pause();
        return look->without_undo > 0 ? look->without_undo : getpid();
}

/* Only that there is a list to undo can be seen, not whether it is empty, and a process of several
 * threads always has one. */
static void look_at_undo(struct look *look) {
        if (look->scope->frozen && look->threads == 1 && sysv_semaphores_exist() &&
            syscall(SYS_kcmp, child_without_undo(look), look->pid, KCMP_SYSVSEM, 0, 0) > 0)
                look_note(look, OBSTACLE_SEM_UNDO, NULL);
}

static void end_child(const struct look *look) {
        if (look->without_undo <= 0)
                return;
        (void) kill(look->without_undo, SIGKILL);
        (void) waitpid(look->without_undo, NULL, 0);
}

/* "exe", "cwd", "root"; "" when it cannot be read. */
static void read_place(const struct look *look, const char *what, char link[PATH_MAX]) {
        char path[32];
        ssize_t n;

        snprintf(path, sizeof(path), "%d/%s", (int) look->pid, what);
        n = readlinkat(look->scope->proc, path, link, PATH_MAX - 1);
        link[n > 0 ? n : 0] = '\0';
}

static void look_at_directories(struct look *look) {
        static const char *const names[] = { "cwd", "root" };
        char link[PATH_MAX];

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                read_place(look, names[i], link);
                look_at_kernel_file(look, link, false);
        }
}

/* CRIU restores no program from a memfd, and fails only at the destination. The program is seen
 * here also while it runs. */
static void look_at_program(struct look *look) {
        char link[PATH_MAX];

        read_place(look, "exe", link);
        look_at_kernel_file(look, link, false);
        if (strncmp(link, "/memfd:", 7) == 0)
                look_note(look, OBSTACLE_NO_FILE, NULL);
        look_at_installed(look, link);
}

static void look_at_process(struct look *look) {
        static void (*const looks[])(struct look *) = { look_at_process_itself, look_at_program, look_at_directories,
                                                        look_at_descriptors };

        for (size_t i = 0; i < ARRAY_SIZE(looks) && !look_done(look); i++)
                looks[i](look);
        if (!look_done(look) && look->scope->frozen)
                look_at_mappings(look);
        if (!look_done(look))
                look_at_undo(look);
}

static void suspect_path(const struct suspect *suspect, char path[64]) {
        (void) snprintf(path, 64, "%d/fd/%d", (int) suspect->pid, suspect->fd);
}

/* As the owner, the same files. What was closed meanwhile is nobody's. */
static void open_suspects(int error, int report_fd, const void *arg) {
        const struct look *look = arg;
        size_t i = error < 0 ? 0 : look->n_suspects;

        for (size_t k = 0; error == 0 && k < look->n_suspects && i == look->n_suspects; k++) {
                char path[64];
                int fd;

                suspect_path(&look->suspects[k], path);
                fd = openat(look->scope->proc, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
                if (fd < 0 && errno != ENOENT)
                        i = k;
                cleanup_close_fd(&fd);
        }
        (void) write_all(report_fd, &i, sizeof(i));
}

static void look_at_suspects(struct look *look) {
        size_t i = 0;
        char path[64], link[PATH_MAX];
        ssize_t n;

        if (look->n_suspects == 0)
                return;
        (void) identity_ask(look->scope->spec, 0, open_suspects, look, SUSPECTS_USEC, &i, sizeof(i));
        if (i >= look->n_suspects)
                return;
        suspect_path(&look->suspects[i], path);
        n = readlinkat(look->scope->proc, path, link, sizeof(link) - 1);
        link[n > 0 ? n : 0] = '\0';
        look->pid = look->suspects[i].pid;
        look_note(look, OBSTACLE_UNREADABLE, link);
}

static void name_process(struct look *look) {
        struct obstacle *found = look->found;
        size_t n;

        if (found->pid == 0)
                return;
        n = look_read(look, look->text, OBSTACLE_NAME_BYTES + 1, "%d/comm", (int) found->pid);
        if (n > 0 && look->text[n - 1] == '\n')
                look->text[n - 1] = '\0';
        snprintf(found->name, sizeof(found->name), "%.*s", OBSTACLE_NAME_BYTES - 1, look->text);
}

/* The mounts of this process: no other is in another mount namespace, which is an obstacle
 * itself. */
static void read_mounts(struct look *look) {
        cleanup_file FILE *f = fopen_at(look->scope->proc, "self/mountinfo");
        cleanup_free char *line = NULL;
        size_t size = 0;

        kernel_mounts_parse(&look->mounts, "");
        while (f && getline(&line, &size, f) > 0)
                kernel_mounts_parse(&look->mounts, line);
}

void obstacles_of_processes(const struct obstacles_scope *scope, const pid_t *pids, size_t n, struct obstacle *ret,
                            struct dump_needs *ret_needs) {
        cleanup_free char *text = xcalloc(1, LOOK_STATUS_BYTES);
        cleanup_free char *maps = xcalloc(1, MAPS_BYTES + LINE_BYTES + 1);
        struct look look = { .scope = scope,
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
        *ret = (struct obstacle) { .kind = OBSTACLE_NONE };
        look_at_numbers(&look, pids, n);
        look_at_shared(&look, pids, n);
        read_mounts(&look);
        for (size_t i = 0; i < n && !look_done(&look); i++) {
                look.pid = pids[i];
                look_at_process(&look);
        }
        if (!look_done(&look))
                look_at_sockets(&look);
        if (!look_done(&look))
                look_at_suspects(&look);
        end_child(&look);
        free(look.sockets);
        free(look.suspects);
        kernel_mounts_finish(&look.mounts);
        name_process(&look);
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

static void look(const struct core *core, bool frozen, struct obstacle *ret, struct dump_needs *ret_needs) {
        cleanup_close int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dev_t own[4];
        struct obstacles_scope scope = {
                .proc = proc,
                .spec = core->spec,
                .own = own,
                .n_own = own_file_systems(own, ARRAY_SIZE(own)),
                .frozen = frozen,
                .waits = !frozen && !core->spec->cgroup_v1,
                .budget = frozen ? SIZE_MAX : OBSTACLES_BUDGET,
                .cpu_usec = frozen ? OBSTACLES_FROZEN_CPU_USEC : OBSTACLES_CPU_USEC,
        };
        cleanup_free pid_t *pids = NULL;
        struct obstacle of_capsule;
        size_t n = pids_of_group(core->node.cgroup_payload, &pids);

        obstacles_of_processes(&scope, pids, n, ret, ret_needs);
        if (ret->kind != OBSTACLE_NONE && !obstacle_is_transient(ret->kind))
                return;
        sysv_find_obstacle(&of_capsule);
        if (of_capsule.kind == OBSTACLE_NONE && keys_exist())
                of_capsule = (struct obstacle) { .kind = OBSTACLE_KEYS };
        if (of_capsule.kind != OBSTACLE_NONE)
                *ret = of_capsule;
}

void obstacles_look(const struct core *core, struct obstacle *ret) {
        look(core, false, ret, NULL);
}

static int refuse(const struct obstacle *obstacle, struct rm_error *error) {
        char text[OBSTACLE_TEXT_BYTES];

        if (obstacle->kind == OBSTACLE_NONE)
                return 0;
        obstacle_text(obstacle, text);
        return obstacle_is_transient(obstacle->kind) ? error_set(error, -EAGAIN, "%s: cannot be moved as long as that is so", text)
                                                     : error_set(error, -EOPNOTSUPP, "%s: cannot be moved", text);
}

int obstacles_refuse(const struct core *core, struct dump_needs *ret_needs, struct rm_error *error) {
        struct obstacle obstacle;

        look(core, true, &obstacle, ret_needs);
        return refuse(&obstacle, error);
}

int obstacles_warn(const struct core *core, const struct obstacle *earlier, uint64_t earlier_usec, struct rm_error *error) {
        struct obstacle obstacle;

        look(core, false, &obstacle, NULL);
        if (obstacle_is_marked(obstacle.kind) && earlier_usec >= STUCK_USEC && obstacle_is_still(earlier, &obstacle) &&
            refuse(&obstacle, error) < 0)
                return -EBUSY;
        return obstacle_is_transient(obstacle.kind) ? 0 : refuse(&obstacle, error);
}
