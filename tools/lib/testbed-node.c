/* An emulated node: makes its namespaces and mounts, then is its first process and starts commands
 * in it on request.
 *
 * usage: testbed-node boot NODE CGROUP SOCKET PID_FILE CLOCK_AHEAD LAYERS DISK HOME
 *            NODE         host name
 *            CGROUP       the node's control group, which the caller has made
 *            SOCKET       where it listens (a path of the machine)
 *            PID_FILE     gets the pid of the first process as the machine counts, when all is
 *                         there
 *            CLOCK_AHEAD  seconds that CLOCK_MONOTONIC and CLOCK_BOOTTIME are ahead
 *            LAYERS       read-only layers of the root file system, joined by ':', highest first
 *            DISK         upper/ and work/ of the overlay, and root/ to mount it on
 *            HOME         the folder that all nodes share as /home
 *        testbed-node switch CGROUP SOCKET PID_FILE ROOT
 *            only a network, with the programs of ROOT and the machine's pids
 *        testbed-node exec SOCKET [--user U] [--chdir DIR] [--output FILE] [--pid-file FILE]
 *                                 [--detach] [--] CMD [ARG...]
 *            CMD runs in the node as at a fresh login, with the caller's standard input, output
 *            and error, or FILE for both outputs; signals are passed on, the exit code is that of
 *            CMD, or 128 + N. With --detach it is not waited for.
 *        testbed-node ask SOCKET [ARG...]
 *            asks a server that runs in a node, and takes requests as `exec` sends them
 *            (tests/cluster/inside/q): it writes to the caller's standard output and error, and
 *            answers with an exit code. 254: no server is there.
 *
 * `boot` and `switch` return when the place is there. A command costs one process more, instead of
 * a dozen that enter namespaces: the first process is in all of them, and forks. A request travels
 * as strings that each end with a zero byte, beside them the three descriptors (SCM_RIGHTS). The
 * new process reads it by itself, so that a caller that hangs holds up no other. It first sends one
 * byte whose credentials (SCM_CREDENTIALS) tell the caller its pid on the machine, to which signals
 * then go directly. The first process writes the wait status when it has reaped it. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <net/if.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
        /* The strings of one request are what execve takes, and a little for the options. */
        REQUEST_MAX = (2 << 20) + 65536,
        WORDS_MAX = 65536,
};

static _Noreturn void die(const char *format, ...) {
        int error = errno;
        va_list args;

        va_start(args, format);
        (void) fprintf(stderr, "testbed-node: ");
        (void) vfprintf(stderr, format, args);
        (void) fprintf(stderr, ": %s\n", strerror(error));
        va_end(args);
        exit(1);
}

static void write_file(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                die("%s", path);
        (void) close(fd);
}

/* Without a word where it cannot be: a kernel without IPv6 has no such file. */
static void write_if_there(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd < 0)
                return;
        (void) !write(fd, text, strlen(text));
        (void) close(fd);
}

/* --- the place --- */

static void mount_on(const char *type, const char *source, const char *target, unsigned long flags, const char *data) {
        if (mount(source, target, type, flags, data) < 0)
                die("%s on %s", type ? type : source, target);
}

/* In containers that may not make devices the machine's own are bound. */
static void device(const char *name, unsigned int major, unsigned int minor) {
        char path[64], own[64];
        int fd;

        (void) snprintf(path, sizeof(path), "dev/%s", name);
        if (mknod(path, S_IFCHR | 0666, makedev(major, minor)) == 0) {
                /* The mode is set again, whatever the umask is. */
                if (chmod(path, 0666) < 0)
                        die("%s", path);
                return;
        }
        (void) snprintf(own, sizeof(own), "/dev/%s", name);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0)
                die("%s", path);
        (void) close(fd);
        mount_on(NULL, own, path, MS_BIND, NULL);
}

static void make_link(const char *target, const char *path) {
        if (symlink(target, path) < 0)
                die("%s", path);
}

static void make_folder(const char *path, mode_t mode) {
        if (mkdir(path, mode) < 0 || chmod(path, mode) < 0)
                die("%s", path);
}

static void mount_devices(void) {
        mount_on("tmpfs", "rmd-dev", "dev", MS_NOSUID, "mode=0755");
        device("null", 1, 3);
        device("zero", 1, 5);
        device("full", 1, 7);
        device("random", 1, 8);
        device("urandom", 1, 9);
        device("tty", 5, 0);
        make_folder("dev/pts", 0755);
        make_folder("dev/shm", 0755);
        make_link("pts/ptmx", "dev/ptmx");
        make_link("/proc/self/fd", "dev/fd");
        make_link("/proc/self/fd/0", "dev/stdin");
        make_link("/proc/self/fd/1", "dev/stdout");
        make_link("/proc/self/fd/2", "dev/stderr");
        mount_on("devpts", "devpts", "dev/pts", 0, "newinstance,ptmxmode=0666,mode=0620,gid=5");
        mount_on("tmpfs", "tmpfs", "dev/shm", MS_NOSUID | MS_NODEV, "mode=1777");
}

static void loopback_up(void) {
        struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
                die("the loopback device");
        (void) close(fd);
}

static void enter_root(const char *layers, const char *disk, const char *home) {
        char options[4096], path[512];

        if ((size_t) snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s/upper,workdir=%s/work", layers, disk, disk) >=
            sizeof(options)) {
                errno = ENAMETOOLONG;
                die("%s", disk);
        }
        (void) snprintf(path, sizeof(path), "%s/root", disk);
        mount_on("overlay", "rmd-node", path, 0, options);
        if (chdir(path) < 0)
                die("%s", path);
        mount_on(NULL, home, "home", MS_BIND, NULL);
        mount_devices();
        mount_on("tmpfs", "tmpfs", "tmp", MS_NOSUID | MS_NODEV, "mode=1777");
        mount_on("tmpfs", "tmpfs", "run", MS_NOSUID | MS_NODEV, "mode=0755");
        make_folder("run/lock", 01777);
        mount_on("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
        mount_on("sysfs", "sysfs", "sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
        mount_on("cgroup2", "cgroup2", "sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
        /* CRIU refuses to work below a chroot ("No parent found for mountpoint"), so the root is
         * really exchanged. */
        if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
                die("pivot_root to %s", path);
        /* The kernel sends by itself over IPv6, which would be the only traffic of an idle
         * cluster. */
        write_if_there("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
        write_if_there("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        loopback_up();
}

static struct sockaddr_un address_of(const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        if (strlen(path) >= sizeof(address.sun_path)) {
                errno = ENAMETOOLONG;
                die("%s", path);
        }
        strcpy(address.sun_path, path);
        return address;
}

static int listen_at(const char *path) {
        struct sockaddr_un address = address_of(path);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        (void) unlink(path);
        if (fd < 0 || bind(fd, (struct sockaddr *) &address, sizeof(address)) < 0 || listen(fd, 128) < 0)
                die("%s", path);
        return fd;
}

/* --- the new process --- */

/* A request, each word a string of it. */
struct request {
        const char *user, *chdir, *output, *pid_file, *term;
        bool detach;
        char **argv;
};

static size_t receive(int fd, char *buffer, size_t size, int descriptors[3]) {
        char control[CMSG_SPACE(3 * sizeof(int))];
        struct iovec iov = { buffer, size };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
        struct cmsghdr *c;
        ssize_t n = recvmsg(fd, &message, 0);

        if (n < 0)
                die("no request");
        for (c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
                if (c->cmsg_type == SCM_RIGHTS)
                        memcpy(descriptors, CMSG_DATA(c), 3 * sizeof(int));
        return (size_t) n;
}

static struct request read_request(int fd, int descriptors[3]) {
        static char buffer[REQUEST_MAX], *words[WORDS_MAX];
        struct request request;
        uint32_t length = 0;
        size_t have = 0, n, at, count = 0;

        while (have < sizeof(length) || have < sizeof(length) + length) {
                n = receive(fd, buffer + have, sizeof(buffer) - have, descriptors);
                if (n == 0)
                        _exit(1); /* the caller was killed */
                have += n;
                if (have >= sizeof(length))
                        memcpy(&length, buffer, sizeof(length));
        }
        for (at = sizeof(length); at < have && count + 1 < WORDS_MAX; at += strlen(buffer + at) + 1)
                words[count++] = buffer + at;
        request = (struct request) { words[0], words[1], words[2], words[3], words[4], words[5][0] == '1', words + 6 };
        return request;
}

/* The user's identity is taken as login does it, from the node's own /etc/passwd and /etc/group. */
static void become(const char *user, char *home, size_t size) {
        FILE *file = fopen("/etc/passwd", "re");
        struct passwd *p = NULL;
        struct group *g;
        gid_t groups[64];
        size_t count = 0, i;

        if (strcmp(user, "root") == 0) {
                (void) snprintf(home, size, "/root");
                return;
        }
        while (file && (p = fgetpwent(file)) && strcmp(p->pw_name, user) != 0)
                ;
        if (!p) {
                errno = ENOENT;
                die("user %s", user);
        }
        (void) snprintf(home, size, "%s", p->pw_dir);
        groups[count++] = p->pw_gid;
        (void) fclose(file);
        file = fopen("/etc/group", "re");
        while (file && (g = fgetgrent(file)))
                for (i = 0; g->gr_mem[i] && count < 64; i++)
                        if (strcmp(g->gr_mem[i], user) == 0 && g->gr_gid != groups[0])
                                groups[count++] = g->gr_gid;
        if (file)
                (void) fclose(file);
        if (setgroups(count, groups) < 0 || setgid(groups[0]) < 0 || setuid(p->pw_uid) < 0)
                die("user %s", user);
}

static void set_environment(const char *user, const char *home, const char *term) {
        (void) clearenv();
        (void) setenv("HOME", home, 1);
        (void) setenv("USER", user, 1);
        (void) setenv("LOGNAME", user, 1);
        (void) setenv("SHELL", "/bin/bash", 1);
        (void) setenv("LANG", "C.UTF-8", 1);
        (void) setenv("TERM", term[0] ? term : "dumb", 1);
        (void) setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
}

static void set_stdio(const struct request *request, int descriptors[3]) {
        int i, fd;

        for (i = 0; i < 3; i++)
                if (dup2(descriptors[i], i) < 0)
                        _exit(1);
        if (!request->output[0])
                return;
        fd = open(request->output, O_WRONLY | O_CREAT | O_APPEND, 0644);
        if (fd < 0)
                die("%s", request->output);
        (void) dup2(fd, 1);
        (void) dup2(fd, 2);
}

static _Noreturn void run(int connection) {
        int descriptors[3] = { -1, -1, -1 };
        struct request request;
        sigset_t none;
        char text[32], home[256] = "/";

        (void) setsid();
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        /* From here on the caller may send signals to it. */
        (void) !send(connection, "", 1, MSG_NOSIGNAL);
        request = read_request(connection, descriptors);
        set_stdio(&request, descriptors);
        if (request.pid_file[0]) {
                (void) unlink(request.pid_file);
                (void) snprintf(text, sizeof(text), "%d\n", (int) getpid());
                write_file(request.pid_file, text);
        }
        become(request.user, home, sizeof(home));
        set_environment(request.user, home, request.term);
        if (chdir(request.chdir[0] ? request.chdir : home) < 0)
                die("%s", request.chdir[0] ? request.chdir : home);
        (void) syscall(SYS_close_range, 3U, ~0U, 0U);
        (void) execvp(request.argv[0], request.argv);
        (void) fprintf(stderr, "%s: %s\n", request.argv[0], strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
}

/* --- the first process --- */

struct child {
        pid_t pid;
        int connection;
        struct child *next;
};

static void answer_ended(struct child **children) {
        struct child **at, *child;
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
                for (at = children; *at && (*at)->pid != pid; at = &(*at)->next)
                        ;
                child = *at;
                if (!child)
                        continue; /* an orphan of the node */
                (void) !send(child->connection, &status, sizeof(status), MSG_NOSIGNAL);
                (void) close(child->connection);
                *at = child->next;
                free(child);
        }
}

static void answer_caller(int listener, struct child **children) {
        int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        struct child *child;

        if (connection < 0)
                return;
        child = calloc(1, sizeof(*child));
        if (!child || (child->pid = fork()) < 0) {
                free(child);
                (void) close(connection);
                return;
        }
        if (child->pid == 0)
                run(connection);
        child->connection = connection;
        child->next = *children;
        *children = child;
}

static _Noreturn void serve(int listener) {
        struct signalfd_siginfo info;
        struct child *children = NULL;
        struct pollfd polled[2] = { { .fd = listener, .events = POLLIN }, { .events = POLLIN } };
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        polled[1].fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        for (;;) {
                (void) poll(polled, 2, -1);
                while (read(polled[1].fd, &info, sizeof(info)) > 0)
                        ;
                answer_ended(&children);
                answer_caller(listener, &children);
        }
}

static void close_inherited(void) {
        sigset_t none;
        int i;

        for (i = 1; i < NSIG; i++)
                (void) signal(i, SIG_DFL);
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) syscall(SYS_close_range, 3U, ~0U, 0U);
        (void) setsid();
        (void) umask(022);
        if (chdir("/") < 0)
                die("/");
}

static void stdio_to_null(void) {
        int fd = open("/dev/null", O_RDWR), i;

        for (i = 0; fd >= 0 && i < 3; i++)
                (void) dup2(fd, i);
        if (fd > 2)
                (void) close(fd);
}

static void join_cgroup(const char *cgroup) {
        char path[512];

        (void) snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
        write_file(path, "0");
}

/* Waits until the first process has said that all is there. That lives on, and its pid goes into a
 * file that was opened before, since its new root is the caller's as well. */
static int left_behind(pid_t pid, int ready, int pid_file) {
        char byte, text[32];

        if (read(ready, &byte, 1) != 1) {
                (void) waitpid(pid, NULL, 0);
                return 1;
        }
        (void) snprintf(text, sizeof(text), "%d\n", (int) pid);
        if (write(pid_file, text, strlen(text)) < 0)
                die("the file of the pid");
        return 0;
}

static int open_pid_file(const char *path) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        if (fd < 0)
                die("%s", path);
        return fd;
}

/* The place is there: a caller that waits for that may go on. */
static _Noreturn void serve_ready(const int ready[2], int listener) {
        (void) !write(ready[1], "", 1);
        (void) close(ready[0]);
        (void) close(ready[1]);
        stdio_to_null();
        serve(listener);
}

static int boot(char **argv) {
        const char *node = argv[0], *cgroup = argv[1], *socket_path = argv[2], *ahead = argv[4];
        char offsets[128];
        int ready[2], listener, pid_file;
        pid_t pid;

        close_inherited();
        join_cgroup(cgroup);
        pid_file = open_pid_file(argv[3]);
        if (pipe2(ready, O_CLOEXEC) < 0)
                die("pipe");
        if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWCGROUP | CLONE_NEWTIME) < 0)
                die("namespaces");
        (void) snprintf(offsets, sizeof(offsets), "monotonic %s 0\nboottime %s 0\n", ahead, ahead);
        write_file("/proc/self/timens_offsets", offsets);
        pid = fork();
        if (pid < 0)
                die("fork");
        if (pid > 0) {
                (void) close(ready[1]);
                return left_behind(pid, ready[0], pid_file);
        }
        if (sethostname(node, strlen(node)) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                die("%s", node);
        listener = listen_at(socket_path);
        enter_root(argv[5], argv[6], argv[7]);
        serve_ready(ready, listener);
}

static int make_switch(char **argv) {
        const char *cgroup = argv[0], *socket_path = argv[1], *root = argv[3];
        int ready[2], listener, pid_file;
        char path[512];
        pid_t pid;

        close_inherited();
        join_cgroup(cgroup);
        pid_file = open_pid_file(argv[2]);
        if (pipe2(ready, O_CLOEXEC) < 0)
                die("pipe");
        pid = fork();
        if (pid < 0)
                die("fork");
        if (pid > 0) {
                (void) close(ready[1]);
                return left_behind(pid, ready[0], pid_file);
        }
        if (unshare(CLONE_NEWNS | CLONE_NEWNET) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                die("namespaces");
        listener = listen_at(socket_path);
        (void) snprintf(path, sizeof(path), "%s/proc", root);
        mount_on("proc", "proc", path, 0, NULL);
        if (chroot(root) < 0 || chdir("/") < 0)
                die("%s", root);
        loopback_up();
        serve_ready(ready, listener);
}

/* --- a caller --- */

static volatile sig_atomic_t child_fd = -1, early;

static void pass_on(int number) {
        /* A terminal's Ctrl-C reaches only the caller's session: the command is in another one. */
        if (child_fd < 0)
                early = number;
        else
                (void) pidfd_send_signal(child_fd, number, NULL, 0);
}

static void add_word(char **at, const char *end, const char *word) {
        size_t length = strlen(word) + 1;

        if ((size_t) (end - *at) < length) {
                errno = E2BIG;
                die("the command");
        }
        memcpy(*at, word, length);
        *at += length;
}

static void send_request(int fd, const char *request, size_t length) {
        const int descriptors[3] = { 0, 1, 2 };
        char control[CMSG_SPACE(sizeof(descriptors))] = "";
        struct iovec iov = { (char *) request, length };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        ssize_t n;

        *c = (struct cmsghdr) { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(descriptors)) };
        memcpy(CMSG_DATA(c), descriptors, sizeof(descriptors));
        while (length > 0) {
                n = sendmsg(fd, &message, MSG_NOSIGNAL);
                if (n < 0)
                        die("the node does not take the command");
                length -= (size_t) n;
                iov = (struct iovec) { (char *) iov.iov_base + n, length };
                message.msg_control = NULL;
                message.msg_controllen = 0;
        }
}

/* The command's pid as the caller counts, from the credentials of the first byte; -1: it has ended
 * before. */
static pid_t receive_pid(int fd) {
        char byte, control[CMSG_SPACE(sizeof(struct ucred))];
        struct iovec iov = { &byte, 1 };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
        struct cmsghdr *c;
        struct ucred credentials;
        ssize_t n;

        while ((n = recvmsg(fd, &message, 0)) < 0 && errno == EINTR)
                ;
        for (c = CMSG_FIRSTHDR(&message); n == 1 && c; c = CMSG_NXTHDR(&message, c))
                if (c->cmsg_type == SCM_CREDENTIALS) {
                        memcpy(&credentials, CMSG_DATA(c), sizeof(credentials));
                        return credentials.pid;
                }
        return -1;
}

enum { NO_SERVER = 254 };

static int ask(char **argv) {
        static char request[REQUEST_MAX];
        struct sockaddr_un address = address_of(*argv++);
        char *at = request + sizeof(uint32_t);
        uint32_t length;
        unsigned char code;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        for (; *argv; argv++)
                add_word(&at, request + sizeof(request), *argv);
        length = (uint32_t) (at - request - sizeof(length));
        memcpy(request, &length, sizeof(length));
        if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
                return NO_SERVER;
        send_request(fd, request, (size_t) (at - request));
        return recv(fd, &code, 1, 0) == 1 ? code : NO_SERVER;
}

static int receive_status(int fd) {
        char buffer[sizeof(int)];
        size_t have = 0;
        ssize_t n;
        int status;

        while (have < sizeof(buffer)) {
                n = recv(fd, buffer + have, sizeof(buffer) - have, 0);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return 128 + SIGKILL; /* the node has lost its power */
                have += (size_t) n;
        }
        memcpy(&status, buffer, sizeof(status));
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void catch_signals(void) {
        static const int passed[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
        struct sigaction action = { .sa_handler = pass_on };
        size_t i;

        for (i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
                (void) sigaction(passed[i], &action, NULL);
}

static int call(char **argv) {
        static char request[REQUEST_MAX];
        const char *user = "root", *folder = "", *output = "", *pid_file = "", *term = getenv("TERM");
        const char *socket_path = *argv++;
        char *at = request + sizeof(uint32_t), *end = request + sizeof(request);
        struct sockaddr_un address = address_of(socket_path);
        bool detach = false;
        uint32_t length;
        int fd, on = 1;
        pid_t pid;

        for (; *argv && strncmp(*argv, "--", 2) == 0; argv++) {
                if (strcmp(*argv, "--") == 0) {
                        argv++;
                        break;
                }
                if (strcmp(*argv, "--detach") == 0)
                        detach = true;
                else if (argv[1] && strcmp(*argv, "--user") == 0)
                        user = *++argv;
                else if (argv[1] && strcmp(*argv, "--chdir") == 0)
                        folder = *++argv;
                else if (argv[1] && strcmp(*argv, "--output") == 0)
                        output = *++argv;
                else if (argv[1] && strcmp(*argv, "--pid-file") == 0)
                        pid_file = *++argv;
                else {
                        errno = EINVAL;
                        die("%s", *argv);
                }
        }
        if (!*argv) {
                errno = EINVAL;
                die("no command");
        }
        add_word(&at, end, user);
        add_word(&at, end, folder);
        add_word(&at, end, output);
        add_word(&at, end, pid_file);
        add_word(&at, end, term ? term : "");
        add_word(&at, end, detach ? "1" : "0");
        for (; *argv; argv++)
                add_word(&at, end, *argv);
        length = (uint32_t) (at - request - sizeof(length));
        memcpy(request, &length, sizeof(length));

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
                die("socket");
        if (connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0) {
                (void) fprintf(stderr, "testbed-node: the node is off (%s: %s)\n", socket_path, strerror(errno));
                return 1;
        }
        catch_signals();
        send_request(fd, request, (size_t) (at - request));
        pid = receive_pid(fd);
        if (pid > 0) {
                child_fd = pidfd_open(pid, 0);
                if (early)
                        (void) pidfd_send_signal(child_fd, early, NULL, 0);
        }
        return detach && pid > 0 ? 0 : receive_status(fd);
}

int main(int argc, char **argv) {
        if (argc == 10 && strcmp(argv[1], "boot") == 0)
                return boot(argv + 2);
        if (argc == 6 && strcmp(argv[1], "switch") == 0)
                return make_switch(argv + 2);
        if (argc >= 4 && strcmp(argv[1], "exec") == 0)
                return call(argv + 2);
        if (argc >= 3 && strcmp(argv[1], "ask") == 0)
                return ask(argv + 2);
        (void) fprintf(stderr, "usage: testbed-node boot|switch|exec|ask ... (see tools/lib/testbed-node.c)\n");
        return 2;
}
