#include "common/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

static int spawn(const struct child_spec *spec, pid_t *ret_pid) {
        short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
        posix_spawn_file_actions_t files;
        posix_spawnattr_t attributes;
        sigset_t none, all;
        int r;

        if (spec->leads_group)
                flags |= POSIX_SPAWN_SETPGROUP; /* of its own number, as long as none is set */
        (void) sigemptyset(&none);
        (void) sigfillset(&all);
        (void) posix_spawn_file_actions_init(&files);
        (void) posix_spawnattr_init(&attributes);
        if (spec->streams[STDIN_FILENO] < 0)
                (void) posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        for (int i = 0; i < 3; i++)
                if (spec->streams[i] >= 0)
                        (void) posix_spawn_file_actions_adddup2(&files, spec->streams[i], i);
        (void) posix_spawn_file_actions_addclosefrom_np(&files, 3);
        (void) posix_spawnattr_setsigmask(&attributes, &none);
        (void) posix_spawnattr_setsigdefault(&attributes, &all);
        (void) posix_spawnattr_setflags(&attributes, flags);
        r = posix_spawn(ret_pid, spec->program, &files, &attributes, spec->argv, spec->environment);
        (void) posix_spawn_file_actions_destroy(&files);
        (void) posix_spawnattr_destroy(&attributes);
        return -r;
}

int child_start(const struct child_spec *spec, pid_t *ret_pid, int *ret_pidfd) {
        pid_t pid;
        int pidfd;
        int r = spawn(spec, &pid);

        if (r < 0)
                return r;
        pidfd = pidfd_open(pid, 0);
        if (pidfd < 0) {
                r = -errno;
                (void) kill(spec->leads_group ? -pid : pid, SIGKILL);
                (void) waitpid(pid, NULL, 0);
                return r;
        }
        *ret_pid = pid;
        *ret_pidfd = pidfd;
        return 0;
}
