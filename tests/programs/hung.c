/*
 * An automounter that does not answer, for the directory named: whoever walks into it hangs as on a
 * server that is gone, until this program ends.
 *
 * usage: hung DIRECTORY
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

int main(int argc, char **argv) {
        int requests[2], signal_number;
        char options[128];
        sigset_t set;

        if (argc != 2 || pipe2(requests, O_CLOEXEC) < 0)
                return 2;
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTERM);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        (void) setpgid(0, 0); /* this group alone may pass */
        (void) snprintf(options, sizeof(options), "fd=%d,pgrp=%d,minproto=5,maxproto=5,indirect", requests[1], (int) getpgrp());
        if (mount("hung", argv[1], "autofs", 0, options) < 0) {
                perror("hung: mount");
                return 2;
        }
        (void) printf("hung: running\n");
        (void) fflush(stdout);
        (void) sigwait(&set, &signal_number); /* and nothing reads the requests */
        (void) umount2(argv[1], MNT_DETACH);
        return 0;
}
