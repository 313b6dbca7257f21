/* What a hostile program can do at the door: random bytes, half messages, as fast as it can, without librmrt. Ends after some seconds.
 *
 * usage: knock SECONDS */
#include <errno.h>
#include <mpi.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "common.h"

#define MESSAGE_MAX 4096

int main(int argc, char **argv) {
        static const struct sockaddr_un door = { .sun_family = AF_UNIX, .sun_path = "/run/rm/door" };
        long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 5;
        int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
        static unsigned char data[MESSAGE_MAX];
        uint64_t seed = (uint64_t) getpid();
        long sent = 0, refused = 0;
        time_t end;

        MPI_Init(&argc, &argv);
        end = time(NULL) + seconds;
        while (time(NULL) < end) {
                size_t size = random_next(&seed) % (sizeof(data) + 1);

                for (size_t i = 0; i < size; i += 8) {
                        uint64_t word = random_next(&seed);

                        memcpy(data + i, &word, 8);
                }
                /* Of many it is at least a Request with something in it, and a rank. */
                if (seed & 1) {
                        data[0] = 0x0a;
                        data[1] = (unsigned char) (size > 2 && size < 130 ? size - 2 : 6);
                        data[2] = 0x08;
                }
                if (sendto(fd, data, size, seed & 2 ? MSG_DONTWAIT : 0, (const struct sockaddr *) &door, sizeof(door)) < 0)
                        refused++;
                else
                        sent++;
        }
        (void) close(fd);
        (void) printf("knock: %ld sent, %ld refused\n", sent, refused);
        MPI_Finalize();
        return 0;
}
