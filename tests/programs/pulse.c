/* Says every few milliseconds that it runs, as long as its parent does: beside a rank, in the
 * rank's capsule, it shows when that runs and whether there are two of it. Every line has the next
 * number, so one that is there twice, or out of order, was written by a second copy.
 *
 * usage: pulse FILE     appends "NUMBER MICROSECONDS-SINCE-THE-EPOCH" lines */
#include <fcntl.h>

#include "common.h"

int main(int argc, char **argv) {
        pid_t parent = getppid();
        int fd = argc == 2 ? open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;

        if (fd < 0) {
                perror("pulse");
                return 2;
        }
        for (unsigned long number = 1; getppid() == parent; number++) {
                char text[64];
                int n = snprintf(text, sizeof(text), "%lu %lld\n", number, (long long) clock_usec(CLOCK_REALTIME));

                if (write(fd, text, (size_t) n) != n)
                        return 3;
                pause_usec(5000);
        }
        return 0;
}
