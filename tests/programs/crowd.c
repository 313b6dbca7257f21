/* Computes on as many cores as it can get: threads, some of them started late, which take the right
 * to every core. Says how many it got.
 *
 * usage: crowd [--threads=N] [--late=N] [--wide] [--stop-file=F] [--seconds=S]
 *   --threads  at once (2), --late: as many more every second, --wide: each binds itself to all
 *              cores, over and over
 * A line each second: "crowd: rank R used 1.98 cores". Ends with F, or after S seconds (120). */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>

#include "common.h"

enum { THREADS_MAX = 64, SPIN = 200000, SECOND_USEC = 1000000 };

static volatile bool over;
static bool wide;

static void *compute(void *arg) {
        volatile uint64_t sum = 0;
        cpu_set_t all;

        (void) arg;
        memset(&all, 0xff, sizeof(all));
        while (!over) {
                if (wide)
                        (void) sched_setaffinity(0, sizeof(all), &all);
                for (int i = 0; i < SPIN && !over; i++)
                        sum += (uint64_t) i;
        }
        return NULL;
}

static int start(pthread_t *threads, int n, long more) {
        for (; more > 0 && n < THREADS_MAX; more--)
                if (pthread_create(&threads[n], NULL, compute, NULL) == 0)
                        n++;
        return n;
}

int main(int argc, char **argv) {
        pthread_t threads[THREADS_MAX];
        int64_t end = now_usec() + option_number(argc, argv, "seconds", 120) * SECOND_USEC;
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        long late = option_number(argc, argv, "late", 0);
        int n = 0;
        int rank;

        wide = option_set(argc, argv, "wide");
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        n = start(threads, n, option_number(argc, argv, "threads", 2));
        printf("crowd: running\n");
        (void) fflush(stdout);
        while (now_usec() < end && !(stop_file && access(stop_file, F_OK) == 0)) {
                int64_t wall = now_usec(), used = clock_usec(CLOCK_PROCESS_CPUTIME_ID);

                pause_usec(SECOND_USEC);
                used = clock_usec(CLOCK_PROCESS_CPUTIME_ID) - used;
                printf("crowd: rank %d used %.2f cores\n", rank, (double) used / (double) (now_usec() - wall));
                (void) fflush(stdout);
                n = start(threads, n, late);
        }
        over = true;
        for (int i = 0; i < n; i++)
                (void) pthread_join(threads[i], NULL);
        MPI_Finalize();
        printf("crowd: done\n");
        return 0;
}
