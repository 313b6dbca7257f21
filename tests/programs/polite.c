/* Takes the place of libc's sched_yield(), which Open MPI calls while it waits for a message when
 * it was told to yield (mpi_yield_when_idle). A real yield comes back at once as long as another
 * rank yields too: a dozen ranks that wait would keep a small machine busy with nothing. This one
 * sleeps, the longer, the longer nothing has come. It is part of each program here, and a library
 * for programs of others: in nodes of tests in place of rm-yield.so (see `cluster` in
 * tests/cluster/lib.sh). */
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A call that comes so soon after the last one has nothing but waiting between them. */
#define SOON_NSEC 100000
#define FIRST_NSEC 50000
#define LONGEST_NSEC 400000

int sched_yield(void) {
        static _Thread_local int64_t last, length;
        struct timespec now = { 0 }, moment = { 0 };

        /* The call is made without libc: it must be there below each of them. */
        (void) syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
        if (now.tv_sec * INT64_C(1000000000) + now.tv_nsec - last > SOON_NSEC || length == 0)
                length = FIRST_NSEC;
        moment.tv_nsec = length;
        if (length < LONGEST_NSEC)
                length += length / 4;
        (void) syscall(SYS_nanosleep, &moment, NULL);
        (void) syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
        last = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
        return 0;
}
