#include <errno.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/error.h"
#include "common/openat.h"
#include "common/proc_count.h"
#include "common/util.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/verify/blocker_scan_internal.h"

enum {
        DUMPABLE_LOOKS = 3,
        DUMPABLE_PAUSE_USEC = 500,
};

/* ---- threads ---- */

static uint64_t count_of(const char *status, const char *name) {
        const char *text = identity_field(status, name);

        return text ? strtoull(text, NULL, 10) : 0;
}

static void scan_wait(struct scan *scan, const char *status) {
        const char *state = identity_field(status, "State");

        if (!scan->scope->waits || scan->found->kind != BLOCKER_NONE || !state || strchr(state, 'D') != state + 1)
                return;
        scan_note_marked(scan, BLOCKER_STUCK, NULL,
                         count_of(status, "voluntary_ctxt_switches") + count_of(status, "nonvoluntary_ctxt_switches"));
}

static void scan_identity(struct scan *scan, const char *status) {
        struct rm_error error = { 0 };
        struct identity identity;
        int r = identity_parse(status, &identity);

        if (r < 0)
                return;
        r = identity_check(&identity, scan->scope->spec, &error);
        identity_finish(&identity);
        if (r == -EPERM)
                scan_note(scan, BLOCKER_OTHER_USER, NULL);
        else if (r == -EACCES)
                scan_note(scan, BLOCKER_CAPABILITIES, NULL);
}

static bool has_ended(const char *status) {
        const char *state = identity_field(status, "State");

        return state && (strchr(state, 'Z') == state + 1 || strchr(state, 'X') == state + 1);
}

/* The kernel refuses to queue at the destination what was queued here before the limit was
 * lowered. */
static void scan_signals(struct scan *scan, const char *status) {
        const char *own = identity_field(status, "SigPnd"), *shared = identity_field(status, "ShdPnd");
        const char *queued = identity_field(status, "SigQ");
        unsigned long n, most;

        if (!own || !shared || !queued || (strtoull(own, NULL, 16) | strtoull(shared, NULL, 16)) == 0)
                return;
        if (sscanf(queued, "%lu/%lu", &n, &most) == 2 && n > most)
                scan_note(scan, BLOCKER_SPACE, "queued signals, RLIMIT_SIGPENDING");
}

static void scan_status(struct scan *scan, const char *status) {
        const char *tracer = identity_field(status, "TracerPid");

        if (has_ended(status))
                return; /* a zombie has nothing, and no permission to look at it */
        if (tracer && strtol(tracer, NULL, 10) != 0)
                scan_note(scan, BLOCKER_TRACED, NULL);
        scan_identity(scan, status);
        scan_signals(scan, status);
        scan_wait(scan, status);
}

/* CRIU saves what is below the first process, which adopts all orphans. But for one whose session
 * has lost its first process CRIU makes that anew for a moment, and when it ends, PID 1 adopts the
 * orphan. `status` is of the first thread. */
static void scan_parent(struct scan *scan, const char *status) {
        const char *parent = identity_field(status, "PPid");

        if (scan->scope->root == 0 || scan->pid == scan->scope->root || has_ended(status))
                return;
        if (parent && !scan_has_process(scan, (pid_t) atoi(parent)))
                scan_note(scan, BLOCKER_ADOPTED, NULL);
}

/* CRIU takes descriptors, directories and umask from the first thread, and gives them to all. */
static void scan_thread_apart(struct scan *scan, const char *tid) {
        pid_t other = (pid_t) atoi(tid);

        if (!scan->scope->frozen || other == scan->pid)
                return;
        if (syscall(SYS_kcmp, scan->pid, other, KCMP_FILES, 0, 0) > 0)
                scan_note(scan, BLOCKER_THREAD_APART, "descriptors");
        else if (syscall(SYS_kcmp, scan->pid, other, KCMP_FS, 0, 0) > 0)
                scan_note(scan, BLOCKER_THREAD_APART, "a working directory or umask");
}

/* Finds a process whose first thread has ended by pthread_exit(3) while others run on. All threads
 * of a process that ends are like that for a moment. */
static void scan_threads(struct scan *scan) {
        cleanup_dir DIR *dir = scan_open_dir(scan, "task");
        bool first_ended = false, others = false;
        const char *tid;

        scan->threads = 0;
        while (!scan_done(scan) && (tid = next_number(dir))) {
                scan->threads++;
                scan->left--;
                if (scan_read(scan, scan->text, SCAN_STATUS_BYTES, "%d/task/%.10s/status", (int) scan->pid, tid) == 0)
                        continue;
                scan_status(scan, scan->text);
                if (atoi(tid) == scan->pid) {
                        first_ended = has_ended(scan->text);
                        scan_parent(scan, scan->text);
                } else if (!has_ended(scan->text)) {
                        others = true;
                }
                if (!first_ended && !has_ended(scan->text))
                        scan_thread_apart(scan, tid);
        }
        if (first_ended && others)
                scan_note(scan, BLOCKER_FIRST_THREAD, NULL);
}

/* CRIU makes all processes with SIGCHLD. So does exec(2), which ends what clone(2) has said. The
 * name of a program may have parentheses and blanks. */
static void scan_exit_signal(struct scan *scan) {
        enum { FIELD_STATE = 3, FIELD_EXIT_SIGNAL = 38 };
        char detail[16];
        const char *field;

        if (scan_read(scan, scan->text, SCAN_STATUS_BYTES, "%d/stat", (int) scan->pid) == 0)
                return;
        field = strrchr(scan->text, ')');
        for (int i = FIELD_STATE - 1; field && i < FIELD_EXIT_SIGNAL; i++)
                field = strchr(field + 1, ' ');
        if (!field || atoi(field) == SIGCHLD)
                return;
        (void) snprintf(detail, sizeof(detail), "%d", atoi(field));
        scan_note(scan, BLOCKER_EXIT_SIGNAL, detail);
}

/* The owner cannot read the memory of a process that is not dumpable, and would get it with an
 * image: a program that was set-user-ID root, and has given up everything but what it has in
 * memory. A process looks so as well for the moments of its exec(), and at its end when it has no
 * memory any more. */
static void scan_dumpable(struct scan *scan) {
        struct stat st;
        char path[32];

        snprintf(path, sizeof(path), "%d/mem", (int) scan->pid);
        for (int i = 0; i < DUMPABLE_LOOKS; i++) {
                if (i > 0)
                        (void) usleep(DUMPABLE_PAUSE_USEC);
                if (fstatat(scan->scope->proc, path, &st, 0) < 0 || st.st_uid == scan->scope->spec->uid ||
                    scan_read(scan, scan->text, SCAN_STATUS_BYTES, "%d/status", (int) scan->pid) == 0 ||
                    !identity_field(scan->text, "VmSize"))
                        return;
        }
        scan_note(scan, BLOCKER_NOT_DUMPABLE, NULL);
}

/* ---- namespaces ---- */

/* The time namespace is not looked at: the payload has it for itself, and CRIU carries it. A user
 * namespace is looked at first: a process that has one may have the others. */
static void scan_namespaces(struct scan *scan) {
        static const char *const names[] = { "user", "mnt", "pid", "net", "ipc", "uts" };

        for (size_t i = 0; i < ARRAY_SIZE(names) && !scan_done(scan); i++) {
                char path[64], own[64], its[64];
                ssize_t n, m;

                snprintf(path, sizeof(path), "self/ns/%s", names[i]);
                n = readlinkat(scan->scope->proc, path, own, sizeof(own));
                snprintf(path, sizeof(path), "%d/ns/%s", (int) scan->pid, names[i]);
                m = readlinkat(scan->scope->proc, path, its, sizeof(its));
                if (n > 0 && m > 0 && (n != m || memcmp(own, its, (size_t) n) != 0))
                        scan_note(scan, BLOCKER_NAMESPACE, names[i]);
        }
}

/* ---- timers ---- */

/* The kernel keeps a timer whose thread has ended, and CRIU cannot make it anew. */
static void scan_timer(struct scan *scan, const char *line) {
        char path[64];
        struct stat st;
        int tid;

        if (sscanf(line, "notify: signal/tid.%d", &tid) != 1)
                return;
        (void) snprintf(path, sizeof(path), "%d/task/%d", (int) scan->pid, tid);
        if (fstatat(scan->scope->proc, path, &st, 0) < 0 && errno == ENOENT)
                scan_note(scan, BLOCKER_TIMER, NULL);
}

static void scan_timers(struct scan *scan) {
        cleanup_free char *line = NULL, *path = xasprintf("%d/timers", (int) scan->pid);
        cleanup_file FILE *f = fopen_at(scan->scope->proc, path);
        size_t size = 0;

        while (f && !scan_done(scan) && getline(&line, &size, f) > 0) {
                scan_timer(scan, line);
                scan->left -= scan->left > 1;
        }
}

/* ---- limits ---- */

/* CRIU's parasite opens one file at a time in the process; rm-mover may have a userfaultfd
 * there. */
enum { SPACE_DESCRIPTORS = 3 };

/* The parasite maps its code, its stacks, and 16 bytes for each page of the process and 32 for each
 * mapping and descriptor. */
static uint64_t space_bytes(uint64_t pages, uint64_t descriptors) {
        return (UINT64_C(1) << 20) + pages * 16 + (pages + descriptors) / 8 * 32;
}

/* The soft limit; UINT64_MAX: there is none. `text` is what /proc/PID/limits has. */
static uint64_t soft_limit(const char *text, const char *name) {
        const char *line = strstr(text, name);
        unsigned long long value;

        return line && sscanf(line + strlen(name), "%llu", &value) == 1 ? value : UINT64_MAX;
}

/* Descriptors above the limit are from a time when it was higher. */
static bool is_full(const struct scan *scan, uint64_t limit, uint64_t descriptors) {
        cleanup_dir DIR *dir = NULL;
        uint64_t below = 0;
        const char *number;

        if (descriptors + SPACE_DESCRIPTORS <= limit)
                return false;
        dir = scan_open_dir(scan, "fd");
        while ((number = next_number(dir)))
                below += strtoull(number, NULL, 10) < limit;
        return below + SPACE_DESCRIPTORS > limit;
}

static void scan_limits(struct scan *scan) {
        uint64_t space, files, pages, descriptors;
        char name[16];

        if (scan_read(scan, scan->text, SCAN_STATUS_BYTES, "%d/limits", (int) scan->pid) == 0)
                return;
        space = soft_limit(scan->text, "Max address space");
        files = soft_limit(scan->text, "Max open files");
        (void) snprintf(name, sizeof(name), "%d", (int) scan->pid);
        descriptors = proc_count_descriptors(scan->scope->proc, name, PROC_DESCRIPTORS_MAX);
        if (is_full(scan, files, descriptors))
                scan_note(scan, BLOCKER_SPACE, "open files, RLIMIT_NOFILE");
        if (space == UINT64_MAX || scan_read(scan, scan->text, SCAN_STATUS_BYTES, "%d/statm", (int) scan->pid) == 0)
                return;
        pages = strtoull(scan->text, NULL, 10);
        if (pages > 0 && pages * (uint64_t) sysconf(_SC_PAGESIZE) + space_bytes(pages, descriptors) > space)
                scan_note(scan, BLOCKER_SPACE, "address space, RLIMIT_AS");
}

void scan_process_itself(struct scan *scan) {
        static void (*const looks[])(struct scan *) = { scan_namespaces, scan_threads, scan_exit_signal,
                                                        scan_dumpable,   scan_timers,  scan_limits };

        for (size_t i = 0; i < ARRAY_SIZE(looks) && !scan_done(scan); i++)
                looks[i](scan);
}
