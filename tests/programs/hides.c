/* Has what its user could not read himself: in a descriptor by O_PATH, in one that is under way in
 * a socket, or in memory, from before it gave up root.
 *
 * usage: hides --how=path|queue|memory|read --file=FILE --stop-file=FILE
 *   path    has FILE open by O_PATH
 *   queue   the same, but in the queue of a socket of its own only
 *   memory  has read FILE as root, being set-user-ID, and has then become its user for ever
 *   read    has FILE open for reading */
#include <fcntl.h>
#include <sys/socket.h>

#include "common.h"

static char secret[4096];

static void put_into_queue(int fd) {
        char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
        struct iovec part = { &byte, 1 };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        int ends[2];

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0 || sendmsg(ends[0], &message, 0) != 1)
                exit(1);
        (void) close(fd);
}

int main(int argc, char **argv) {
        const char *how = option_text(argc, argv, "how", "path");
        const char *file = option_text(argc, argv, "file", "/etc/shadow");
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        bool reads = strcmp(how, "memory") == 0 || strcmp(how, "read") == 0;
        int fd = open(file, reads ? O_RDONLY : O_PATH);

        if (fd < 0 || !stop_file) {
                perror(file);
                return 1;
        }
        if (strcmp(how, "queue") == 0)
                put_into_queue(fd);
        if (strcmp(how, "memory") == 0 &&
            (read(fd, secret, sizeof(secret)) <= 0 || close(fd) < 0 || setresuid(getuid(), getuid(), getuid()) < 0))
                return 1;
        puts("hides: running");
        fflush(stdout);
        while (access(stop_file, F_OK) != 0)
                pause_usec(20000);
        return 0;
}
