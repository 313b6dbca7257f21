/* Memory that need not be carried (rmrt_exclude): filled at the begin, and looked at in the end.
 * With the library, so it is built by its test.
 *
 * usage: scratch --stop-file=FILE --mib=N [--carry] [--deaf]     carry: it is not excluded; deaf:
 *         no step before the end */
#include <mpi.h>
#include <rm/rmrt.h>

#include "common.h"

#define FILLED 0x5a

/* Nothing that a codec makes smaller. */
static void fill(unsigned char *memory, size_t bytes) {
        uint64_t seed = 1;

        for (size_t i = 0; i < bytes; i += 8) {
                uint64_t word = random_next(&seed);

                memcpy(memory + i, &word, 8);
                if (i % 4096 == 0)
                        memory[i] = FILLED;
        }
}

/* Counts pages: with the first byte as it was, with zero, and others. */
static void scan(const unsigned char *memory, size_t bytes, size_t pages[3]) {
        for (size_t i = 0; i < bytes; i += 4096)
                pages[memory[i] == FILLED ? 0 : memory[i] == 0 ? 1 : 2]++;
}

int main(int argc, char **argv) {
        const char *stop_file = option_text(argc, argv, "stop-file", "");
        size_t bytes = (size_t) option_number(argc, argv, "mib", 16) << 20, pages[3] = { 0 };
        bool saved_state = option_set(argc, argv, "carry"), deaf = option_set(argc, argv, "deaf");
        unsigned char *memory = malloc(bytes), *kept = malloc(4096);
        uint64_t done = 0;

        (void) MPI_Init(&argc, &argv);
        (void) rmrt_init();
        if (!memory || !kept)
                return 2;
        fill(memory, bytes);
        memset(kept, FILLED, 4096);
        if (!saved_state && rmrt_exclude(memory, bytes) < 0)
                return 3;
        (void) printf("scratch: running\n");
        (void) fflush(stdout);
        while (access(stop_file, F_OK) < 0) {
                pause_usec(5000);
                if (!deaf)
                        (void) rmrt_step(++done, 0);
        }
        scan(memory, bytes, pages);
        (void) printf("scratch: %zu pages as they were, %zu zero, %zu others; kept %s\n", pages[0], pages[1], pages[2],
                      kept[0] == FILLED && kept[4095] == FILLED ? "whole" : "LOST");
        if (!saved_state && rmrt_include(memory, bytes) < 0)
                return 4;
        free(memory);
        free(kept);
        rmrt_finalize();
        (void) MPI_Finalize();
        return 0;
}
