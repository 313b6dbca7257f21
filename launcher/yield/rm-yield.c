/*
 * rm-yield: sched_yield(2) for the ranks of a job, which Open MPI calls whenever it has found no
 * message (mpi_yield_when_idle). Preloaded into them by rmd.
 *
 * A rank with a core of its own must not pay for that: most of its calls return without the kernel.
 * A rank that shares its core must leave it to the others while it waits, or each of them polls for
 * whole time slices. Which of both holds changes while the program runs, and depends on more than
 * its own job, so each thread finds out for itself, from what the kernel counts: whether it was
 * preempted, and for how long others had its core.
 *
 * No call blocks: at worst it is one real yield and one look at the counters. A thread alone on its
 * core pays one of both every SCAN_NSEC; with others there, they get at most GIVEN_FACTOR times the
 * time that it has itself (see `credit_nsec`).
 *
 * It depends on no library, keeps nothing but a few numbers in each thread, has no constructor and
 * opens nothing: CRIU restores it like the program's own memory, and it goes on after a move with
 * what it finds there.
 */
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Time between two looks, each of which takes some 0.7 us with its yield, and how many calls may
 * return at once meanwhile. Polling shared memory takes some 60 ns a call, TCP 1 us and more. */
#define SCAN_NSEC 250000
#define ANSWERED_CALLS_MIN 64
#define ANSWERED_CALLS_MAX 4096
/* Polling shows that the core is shared only at the end of a time slice. So a thread that has seen
 * it goes on yielding until so many yields in a row, some 0.2 ms, have come back with no other
 * thread on the core. */
#define VAIN_YIELDS 256
/* Where another thread computes on the core, a yield lasts a time slice, in which thousands of
 * messages might have come. So a thread that has given others more than so many times what it has
 * had itself polls instead until that holds again: it never blocks, and takes no more than a
 * sixteenth of the core from those that compute there. */
#define GIVEN_FACTOR 8
/* Processor time that was used long ago does not count. */
#define CREDIT_NSEC INT64_C(100000000)

struct thread {
        uint32_t left; /* calls that return at once */
        uint32_t window; /* calls between the last look and the next */
        uint32_t answered; /* calls that may return at once between two looks on a core of its own; 0: not known yet */
        uint32_t yields; /* to be made one by one: the core was shared lately */
        int64_t credit_nsec; /* for which the others may yet have the core, by our yields; negative: poll */
        /* The figures of the last look; all 0: there was none. */
        int64_t now_nsec;
        int64_t used_nsec; /* processor time */
        long preempted; /* how often */
};

static _Thread_local struct thread self;

static int64_t read_clock(clockid_t id) {
        struct timespec t = { 0 };

        (void) syscall(SYS_clock_gettime, id, &t);
        return (int64_t) t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Reads what happened since the last look: processor time that the thread has used, and time that
 * others had its core. Time in which it has slept or waited for a file counts as theirs only if it
 * was preempted too. */
static void scan_kernel(struct thread *t, int64_t *ret_used_nsec, int64_t *ret_lost_nsec) {
        struct thread last = *t;
        struct rusage usage = { 0 };

        (void) syscall(SYS_getrusage, RUSAGE_THREAD, &usage);
        t->preempted = usage.ru_nivcsw;
        t->used_nsec = read_clock(CLOCK_THREAD_CPUTIME_ID);
        t->now_nsec = read_clock(CLOCK_MONOTONIC);
        *ret_used_nsec = *ret_lost_nsec = 0;
        if (last.now_nsec == 0 || t->used_nsec < last.used_nsec)
                return; /* the first one, or the first after a move: the kernel counts again */
        *ret_used_nsec = t->used_nsec - last.used_nsec;
        if (t->preempted != last.preempted)
                *ret_lost_nsec = t->now_nsec - last.now_nsec - *ret_used_nsec;
}

static int64_t within(int64_t x, int64_t min, int64_t max) {
        if (x < min)
                return min;
        return x > max ? max : x;
}

static void count_credit(struct thread *t, int64_t used_nsec, int64_t lost_nsec) {
        int64_t gained_nsec = within(used_nsec, 0, CREDIT_NSEC) * GIVEN_FACTOR;

        t->credit_nsec = within(t->credit_nsec + gained_nsec - lost_nsec, -CREDIT_NSEC, CREDIT_NSEC);
}

/* `used_nsec`: in the calls since the last look. */
static void poll_on(struct thread *t, int64_t used_nsec) {
        if (t->window > 1)
                t->answered = (uint32_t) within((int64_t) t->window * SCAN_NSEC / within(used_nsec, 1, INT64_MAX),
                                                ANSWERED_CALLS_MIN, ANSWERED_CALLS_MAX);
        else if (t->answered == 0)
                t->answered = ANSWERED_CALLS_MIN;
        t->window = t->answered;
        t->left = t->window - 1; /* the last one looks */
}

/* Apart, so that an answered call is a few instructions. */
__attribute__((noinline)) static void yield(struct thread *t) {
        int64_t used_nsec, lost_nsec;

        if (t->credit_nsec >= 0)
                (void) syscall(SYS_sched_yield);
        scan_kernel(t, &used_nsec, &lost_nsec);
        count_credit(t, used_nsec, lost_nsec);
        /* Short tasks of the kernel do not come to a third of the time. */
        if (lost_nsec > used_nsec / 3)
                t->yields = VAIN_YIELDS;
        else if (t->yields > 0)
                t->yields--;
        if (t->yields == 0 || t->credit_nsec < 0)
                poll_on(t, used_nsec);
        else
                t->window = 1;
}

/* The call never fails, as on Linux. */
int sched_yield(void) {
        struct thread *t = &self;

        if (t->left > 0)
                t->left--;
        else
                yield(t);
        return 0;
}
