#include "rtlib/ft/watch.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/util.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/meet.h"
#include "rtlib/ft/members.h"

#define CALL_MSEC 3000
#define REPAIR_MSEC 25000
#define STACK_SEC 2 /* for the thread that hangs to say where it is */
#define IDLE_MSEC 1000
#define SCAN_SEC 4
#define LOOKS 5 /* that find nothing new */
#define MOVED_BYTES (1024 * 1024) /* that come in between two looks: more than these messages, and those of MPI's own */
#define FRAMES 64

struct seen {
        uint64_t serial;
        unsigned same, missed; /* looks */
};

static struct {
        /* Fields of the thread that waits. */
        unsigned depth;
        uint64_t serial; /* of the wait */
        const struct comm *comm;
        time_t scanned;
        long long read_bytes;
        bool looking;
        int64_t limit_sec; /* 0: none */
        struct seen own; /* for the limit */
        struct seen *seen; /* by rank, at the lowest that lives */
        struct {
                bool received; /* that all ranks wait, from the lowest that lives, which ends the job */
                uint64_t serial; /* then */
                uint32_t losses;
        } stuck;
        /* Fields of both threads. */
        pthread_t thread;
        const char *_Atomic call;
        uint32_t call_losses; /* then */
        atomic_bool repairs;
        atomic_bool reported;
        /* Fields of the thread of the library. */
        int call_msec, repair_msec;
} here;

/* The program's call: the first of ours on the way in, which is the last of them that a stack
 * shows. */
static const char *find_call(void *const *frames, int n) {
        const char *call = "MPI";
        Dl_info own, info;

        if (!dladdr((void *) &here, &own))
                return call;
        for (int i = 0; i < n; i++)
                if (dladdr(frames[i], &info) && info.dli_fbase == own.dli_fbase && info.dli_sname && strstr(info.dli_sname, "MPI_"))
                        call = strstr(info.dli_sname, "MPI_");
        return call;
}

/* By the thread that hangs, maybe in a signal's handler. The line goes out at once: other ranks say
 * theirs now. */
static void report(const char *what) {
        char name[MPI_MAX_OBJECT_NAME] = "", where[MPI_MAX_OBJECT_NAME + 64] = "";
        void *frames[FRAMES];
        int n = backtrace(frames, FRAMES), length = 0;

        if (here.comm) {
                (void) mpi.Comm_get_name(here.comm->user, name, &length);
                (void) snprintf(where, sizeof(where), " on %s of %d ranks", name[0] ? name : "a communicator", here.comm->size);
        }
        ft_say("%s%s: %s", find_call(frames, n), where, what);
        backtrace_symbols_fd(frames, n, STDERR_FILENO);
}

static void on_signal(int signo) {
        report("a repair does not come to its end");
        here.reported = true;
        while (true)
                (void) pause();
}

/* ---- the thread of the library ---- */

static _Noreturn void end_repair(void) {
        const struct sigaction action = { .sa_handler = on_signal };
        const struct timespec brief = { .tv_nsec = 10000000 };

        if (sigaction(SIGABRT, &action, NULL) == 0 && pthread_kill(here.thread, SIGABRT) == 0)
                for (int i = 0; !here.reported && i < STACK_SEC * 100; i++)
                        (void) nanosleep(&brief, NULL);
        if (!here.reported)
                ft_say("a repair does not come to its end");
        _exit(1);
}

int watch_tick(int msec) {
        const char *call = here.call;

        here.call_msec = call && ft.losses.count > here.call_losses ? here.call_msec + msec : 0;
        here.repair_msec = here.repairs ? here.repair_msec + msec : 0;
        /* The exit status is that of a rank that is lost, too: never a job that hangs, or ends as
         * if all were well. */
        if (call && here.call_msec >= CALL_MSEC) {
                ft_say("rank %d was lost in %s, which does not end without it", (int) ft.losses.order[here.call_losses], call);
                _exit(1);
        }
        if (here.repair_msec >= REPAIR_MSEC)
                end_repair();
        return call ? CALL_MSEC / 10 : IDLE_MSEC;
}

void watch_call(const char *call) {
        here.call_losses = ft.losses.count;
        here.call = call;
}

void watch_repair(bool begins) {
        here.thread = pthread_self();
        here.repairs = begins;
}

/* ---- ranks that wait for each other ---- */

void watch_init(void) {
        const char *text = getenv("RMRT_WAIT_LIMIT");

        if (text && *text && parse_i64(text, 1, INT32_MAX, &here.limit_sec) < 0)
                ft_give_up("RMRT_WAIT_LIMIT: '%s' is no number of seconds", text);
}

void watch_enter(const struct comm *c) {
        if (here.depth++ > 0)
                return;
        here.serial++;
        here.comm = c;
}

void watch_leave(void) {
        if (--here.depth == 0)
                here.comm = NULL;
}

static long long bytes_read(void) {
        long long bytes = 0;
        FILE *io = fopen("/proc/self/io", "re");

        if (io && fscanf(io, "rchar: %lld", &bytes) != 1)
                bytes = 0;
        if (io)
                (void) fclose(io);
        return bytes;
}

/* A large message that is still coming in is no standstill. */
static void count_progress(void) {
        long long bytes = bytes_read();

        if (bytes - here.read_bytes > MOVED_BYTES)
                here.serial++;
        here.read_bytes = bytes;
}

static void note_seen(struct seen *s, bool said, uint64_t serial) {
        if (!said) {
                if (++s->missed > 2)
                        s->same = 0;
                return;
        }
        s->missed = 0;
        s->same = s->serial == serial ? s->same + 1 : 0;
        s->serial = serial;
}

static void check_limit(void) {
        note_seen(&here.own, true, here.serial);
        if (here.limit_sec == 0 || here.own.same * SCAN_SEC < here.limit_sec)
                return;
        report("it has waited for longer than it may");
        ft_give_up("RMRT_WAIT_LIMIT is %d s", (int) here.limit_sec);
}

/* True: no rank goes on. */
static bool scan_all(void) {
        bool stuck = true;

        if (!here.seen)
                here.seen = xcalloc((size_t) ft.size, sizeof(*here.seen));
        for (uint32_t i = 0; i < (uint32_t) ft.size; i++) {
                uint64_t serial = here.serial;
                bool said = (int) i == ft.rank;

                if (!members_has(i))
                        continue;
                while ((int) i != ft.rank && meet_receive_waiting(i, &serial))
                        said = true;
                note_seen(&here.seen[i], said, serial);
                stuck = stuck && here.seen[i].same >= LOOKS;
        }
        return stuck;
}

static void end_all(void) {
        for (uint32_t i = 0; i < (uint32_t) ft.size; i++)
                if ((int) i != ft.rank && members_has(i))
                        meet_say_stuck(i);
        report("all ranks that are left wait for others");
        /* The others look within this time, too. */
        (void) sleep(SCAN_SEC + 1);
        ft_give_up("nobody goes on since rank %d was lost", (int) ft.losses.order[0]);
}

static void receive_stuck(uint32_t from) {
        if (!meet_receive_stuck(from))
                return;
        if (!here.stuck.received)
                report("all ranks that are left wait for others");
        here.stuck.received = true;
        here.stuck.serial = here.serial;
        here.stuck.losses = ft.losses.count;
}

/* The rank that has ended the job is lost, the job goes on, and this rank waits as before: mpirun
 * of PRRTE 3.0.8 has not ended the others. They would find out one after the other that they
 * wait. */
static void end_with_others(void) {
        if (!here.stuck.received || here.serial != here.stuck.serial || ft.losses.count == here.stuck.losses)
                return;
        ft_say("ends, as rank %d has, since nobody goes on", (int) ft.losses.order[here.stuck.losses]);
        _exit(1);
}

static void scan(void) {
        uint32_t lowest = members_first();

        count_progress();
        check_limit();
        end_with_others();
        if ((int) lowest == ft.rank) {
                if (scan_all())
                        end_all();
        } else {
                meet_say_waiting(lowest, here.serial);
                receive_stuck(lowest);
        }
}

void watch_scan(void) {
        struct timespec now;

        if (here.depth == 0 || here.looking || ft.threads || ft.ended || ft.losses.count == 0)
                return;
        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - here.scanned < SCAN_SEC)
                return;
        here.scanned = now.tv_sec;
        here.looking = true;
        scan();
        here.looking = false;
}
