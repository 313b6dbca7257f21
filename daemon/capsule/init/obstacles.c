#include "daemon/capsule/init/obstacles.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/identity.h"
#include "daemon/capsule/init/init.h"
#include "daemon/capsule/init/mounts.h"
#include "daemon/capsule/init/pids.h"
#include "daemon/capsule/init/sysv.h"

enum {
        STATUS_BYTES = 16384,  /* of a thread: with a line of thousands of groups */
        FDINFO_BYTES = 4096,   /* locks come last; who has dozens of them on one file is found by the first */
        MAPS_BYTES = 65536,    /* read at once */
        LINE_BYTES = 8192,
};

struct look {
        const struct obstacles_scope *scope;
        struct obstacle *found;
        char *text;             /* STATUS_BYTES, scratch */
        char *maps;             /* MAPS_BYTES + LINE_BYTES, scratch */
        pid_t pid;              /* being looked at */
        unsigned threads;
        size_t left;            /* of the budget */
};

/* Done when one is found that stays, or enough was looked at. */
static bool done(const struct look *look) {
        if (look->left == 0)
                return true;
        return look->found->kind != OBSTACLE_NONE && !obstacle_is_transient(look->found->kind);
}

/* The program's name is filled in at the end, once. */
static void note(struct look *look, enum obstacle_kind kind, const char *detail) {
        if (look->found->kind != OBSTACLE_NONE && obstacle_is_transient(kind))
                return;
        *look->found = (struct obstacle) { .kind = kind, .pid = look->pid };
        snprintf(look->found->detail, sizeof(look->found->detail), "%s", detail ? detail : "");
}

/* Bytes read, the text ended by NUL; 0 for what cannot be read. */
static size_t read_proc(const struct look *look, char *text, size_t size, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
static size_t read_proc(const struct look *look, char *text, size_t size, const char *fmt, ...) {
        cleanup_close int fd = -1;
        char path[64];
        ssize_t n;
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(path, sizeof(path), fmt, ap);
        va_end(ap);
        fd = openat(look->scope->proc, path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, size - 1);
        text[n > 0 ? n : 0] = '\0';
        return n > 0 ? (size_t) n : 0;
}

static DIR *open_proc_dir(const struct look *look, const char *what) {
        char path[64];
        DIR *dir;
        int fd;

        snprintf(path, sizeof(path), "%d/%s", (int) look->pid, what);
        fd = openat(look->scope->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir && fd >= 0)
                close(fd);
        return dir;
}

/* ---- threads ---- */

static void look_at_identity(struct look *look, const char *status) {
        struct rm_error error = { 0 };
        struct identity identity;
        int r = identity_parse(status, &identity);

        if (r < 0)
                return;
        r = identity_check(&identity, look->scope->spec, &error);
        identity_finish(&identity);
        if (r == -EPERM)
                note(look, OBSTACLE_OTHER_USER, NULL);
        else if (r == -EACCES)
                note(look, OBSTACLE_CAPABILITIES, NULL);
}

static void look_at_status(struct look *look, const char *status) {
        const char *tracer = identity_field(status, "TracerPid");
        const char *state = identity_field(status, "State");

        if (state && strchr(state, 'Z') == state + 1)
                return; /* a zombie has nothing, and no permission to look at it */
        if (tracer && strtol(tracer, NULL, 10) != 0)
                note(look, OBSTACLE_TRACED, NULL);
        look_at_identity(look, status);
}

static void look_at_threads(struct look *look) {
        DIR *dir = open_proc_dir(look, "task");
        struct dirent *entry;

        look->threads = 0;
        while (dir && !done(look) && (entry = readdir(dir))) {
                if (!isdigit((unsigned char) entry->d_name[0]))
                        continue;
                look->threads++;
                look->left--;
                if (read_proc(look, look->text, STATUS_BYTES, "%d/task/%.10s/status", (int) look->pid, entry->d_name) > 0)
                        look_at_status(look, look->text);
        }
        if (dir)
                (void) closedir(dir);
}

/* ---- namespaces ---- */

/* Not the time namespace, which the payload has for itself, and CRIU carries. A user namespace first: who has one may have the others. */
static void look_at_namespaces(struct look *look) {
        static const char *const names[] = { "user", "mnt", "pid", "net", "ipc", "uts" };

        for (size_t i = 0; i < ARRAY_SIZE(names) && !done(look); i++) {
                char path[64], own[64], its[64];
                ssize_t n, m;

                snprintf(path, sizeof(path), "self/ns/%s", names[i]);
                n = readlinkat(look->scope->proc, path, own, sizeof(own));
                snprintf(path, sizeof(path), "%d/ns/%s", (int) look->pid, names[i]);
                m = readlinkat(look->scope->proc, path, its, sizeof(its));
                if (n > 0 && m > 0 && (n != m || memcmp(own, its, (size_t) n) != 0))
                        note(look, OBSTACLE_NAMESPACE, names[i]);
        }
}

/* ---- descriptors ---- */

static bool is_own(const struct look *look, dev_t dev) {
        for (size_t i = 0; i < look->scope->n_own; i++)
                if (look->scope->own[i] == dev)
                        return true;
        return false;
}

/* A lock of a file that other nodes see too is still the source's while the destination restores. */
static void look_at_locks(struct look *look, const char *number, const char *link) {
        const char *line;

        if (read_proc(look, look->text, FDINFO_BYTES, "%d/fdinfo/%.10s", (int) look->pid, number) == 0)
                return;
        line = strstr(look->text, "\nlock:");
        while (line && !done(look)) {
                dev_t dev;
                enum obstacle_kind kind = obstacle_of_lock(line + 1, &dev);

                if (kind != OBSTACLE_NONE && !is_own(look, dev))
                        note(look, kind, link);
                line = strstr(line + 1, "\nlock:");
        }
}

static void look_at_eventfd(struct look *look, const char *number) {
        (void) read_proc(look, look->text, FDINFO_BYTES, "%d/fdinfo/%.10s", (int) look->pid, number);
        /* CRIU makes an eventfd anew without its flag. Kernels before 6.5 do not tell. */
        if (strstr(look->text, "eventfd-semaphore: 1"))
                note(look, OBSTACLE_EVENTFD_SEMAPHORE, NULL);
}

/* Memory, terminals and pseudo-terminals are restored; for other devices CRIU would need a plugin. */
static bool device_known(unsigned device_major) {
        return device_major == 1 || device_major == 4 || device_major == 5 || (device_major >= 136 && device_major <= 143);
}

static void look_at_device(struct look *look, int fds, const char *number, const char *link) {
        struct stat st;

        if (fstatat(fds, number, &st, 0) == 0 && (S_ISBLK(st.st_mode) || (S_ISCHR(st.st_mode) && !device_known(major(st.st_rdev)))))
                note(look, OBSTACLE_DEVICE, link);
}

/* What the last process has written to a terminal before it closed it, as a rank that ends does. */
static void look_at_master(struct look *look, const char *number) {
        cleanup_close int pidfd = (int) syscall(SYS_pidfd_open, look->pid, 0);
        cleanup_close int fd = pidfd < 0 ? -1 : (int) syscall(SYS_pidfd_getfd, pidfd, atoi(number), 0);
        struct pollfd state = { .fd = fd, .events = POLLIN };

        if (fd >= 0 && poll(&state, 1, 0) == 1 && (state.revents & POLLIN) && (state.revents & POLLHUP))
                note(look, OBSTACLE_UNREAD_TERMINAL, NULL);
}

static bool begins(const char *text, const char *with) {
        return strncmp(text, with, strlen(with)) == 0;
}

static void look_at_descriptor(struct look *look, int fds, const char *number) {
        char link[PATH_MAX];
        ssize_t n = readlinkat(fds, number, link, sizeof(link) - 1);
        enum obstacle_kind kind;

        if (n <= 0)
                return;
        link[n] = '\0';
        kind = obstacle_of_link(link);
        if (kind != OBSTACLE_NONE)
                note(look, kind, link + (begins(link, "anon_inode:") ? strlen("anon_inode:") : 0));
        else if (strcmp(link, "anon_inode:[eventfd]") == 0)
                look_at_eventfd(look, number);
        else if (strcmp(link, "/dev/ptmx") == 0 || strcmp(link, "/dev/pts/ptmx") == 0)
                look_at_master(look, number);
        else if (begins(link, "/dev/") && !begins(link, "/dev/shm/") && strcmp(link, "/dev/null") != 0)
                look_at_device(look, fds, number, link);
        else if (link[0] == '/' && !begins(link, "/memfd:") && !begins(link, "/proc/") && !begins(link, "/sys/"))
                look_at_locks(look, number, link);
}

static void look_at_descriptors(struct look *look) {
        DIR *dir = open_proc_dir(look, "fd");
        struct dirent *entry;

        while (dir && !done(look) && (entry = readdir(dir)))
                if (isdigit((unsigned char) entry->d_name[0])) {
                        look_at_descriptor(look, dirfd(dir), entry->d_name);
                        look->left--;
                }
        if (dir)
                (void) closedir(dir);
}

/* An update of what is installed leaves those that run with files that no node has under that name. */
static void look_at_installed(struct look *look, const char *link) {
        const Capsule__Spec *spec = look->scope->spec;
        char path[OBSTACLE_DETAIL_BYTES];

        if (!obstacle_of_installed(link, path))
                return;
        for (size_t i = 0; i < spec->n_writable; i++)
                if (path_is_below(path, spec->writable[i]))
                        return;
        note(look, OBSTACLE_REPLACED, path);
}

/* ---- mappings, which may have outlived their descriptors ---- */

static void look_at_mapping(struct look *look, const char *line) {
        const char *name = strstr(line, " anon_inode:");
        enum obstacle_kind kind;

        if (!name)
                name = strstr(line, " /secretmem");
        kind = name ? obstacle_of_link(name + 1) : OBSTACLE_NONE;
        if (kind != OBSTACLE_NONE)
                note(look, kind, name + 1);
        name = strstr(line, " /usr/");
        if (name)
                look_at_installed(look, name + 1);
}

/* Takes the whole lines of the scratch buffer; what is left of the last one goes to its begin. Returns how much that is. */
static size_t look_at_mapping_lines(struct look *look, size_t size) {
        char *line = look->maps;
        char *end;

        look->maps[size] = '\0';
        while (!done(look) && (end = strchr(line, '\n'))) {
                *end = '\0';
                look_at_mapping(look, line);
                line = end + 1;
        }
        size -= (size_t) (line - look->maps);
        if (size >= LINE_BYTES)
                return 0;
        memmove(look->maps, line, size);
        return size;
}

static void look_at_mappings(struct look *look) {
        cleanup_close int fd = -1;
        char path[32];
        size_t have = 0;
        ssize_t n;

        snprintf(path, sizeof(path), "%d/maps", (int) look->pid);
        fd = openat(look->scope->proc, path, O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && !done(look) && (n = read(fd, look->maps + have, MAPS_BYTES)) > 0)
                have = look_at_mapping_lines(look, have + (size_t) n);
}

/* ---- all of it ---- */

/* Only that there is a list to undo can be seen, not whether it is empty, and a process of several threads always has one. */
static void look_at_undo(struct look *look) {
        if (look->threads == 1 && sysv_semaphores_exist() && syscall(SYS_kcmp, getpid(), look->pid, KCMP_SYSVSEM, 0, 0) > 0)
                note(look, OBSTACLE_SEM_UNDO, NULL);
}

/* CRIU restores no program from a memfd, and fails only at the destination. The program is seen here also while it runs. */
static void look_at_program(struct look *look) {
        char path[32];
        char link[PATH_MAX];
        ssize_t n;

        snprintf(path, sizeof(path), "%d/exe", (int) look->pid);
        n = readlinkat(look->scope->proc, path, link, sizeof(link) - 1);
        link[n > 0 ? n : 0] = '\0';
        if (strncmp(link, "/memfd:", 7) == 0)
                note(look, OBSTACLE_NO_FILE, NULL);
        look_at_installed(look, link);
}

static void look_at_process(struct look *look) {
        look_at_namespaces(look);
        if (!done(look))
                look_at_program(look);
        if (!done(look))
                look_at_threads(look);
        if (!done(look))
                look_at_descriptors(look);
        if (!done(look) && look->scope->mappings)
                look_at_mappings(look);
        if (!done(look))
                look_at_undo(look);
}

static void name_process(struct look *look) {
        struct obstacle *found = look->found;
        size_t n;

        if (found->pid == 0)
                return;
        n = read_proc(look, look->text, OBSTACLE_NAME_BYTES + 1, "%d/comm", (int) found->pid);
        if (n > 0 && look->text[n - 1] == '\n')
                look->text[n - 1] = '\0';
        snprintf(found->name, sizeof(found->name), "%.*s", OBSTACLE_NAME_BYTES - 1, look->text);
}

void obstacles_of_processes(const struct obstacles_scope *scope, const pid_t *pids, size_t n, struct obstacle *ret) {
        cleanup_free char *text = xcalloc(1, STATUS_BYTES);
        cleanup_free char *maps = xcalloc(1, MAPS_BYTES + LINE_BYTES + 1);
        struct look look = { .scope = scope, .found = ret, .text = text, .maps = maps, .left = scope->budget };

        *ret = (struct obstacle) { .kind = OBSTACLE_NONE };
        for (size_t i = 0; i < n && !done(&look); i++) {
                look.pid = pids[i];
                look_at_process(&look);
        }
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

/* PID 1 has made the session keyring that the payload begins with, empty. One that a process joins later cannot be seen. */
static bool keys_exist(void) {
        return syscall(SYS_keyctl, KEYCTL_READ, KEY_SPEC_SESSION_KEYRING, NULL, 0) > 0;
}

static void look(const struct init *init, bool frozen, struct obstacle *ret) {
        cleanup_close int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dev_t own[4];
        struct obstacles_scope scope = {
                .proc = proc,
                .spec = init->spec,
                .own = own,
                .n_own = own_file_systems(own, ARRAY_SIZE(own)),
                .mappings = frozen,
                .budget = frozen ? SIZE_MAX : OBSTACLES_BUDGET,
        };
        cleanup_free pid_t *pids = NULL;
        struct obstacle of_capsule;
        size_t n = pids_of_group(init->node.cgroup_payload, &pids);

        obstacles_of_processes(&scope, pids, n, ret);
        if (ret->kind != OBSTACLE_NONE && !obstacle_is_transient(ret->kind))
                return;
        sysv_find_obstacle(&of_capsule);
        if (of_capsule.kind == OBSTACLE_NONE && keys_exist())
                of_capsule = (struct obstacle) { .kind = OBSTACLE_KEYS };
        if (of_capsule.kind != OBSTACLE_NONE)
                *ret = of_capsule;
}

void obstacles_look(const struct init *init, struct obstacle *ret) {
        look(init, false, ret);
}

static int refuse(const struct obstacle *obstacle, struct rm_error *error) {
        char text[OBSTACLE_TEXT_BYTES];

        if (obstacle->kind == OBSTACLE_NONE)
                return 0;
        obstacle_text(obstacle, text);
        return obstacle_is_transient(obstacle->kind) ? error_set(error, -EAGAIN, "%s: cannot be moved until it releases it", text)
                                                     : error_set(error, -EOPNOTSUPP, "%s: cannot be moved", text);
}

int obstacles_refuse(const struct init *init, struct rm_error *error) {
        struct obstacle obstacle;

        look(init, true, &obstacle);
        return refuse(&obstacle, error);
}

int obstacles_warn(const struct init *init, struct rm_error *error) {
        struct obstacle obstacle;

        look(init, false, &obstacle);
        return obstacle_is_transient(obstacle.kind) ? 0 : refuse(&obstacle, error);
}
