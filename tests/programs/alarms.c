/* One-shot timers: each rank sets one of every kind, and each must go off once, in time, however
 * often the rank has moved.
 *
 * usage: alarms [--seconds=S] --stop-file=F
 *   --seconds   until they go off (default 10)
 * ITIMER_REAL is set by alarm() in even ranks and by setitimer() in odd ones. Says "running" when
 * all are set, and "RANK fired" when all of a rank have gone off. */
#include <mpi.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/timerfd.h>

#include "common.h"

enum { REAL, VIRTUAL, POSIX, TIMERFD, KINDS };

static const char *const names[KINDS] = { "alarm", "virtual itimer", "timer_create", "timerfd" };

struct shot {
        volatile sig_atomic_t count;
        volatile int64_t fired_usec;
};

static struct shot shots[KINDS];

static void note(int kind) {
        shots[kind].count++;
        shots[kind].fired_usec = now_usec();
}

static void on_signal(int signo) {
        note(signo == SIGALRM ? REAL : signo == SIGVTALRM ? VIRTUAL : POSIX);
}

static void set_timers(int rank, int64_t seconds, int timer_fd) {
        const struct itimerval once = { .it_value.tv_sec = seconds };
        const struct itimerval soon = { .it_value.tv_usec = 300000 };
        const struct itimerspec at = { .it_value.tv_sec = seconds };
        struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
        struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
        timer_t timer;

        (void) sigaction(SIGALRM, &action, NULL);
        (void) sigaction(SIGVTALRM, &action, NULL);
        (void) sigaction(SIGUSR1, &action, NULL);
        if (rank % 2 == 0)
                (void) alarm((unsigned) seconds);
        else
                (void) setitimer(ITIMER_REAL, &once, NULL);
        if (setitimer(ITIMER_VIRTUAL, &soon, NULL) < 0 || timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 ||
            timer_settime(timer, 0, &at, NULL) < 0 || timerfd_settime(timer_fd, 0, &at, NULL) < 0)
                abort();
}

static bool all_fired(void) {
        for (int i = 0; i < KINDS; i++)
                if (shots[i].count == 0)
                        return false;
        return true;
}

/* The virtual timer counts the time of this rank only, so that it goes off after the move the rank
 * works no sooner. */
static void work_a_little(bool moved) {
        int64_t end = now_usec() + 2000;

        while (moved && now_usec() < end)
                ;
}

static int judge(int rank, int64_t due_usec) {
        int bad = 0;

        for (int i = 0; i < KINDS; i++) {
                int64_t late = shots[i].fired_usec - due_usec;
                /* A loaded machine is late, and a rank that stands still cannot hear. */
                bool good = shots[i].count == 1 && (i == VIRTUAL || (late >= -1000 && late < 5000000));

                printf("alarms: rank %d: %s went off %d times, %lld ms late: %s\n", rank, names[i], (int) shots[i].count,
                       (long long) late / 1000, good ? "good" : "BAD");
                bad += !good;
        }
        return bad;
}

int main(int argc, char **argv) {
        int64_t seconds = option_number(argc, argv, "seconds", 10);
        const char *stop_file = option_text(argc, argv, "stop-file", "/nonexistent");
        int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        int64_t due_usec;
        bool reported = false;
        int all_bad;
        int bad;
        int go = 1;
        int rank;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Barrier(MPI_COMM_WORLD);
        due_usec = now_usec() + seconds * 1000000;
        set_timers(rank, seconds, timer_fd);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
                printf("alarms: running\n");
                (void) fflush(stdout);
        }
        while (go) {
                uint64_t n;

                if (read(timer_fd, &n, sizeof(n)) == (ssize_t) sizeof(n))
                        note(TIMERFD);
                if (!reported && all_fired()) {
                        reported = true;
                        printf("alarms: rank %d fired\n", rank);
                        (void) fflush(stdout);
                }
                work_a_little(now_usec() >= due_usec);
                pause_usec(10000);
                go = access(stop_file, F_OK) != 0;
                MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        bad = judge(rank, due_usec);
        MPI_Allreduce(&bad, &all_bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0)
                printf("alarms: %s\n", all_bad ? "BAD" : "good");
        MPI_Finalize();
        return all_bad ? 1 : 0;
}
