/* Attacks PID 1's socket as a hostile program can: random bytes, half messages, answers to what
 * nobody asked, as fast as it can, without librmrt. It says that ranks listen that there are not,
 * and one that there is and that never reads. Ends after some seconds, or once FILE is there.
 *
 * usage: knock SECONDS [FILE] */
#include <errno.h>
#include <mpi.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "common.h"

#define MESSAGE_MAX 4096

/* The bytes of a Request: its field, the bytes that follow, and the rank. */
enum { FIELD_REPORT = 0x0a, FIELD_LISTEN = 0x12, FIELD_ANSWER = 0x1a, FIELD_RANK = 0x08, FIELD_SECOND = 0x10, ALL_EVENTS = 0x3e };

/* Binds the name of a rank, and asks to be told all events. */
static int listen_deafly(const struct sockaddr_un *program_socket) {
        static const unsigned char listen[] = { FIELD_LISTEN, 4, FIELD_RANK, 100, FIELD_SECOND, ALL_EVENTS };
        static const struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0rm/rank/100" };
        int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

        (void) bind(fd, (const struct sockaddr *) &name, offsetof(struct sockaddr_un, sun_path) + 1 + strlen("rm/rank/100"));
        (void) sendto(fd, listen, sizeof(listen), 0, (const struct sockaddr *) program_socket, sizeof(*program_socket));
        return fd;
}

int main(int argc, char **argv) {
        static const struct sockaddr_un program_socket = { .sun_family = AF_UNIX, .sun_path = "/run/rm/door" };
        long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 5;
        int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
        static const unsigned char fields[] = { FIELD_REPORT, FIELD_LISTEN, FIELD_ANSWER };
        static unsigned char data[MESSAGE_MAX];
        int deaf = listen_deafly(&program_socket);
        uint64_t seed = (uint64_t) getpid();
        long sent = 0, refused = 0;
        time_t end;

        MPI_Init(&argc, &argv);
        end = time(NULL) + seconds;
        while (time(NULL) < end && (argc < 3 || access(argv[2], F_OK) < 0)) {
                size_t size = random_next(&seed) % (sizeof(data) + 1);

                for (size_t i = 0; i < size; i += 8) {
                        uint64_t word = random_next(&seed);

                        memcpy(data + i, &word, 8);
                }
                /* Every second message is at least a Request with some content, and a rank. */
                if (seed & 1) {
                        data[0] = fields[random_next(&seed) % sizeof(fields)];
                        data[1] = (unsigned char) (size > 2 && size < 130 ? size - 2 : 6);
                        data[2] = FIELD_RANK;
                }
                if (sendto(fd, data, size, seed & 2 ? MSG_DONTWAIT : 0, (const struct sockaddr *) &program_socket,
                           sizeof(program_socket)) < 0)
                        refused++;
                else
                        sent++;
        }
        (void) close(fd);
        (void) close(deaf);
        (void) printf("knock: %ld sent, %ld refused\n", sent, refused);
        MPI_Finalize();
        return 0;
}
