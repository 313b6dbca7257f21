/* Slows a program that reports its steps (rmrt_step) and takes them as fast as it can: each takes
 * some milliseconds more, in which it computes nothing. This is a library, for LD_PRELOAD, with
 * polite.so and mpi_yield_when_idle, as the ranks wait for each other, too. */
#include <dlfcn.h>
#include <stdint.h>
#include <unistd.h>

#define PACE_USEC 5000

int rmrt_step(uint64_t done, uint64_t total);

int rmrt_step(uint64_t done, uint64_t total) {
        static int (*reported)(uint64_t done, uint64_t total);

        if (!reported)
                *(void **) &reported = dlsym(RTLD_NEXT, "rmrt_step");
        (void) usleep(PACE_USEC);
        return reported(done, total);
}
