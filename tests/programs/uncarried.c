/* Each rank has something that cannot be carried to another node, until it is told to let go of it.
 * No MPI.
 *
 * usage: uncarried --stop-file=F --dir=D KIND...     rank N has the Nth KIND
 *   of processes    traced     a child that it traces
 *                   userns     a child in a user namespace of its own
 *                   vfork, clonevm  a child that has its memory, and runs no program
 *                   fs         a child that has the same working directory (CLONE_FS)
 *                   leader     a child whose first thread has ended, and another one runs
 *                   exitsig    a child that sends SIGUSR1 at its end (clone)
 *                   apart      a thread with descriptors of its own (unshare)
 *                   deadtimer  a POSIX timer sends its signals to a thread that has ended
 *   of limits       as         RLIMIT_AS leaves no room
 *                   nofile     RLIMIT_NOFILE is reached
 *                   many       likewise, with 20,000 descriptors
 *                   maps       vm.max_map_count is reached
 *                   signals    more signals are queued than RLIMIT_SIGPENDING lets be
 *   of files        thread     /proc/PID/task/TID/stat
 *                   task       /proc/TID/stat, of a thread
 *                   ended      /proc/PID/stat, of a process that has ended
 *                   hungup     a terminal whose master is closed
 *                   ctty       /dev/tty, of a child with a session of its own
 *                   typed      a terminal, into which a line was typed that nobody has read
 *                   big        more than 1 GiB in a file of D that has no name any more
 *                   shared     likewise, mapped and closed
 *                   pidfd      of PID 1
 *                   path       a FIFO, opened by O_PATH
 *                   mode       made for reading only, and opened for writing
 *                   longfile   a file of D with a path that is longer than PATH_MAX
 *                   longdir    it works in such a directory
 *                   nosearch   a file in a directory that it may not search any more
 *                   noentry    it works in such a directory
 *                   mapped     such a file, mapped and closed
 *                   epoll      watches what only its child has open
 *                   events     unread events of inotify
 *                   packets    a pipe with O_DIRECT
 *                   eventfd    with EFD_SEMAPHORE
 *                   userfaultfd, secret, fanotify
 *                   perf       a performance counter
 *                   perfmap    the same, mapped and closed
 *   of sockets      mptcp, alg, vsock
 *                   unaccepted, unaccepted6  a TCP connection that nobody accepts, by a socket of
 *                                            IPv4 and of IPv6
 *                   md5        a TCP socket with a key (TCP_MD5SIG)
 *                   unsent     a TCP connection that it has closed, and whose other end reads
 *                              nothing
 *                   empty      an unread message without data
 *                   urgent     unread urgent data
 *                   asked      a Unix connection that nobody accepts, with a request in it
 *                   given-up   a Unix connection that nobody accepts, whose other end is closed
 *                   outside    connected with the Unix socket D/outside
 *                   queued     descriptors in the queue of a Unix socket
 *                   oneway     a datagram socket connected with one of a pair
 *                   passcred   an unread message and SO_PASSCRED
 *                   truncated  an unread datagram that is longer than its receiver may send, which
 *                              only CRIU finds
 *                   corked     a datagram that UDP_CORK keeps
 *                   netlink    an unread answer
 *   of the capsule  shm, mqueue
 *                   none       nothing
 * Says "uncarried: running" once all ranks have theirs, by files D/KIND.held; D/KIND.missing tells
 * of one that this kernel does not have. A rank that finds D/KIND.drop lets go, and makes
 * D/KIND.dropped. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <linux/userfaultfd.h>
#include <linux/vm_sockets.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "common.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

enum { MORE_THAN_GIB = (1 << 30) + 4096 };

struct kind {
        const char *name;
        bool (*take)(void);
        void (*drop)(void); /* NULL: the descriptors are closed */
};

static const char *dir;
static int fds[4] = { -1, -1, -1, -1 };
static pid_t child;

static void keep(void) {
}

static void close_all(void) {
        for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
                if (fds[i] >= 0)
                        (void) close(fds[i]);
}

static bool nothing(void) {
        return true;
}

/* ---- processes ---- */

static void *stay(void *arg) {
        for (;;)
                (void) pause();
        return NULL;
}

static bool fork_child(void (*life)(void)) {
        child = fork();
        if (child == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                life();
                for (;;)
                        (void) pause();
        }
        return child > 0;
}

static void kill_child(void) {
        (void) kill(child, SIGKILL);
        (void) waitpid(child, NULL, 0);
}

static void end_first_thread(void) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, stay, NULL) != 0)
                _exit(1);
        pthread_exit(NULL);
}

static bool leader_take(void) {
        return fork_child(end_first_thread);
}

static timer_t timer;

static void *make_timer(void *arg) {
        struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };

        event._sigev_un._tid = (pid_t) syscall(SYS_gettid);
        *(bool *) arg = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
        return NULL;
}

static bool deadtimer_take(void) {
        const struct itimerspec when = { .it_value = { .tv_sec = 86400 } };
        pthread_t thread;
        bool good = false;

        return pthread_create(&thread, NULL, make_timer, &good) == 0 && pthread_join(thread, NULL) == 0 && good &&
               timer_settime(timer, 0, &when, NULL) == 0;
}

static void deadtimer_drop(void) {
        (void) timer_delete(timer);
}

static void enter_userns(void) {
        if (unshare(CLONE_NEWUSER) < 0)
                _exit(1);
}

static bool userns_take(void) {
        return fork_child(enter_userns);
}

static bool traced_take(void) {
        return fork_child(keep) && ptrace(PTRACE_SEIZE, child, NULL, NULL) == 0;
}

/* The child must not touch memory that it may share with its parent but its own stack. */
static int stay_with_parent(void *arg) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
                (void) syscall(SYS_poll, NULL, 0, 1000);
        return 0;
}

static bool clone_child(int flags) {
        static char stack[65536] __attribute__((aligned(16)));

        child = clone(stay_with_parent, stack + sizeof(stack), SIGCHLD | flags, NULL);
        return child > 0;
}

static bool fs_take(void) {
        return clone_child(CLONE_FS);
}

static bool clonevm_take(void) {
        return clone_child(CLONE_VM);
}

/* The thread waits until the child has ended. */
static void *wait_in_vfork(void *arg) {
        (void) clone_child(CLONE_VM | CLONE_VFORK);
        return NULL;
}

static bool exitsig_take(void) {
        static char stack[65536] __attribute__((aligned(16)));

        (void) signal(SIGUSR1, SIG_IGN);
        child = clone(stay_with_parent, stack + sizeof(stack), SIGUSR1, NULL);
        return child > 0;
}

static void exitsig_drop(void) {
        (void) kill(child, SIGKILL);
        (void) waitpid(child, NULL, __WALL);
}

static sem_t unshared, dropped_apart;

static void *live_apart(void *arg) {
        *(bool *) arg = unshare(CLONE_FILES) == 0;
        (void) sem_post(&unshared);
        (void) sem_wait(&dropped_apart);
        return NULL;
}

static pthread_t thread_apart;

static bool apart_take(void) {
        static bool good;

        return sem_init(&unshared, 0, 0) == 0 && sem_init(&dropped_apart, 0, 0) == 0 &&
               pthread_create(&thread_apart, NULL, live_apart, &good) == 0 && sem_wait(&unshared) == 0 && good;
}

static void apart_drop(void) {
        (void) sem_post(&dropped_apart);
        (void) pthread_join(thread_apart, NULL);
}

static bool vfork_take(void) {
        pthread_t thread;

        return pthread_create(&thread, NULL, wait_in_vfork, NULL) == 0;
}

/* The child's number is known only when it has ended. */
static void vfork_drop(void) {
        (void) system("pkill -KILL -P $PPID uncarried");
        (void) wait(NULL);
}

/* ---- limits ---- */

static bool as_take(void) {
        struct rlimit limit;
        char text[64] = "";
        int fd = open("/proc/self/statm", O_RDONLY);
        ssize_t n = read(fd, text, sizeof(text) - 1);

        (void) close(fd);
        if (n <= 0 || getrlimit(RLIMIT_AS, &limit) < 0)
                return false;
        limit.rlim_cur = strtoul(text, NULL, 10) * 4096;
        return setrlimit(RLIMIT_AS, &limit) == 0;
}

static void as_drop(void) {
        struct rlimit limit;

        (void) getrlimit(RLIMIT_AS, &limit);
        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(RLIMIT_AS, &limit);
}

static bool fill_table(rlim_t n) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return false;
        limit.rlim_cur = n;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                return false;
        while (dup(STDIN_FILENO) >= 0)
                ;
        return errno == EMFILE;
}

static bool nofile_take(void) {
        return fill_table(64);
}

static bool many_take(void) {
        return fill_table(20000);
}

static void table_drop(void) {
        (void) syscall(SYS_close_range, 32U, ~0U, 0U);
}

static char *many_mappings;

enum { PAGE = 4096, MAPPINGS = 1 << 20 }; /* more than the kernel allows */

static bool maps_take(void) {
        many_mappings = mmap(NULL, (size_t) MAPPINGS * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        for (size_t i = 0; many_mappings != MAP_FAILED && i < MAPPINGS; i += 2)
                if (mprotect(many_mappings + i * PAGE, PAGE, PROT_NONE) < 0)
                        return true;
        return false;
}

static void maps_drop(void) {
        (void) munmap(many_mappings, (size_t) MAPPINGS * PAGE);
}

static bool signals_take(void) {
        struct rlimit limit;
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGRTMIN);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || getrlimit(RLIMIT_SIGPENDING, &limit) < 0)
                return false;
        for (int i = 0; i < 8; i++)
                if (sigqueue(getpid(), SIGRTMIN, (union sigval) { .sival_int = i }) < 0)
                        return false;
        limit.rlim_cur = 2;
        return setrlimit(RLIMIT_SIGPENDING, &limit) == 0;
}

static void signals_drop(void) {
        struct timespec none = { 0 };
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGRTMIN);
        while (sigtimedwait(&set, NULL, &none) > 0)
                ;
}

/* ---- files ---- */

static bool open_of_thread(const char *form) {
        pthread_t thread;
        char path[64], name[16] = "";
        FILE *f;

        if (pthread_create(&thread, NULL, stay, NULL) != 0)
                return false;
        f = popen("exec ls /proc/$PPID/task | tail -n 1", "r");
        if (!f || !fgets(name, sizeof(name), f) || pclose(f) != 0)
                return false;
        (void) snprintf(path, sizeof(path), form, (int) getpid(), atoi(name));
        fds[0] = open(path, O_RDONLY);
        return fds[0] >= 0;
}

static bool thread_take(void) {
        return open_of_thread("/proc/%d/task/%d/stat");
}

static bool task_take(void) {
        return open_of_thread("/proc/%2$d/stat");
}

static bool ended_take(void) {
        char path[64];
        pid_t pid = fork();

        if (pid == 0)
                (void) stay(NULL);
        (void) snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        fds[0] = open(path, O_RDONLY);
        return fds[0] >= 0 && kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid;
}

static bool hungup_take(void) {
        int master = posix_openpt(O_RDWR | O_NOCTTY);

        if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
                return false;
        fds[0] = open(ptsname(master), O_RDWR | O_NOCTTY);
        return fds[0] >= 0 && close(master) == 0;
}

static void open_own_terminal(void) {
        int master = posix_openpt(O_RDWR | O_NOCTTY), slave;

        if (setsid() < 0 || master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
                _exit(1);
        slave = open(ptsname(master), O_RDWR | O_NOCTTY);
        if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) < 0 || open("/dev/tty", O_RDWR | O_NOCTTY) < 0)
                _exit(1);
}

static bool ctty_take(void) {
        return fork_child(open_own_terminal);
}

static bool typed_take(void) {
        fds[0] = posix_openpt(O_RDWR | O_NOCTTY);
        if (fds[0] < 0 || grantpt(fds[0]) < 0 || unlockpt(fds[0]) < 0)
                return false;
        fds[1] = open(ptsname(fds[0]), O_RDWR | O_NOCTTY);
        return fds[1] >= 0 && write(fds[0], "a line\n", 7) == 7;
}

static int big_file(const char *name) {
        char path[PATH_MAX];
        int fd;

        (void) snprintf(path, sizeof(path), "%s/%s", dir, name);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        return fd >= 0 && unlink(path) == 0 && fallocate(fd, 0, 0, MORE_THAN_GIB) == 0 ? fd : -1;
}

static bool big_take(void) {
        fds[0] = big_file("big");
        return fds[0] >= 0;
}

static void *mapped;

static bool shared_take(void) {
        int fd = big_file("shared");

        mapped = mmap(NULL, MORE_THAN_GIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        return mapped != MAP_FAILED && close(fd) == 0;
}

static void shared_drop(void) {
        (void) munmap(mapped, MORE_THAN_GIB);
}

static bool pidfd_take(void) {
        fds[0] = (int) syscall(SYS_pidfd_open, 1, 0);
        return fds[0] >= 0;
}

static bool mode_take(void) {
        char path[PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s/read-only", dir);
        fds[0] = open(path, O_RDWR | O_CREAT | O_EXCL, 0444);
        return fds[0] >= 0;
}

/* Goes to a directory of D of which the path is longer than PATH_MAX; a name for each rank. */
static bool go_deep(const char *first) {
        char name[201];

        memset(name, 'd', 200);
        name[200] = '\0';
        if (chdir(dir) < 0 || mkdir(first, 0755) < 0 || chdir(first) < 0)
                return false;
        for (int i = 0; i < 21; i++)
                if (mkdir(name, 0755) < 0 || chdir(name) < 0)
                        return false;
        return true;
}

static void leave_directory(void) {
        (void) !chdir("/");
}

static bool longfile_take(void) {
        if (!go_deep("longfile"))
                return false;
        fds[0] = open("file", O_RDWR | O_CREAT, 0600);
        leave_directory();
        return fds[0] >= 0;
}

static bool longdir_take(void) {
        return go_deep("longdir");
}

static bool nosearch_take(void) {
        char path[PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s/nosearch", dir);
        if (mkdir(path, 0700) < 0 || chdir(path) < 0)
                return false;
        fds[0] = open("file", O_RDWR | O_CREAT, 0600);
        leave_directory();
        return fds[0] >= 0 && chmod(path, 0600) == 0;
}

static bool mapped_take(void) {
        char path[PATH_MAX];
        int fd;

        (void) snprintf(path, sizeof(path), "%s/mapped", dir);
        if (mkdir(path, 0700) < 0 || chdir(path) < 0)
                return false;
        fd = open("file", O_RDWR | O_CREAT, 0600);
        leave_directory();
        if (fd < 0 || ftruncate(fd, 4096) < 0)
                return false;
        mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
        return mapped != MAP_FAILED && close(fd) == 0 && chmod(path, 0600) == 0;
}

static void mapped_drop(void) {
        (void) munmap(mapped, 4096);
}

static bool noentry_take(void) {
        char path[PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s/noentry", dir);
        return mkdir(path, 0700) == 0 && chdir(path) == 0 && chmod(path, 0600) == 0;
}

static bool events_take(void) {
        char path[PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s/watched", dir);
        fds[0] = inotify_init1(0);
        return mkdir(path, 0700) == 0 && inotify_add_watch(fds[0], path, IN_CREATE | IN_DELETE_SELF) >= 0 && rmdir(path) == 0;
}

static bool path_take(void) {
        char path[PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s/fifo", dir);
        if (mkfifo(path, 0600) < 0)
                return false;
        fds[0] = open(path, O_PATH);
        return fds[0] >= 0;
}

static bool epoll_take(void) {
        struct epoll_event event = { .events = EPOLLIN };
        int ends[2];

        fds[0] = epoll_create1(0);
        return pipe(ends) == 0 && epoll_ctl(fds[0], EPOLL_CTL_ADD, ends[0], &event) == 0 && fork_child(keep) &&
               close(ends[0]) == 0 && close(ends[1]) == 0;
}

static bool packets_take(void) {
        return pipe2(fds, O_DIRECT | O_CLOEXEC) == 0;
}

static bool eventfd_take(void) {
        fds[0] = eventfd(1000, EFD_SEMAPHORE | EFD_CLOEXEC);
        return fds[0] >= 0;
}

static bool userfaultfd_take(void) {
        fds[0] = (int) syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
        return fds[0] >= 0;
}

static bool fanotify_take(void) {
        fds[0] = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_CLOEXEC, 0);
        return fds[0] >= 0 && fanotify_mark(fds[0], FAN_MARK_ADD, FAN_CREATE | FAN_ONDIR, AT_FDCWD, dir) == 0;
}

/* An administrator may forbid programs to count (kernel.perf_event_paranoid). */
static bool perf_take(void) {
        struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                        .size = sizeof(attr),
                                        .config = PERF_COUNT_SW_TASK_CLOCK,
                                        .exclude_kernel = 1,
                                        .exclude_hv = 1 };

        fds[0] = (int) syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (fds[0] < 0 && (errno == EACCES || errno == EPERM))
                errno = EPROTONOSUPPORT;
        return fds[0] >= 0;
}

static void *counter = MAP_FAILED;

static bool perfmap_take(void) {
        if (perf_take())
                counter = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[0], 0);
        close_all();
        fds[0] = -1;
        return counter != MAP_FAILED;
}

static void perfmap_drop(void) {
        (void) munmap(counter, 4096);
}

static bool secret_take(void) {
        fds[0] = (int) syscall(SYS_memfd_secret, O_CLOEXEC);
        return fds[0] >= 0 && ftruncate(fds[0], 4096) == 0;
}

/* ---- sockets ---- */

static bool mptcp_take(void) {
        fds[0] = socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP);
        return fds[0] >= 0;
}

static bool md5_take(void) {
        struct tcp_md5sig md5 = { .tcpm_addr.ss_family = AF_INET, .tcpm_keylen = 3, .tcpm_key = "key" };

        fds[0] = socket(AF_INET, SOCK_STREAM, 0);
        return fds[0] >= 0 && setsockopt(fds[0], IPPROTO_TCP, TCP_MD5SIG, &md5, sizeof(md5)) == 0 && listen(fds[0], 1) == 0;
}

static bool alg_take(void) {
        fds[0] = socket(AF_ALG, SOCK_SEQPACKET, 0);
        return fds[0] >= 0;
}

static bool vsock_take(void) {
        fds[0] = socket(AF_VSOCK, SOCK_STREAM, 0);
        return fds[0] >= 0;
}

static bool connect_to_itself(int family, struct sockaddr *name, socklen_t size) {
        fds[0] = socket(family, SOCK_STREAM, 0);
        fds[1] = socket(family, SOCK_STREAM, 0);
        return fds[0] >= 0 && fds[1] >= 0 && bind(fds[0], name, size) == 0 && listen(fds[0], 4) == 0 &&
               (family == AF_UNIX || getsockname(fds[0], name, &size) == 0) && connect(fds[1], name, size) == 0;
}

static bool unaccepted_take(void) {
        struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

        return connect_to_itself(AF_INET, (struct sockaddr *) &name, sizeof(name));
}

/* The other end is here as well, and reads nothing of it. */
static bool unsent_take(void) {
        static char data[1 << 20];
        int client;

        if (!unaccepted_take())
                return false;
        client = fds[1];
        fds[1] = accept(fds[0], NULL, NULL);
        (void) fcntl(client, F_SETFL, O_NONBLOCK);
        while (write(client, data, sizeof(data)) > 0)
                ;
        return fds[1] >= 0 && close(client) == 0;
}

static bool empty_take(void) {
        return socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0 && send(fds[0], "a", 1, 0) == 1 && send(fds[0], "", 0, 0) == 0 &&
               send(fds[0], "b", 1, 0) == 1;
}

static bool urgent_take(void) {
        if (!unaccepted_take())
                return false;
        fds[2] = accept(fds[0], NULL, NULL);
        return fds[2] >= 0 && send(fds[2], "!", 1, MSG_OOB) == 1;
}

static bool unaccepted6_take(void) {
        struct sockaddr_in6 name = { .sin6_family = AF_INET6 };

        (void) inet_pton(AF_INET6, "::ffff:127.0.0.1", &name.sin6_addr);
        return connect_to_itself(AF_INET6, (struct sockaddr *) &name, sizeof(name));
}

static bool unix_connection(void) {
        struct sockaddr_un name = { .sun_family = AF_UNIX };

        (void) snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "uncarried.%d", (int) getpid());
        return connect_to_itself(AF_UNIX, (struct sockaddr *) &name, sizeof(name));
}

static bool asked_take(void) {
        return unix_connection() && write(fds[1], "request", 7) == 7;
}

static bool given_up_take(void) {
        return asked_take() && close(fds[1]) == 0;
}

static bool outside_take(void) {
        struct sockaddr_un name = { .sun_family = AF_UNIX };

        (void) snprintf(name.sun_path, sizeof(name.sun_path), "%s/outside", dir);
        fds[0] = socket(AF_UNIX, SOCK_STREAM, 0);
        return fds[0] >= 0 && connect(fds[0], (struct sockaddr *) &name, sizeof(name)) == 0;
}

static bool queued_take(void) {
        char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
        struct iovec part = { &byte, 1 };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        return socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0 && sendmsg(fds[0], &message, 0) == 1;
}

static bool oneway_take(void) {
        struct sockaddr_un name = { .sun_family = AF_UNIX };

        (void) snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "uncarried.%d", (int) getpid());
        fds[2] = socket(AF_UNIX, SOCK_DGRAM, 0);
        return socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0 && bind(fds[2], (struct sockaddr *) &name, sizeof(name)) == 0 &&
               connect(fds[0], (struct sockaddr *) &name, sizeof(name)) == 0;
}

static bool passcred_take(void) {
        int on = 1;

        return socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0 && setsockopt(fds[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0 &&
               write(fds[0], "message", 7) == 7;
}

static bool truncated_take(void) {
        static const char text[16384];
        int bytes = 4096;

        return socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0 && write(fds[0], text, sizeof(text)) == sizeof(text) &&
               setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) == 0;
}

static bool corked_take(void) {
        struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(9) };
        int on = 1;

        fds[0] = socket(AF_INET, SOCK_DGRAM, 0);
        return fds[0] >= 0 && connect(fds[0], (struct sockaddr *) &name, sizeof(name)) == 0 &&
               setsockopt(fds[0], IPPROTO_UDP, UDP_CORK, &on, sizeof(on)) == 0 && send(fds[0], "part", 4, 0) == 4;
}

static int segment = -1;

static bool shm_take(void) {
        segment = shmget(IPC_PRIVATE, 4096, 0600);
        return segment >= 0;
}

static void shm_drop(void) {
        (void) shmctl(segment, IPC_RMID, NULL);
}

static bool mqueue_take(void) {
        fds[0] = mq_open("/uncarried", O_RDWR | O_CREAT, 0600, NULL);
        return fds[0] >= 0;
}

static void mqueue_drop(void) {
        (void) mq_close(fds[0]);
        (void) mq_unlink("/uncarried");
}

static bool netlink_take(void) {
        struct {
                struct nlmsghdr header;
                struct ifinfomsg what;
        } ask = { { sizeof(ask), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { .ifi_family = AF_UNSPEC } };

        fds[0] = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
        return fds[0] >= 0 && send(fds[0], &ask, sizeof(ask), 0) == (ssize_t) sizeof(ask);
}

static const struct kind kinds[] = {
        { "traced", traced_take, kill_child },
        { "userns", userns_take, kill_child },
        { "vfork", vfork_take, vfork_drop },
        { "clonevm", clonevm_take, kill_child },
        { "leader", leader_take, kill_child },
        { "exitsig", exitsig_take, exitsig_drop },
        { "apart", apart_take, apart_drop },
        { "deadtimer", deadtimer_take, deadtimer_drop },
        { "fs", fs_take, kill_child },
        { "as", as_take, as_drop },
        { "nofile", nofile_take, table_drop },
        { "many", many_take, table_drop },
        { "maps", maps_take, maps_drop },
        { "signals", signals_take, signals_drop },
        { "thread", thread_take, NULL },
        { "ended", ended_take, NULL },
        { "hungup", hungup_take, NULL },
        { "ctty", ctty_take, kill_child },
        { "typed", typed_take, NULL },
        { "task", task_take, NULL },
        { "big", big_take, NULL },
        { "shared", shared_take, shared_drop },
        { "pidfd", pidfd_take, NULL },
        { "events", events_take, NULL },
        { "packets", packets_take, NULL },
        { "path", path_take, NULL },
        { "mode", mode_take, NULL },
        { "longfile", longfile_take, NULL },
        { "longdir", longdir_take, leave_directory },
        { "nosearch", nosearch_take, NULL },
        { "noentry", noentry_take, leave_directory },
        { "mapped", mapped_take, mapped_drop },
        { "epoll", epoll_take, kill_child },
        { "eventfd", eventfd_take, NULL },
        { "userfaultfd", userfaultfd_take, NULL },
        { "secret", secret_take, NULL },
        { "fanotify", fanotify_take, NULL },
        { "perf", perf_take, NULL },
        { "perfmap", perfmap_take, perfmap_drop },
        { "mptcp", mptcp_take, NULL },
        { "md5", md5_take, NULL },
        { "alg", alg_take, NULL },
        { "vsock", vsock_take, NULL },
        { "unaccepted", unaccepted_take, NULL },
        { "unaccepted6", unaccepted6_take, NULL },
        { "unsent", unsent_take, NULL },
        { "empty", empty_take, NULL },
        { "urgent", urgent_take, NULL },
        { "asked", asked_take, NULL },
        { "given-up", given_up_take, NULL },
        { "outside", outside_take, NULL },
        { "queued", queued_take, NULL },
        { "oneway", oneway_take, NULL },
        { "passcred", passcred_take, NULL },
        { "truncated", truncated_take, NULL },
        { "corked", corked_take, NULL },
        { "netlink", netlink_take, NULL },
        { "shm", shm_take, shm_drop },
        { "mqueue", mqueue_take, mqueue_drop },
        { "none", nothing, keep },
};

static const struct kind *kind_of(int rank, int argc, char **argv) {
        for (int i = 1; i < argc; i++) {
                if (strncmp(argv[i], "--", 2) == 0 || rank-- > 0)
                        continue;
                for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
                        if (strcmp(kinds[k].name, argv[i]) == 0)
                                return &kinds[k];
        }
        return NULL;
}

static void path_of(char path[PATH_MAX], const char *name, const char *ending) {
        (void) snprintf(path, PATH_MAX, "%s/%s.%s", dir, name, ending);
}

/* Without a descriptor, as there may be none to be had. */
static void mark(const char *name, const char *ending) {
        char path[PATH_MAX];

        path_of(path, name, ending);
        (void) mknod(path, S_IFREG | 0600, 0);
}

static bool is_marked(const char *name, const char *ending) {
        char path[PATH_MAX];

        path_of(path, name, ending);
        return access(path, F_OK) == 0;
}

int main(int argc, char **argv) {
        const char *number = getenv("OMPI_COMM_WORLD_RANK");
        const char *stop_file = option_text(argc, argv, "stop-file", "/nonexistent");
        int rank = number ? atoi(number) : 0;
        const struct kind *kind = kind_of(rank, argc, argv);
        bool dropped = false;

        dir = option_text(argc, argv, "dir", "/tmp");
        if (!kind)
                return 2;
        if (!kind->take()) {
                if (errno != EAFNOSUPPORT && errno != EPROTONOSUPPORT && errno != ENOPROTOOPT) {
                        (void) fprintf(stderr, "uncarried: %s: %s\n", kind->name, strerror(errno));
                        return 3;
                }
                mark(kind->name, "missing");
                dropped = true;
        }
        mark(kind->name, "held");
        for (int i = 1; rank == 0 && i < argc; i++)
                while (strncmp(argv[i], "--", 2) != 0 && !is_marked(argv[i], "held"))
                        pause_usec(20000);
        if (rank == 0) {
                printf("uncarried: running\n");
                (void) fflush(stdout);
        }
        while (access(stop_file, F_OK) < 0) {
                pause_usec(50000);
                if (dropped || !is_marked(kind->name, "drop"))
                        continue;
                (kind->drop ? kind->drop : close_all)();
                mark(kind->name, "dropped");
                dropped = true;
        }
        return 0;
}
