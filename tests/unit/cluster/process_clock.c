/* The clock of a program, and of the libraries it uses: it goes on by at most 20 ms between two
 * looks. Where the machine gives the process no processor, or a disk keeps it waiting, nobody in it
 * then takes that time for the silence of another node. Who sleeps looks in between. */
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NSEC INT64_C(1000000000)
#define STEP_NSEC INT64_C(20000000) /* four ticks of the loop in cluster_test.h */

static int64_t kernel_nsec(clockid_t clock) {
        struct timespec time = { 0 };

        (void) syscall(SYS_clock_gettime, clock, &time);
        return time.tv_sec * SECOND_NSEC + time.tv_nsec;
}

int clock_gettime(clockid_t clock, struct timespec *ret) {
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static int64_t last_nsec, lost_nsec; /* of CLOCK_MONOTONIC; the other clocks lose the same */
        int64_t now_nsec;

        if (clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID)
                return (int) syscall(SYS_clock_gettime, clock, ret);
        (void) pthread_mutex_lock(&lock);
        now_nsec = kernel_nsec(CLOCK_MONOTONIC);
        if (last_nsec > 0 && now_nsec - last_nsec > STEP_NSEC)
                lost_nsec += now_nsec - last_nsec - STEP_NSEC;
        last_nsec = now_nsec;
        now_nsec = kernel_nsec(clock) - lost_nsec;
        (void) pthread_mutex_unlock(&lock);
        *ret = (struct timespec) { .tv_sec = now_nsec / SECOND_NSEC, .tv_nsec = now_nsec % SECOND_NSEC };
        return 0;
}
