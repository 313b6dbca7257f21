#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/openat.h"
#include "common/proc_count.h"
#include "common/util.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/verify/obstacles_internal.h"

enum {
        DUMPABLE_LOOKS = 3,
        DUMPABLE_PAUSE_USEC = 500,
};

/* ---- threads ---- */

static uint64_t count_of(const char *status, const char *name) {
        const char *text = identity_field(status, name);

        return text ? strtoull(text, NULL, 10) : 0;
}

static void look_at_wait(struct look *look, const char *status) {
        const char *state = identity_field(status, "State");

        if (!look->scope->waits || look->found->kind != OBSTACLE_NONE || !state || strchr(state, 'D') != state + 1)
                return;
        look_note_marked(look, OBSTACLE_STUCK, NULL,
                         count_of(status, "voluntary_ctxt_switches") + count_of(status, "nonvoluntary_ctxt_switches"));
}

static void look_at_identity(struct look *look, const char *status) {
        struct rm_error error = { 0 };
        struct identity identity;
        int r = identity_parse(status, &identity);

        if (r < 0)
                return;
        r = identity_check(&identity, look->scope->spec, &error);
        identity_finish(&identity);
        if (r == -EPERM)
                look_note(look, OBSTACLE_OTHER_USER, NULL);
        else if (r == -EACCES)
                look_note(look, OBSTACLE_CAPABILITIES, NULL);
}

static bool has_ended(const char *status) {
        const char *state = identity_field(status, "State");

        return state && (strchr(state, 'Z') == state + 1 || strchr(state, 'X') == state + 1);
}

/* The kernel refuses to queue at the destination what was queued here before the limit was
 * lowered. */
static void look_at_signals(struct look *look, const char *status) {
        const char *own = identity_field(status, "SigPnd"), *shared = identity_field(status, "ShdPnd");
        const char *queued = identity_field(status, "SigQ");
        unsigned long n, most;

        if (!own || !shared || !queued || (strtoull(own, NULL, 16) | strtoull(shared, NULL, 16)) == 0)
                return;
        if (sscanf(queued, "%lu/%lu", &n, &most) == 2 && n > most)
                look_note(look, OBSTACLE_ROOM, "queued signals, RLIMIT_SIGPENDING");
}

static void look_at_status(struct look *look, const char *status) {
        const char *tracer = identity_field(status, "TracerPid");

        if (has_ended(status))
                return; /* a zombie has nothing, and no permission to look at it */
        if (tracer && strtol(tracer, NULL, 10) != 0)
                look_note(look, OBSTACLE_TRACED, NULL);
        look_at_identity(look, status);
        look_at_signals(look, status);
        look_at_wait(look, status);
}

/* Finds a process whose first thread has ended by pthread_exit(3) while others run on. All threads
 * of a process that ends are like that for a moment. */
static void look_at_threads(struct look *look) {
        cleanup_dir DIR *dir = look_open_dir(look, "task");
        bool first_ended = false, others = false;
        const char *tid;

        look->threads = 0;
        while (!look_done(look) && (tid = next_number(dir))) {
                look->threads++;
                look->left--;
                if (look_read(look, look->text, LOOK_STATUS_BYTES, "%d/task/%.10s/status", (int) look->pid, tid) == 0)
                        continue;
                look_at_status(look, look->text);
                if (atoi(tid) != look->pid)
                        others |= !has_ended(look->text);
                else
                        first_ended = has_ended(look->text);
        }
        if (first_ended && others)
                look_note(look, OBSTACLE_FIRST_THREAD, NULL);
}

/* The owner cannot read the memory of a process that is not dumpable, and would get it with an
 * image: a program that was set-user-ID root, and has given up everything but what it has in
 * memory. A process looks so as well for the moments of its exec(), and at its end when it has no
 * memory any more. */
static void look_at_dumpable(struct look *look) {
        struct stat st;
        char path[32];

        snprintf(path, sizeof(path), "%d/mem", (int) look->pid);
        for (int i = 0; i < DUMPABLE_LOOKS; i++) {
                if (i > 0)
                        (void) usleep(DUMPABLE_PAUSE_USEC);
                if (fstatat(look->scope->proc, path, &st, 0) < 0 || st.st_uid == look->scope->spec->uid ||
                    look_read(look, look->text, LOOK_STATUS_BYTES, "%d/status", (int) look->pid) == 0 ||
                    !identity_field(look->text, "VmSize"))
                        return;
        }
        look_note(look, OBSTACLE_NOT_DUMPABLE, NULL);
}

/* ---- namespaces ---- */

/* The time namespace is not looked at: the payload has it for itself, and CRIU carries it. A user
 * namespace is looked at first: a process that has one may have the others. */
static void look_at_namespaces(struct look *look) {
        static const char *const names[] = { "user", "mnt", "pid", "net", "ipc", "uts" };

        for (size_t i = 0; i < ARRAY_SIZE(names) && !look_done(look); i++) {
                char path[64], own[64], its[64];
                ssize_t n, m;

                snprintf(path, sizeof(path), "self/ns/%s", names[i]);
                n = readlinkat(look->scope->proc, path, own, sizeof(own));
                snprintf(path, sizeof(path), "%d/ns/%s", (int) look->pid, names[i]);
                m = readlinkat(look->scope->proc, path, its, sizeof(its));
                if (n > 0 && m > 0 && (n != m || memcmp(own, its, (size_t) n) != 0))
                        look_note(look, OBSTACLE_NAMESPACE, names[i]);
        }
}

/* ---- timers ---- */

/* The kernel keeps a timer whose thread has ended, and CRIU cannot make it anew. */
static void look_at_timer(struct look *look, const char *line) {
        char path[64];
        struct stat st;
        int tid;

        if (sscanf(line, "notify: signal/tid.%d", &tid) != 1)
                return;
        (void) snprintf(path, sizeof(path), "%d/task/%d", (int) look->pid, tid);
        if (fstatat(look->scope->proc, path, &st, 0) < 0 && errno == ENOENT)
                look_note(look, OBSTACLE_TIMER, NULL);
}

static void look_at_timers(struct look *look) {
        cleanup_free char *line = NULL, *path = xasprintf("%d/timers", (int) look->pid);
        cleanup_file FILE *f = fopen_at(look->scope->proc, path);
        size_t size = 0;

        while (f && !look_done(look) && getline(&line, &size, f) > 0) {
                look_at_timer(look, line);
                look->left -= look->left > 1;
        }
}

/* ---- limits ---- */

/* CRIU's parasite opens one file at a time in the process; rm-mover may have a userfaultfd
 * there. */
enum { ROOM_DESCRIPTORS = 3 };

/* The parasite maps its code, its stacks, and 16 bytes for each page of the process and 32 for each
 * mapping and descriptor. */
static uint64_t room_bytes(uint64_t pages, uint64_t descriptors) {
        return (UINT64_C(1) << 20) + pages * 16 + (pages + descriptors) / 8 * 32;
}

/* The soft limit; UINT64_MAX: there is none. `text` is what /proc/PID/limits has. */
static uint64_t soft_limit(const char *text, const char *name) {
        const char *line = strstr(text, name);
        unsigned long long value;

        return line && sscanf(line + strlen(name), "%llu", &value) == 1 ? value : UINT64_MAX;
}

/* Descriptors above the limit are from a time when it was higher. */
static bool is_full(const struct look *look, uint64_t limit, uint64_t descriptors) {
        cleanup_dir DIR *dir = NULL;
        uint64_t below = 0;
        const char *number;

        if (descriptors + ROOM_DESCRIPTORS <= limit)
                return false;
        dir = look_open_dir(look, "fd");
        while ((number = next_number(dir)))
                below += strtoull(number, NULL, 10) < limit;
        return below + ROOM_DESCRIPTORS > limit;
}

static void look_at_limits(struct look *look) {
        uint64_t space, files, pages, descriptors;
        char name[16];

        if (look_read(look, look->text, LOOK_STATUS_BYTES, "%d/limits", (int) look->pid) == 0)
                return;
        space = soft_limit(look->text, "Max address space");
        files = soft_limit(look->text, "Max open files");
        (void) snprintf(name, sizeof(name), "%d", (int) look->pid);
        descriptors = proc_count_descriptors(look->scope->proc, name, PROC_DESCRIPTORS_MAX);
        if (is_full(look, files, descriptors))
                look_note(look, OBSTACLE_ROOM, "open files, RLIMIT_NOFILE");
        if (space == UINT64_MAX || look_read(look, look->text, LOOK_STATUS_BYTES, "%d/statm", (int) look->pid) == 0)
                return;
        pages = strtoull(look->text, NULL, 10);
        if (pages > 0 && pages * (uint64_t) sysconf(_SC_PAGESIZE) + room_bytes(pages, descriptors) > space)
                look_note(look, OBSTACLE_ROOM, "address space, RLIMIT_AS");
}

void look_at_process_itself(struct look *look) {
        static void (*const looks[])(struct look *) = { look_at_namespaces, look_at_threads, look_at_dumpable, look_at_timers,
                                                        look_at_limits };

        for (size_t i = 0; i < ARRAY_SIZE(looks) && !look_done(look); i++)
                looks[i](look);
}
