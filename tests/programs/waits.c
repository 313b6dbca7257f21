/* Threads that wait for nothing, each by another system call with a time limit, over and over: each
 * must wait as long as it was told (or longer, after a move), and none may be interrupted.
 *
 * usage: waits [--seconds=S] --stop-file=F
 *   --seconds   how long each waits (default 2)
 * Says "running" when all wait, and after each full round of a thread "waits: RANK NAME waited".
 * The main thread waits with poll(). */
#include <linux/futex.h>
#include <mpi.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "common.h"

struct call {
        const char *name;
        int (*wait)(int64_t usec); /* 0: it waited to its end; else errno */
};

static int64_t wait_usec;
static atomic_bool over;
static atomic_int bad;
static int rank;
static int silent[2]; /* a pipe into which nobody writes */

static struct timespec spec_of(int64_t usec) {
        return (struct timespec) { .tv_sec = usec / 1000000, .tv_nsec = usec % 1000000 * 1000 };
}

static int outcome(long r, int expected) {
        if (r >= 0)
                return expected == 0 ? 0 : EPROTO;
        return errno == expected ? 0 : errno;
}

static int by_poll(int64_t usec) {
        struct pollfd fd = { silent[0], POLLIN, 0 };

        return outcome(poll(&fd, 1, (int) (usec / 1000)), 0);
}

static int by_ppoll(int64_t usec) {
        struct pollfd fd = { silent[0], POLLIN, 0 };
        struct timespec limit = spec_of(usec);

        return outcome(ppoll(&fd, 1, &limit, NULL), 0);
}

static int by_select(int64_t usec) {
        struct timeval limit = { usec / 1000000, usec % 1000000 };
        fd_set set;

        FD_ZERO(&set);
        FD_SET(silent[0], &set);
        return outcome(select(silent[0] + 1, &set, NULL, NULL, &limit), 0);
}

static int by_epoll(int64_t usec) {
        struct epoll_event event;
        int fd = epoll_create1(EPOLL_CLOEXEC);
        int r = outcome(epoll_wait(fd, &event, 1, (int) (usec / 1000)), 0);

        (void) close(fd);
        return r;
}

static int by_usleep(int64_t usec) {
        const struct timespec limit = spec_of(usec);

        return outcome(nanosleep(&limit, NULL), 0);
}

static int by_nanosleep(int64_t usec) {
        const struct timespec limit = spec_of(usec);
        struct timespec left;

        return outcome(nanosleep(&limit, &left), 0);
}

static int by_clock(int64_t usec) {
        const struct timespec limit = spec_of(usec);

        return clock_nanosleep(CLOCK_MONOTONIC, 0, &limit, NULL);
}

static int by_futex(int64_t usec) {
        const struct timespec limit = spec_of(usec);
        int word = 1;

        return outcome(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, &limit, NULL, 0), ETIMEDOUT);
}

static int by_condition(int64_t usec) {
        pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        struct timespec at = spec_of(now_usec() + usec);
        pthread_condattr_t monotonic;
        pthread_cond_t changed;
        int r;

        (void) pthread_condattr_init(&monotonic);
        (void) pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        (void) pthread_cond_init(&changed, &monotonic);
        (void) pthread_mutex_lock(&lock);
        r = pthread_cond_timedwait(&changed, &lock, &at);
        (void) pthread_mutex_unlock(&lock);
        return r == ETIMEDOUT ? 0 : r;
}

static int by_signal(int64_t usec) {
        const struct timespec limit = spec_of(usec);
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGRTMAX);
        return outcome(sigtimedwait(&set, NULL, &limit), EAGAIN);
}

static int by_semaphore(int64_t usec) {
        const struct timespec limit = spec_of(usec);
        struct sembuf take = { 0, -1, 0 };
        int id = semget(IPC_PRIVATE, 1, 0600);
        int r = outcome(semtimedop(id, &take, 1, &limit), EAGAIN);

        (void) semctl(id, 0, IPC_RMID);
        return r;
}

static int by_socket(int64_t usec) {
        const struct timeval limit = { usec / 1000000, usec % 1000000 };
        int pair[2];
        char byte;
        int r;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ||
            setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)
                return errno;
        r = outcome(recv(pair[0], &byte, 1, 0), EAGAIN);
        (void) close(pair[0]);
        (void) close(pair[1]);
        return r;
}

static const struct call calls[] = {
        { "ppoll", by_ppoll },         { "select", by_select },         { "epoll_wait", by_epoll }, { "usleep", by_usleep },
        { "nanosleep", by_nanosleep }, { "clock_nanosleep", by_clock }, { "futex", by_futex },      { "condition", by_condition },
        { "sigtimedwait", by_signal }, { "semtimedop", by_semaphore },  { "recv", by_socket },      { "poll", by_poll },
};
enum { CALLS = sizeof(calls) / sizeof(*calls) };

static void wait_once(const struct call *call) {
        int64_t begun = now_usec();
        int error = call->wait(wait_usec);
        int64_t waited = now_usec() - begun;

        if (error == 0 && waited >= wait_usec - 20000) {
                printf("waits: %d %s waited\n", rank, call->name);
        } else {
                printf("waits: %d %s: BAD: %s after %lld ms\n", rank, call->name, strerror(error), (long long) waited / 1000);
                atomic_fetch_add(&bad, 1);
        }
        (void) fflush(stdout);
}

static void *run(void *call) {
        while (!atomic_load(&over))
                wait_once(call);
        return NULL;
}

int main(int argc, char **argv) {
        const char *stop_file = option_text(argc, argv, "stop-file", "/nonexistent");
        pthread_t threads[CALLS];
        sigset_t set;
        int all_bad;
        int mine;
        int go = 1;

        wait_usec = option_number(argc, argv, "seconds", 2) * 1000000;
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGRTMAX);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        if (pipe(silent) < 0)
                abort();
        for (int i = 0; i < CALLS - 1; i++)
                if (pthread_create(&threads[i], NULL, run, (void *) &calls[i]) != 0)
                        abort();
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
                printf("waits: running\n");
                (void) fflush(stdout);
        }
        while (go) {
                wait_once(&calls[CALLS - 1]);
                go = access(stop_file, F_OK) != 0;
                MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        atomic_store(&over, true);
        for (int i = 0; i < CALLS - 1; i++)
                (void) pthread_join(threads[i], NULL);
        mine = atomic_load(&bad);
        MPI_Allreduce(&mine, &all_bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0)
                printf("waits: %s\n", all_bad ? "BAD" : "good");
        MPI_Finalize();
        return all_bad ? 1 : 0;
}
