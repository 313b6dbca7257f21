/* A process that CRIU refuses is seen before CRIU is asked, and one that is like it but carried is
 * not taken for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/init/net/sock_diag.h"
#include "daemon/capsule/init/verify/blocker_scan.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

enum { NOTHING_LIKE_THAT = 77 }; /* exit status of a holder on a kernel without it */

static void must(bool good) {
        if (!good)
                _exit(errno == EPROTONOSUPPORT || errno == EAFNOSUPPORT || errno == ENOPROTOOPT ? NOTHING_LIKE_THAT : 1);
}

/* ---- holders ---- */

static int reported = -1; /* where a holder says that it has what it holds */

static void *stay(void *arg) {
        for (;;)
                (void) pause();
        return arg;
}

static void *say_and_stay(void *arg) {
        (void) write_all(reported, "", 1);
        return stay(arg);
}

static void first_thread_ended(void) {
        pthread_t thread;

        must(pthread_create(&thread, NULL, stay, NULL) == 0 && pthread_create(&thread, NULL, say_and_stay, NULL) == 0);
        pthread_exit(NULL);
}

static void last_thread_ended(void) {
        pthread_t thread;

        must(pthread_create(&thread, NULL, stay, NULL) == 0);
}

static void *make_timer(void *arg) {
        struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
        timer_t timer;

        event._sigev_un._tid = (pid_t) syscall(SYS_gettid);
        must(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
        return arg;
}

static void timer_of_thread(void) {
        (void) make_timer(NULL);
}

static void timer_of_ended_thread(void) {
        pthread_t thread;

        must(pthread_create(&thread, NULL, make_timer, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

/* This case makes as many timers as the others. */
static void timer_of_ended_thread_among_others(void) {
        timer_t timer;

        must(timer_create(CLOCK_REALTIME, NULL, &timer) == 0);
        timer_of_ended_thread();
        timer_of_thread();
}

static void limit(int resource, rlim_t soft) {
        struct rlimit limit;

        must(getrlimit(resource, &limit) == 0);
        limit.rlim_cur = soft;
        must(setrlimit(resource, &limit) == 0);
}

static rlim_t space_bytes(void) {
        char text[64] = "";
        int fd = open("/proc/self/statm", O_RDONLY);

        must(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && close(fd) == 0);
        return strtoul(text, NULL, 10) * (rlim_t) sysconf(_SC_PAGESIZE);
}

static void no_space(void) {
        limit(RLIMIT_AS, space_bytes() + 4096);
}

static void some_space(void) {
        limit(RLIMIT_AS, space_bytes() * 2 + (64 << 20));
}

/* 16 bytes for each page, which nobody has touched. */
static void no_space_for_many_pages(void) {
        must(mmap(NULL, 1L << 32, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED);
        limit(RLIMIT_AS, space_bytes() + (4 << 20));
}

static void no_descriptors(void) {
        limit(RLIMIT_NOFILE, 16);
        while (dup(STDERR_FILENO) >= 0)
                ;
}

/* The table has room below the limit. */
static void descriptors_above_limit(void) {
        for (int i = 100; i < 140; i++)
                must(dup2(STDERR_FILENO, i) == i);
        limit(RLIMIT_NOFILE, 16);
}

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

static void file_of_ended_process(void) {
        char path[64];
        pid_t pid = fork();

        if (pid == 0)
                (void) stay(NULL);
        (void) snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        open_path(path);
        must(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

/* The child is not waited for, so it is restored. */
static void file_of_zombie(void) {
        char path[64];
        pid_t pid = fork();

        if (pid == 0)
                (void) stay(NULL);
        (void) snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        open_path(path);
        must(kill(pid, SIGKILL) == 0);
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

static void queue_signals(rlim_t most) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGRTMIN);
        must(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
        for (int i = 0; i < 8; i++)
                must(sigqueue(getpid(), SIGRTMIN, (union sigval) { .sival_int = i }) == 0);
        limit(RLIMIT_SIGPENDING, most);
}

static int semaphores; /* of the test */

static void has_to_undo(void) {
        struct sembuf add = { .sem_op = 1, .sem_flg = SEM_UNDO };

        must(semop(semaphores, &add, 1) == 0);
}

static void uses_semaphores(void) {
        struct sembuf add = { .sem_op = 1 };

        must(semop(semaphores, &add, 1) == 0);
}

static void too_many_signals(void) {
        queue_signals(2);
}

static void some_signals(void) {
        queue_signals(1000);
}

static void too_many_mappings(void) {
        enum { N = 1 << 20, PAGE = 4096 };
        char *memory = mmap(NULL, (size_t) N * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        must(memory != MAP_FAILED);
        for (size_t i = 0; i < N && mprotect(memory + i * PAGE, PAGE, PROT_NONE) == 0; i += 2)
                ;
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

/* ---- of sockets ---- */

static void mptcp(void) {
        must(socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP) >= 0);
}

static void ordinary_sockets(void) {
        must(socket(AF_INET, SOCK_STREAM, 0) >= 0 && socket(AF_INET6, SOCK_DGRAM, 0) >= 0 &&
             socket(AF_UNIX, SOCK_SEQPACKET, 0) >= 0 && socket(AF_UNIX, SOCK_STREAM, 0) >= 0 &&
             socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) >= 0);
}

static int ends[2];

static void connect_inet(void) {
        struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(name);

        ends[0] = socket(AF_INET, SOCK_STREAM, 0);
        ends[1] = socket(AF_INET, SOCK_STREAM, 0);
        must(bind(ends[0], (struct sockaddr *) &name, size) == 0 && listen(ends[0], 4) == 0 &&
             getsockname(ends[0], (struct sockaddr *) &name, &size) == 0 && connect(ends[1], (struct sockaddr *) &name, size) == 0);
}

static void connect_unix(int type) {
        struct sockaddr_un name = { .sun_family = AF_UNIX };

        (void) snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "rmd-test-uncarried.%d", (int) getpid());
        ends[0] = socket(AF_UNIX, type, 0);
        ends[1] = socket(AF_UNIX, type, 0);
        must(bind(ends[0], (struct sockaddr *) &name, sizeof(name)) == 0 && listen(ends[0], 4) == 0 &&
             connect(ends[1], (struct sockaddr *) &name, sizeof(name)) == 0);
}

static void accepted(void) {
        connect_inet();
        must(accept(ends[0], NULL, NULL) >= 0);
}

/* Fills a connection: one end has sent more than the other one takes. */
static int fill_connection(void) {
        static char data[1 << 20];
        int fd;

        connect_inet();
        fd = accept(ends[0], NULL, NULL);
        must(fd >= 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
        while (write(ends[1], data, sizeof(data)) > 0)
                ;
        return fd;
}

static void closed_with_data(void) {
        (void) fill_connection();
        must(close(ends[1]) == 0);
}

static void closed_after_other_end(void) {
        int fd = fill_connection();

        must(shutdown(fd, SHUT_WR) == 0);
        while (recv(ends[1], &fd, sizeof(fd), 0) != 0)
                ;
        must(close(ends[1]) == 0);
}

static void shut_down_with_data(void) {
        (void) fill_connection();
        must(shutdown(ends[1], SHUT_WR) == 0);
}

static void closed_without_data(void) {
        accepted();
        must(close(ends[1]) == 0);
}

/* CRIU makes it anew. */
static void unix_waits(void) {
        connect_unix(SOCK_STREAM);
}

static void unix_with_request(void) {
        connect_unix(SOCK_STREAM);
        must(write(ends[1], "x", 1) == 1);
}

static void packets_with_request(void) {
        connect_unix(SOCK_SEQPACKET);
        must(write(ends[1], "x", 1) == 1);
}

static void unix_given_up(void) {
        connect_unix(SOCK_STREAM);
        (void) close(ends[1]);
}

static void unix_accepted(void) {
        unix_with_request();
        must(accept(ends[0], NULL, NULL) >= 0);
}

/* The other end is the child's, which is not looked at. */
static void connected_outside(void) {
        int pair[2];

        must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
        if (fork() == 0) {
                (void) close(pair[0]);
                (void) stay(NULL);
        }
        (void) close(pair[1]);
}

static void datagrams(bool pair_is_left) {
        struct sockaddr_un name = { .sun_family = AF_UNIX };
        int pair[2], fd = socket(AF_UNIX, SOCK_DGRAM, 0);

        (void) snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "rmd-test-uncarried.%d", (int) getpid());
        must(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && bind(fd, (struct sockaddr *) &name, sizeof(name)) == 0);
        must(connect(pair_is_left ? pair[0] : socket(AF_UNIX, SOCK_DGRAM, 0), (struct sockaddr *) &name, sizeof(name)) == 0);
}

static void one_way(void) {
        datagrams(true);
}

static void to_a_name(void) {
        datagrams(false);
}

static void unread(int type, int option) {
        int pair[2], on = 1;

        must(socketpair(AF_UNIX, type, 0, pair) == 0);
        must(option == 0 || setsockopt(pair[1], SOL_SOCKET, option, &on, sizeof(on)) == 0);
        must(write(pair[0], "x", 1) == 1);
}

static void unread_without_option(void) {
        unread(SOCK_STREAM, 0);
}

static void unread_stream_with_credentials(void) {
        unread(SOCK_STREAM, SO_PASSCRED);
}

static void unread_message_with_time(void) {
        unread(SOCK_DGRAM, SO_TIMESTAMP);
}

static void unread_stream_with_time(void) {
        unread(SOCK_STREAM, SO_TIMESTAMP);
}

static void datagram(int family, bool held) {
        struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(9) };
        struct sockaddr_in6 name6 = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
        int fd = socket(family, SOCK_DGRAM, 0), on = 1;

        name6.sin6_addr.s6_addr[10] = name6.sin6_addr.s6_addr[11] = 0xff;
        name6.sin6_addr.s6_addr[12] = 127;
        name6.sin6_addr.s6_addr[15] = 1;
        must(connect(fd, family == AF_INET ? (struct sockaddr *) &name : (struct sockaddr *) &name6,
                     family == AF_INET ? sizeof(name) : sizeof(name6)) == 0);
        must(setsockopt(fd, IPPROTO_UDP, UDP_CORK, &on, sizeof(on)) == 0);
        must(!held || send(fd, "x", 1, 0) == 1);
}

static void corked(void) {
        datagram(AF_INET, true);
}

static void corked6(void) {
        datagram(AF_INET6, true);
}

static void cork_without_data(void) {
        datagram(AF_INET, false);
}

static void netlink_unread(void) {
        struct {
                struct nlmsghdr header;
                struct rtgenmsg what;
        } ask = { { sizeof(ask), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { AF_UNSPEC } };
        int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

        must(send(fd, &ask, sizeof(ask), 0) == (ssize_t) sizeof(ask));
}

static void netlink_groups(unsigned group) {
        struct sockaddr_nl name = { .nl_family = AF_NETLINK };
        int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

        must(bind(fd, (struct sockaddr *) &name, sizeof(name)) == 0 &&
             setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) == 0);
}

static void netlink_high_group(void) {
        netlink_groups(RTNLGRP_BRVLAN);
}

static void netlink_low_group(void) {
        netlink_groups(RTNLGRP_LINK);
}

/* Messages in the queue of a Unix socket, of these numbers of bytes. */
static void messages(int type, const size_t *bytes, size_t n, bool closed) {
        static const char text[100000];
        int pair[2];

        must(socketpair(AF_UNIX, type, 0, pair) == 0);
        for (size_t i = 0; i < n; i++)
                must(send(pair[0], text, bytes[i], MSG_DONTWAIT) == (ssize_t) bytes[i]);
        must(!closed || close(pair[0]) == 0);
}

static void empty_datagram_first(void) {
        messages(SOCK_DGRAM, (const size_t[]) { 0, 2 }, 2, false);
}

static void empty_datagrams_last(void) {
        messages(SOCK_DGRAM, (const size_t[]) { 100000, 0, 0 }, 3, false);
}

static void empty_packet_between(void) {
        messages(SOCK_SEQPACKET, (const size_t[]) { 2, 0, 1 }, 3, false);
}

static void empty_packet_closed(void) {
        messages(SOCK_SEQPACKET, (const size_t[]) { 0, 1 }, 2, true);
}

static void packets_closed(void) {
        messages(SOCK_SEQPACKET, (const size_t[]) { 1, 2 }, 2, true);
}

static void datagrams_with_data(void) {
        messages(SOCK_DGRAM, (const size_t[]) { 1, 50000 }, 2, false);
}

static void urgent(bool closed, bool read_before) {
        char byte;
        int fd;

        connect_inet();
        fd = accept(ends[0], NULL, NULL);
        must(fd >= 0 && write(fd, "abc", 3) == 3 && send(fd, "!", 1, MSG_OOB) == 1 && write(fd, "de", 2) == 2);
        must(!closed || shutdown(fd, SHUT_WR) == 0);
        (void) usleep(100000);
        must(!read_before || recv(ends[1], &byte, 1, MSG_OOB) == 1);
}

static void urgent_unread(void) {
        urgent(false, false);
}

static void urgent_closed(void) {
        urgent(true, false);
}

static void urgent_read(void) {
        urgent(false, true);
}

static void urgent_unix(void) {
        int pair[2];

        must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && write(pair[0], "abc", 3) == 3);
        errno = EPROTONOSUPPORT; /* of kernels before 5.15 */
        must(send(pair[0], "!", 1, MSG_OOB) == 1);
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

static void without_vdso(void) {
        FILE *f = fopen("/proc/self/maps", "re");
        unsigned long begin, end;
        char line[256];

        while (f && fgets(line, sizeof(line), f))
                if (strstr(line, " [vdso]") && sscanf(line, "%lx-%lx", &begin, &end) == 2)
                        must(munmap((void *) begin, end - begin) == 0); // NOLINT(performance-no-int-to-ptr)
        (void) stay(say_and_stay(NULL));
}

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
        must(pipe(ends) == 0);
        watch_and_leave_to_child(ends[0]);
        must(close(ends[1]) == 0);
}

/* The number is used again, for something that is in the set as well. */
static void watched_number_used_again(void) {
        struct epoll_event event = { .events = EPOLLIN };
        int fd;

        connect_inet();
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

/* ---- of threads ---- */

static int apart;

static void *leave(void *arg) {
        must(unshare(apart) == 0);
        return say_and_stay(arg);
}

static void thread_apart(int what) {
        pthread_t thread;

        apart = what;
        must(pthread_create(&thread, NULL, leave, NULL) == 0);
        (void) stay(NULL);
}

static void thread_with_descriptors(void) {
        thread_apart(CLONE_FILES);
}

static void thread_with_directory(void) {
        thread_apart(CLONE_FS);
}

static void thread_with_semaphores(void) {
        thread_apart(CLONE_SYSVSEM);
}

/* ---- looks ---- */

static pid_t start_holder(void (*hold)(void)) {
        int ready[2];
        char byte;
        pid_t pid;

        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0) {
                reported = dup2(ready[1], STDERR_FILENO);
                (void) close_range(3, ~0U, 0);
                (void) setpgid(0, 0);
                hold();
                (void) say_and_stay(NULL);
        }
        (void) close(ready[1]);
        if (read(ready[0], &byte, 1) != 1)
                pid = -pid;
        (void) close(ready[0]);
        return pid;
}

/* A thread that ends is seen a moment after it has said something. */
static struct empty_messages empty_messages;

static void scan(pid_t pid, enum blocker_kind kind, bool frozen, struct blocker *ret) {
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct blocker_scope scope = { .proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                       .spec = &spec,
                                       .frozen = frozen,
                                       .budget = SIZE_MAX,
                                       .cpu_usec = 60000000,
                                       .empty_messages = &empty_messages };
        uint32_t groups[256];
        gid_t list[256];

        spec.uid = getuid();
        spec.gid = getgid();
        spec.groups = groups;
        spec.n_groups = (size_t) getgroups(ARRAY_SIZE(list), list);
        for (size_t i = 0; i < spec.n_groups; i++)
                groups[i] = list[i];
        for (int i = 0; i < 500; i++) {
                blockers_of_processes(&scope, &pid, 1, ret, NULL);
                if (ret->kind == kind)
                        break;
                (void) usleep(10000);
        }
        (void) close(scope.proc);
}

static void test_kinds(void **state) {
        static const struct {
                const char *name;
                void (*hold)(void);
                enum blocker_kind kind;
                bool only_frozen;
        } cases[] = {
                { "first thread", first_thread_ended, BLOCKER_FIRST_THREAD, false },
                { "last thread", last_thread_ended, BLOCKER_NONE, false },
                { "timer", timer_of_thread, BLOCKER_NONE, false },
                { "ended timer", timer_of_ended_thread, BLOCKER_TIMER, false },
                { "ended timers", timer_of_ended_thread_among_others, BLOCKER_TIMER, false },
                { "no space", no_space, BLOCKER_SPACE, false },
                { "space", some_space, BLOCKER_NONE, false },
                { "pages", no_space_for_many_pages, BLOCKER_SPACE, false },
                { "no descriptors", no_descriptors, BLOCKER_SPACE, false },
                { "high descriptors", descriptors_above_limit, BLOCKER_NONE, false },
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
                { "undo", has_to_undo, BLOCKER_SEM_UNDO, true },
                { "semaphores", uses_semaphores, BLOCKER_NONE, false },
                { "too many signals", too_many_signals, BLOCKER_SPACE, false },
                { "signals", some_signals, BLOCKER_NONE, false },
                { "mappings", too_many_mappings, BLOCKER_SPACE, true },
                { "packets", packet_pipe, BLOCKER_PACKET_PIPE, false },
                { "FIFO", packet_fifo, BLOCKER_PACKET_PIPE, false },
                { "pipe", ordinary_pipe, BLOCKER_NONE, false },
                { "pidfd 1", pidfd_of_first, BLOCKER_PIDFD, false },
                { "pidfd", pidfd_of_itself, BLOCKER_NONE, false },
                { "pidfd, zombie", pidfd_of_zombie, BLOCKER_NONE, false },
                { "pidfd, thread", pidfd_of_thread, BLOCKER_PIDFD, false },
                { "big", big_file_without_name, BLOCKER_BIG_FILE, false },
                { "sparse", sparse_file_without_name, BLOCKER_NONE, false },
                { "MPTCP", mptcp, BLOCKER_PROTOCOL, false },
                { "sockets", ordinary_sockets, BLOCKER_NONE, false },
                { "not accepted", connect_inet, BLOCKER_UNACCEPTED, false },
                { "accepted", accepted, BLOCKER_NONE, false },
                { "closed with data", closed_with_data, BLOCKER_CLOSED_UNSENT, false },
                { "closed, last", closed_after_other_end, BLOCKER_CLOSED_UNSENT, false },
                { "shut down with data", shut_down_with_data, BLOCKER_NONE, false },
                { "closed without data", closed_without_data, BLOCKER_NONE, false },
                { "Unix", unix_waits, BLOCKER_NONE, false },
                { "Unix, request", unix_with_request, BLOCKER_UNACCEPTED, false },
                { "Unix packets, request", packets_with_request, BLOCKER_UNACCEPTED, false },
                { "Unix, given up", unix_given_up, BLOCKER_UNACCEPTED, false },
                { "Unix, accepted", unix_accepted, BLOCKER_NONE, false },
                { "outside", connected_outside, BLOCKER_OUTSIDE, false },
                { "unread", unread_without_option, BLOCKER_NONE, false },
                { "one way", one_way, BLOCKER_ONE_WAY, false },
                { "to a name", to_a_name, BLOCKER_NONE, false },
                { "credentials", unread_stream_with_credentials, BLOCKER_UNREAD_CONTROL, true },
                { "time", unread_message_with_time, BLOCKER_UNREAD_CONTROL, true },
                { "stream with time", unread_stream_with_time, BLOCKER_NONE, true },
                { "cork", corked, BLOCKER_CORKED, true },
                { "cork, IPv6", corked6, BLOCKER_CORKED, true },
                { "empty cork", cork_without_data, BLOCKER_NONE, true },
                { "empty, first", empty_datagram_first, BLOCKER_EMPTY_MESSAGE, true },
                { "empty, last", empty_datagrams_last, BLOCKER_EMPTY_MESSAGE, true },
                { "empty, between", empty_packet_between, BLOCKER_EMPTY_MESSAGE, true },
                { "empty, closed", empty_packet_closed, BLOCKER_EMPTY_MESSAGE, true },
                { "packets, closed", packets_closed, BLOCKER_NONE, true },
                { "datagrams", datagrams_with_data, BLOCKER_NONE, true },
                { "urgent", urgent_unread, BLOCKER_URGENT, true },
                { "urgent, closed", urgent_closed, BLOCKER_URGENT, true },
                { "urgent, read", urgent_read, BLOCKER_NONE, true },
                { "urgent, Unix", urgent_unix, BLOCKER_URGENT, true },
                { "O_PATH, socket", path_of_socket, BLOCKER_PATH_ONLY, false },
                { "O_PATH, FIFO", path_of_fifo, BLOCKER_PATH_ONLY, false },
                { "O_PATH, directory", path_of_directory, BLOCKER_NONE, false },
                { "vDSO", without_vdso, BLOCKER_VDSO, true },
                { "epoll, pipe", watched_pipe_left, BLOCKER_EPOLL, false },
                { "epoll, number", watched_number_used_again, BLOCKER_EPOLL, false },
                { "epoll, eventfd", watched_eventfd_left, BLOCKER_EPOLL, true },
                { "epoll, duplicate", watched_by_another_number, BLOCKER_NONE, false },
                { "epoll, epoll", watched_set, BLOCKER_NONE, false },
                { "thread, files", thread_with_descriptors, BLOCKER_THREAD_APART, true },
                { "thread, directory", thread_with_directory, BLOCKER_THREAD_APART, true },
                { "thread, semaphores", thread_with_semaphores, BLOCKER_NONE, true },
                { "netlink", netlink_unread, BLOCKER_UNREAD_NETLINK, false },
                { "netlink groups", netlink_high_group, BLOCKER_PROTOCOL, false },
                { "netlink group", netlink_low_group, BLOCKER_NONE, false },
        };
        pthread_t thread;

        (void) state;
        /* A process of several threads, as PID 1 may be, always has a list of operations to
         * undo. */
        semaphores = semget(IPC_PRIVATE, 1, 0600);
        assert_true(semaphores >= 0);
        assert_int_equal(pthread_create(&thread, NULL, stay, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                pid_t pid = start_holder(cases[i].hold);
                struct blocker found, frozen;
                int status;

                if (pid < 0) {
                        assert_int_equal(waitpid(-pid, &status, 0), -pid);
                        if (!WIFEXITED(status) || WEXITSTATUS(status) != NOTHING_LIKE_THAT)
                                fail_msg("%s: the holder ended with %#x", cases[i].name, (unsigned) status);
                        print_message("%s: not on this kernel\n", cases[i].name);
                        continue;
                }
                scan(pid, cases[i].kind, true, &frozen);
                /* A second look sees the same. */
                if (frozen.kind == cases[i].kind)
                        scan(pid, cases[i].kind, true, &frozen);
                scan(pid, cases[i].only_frozen ? BLOCKER_NONE : cases[i].kind, false, &found);
                (void) kill(-pid, SIGKILL);
                (void) waitpid(pid, &status, 0);
                if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
                        fail_msg("%s: the holder ended with %#x", cases[i].name, (unsigned) status);
                if (frozen.kind != cases[i].kind || found.kind != (cases[i].only_frozen ? BLOCKER_NONE : cases[i].kind))
                        fail_msg("%s: %d while frozen, %d while running, not %d", cases[i].name, (int) frozen.kind,
                                 (int) found.kind, (int) cases[i].kind);
        }
        assert_int_equal(semctl(semaphores, 0, IPC_RMID), 0);
        (void) pthread_cancel(thread);
        (void) pthread_join(thread, NULL);
}

static void read_both(int signo) {
        (void) signo;
        for (ssize_t expected = 0; expected < 2; expected++) {
                char byte;

                if (recv(ends[1], &byte, 1, 0) != expected)
                        _exit(1);
        }
}

static void read_when_told(void) {
        must(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0 && signal(SIGUSR1, read_both) != SIG_ERR);
        must(send(ends[0], "", 0, 0) == 0 && send(ends[0], "x", 1, 0) == 1);
}

/* Once all was read, nothing is left of a message without data. */
static void test_empty_messages(void **state) {
        pid_t pid = start_holder(read_when_told);
        struct blocker found;

        (void) state;
        empty_messages.n = 0;
        for (int looks = 0; looks < 2; looks++) {
                scan(pid, BLOCKER_EMPTY_MESSAGE, true, &found);
                assert_int_equal(found.kind, BLOCKER_EMPTY_MESSAGE);
                assert_int_equal(empty_messages.n, 1);
        }
        (void) kill(pid, SIGUSR1);
        scan(pid, BLOCKER_NONE, true, &found);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        assert_int_equal(found.kind, BLOCKER_NONE);
        assert_int_equal(empty_messages.n, 0);
}

/* The same connections are told from others that wait at the same place. */
static void test_same_connections(void **state) {
        struct blocker earlier, later;
        pid_t pids[2];

        (void) state;
        for (size_t i = 0; i < 2; i++)
                pids[i] = start_holder(connect_inet);
        scan(pids[0], BLOCKER_UNACCEPTED, false, &earlier);
        scan(pids[0], BLOCKER_UNACCEPTED, false, &later);
        assert_true(blocker_is_still(&earlier, &later));
        scan(pids[1], BLOCKER_UNACCEPTED, false, &later);
        assert_int_not_equal(earlier.mark, later.mark);
        assert_false(blocker_is_still(&earlier, &later));
        for (size_t i = 0; i < 2; i++) {
                (void) kill(pids[i], SIGKILL);
                (void) waitpid(pids[i], NULL, 0);
        }
}

struct reported {
        size_t n, most;
};

static bool take_some(const struct sock_diag *socket, void *arg) {
        struct reported *all = arg;

        (void) socket;
        return ++all->n < all->most;
}

/* A user may have any number of sockets, with and without descriptors: who looks at them can
 * stop. */
static void test_list_ends(void **state) {
        struct reported all = { 0, SIZE_MAX }, some = { 0, 2 };
        int fds[2][2];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]), 0);
        assert_int_equal(sock_diag_each(take_some, &all), 0);
        assert_true(all.n >= 4);
        assert_int_equal(sock_diag_each(take_some, &some), -E2BIG);
        assert_int_equal(some.n, 2);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
                (void) close(fds[i][0]);
                (void) close(fds[i][1]);
        }
}

static int stay_as_child(void *arg) {
        (void) stay(arg);
        return 0;
}

/* Two processes with one working directory, and two that share nothing. */
static void test_shared_directories(void **state) {
        static char stack[65536] __attribute__((aligned(16)));
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct blocker_scope scope = { .proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                       .spec = &spec,
                                       .frozen = true,
                                       .budget = SIZE_MAX,
                                       .cpu_usec = 60000000 };
        struct blocker blocker;

        (void) state;
        spec.uid = getuid();
        spec.gid = getgid();
        for (int shared = 0; shared < 2; shared++) {
                pid_t pids[] = { start_holder(ordinary_pipe), 0 };

                pids[1] = clone(stay_as_child, stack + sizeof(stack), SIGCHLD | (shared ? CLONE_FS : 0), NULL);
                assert_true(pids[1] > 0);
                if (shared) {
                        /* This process and its child. */
                        pid_t of_test[] = { getpid(), pids[1] };

                        blockers_of_processes(&scope, of_test, 2, &blocker, NULL);
                        assert_int_equal(blocker.kind, BLOCKER_SHARED_DIRECTORIES);
                } else {
                        blockers_of_processes(&scope, pids, 2, &blocker, NULL);
                        assert_int_not_equal(blocker.kind, BLOCKER_SHARED_DIRECTORIES);
                }
                for (size_t i = 0; i < 2; i++) {
                        (void) kill(pids[i], SIGKILL);
                        (void) waitpid(pids[i], NULL, 0);
                }
        }
        (void) close(scope.proc);
}

/* A process that is a child of nobody in its group is not the first one. */
static void test_adopted(void **state) {
        pid_t pid = start_holder(ordinary_pipe);
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct blocker_scope scope = {
                .proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), .spec = &spec, .budget = SIZE_MAX, .cpu_usec = 60000000
        };
        const pid_t roots[] = { getpid(), pid, 0 };
        const pid_t group[] = { getpid(), pid };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
                struct blocker found;

                scope.root = roots[i];
                blockers_of_processes(&scope, &pid, 1, &found, NULL);
                assert_int_equal(found.kind == BLOCKER_ADOPTED, i == 0);
                blockers_of_processes(&scope, group, roots[i] == pid ? 1 : 2, &found, NULL);
                assert_int_equal(found.kind == BLOCKER_ADOPTED, roots[i] == pid);
        }
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        (void) close(scope.proc);
}

/* A process that ends with another signal than SIGCHLD, or without any, as long as it runs no other
 * program. */
static void test_exit_signal(void **state) {
        static char stack[65536] __attribute__((aligned(16)));
        const int signals[] = { SIGUSR1, SIGRTMIN, 0, SIGCHLD };

        (void) state;
        (void) signal(SIGUSR1, SIG_IGN);
        (void) signal(SIGRTMIN, SIG_IGN);
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
                pid_t pid = clone(stay_as_child, stack + sizeof(stack), signals[i], NULL);
                struct blocker found;

                assert_true(pid > 0);
                scan(pid, signals[i] == SIGCHLD ? BLOCKER_NONE : BLOCKER_EXIT_SIGNAL, false, &found);
                (void) kill(pid, SIGKILL);
                (void) waitpid(pid, NULL, __WALL);
                assert_int_equal(found.kind, signals[i] == SIGCHLD ? BLOCKER_NONE : BLOCKER_EXIT_SIGNAL);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_kinds),
                cmocka_unit_test(test_empty_messages),
                cmocka_unit_test(test_same_connections),
                cmocka_unit_test(test_list_ends),
                cmocka_unit_test(test_shared_directories),
                cmocka_unit_test(test_exit_signal),
                cmocka_unit_test(test_adopted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
