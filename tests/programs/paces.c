/* A program of equal steps that tells rmd of each, and knows nothing of MPI. It is built in a test,
 * as users build theirs: with -lrmrt.
 * usage: paces compute|sleep|node USEC STEPS GOAL STOP_FILE     until all steps are done, or the
 *         file is there
 * `compute` takes as long as if two such ranks computed on the cores that it may use. It sleeps
 * too: on a busy machine nobody can tell what a core less costs. `node` takes twice as long on a
 * node that has a file /etc/slow. */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rm/rmrt.h>

static uint64_t usec_of_step(const char *how, uint64_t usec) {
        cpu_set_t cores;

        if (strcmp(how, "node") == 0)
                return access("/etc/slow", F_OK) == 0 ? 2 * usec : usec;
        if (strcmp(how, "compute") != 0 || sched_getaffinity(0, sizeof(cores), &cores) < 0 || CPU_COUNT(&cores) > 1)
                return usec;
        return 2 * usec;
}

int main(int argc, char **argv) {
        uint64_t usec, steps, done = 0;

        if (argc != 6)
                return 2;
        usec = strtoull(argv[2], NULL, 10);
        steps = strtoull(argv[3], NULL, 10);
        rmrt_init();
        rmrt_goal(strtod(argv[4], NULL), 0);
        printf("%s: running\n", argv[0]);
        (void) fflush(stdout);
        while (done < steps && access(argv[5], F_OK) != 0) {
                (void) usleep((useconds_t) usec_of_step(argv[1], usec));
                rmrt_step(++done, steps);
        }
        rmrt_finalize();
        return 0;
}
