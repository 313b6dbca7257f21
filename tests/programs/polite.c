/* Takes the place of libc's sched_yield(), which Open MPI calls while it waits for a message when it was told to yield
 * (mpi_yield_when_idle). A real yield comes back at once as long as another rank yields too: a dozen ranks that wait would
 * keep a small machine busy with nothing. This one sleeps. Part of each program here; a library for programs of others. */
#include <sched.h>
#include <time.h>

int sched_yield(void) {
        struct timespec moment = { .tv_nsec = 100000 };

        (void) nanosleep(&moment, NULL);
        return 0;
}
