/* Open files that CRIU refuses are seen before CRIU is asked, and those that are like them but
 * carried are not taken for them. Here: all descriptors but sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "common/util.h"
#include "tests/unit/capsule/verify/holders.h"

static void open_path(const char *path) {
        must(open(path, O_RDONLY) >= 0);
}

static void file_of_thread(void) {
        open_path("/proc/thread-self/stat");
}

static void directory_of_thread(void) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/self/task/%d", (int) getpid());
        must(chdir(path) == 0);
}

static pid_t other_thread;

static void *note_number(void *arg) {
        other_thread = (pid_t) syscall(SYS_gettid);
        return stay(arg);
}

static void file_of_thread_by_number(void) {
        char path[64];
        pthread_t thread;

        must(pthread_create(&thread, NULL, note_number, NULL) == 0);
        while (*(volatile pid_t *) &other_thread == 0)
                (void) usleep(1000);
        (void) snprintf(path, sizeof(path), "/proc/%d/stat", (int) other_thread);
        open_path(path);
}

static void file_of_process(void) {
        open_path("/proc/self/stat");
}

static pid_t open_file_of_killed(void) {
        char path[64];
        pid_t pid = fork();

        if (pid == 0)
                (void) stay(NULL);
        (void) snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        open_path(path);
        must(kill(pid, SIGKILL) == 0);
        return pid;
}

static void file_of_ended_process(void) {
        pid_t pid = open_file_of_killed();

        must(waitpid(pid, NULL, 0) == pid);
}

/* The child is not waited for, so it is restored. */
static void file_of_zombie(void) {
        (void) open_file_of_killed();
}

static void terminal(bool closed) {
        int master = posix_openpt(O_RDWR | O_NOCTTY);

        must(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0 && open(ptsname(master), O_RDWR | O_NOCTTY) >= 0);
        must(!closed || close(master) == 0);
}

/* A terminal with these settings, into whose master this is typed, and to whose slave that is
 * printed. */
static int last_master, last_slave;
static void use_terminal(bool raw, tcflag_t local, const char *typed, const char *printed) {
        int master = last_master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK), slave;
        struct termios settings;

        must(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
        slave = last_slave = open(ptsname(master), O_RDWR | O_NOCTTY);
        must(slave >= 0 && tcgetattr(slave, &settings) == 0);
        if (raw)
                cfmakeraw(&settings);
        settings.c_lflag = (settings.c_lflag & ~(tcflag_t) (ECHO | ICANON | ISIG)) | local;
        must(tcsetattr(slave, TCSANOW, &settings) == 0);
        must(write(master, typed, strlen(typed)) == (ssize_t) strlen(typed));
        must(write(slave, printed, strlen(printed)) == (ssize_t) strlen(printed));
}

static void typed_line(void) {
        use_terminal(false, ICANON, "a line\n", "");
}

static void typed_with_echo(void) {
        use_terminal(true, ECHO, "key", "");
}

static void typed_with_signals(void) {
        use_terminal(true, ISIG, "key", "");
}

static void printed_lines(void) {
        use_terminal(false, 0, "", "two\nlines\n");
}

static void printed_in_packets(void) {
        int on = 1;

        use_terminal(true, 0, "", "");
        must(ioctl(last_master, TIOCPKT, &on) == 0);
        must(write(last_slave, "x", 1) == 1);
}

static void raw_terminal(void) {
        use_terminal(true, 0, "a line\n", "two\nlines\n");
}

/* The holder leads a group, and cannot begin a session before it has left that. */
static void begin_session(void) {
        must(setpgid(0, getpgid(getppid())) == 0 && setsid() == getpid());
        use_terminal(true, 0, "", "");
        must(ioctl(last_slave, TIOCSCTTY, 0) == 0);
}

static void own_terminal(void) {
        begin_session();
        must(open("/dev/tty", O_RDWR | O_NOCTTY) >= 0);
}

static void own_terminal_by_another_name(void) {
        begin_session();
        must(open(ptsname(last_master), O_RDWR | O_NOCTTY) >= 0);
}

static void hung_terminal(void) {
        terminal(true);
}

static void ordinary_terminal(void) {
        terminal(false);
}

static void packets(int flags) {
        int ends[2];

        must(pipe2(ends, flags) == 0);
}

static void packet_pipe(void) {
        packets(O_DIRECT);
}

static void ordinary_pipe(void) {
        packets(O_NONBLOCK);
}

static void packet_fifo(void) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/dev/shm/rmd-test-fifo.%d", (int) getpid());
        must(mkfifo(path, 0600) == 0);
        if (open(path, O_RDWR | O_DIRECT) < 0)
                errno = errno == EINVAL ? EPROTONOSUPPORT : errno;
        else
                errno = 0;
        (void) unlink(path);
        must(errno == 0);
}

static void pidfd_of(pid_t pid, unsigned flags) {
        must(syscall(SYS_pidfd_open, pid, flags) >= 0);
}

static void pidfd_of_first(void) {
        pidfd_of(1, 0);
}

static void pidfd_of_itself(void) {
        pidfd_of(getpid(), 0);
}

static void pidfd_of_zombie(void) {
        pid_t pid = fork();

        if (pid == 0)
                _exit(0);
        pidfd_of(pid, 0);
}

static void pidfd_of_thread(void) {
        if (syscall(SYS_pidfd_open, getpid(), O_EXCL) < 0)
                _exit(NOTHING_LIKE_THAT);
}

static void big_file(int64_t bytes, bool named) {
        char path[64];
        int fd;

        (void) snprintf(path, sizeof(path), "/tmp/rmd-test-big.%d", (int) getpid());
        fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
        must(fd >= 0 && ftruncate(fd, INT64_C(1) << 40) == 0 && fallocate(fd, 0, 0, bytes) == 0);
        must(named || unlink(path) == 0);
}

static void big_file_without_name(void) {
        big_file((INT64_C(1) << 30) + 4096, false);
}

static void sparse_file_without_name(void) {
        big_file(4096, false);
}

/* Opened by its path only: a socket, a FIFO, and a directory. */
static void path_only(int (*make)(const char *path)) {
        char path[64];
        int made;

        (void) snprintf(path, sizeof(path), "/tmp/rmd-test-path.%d", (int) getpid());
        made = make(path);
        must(made == 0 && open(path, O_PATH) >= 0);
        (void) remove(path);
}

static int make_socket(const char *path) {
        struct sockaddr_un name = { .sun_family = AF_UNIX };

        (void) snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
        return bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *) &name, sizeof(name));
}

static int make_fifo(const char *path) {
        return mkfifo(path, 0600);
}

static int make_directory(const char *path) {
        return mkdir(path, 0700);
}

static void path_of_socket(void) {
        path_only(make_socket);
}

static void path_of_fifo(void) {
        path_only(make_fifo);
}

static void path_of_directory(void) {
        path_only(make_directory);
}

/* ---- of inotify ---- */

/* Makes a file where it watches, and reads what it is told of that, or not. */
static void watch_directory(uint32_t mask, bool read_events) {
        char path[64], events[4096];
        int fd = inotify_init1(IN_NONBLOCK);

        (void) snprintf(path, sizeof(path), "/dev/shm/rmd-test-watched.%d", (int) getpid());
        must(mkdir(path, 0700) == 0 && fd >= 0 && inotify_add_watch(fd, path, mask) >= 0);
        must(rmdir(path) == 0);
        while (read_events && read(fd, events, sizeof(events)) > 0)
                ;
}

static void unread_events(void) {
        watch_directory(IN_DELETE_SELF, false);
}

static void unread_end_of_watch(void) {
        watch_directory(IN_OPEN, false);
}

static void read_events(void) {
        watch_directory(IN_DELETE_SELF, true);
}

/* ---- of names ---- */

/* The holder's own directory, which the test removes. */
static const char *own_directory(void) {
        static char path[64];

        (void) snprintf(path, sizeof(path), "/dev/shm/rmd-test-names.%d", (int) getpid());
        must(mkdir(path, 0755) == 0 && chdir(path) == 0);
        return path;
}

/* Goes down so many directories with names of 200 bytes. */
static void go_down(int levels) {
        char name[201];

        memset(name, 'd', 200);
        name[200] = '\0';
        (void) own_directory();
        for (int i = 0; i < levels; i++)
                must(mkdir(name, 0755) == 0 && chdir(name) == 0);
}

static void hold_file_below(int levels) {
        go_down(levels);
        must(open("file", O_RDWR | O_CREAT, 0600) >= 0 && chdir("/") == 0);
}

static void long_path(void) {
        hold_file_below(21);
}

static void rather_long_path(void) {
        hold_file_below(20);
}

static void long_directory(void) {
        go_down(21);
}

static void long_mapping(void) {
        int fd;

        go_down(21);
        fd = open("file", O_RDWR | O_CREAT, 0600);
        must(fd >= 0 && ftruncate(fd, 4096) == 0 && mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
        must(close(fd) == 0 && chdir("/") == 0);
}

/* A line of /proc/PID/maps is longer than who looks there keeps. */
static void very_long_mapping(void) {
        int fd;

        go_down(60);
        fd = open("file", O_RDWR | O_CREAT, 0600);
        must(fd >= 0 && ftruncate(fd, 4096) == 0 && mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
        must(close(fd) == 0 && chdir("/") == 0);
}

enum { OWNER = 65534 };

/* The process is as after an exec() of the owner's. */
static void become_owner(void) {
        must(setgroups(0, NULL) == 0 && setresgid(OWNER, OWNER, OWNER) == 0 && setresuid(OWNER, OWNER, OWNER) == 0);
        must(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
}

/* A file in directories one below the other, of which the outer one has this mode and owner
 * afterwards. */
static void file_in(mode_t outer, uid_t uid) {
        const char *path = own_directory();

        must(mkdir("inner", 0755) == 0 && open("inner/file", O_RDWR | O_CREAT, 0666) >= 0);
        must(chmod(path, outer) == 0 && chown(path, uid, uid) == 0);
}

static void in_closed_directory(void) {
        file_in(0, OWNER);
        must(chdir("/") == 0);
        become_owner();
}

static void in_directory_of_others(void) {
        file_in(0750, 0);
        must(chdir("/") == 0);
        become_owner();
}

static void in_directory_that_others_list(void) {
        file_in(0744, 0);
        must(chdir("/") == 0);
        become_owner();
}

static void deleted_in_closed_directory(void) {
        file_in(0600, OWNER);
        must(unlink("inner/file") == 0 && chdir("/") == 0);
        become_owner();
}

static void works_in_closed_directory(void) {
        const char *path = own_directory();

        must(chown(path, OWNER, OWNER) == 0 && chmod(path, 0600) == 0);
        become_owner();
}

static void in_directory_to_search(void) {
        file_in(0711, 0);
        must(chdir("/") == 0);
        become_owner();
}

static void in_removed_directory(void) {
        const char *path = own_directory();

        must(rmdir(path) == 0);
        become_owner();
}

/* ---- of epoll ---- */

/* A descriptor in an epoll set, made by `make`; the process has it no more, and a child has. */
static int set;

static void watch_and_leave_to_child(int fd) {
        struct epoll_event event = { .events = EPOLLIN };

        set = epoll_create1(0);
        must(fd >= 0 && set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
        if (fork() == 0)
                (void) stay(NULL);
        must(close(fd) == 0);
}

static void watched_pipe_left(void) {
        int ends[2];

        must(pipe(ends) == 0);
        watch_and_leave_to_child(ends[0]);
        must(close(ends[1]) == 0);
}

/* The number is used again, for something that is in the set as well. */
static void watched_number_used_again(void) {
        struct epoll_event event = { .events = EPOLLIN };
        int ends[2], fd;

        connect_inet(ends);
        fd = accept(ends[0], NULL, NULL);
        watch_and_leave_to_child(fd);
        must(dup2(ends[1], fd) == fd && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
}

/* All of these have one inode. */
static void watched_eventfd_left(void) {
        watch_and_leave_to_child(eventfd(0, 0));
        must(eventfd(0, 0) >= 0);
}

static void watched_by_another_number(void) {
        struct epoll_event event = { .events = EPOLLIN };
        int other = eventfd(0, 0), fd = eventfd(0, 0);

        set = epoll_create1(0);
        must(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0 && epoll_ctl(set, EPOLL_CTL_ADD, other, &event) == 0);
        must(dup(fd) >= 0 && close(fd) == 0);
}

static void watched_set(void) {
        struct epoll_event event = { .events = EPOLLIN };

        set = epoll_create1(0);
        must(epoll_ctl(set, EPOLL_CTL_ADD, epoll_create1(0), &event) == 0);
}

/* A directory that the owner may not search is seen before the freeze, which does not wait for
 * it. */
static void test_unsearchable(void **state) {
        static const struct {
                void (*hold)(void);
                enum blocker_kind kind;
        } cases[] = {
                { in_closed_directory, BLOCKER_UNSEARCHABLE },
                { in_directory_of_others, BLOCKER_UNSEARCHABLE },
                { in_directory_that_others_list, BLOCKER_UNSEARCHABLE },
                { deleted_in_closed_directory, BLOCKER_UNSEARCHABLE },
                { works_in_closed_directory, BLOCKER_UNSEARCHABLE },
                { in_directory_to_search, BLOCKER_NONE },
                { in_removed_directory, BLOCKER_NONE },
        };
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct blocker_scope scope = {
                .proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), .spec = &spec, .budget = SIZE_MAX, .cpu_usec = 60000000
        };

        (void) state;
        spec.uid = spec.gid = OWNER;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                pid_t pid = start_holder(cases[i].hold);
                struct blocker running, frozen;

                assert_true(pid > 0);
                scope.frozen = false;
                blockers_of_processes(&scope, &pid, 1, &running, NULL);
                scope.frozen = true;
                blockers_of_processes(&scope, &pid, 1, &frozen, NULL);
                (void) kill(pid, SIGKILL);
                (void) waitpid(pid, NULL, 0);
                if (running.kind != cases[i].kind || frozen.kind != BLOCKER_NONE)
                        fail_msg("case %zu: %d (%s), not %d; frozen %d", i, (int) running.kind, running.detail, (int) cases[i].kind,
                                 (int) frozen.kind);
        }
        (void) close(scope.proc);
        (void) !system("rm -rf /dev/shm/rmd-test-names.*");
}

static void test_kinds(void **state) {
        static const struct holder holders[] = {
                { "thread-self", file_of_thread, BLOCKER_THREAD_FILE, false },
                { "directory", directory_of_thread, BLOCKER_THREAD_FILE, false },
                { "thread by number", file_of_thread_by_number, BLOCKER_THREAD_FILE, false },
                { "process", file_of_process, BLOCKER_NONE, false },
                { "ended process", file_of_ended_process, BLOCKER_THREAD_FILE, false },
                { "zombie", file_of_zombie, BLOCKER_NONE, false },
                { "hung terminal", hung_terminal, BLOCKER_HUNG_TERMINAL, false },
                { "own terminal", own_terminal, BLOCKER_OWN_TERMINAL, false },
                { "own terminal by another name", own_terminal_by_another_name, BLOCKER_NONE, false },
                { "terminal", ordinary_terminal, BLOCKER_NONE, false },
                { "typed line", typed_line, BLOCKER_COOKED_TERMINAL, true },
                { "typed, echoed", typed_with_echo, BLOCKER_COOKED_TERMINAL, true },
                { "typed, signals", typed_with_signals, BLOCKER_COOKED_TERMINAL, true },
                { "printed lines", printed_lines, BLOCKER_COOKED_TERMINAL, true },
                { "printed in packets", printed_in_packets, BLOCKER_COOKED_TERMINAL, true },
                { "raw terminal", raw_terminal, BLOCKER_NONE, false },
                { "packets", packet_pipe, BLOCKER_PACKET_PIPE, false },
                { "FIFO", packet_fifo, BLOCKER_PACKET_PIPE, false },
                { "pipe", ordinary_pipe, BLOCKER_NONE, false },
                { "pidfd 1", pidfd_of_first, BLOCKER_PIDFD, false },
                { "pidfd", pidfd_of_itself, BLOCKER_NONE, false },
                { "pidfd, zombie", pidfd_of_zombie, BLOCKER_NONE, false },
                { "pidfd, thread", pidfd_of_thread, BLOCKER_PIDFD, false },
                { "big", big_file_without_name, BLOCKER_BIG_FILE, false },
                { "sparse", sparse_file_without_name, BLOCKER_NONE, false },
                { "O_PATH, socket", path_of_socket, BLOCKER_PATH_ONLY, false },
                { "O_PATH, FIFO", path_of_fifo, BLOCKER_PATH_ONLY, false },
                { "O_PATH, directory", path_of_directory, BLOCKER_NONE, false },
                { "epoll, pipe", watched_pipe_left, BLOCKER_EPOLL, false },
                { "epoll, number", watched_number_used_again, BLOCKER_EPOLL, false },
                { "epoll, eventfd", watched_eventfd_left, BLOCKER_EPOLL, true },
                { "epoll, duplicate", watched_by_another_number, BLOCKER_NONE, false },
                { "epoll, epoll", watched_set, BLOCKER_NONE, false },
                { "long path", long_path, BLOCKER_LONG_PATH, false },
                { "rather long path", rather_long_path, BLOCKER_NONE, false },
                { "long directory", long_directory, BLOCKER_LONG_PATH, false },
                { "long mapping", long_mapping, BLOCKER_LONG_PATH, true },
                { "very long mapping", very_long_mapping, BLOCKER_LONG_PATH, true },
                { "unread events", unread_events, BLOCKER_UNREAD_EVENTS, true },
                { "unread end of a watch", unread_end_of_watch, BLOCKER_UNREAD_EVENTS, true },
                { "read events", read_events, BLOCKER_NONE, true },
        };

        (void) state;
        check_holders(holders, ARRAY_SIZE(holders));
        (void) !system("rm -rf /dev/shm/rmd-test-names.*");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_kinds),
                cmocka_unit_test(test_unsearchable),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
