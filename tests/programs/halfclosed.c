/* A TCP connection of which one end has said its last word and the other has not: it stays so, and
 * the second end speaks later. Another one is closed at both ends, and the last word was not read.
 *
 * usage: halfclosed --stop-file=F     "halfclosed: good" when both directions came to their right
 *                                     end after F has appeared */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "common.h"

static void give_up(const char *what) {
        perror(what);
        exit(1);
}

static void make_pair(int *ret_near, int *ret_far) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(address);
        int listener = socket(AF_INET, SOCK_STREAM, 0);

        if (bind(listener, (const struct sockaddr *) &address, sizeof(address)) < 0 || listen(listener, 1) < 0 ||
            getsockname(listener, (struct sockaddr *) &address, &size) < 0)
                give_up("listen");
        *ret_near = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(*ret_near, (const struct sockaddr *) &address, sizeof(address)) < 0)
                give_up("connect");
        *ret_far = accept(listener, NULL, NULL);
        if (*ret_far < 0)
                give_up("accept");
        (void) close(listener);
}

/* "TEXT" and then the end. */
static void expect(int fd, const char *text) {
        char have[32] = "";
        size_t n = 0;
        ssize_t r;

        while (n < sizeof(have) - 1 && (r = read(fd, have + n, sizeof(have) - 1 - n)) > 0)
                n += (size_t) r;
        if (strcmp(have, text) != 0) {
                (void) fprintf(stderr, "halfclosed: '%s' came, not '%s'\n", have, text);
                exit(1);
        }
}

int main(int argc, char **argv) {
        const char *stop_file = option_text(argc, argv, "stop-file", "/tmp/stop");
        int near, far, closed, other;

        make_pair(&closed, &other);
        if (shutdown(closed, SHUT_WR) < 0 || write(other, "farewell", 8) != 8 || close(other) < 0)
                give_up("close");
        make_pair(&near, &far);
        if (write(near, "last words", 10) != 10 || shutdown(near, SHUT_WR) < 0)
                give_up("shutdown");
        printf("halfclosed: running\n");
        (void) fflush(stdout);
        while (access(stop_file, F_OK) != 0)
                pause_usec(20000);
        expect(far, "last words");
        if (write(far, "answer", 6) != 6)
                give_up("write");
        (void) close(far);
        expect(near, "answer");
        expect(closed, "farewell");
        printf("halfclosed: good\n");
        return 0;
}
