/* Pseudo-terminals across moves: the end of file that a master has not read yet is still there, and
 * an open one stays open.
 *
 * usage: hangup --stop-file=F [--unread]
 * Each rank has a terminal whose child has written its last words and ended, one whose child lives,
 * and one that nobody has opened yet. It reads the last words, but with --unread, says "running",
 * waits for F, and then reads on: the first has to be at its end (with --unread after the last
 * words), the second to echo, the third to wait. */
#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>

#include "common.h"

enum { WAIT_MSEC = 5000 };

static int make_master(void) {
        int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

        if (master < 0)
                abort();
        return master;
}

/* Forks a child with the slave end as its standard output and, if `lives`, as its input: then it
 * hands back each byte plus 1. */
static pid_t start_child(int master, bool lives) {
        pid_t child;
        char byte;
        int slave;

        if (grantpt(master) < 0 || unlockpt(master) < 0)
                abort();
        child = fork();
        if (child != 0)
                return child;
        slave = open(ptsname(master), O_RDWR | O_NOCTTY);
        if (lives) {
                struct termios raw;

                (void) tcgetattr(slave, &raw);
                cfmakeraw(&raw);
                (void) tcsetattr(slave, TCSANOW, &raw);
        }
        (void) !write(slave, "last words\n", 11);
        while (lives && read(slave, &byte, 1) == 1) {
                byte++;
                (void) !write(slave, &byte, 1);
        }
        _exit(0);
}

/* The state of the descriptor: 'b'ytes can be read, the 'e'nd, or nothing but a 'w'ait. */
static char scan(int fd, char *buffer, size_t size, size_t *ret_bytes) {
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
        ssize_t n;

        *ret_bytes = 0;
        if (poll(&poll_fd, 1, WAIT_MSEC) <= 0)
                return 'w';
        n = read(fd, buffer, size);
        if (n <= 0)
                return 'e';
        *ret_bytes = (size_t) n;
        return 'b';
}

static void read_last_words(int master) {
        char buffer[256];
        size_t n;

        if (scan(master, buffer, sizeof(buffer), &n) != 'b' || !memchr(buffer, '\n', n))
                abort();
}

static bool ends(int master, bool unread) {
        char buffer[256];
        size_t n, total = 0;
        char what;

        while ((what = scan(master, buffer, sizeof(buffer), &n)) == 'b')
                total += n;
        printf("hangup: %zu bytes, then %s\n", total, what == 'e' ? "the end" : "no end: BAD");
        return what == 'e' && (total > 0) == unread;
}

static bool lives(int master) {
        char buffer[256];
        size_t n = 0;

        while (write(master, "a", 1) == 1 && scan(master, buffer, sizeof(buffer), &n) == 'b')
                if (memchr(buffer, 'b', n))
                        return true;
        printf("hangup: the child that lives does not answer: BAD\n");
        return false;
}

static bool waits(int master) {
        struct pollfd poll_fd = { .fd = master, .events = POLLIN };
        bool good = poll(&poll_fd, 1, 200) == 0;

        if (!good)
                printf("hangup: a terminal that nobody has opened has ended: BAD\n");
        return good;
}

int main(int argc, char **argv) {
        const char *stop_file = option_text(argc, argv, "stop-file", "/nonexistent");
        int ended = make_master(), living = make_master(), unopened = make_master();
        pid_t ended_child = start_child(ended, false), living_child = start_child(living, true);
        bool unread = option_set(argc, argv, "unread");
        int bad, all_bad, rank;

        (void) waitpid(ended_child, NULL, 0);
        if (!unread)
                read_last_words(ended);
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
                printf("hangup: running\n");
                (void) fflush(stdout);
        }
        while (access(stop_file, F_OK) != 0)
                pause_usec(20000);
        bad = !ends(ended, unread) + !lives(living) + !waits(unopened);
        (void) kill(living_child, SIGKILL);
        MPI_Allreduce(&bad, &all_bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0)
                printf("hangup: %s\n", all_bad ? "BAD" : "good");
        MPI_Finalize();
        return all_bad ? 1 : 0;
}
