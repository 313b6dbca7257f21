#include "daemon/capsule/init/ranks/ending.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/capsule/init/core.h"
#include "daemon/capsule/init/ranks/launched.h"
#include "daemon/capsule/init/ranks/park.h"

/* Nothing tells PID 1 when a process ends that a rank has started: it looks again after this
 * time. */
enum { SCAN_USEC = 50000 };

/* The first process of a rank. */
struct rank {
        pid_t pid;
        unsigned group; /* of processes, which is the rank's alone; 0: it has none */
        bool exits;     /* it is held where it is about to exit */
};

struct ending {
        struct core *core;
        struct park *park;
        struct rank *ranks;
        size_t n;
        int signo;
        bool waits; /* `ticket` is to get a reply */
        bool over;  /* nothing is held any more */
        struct ticket ticket;
        uint64_t end_usec;
        uint64_t scan_usec;
};

struct ending *ending_create(struct core *core, struct park *park) {
        struct ending *ending = xcalloc(1, sizeof(*ending));

        ending->core = core;
        ending->park = park;
        ending->scan_usec = UINT64_MAX;
        return ending;
}

void ending_destroy(struct ending *ending) {
        if (!ending)
                return;
        free(ending->ranks);
        free(ending);
}

int ending_signal(const struct ending *ending) {
        return ending->signo;
}

uint64_t ending_deadline(const struct ending *ending) {
        return ending->scan_usec;
}

/* ---- which processes ---- */

static unsigned group_of_parent(const struct launched_process *all, size_t n, pid_t parent) {
        for (size_t i = 0; i < n; i++)
                if (all[i].pid == parent)
                        return all[i].group;
        return 0;
}

static void find_ranks(struct ending *ending) {
        cleanup_free struct launched_process *all = NULL;
        size_t n = launched_read(&all);

        ending->n = launched_ranks(all, n, getpid());
        ending->ranks = xcalloc(ending->n + 1, sizeof(*ending->ranks));
        for (size_t i = 0; i < ending->n; i++) {
                bool own = all[i].group > 1 && all[i].group != group_of_parent(all, n, all[i].parent);

                ending->ranks[i] = (struct rank) { .pid = all[i].pid, .group = own ? all[i].group : 0 };
        }
}

/* A process that another one traces, such as a debugger, cannot be held: mpirun hears of its
 * end. */
static void hold(const struct rank *rank) {
        if (ptrace(PTRACE_SEIZE, rank->pid, NULL, (long) PTRACE_O_TRACEEXIT) < 0 && errno != ESRCH)
                log_info("the end of rank process %d cannot be held: %s", (int) rank->pid, strerror(errno));
}

static void send_signal(const struct rank *rank, int signo) {
        pid_t to = rank->group ? -(pid_t) rank->group : rank->pid;

        if (to == 0)
                return; /* it has ended */
        (void) kill(to, signo);
        (void) kill(to, SIGCONT); /* one that is stopped would not take it */
}

static bool is_of(const struct launched_process *process, const struct rank *rank) {
        return rank->group ? process->group == rank->group : process->pid == rank->pid;
}

/* A first thread may end before the others. */
static bool runs(const struct launched_process *process, const struct rank *rank) {
        bool exits = process->pid == rank->pid && rank->exits && process->threads <= 1;

        return !process->ended && !exits && is_of(process, rank);
}

static bool any_runs(const struct ending *ending) {
        cleanup_free struct launched_process *all = NULL;
        size_t n = launched_read(&all);

        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < ending->n; k++)
                        if (runs(&all[i], &ending->ranks[k]))
                                return true;
        return false;
}

/* ---- what follows ---- */

static void scan(struct ending *ending) {
        uint64_t now = now_usec();

        if (!ending->waits)
                return;
        if (now < ending->end_usec && any_runs(ending)) {
                park_stir(ending->park); /* a parked group must run for it */
                ending->scan_usec = now + SCAN_USEC < ending->end_usec ? now + SCAN_USEC : ending->end_usec;
                return;
        }
        ending->waits = false;
        ending->scan_usec = UINT64_MAX;
        ending->core->ops->reply(ending->core, ending->ticket, 0, NULL);
}

void ending_timeout(struct ending *ending) {
        scan(ending);
}

void ending_order(struct ending *ending, const Capsule__EndRanks *order, struct ticket ticket) {
        bool first = ending->signo == 0, other = ending->signo != order->signo;

        park_stir(ending->park);
        if (first) {
                ending->end_usec = now_usec() + order->wait_usec;
                find_ranks(ending);
        }
        for (size_t i = 0; i < ending->n && first; i++)
                hold(&ending->ranks[i]);
        for (size_t i = 0; i < ending->n && other; i++)
                send_signal(&ending->ranks[i], order->signo);
        ending->signo = order->signo;
        ending->ticket = ticket;
        ending->waits = true;
        ending->core->ops->send_status(ending->core); /* rmd knows it before it has the reply */
        scan(ending);
}

/* ---- what is held ---- */

static struct rank *find(struct ending *ending, pid_t pid) {
        for (size_t i = 0; i < ending->n; i++)
                if (ending->ranks[i].pid == pid)
                        return &ending->ranks[i];
        return NULL;
}

static bool is_stop_signal(int signo) {
        return signo == SIGSTOP || signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU;
}

/* The process goes on as if it were not traced, but for its end. */
static void go_on(const struct ending *ending, struct rank *rank, int wait_status) {
        int signo = WSTOPSIG(wait_status), event = wait_status >> 16;

        if (event == PTRACE_EVENT_EXIT && !ending->over)
                rank->exits = true;
        else if (event == PTRACE_EVENT_STOP && is_stop_signal(signo))
                (void) ptrace(PTRACE_LISTEN, rank->pid, NULL, NULL);
        else
                (void) ptrace(PTRACE_CONT, rank->pid, NULL, event ? 0L : (long) signo);
}

bool ending_reaped(struct ending *ending, pid_t pid, int wait_status) {
        struct rank *rank = find(ending, pid);

        if (!rank)
                return false;
        if (WIFSTOPPED(wait_status))
                go_on(ending, rank, wait_status);
        else
                rank->pid = 0; /* its number may come again */
        if (rank->exits || rank->pid == 0)
                scan(ending);
        return true;
}

/* SIGKILL does not wake what is held there. */
void ending_let_go(struct ending *ending) {
        int status;

        ending->over = true;
        for (size_t i = 0; i < ending->n; i++) {
                struct rank *rank = &ending->ranks[i];

                if (rank->exits)
                        (void) ptrace(PTRACE_CONT, rank->pid, NULL, NULL);
                rank->exits = false;
                while (rank->pid > 0 && waitpid(rank->pid, &status, WNOHANG | __WALL) > 0)
                        (void) ending_reaped(ending, rank->pid, status);
        }
}
