/* Each rank has one of every kind of state of a process that a move carries, and describes all of
 * it again and again, a line for each: what a getter of the kernel says, by itself or below /proc.
 * A line that is not as at first is said, and makes the program end with 9. Beside that the ranks
 * send messages around, whose contents are verified.
 *
 * usage: everything --stop-file=F [--look-file=G]
 *            rank 0 removes G once all ranks have compared everything after it was made; the files
 *            of the shared file system are in the working directory */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <linux/ioprio.h>
#include <linux/kcmp.h>
#include <linux/membarrier.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>

#include "common.h"

enum { TEXT_BYTES = 1 << 18, RING_BYTES = 4096, FILES_MAX = 128 };

/* Flags of an open() that say how it was found, and not how it is used: CRIU opens it in another
 * way. */
#define AS_OPENED ((unsigned) (O_DIRECTORY | O_TMPFILE))

static int rank, size;
static FILE *out; /* the description that is being made */

#define LINE(...) ((void) fprintf(out, __VA_ARGS__))

static int need(int result, const char *what) {
        if (result >= 0)
                return result;
        (void) fprintf(stderr, "everything: rank %d: %s: %s\n", rank, what, strerror(errno));
        _exit(8);
}

/* Lines of a file of /proc that begin with one of these words. */
static void describe_lines(const char *path, const char *words) {
        char line[4096], word[64];
        FILE *f = fopen(path, "re");

        while (f && fgets(line, sizeof(line), f)) {
                (void) snprintf(word, sizeof(word), " %.*s ", (int) strcspn(line, ":\t "), line);
                if (strstr(words, word))
                        LINE("%s: %s", path, line);
        }
        if (!f)
                LINE("%s: %s\n", path, strerror(errno));
        else
                (void) fclose(f);
}

static void describe_hash(const char *path) {
        char text[65536];
        FILE *f = fopen(path, "re");
        size_t n = f ? fread(text, 1, sizeof(text), f) : 0;

        LINE("%s: %zu bytes, %" PRIx64 "\n", path, n, hash_more(HASH_START, text, n));
        if (f)
                (void) fclose(f);
}

/* Fields of /proc/PID/stat by their numbers in proc(5). */
static void describe_stat(const char *name, pid_t pid, const char *fields) {
        char path[64], line[4096] = "", number[16];
        FILE *f;
        int at = 3;

        (void) snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        f = fopen(path, "re");
        if (!f || !fgets(line, sizeof(line), f))
                LINE("%s: no stat: %s\n", name, strerror(errno));
        if (f)
                (void) fclose(f);
        for (char *rest = strrchr(line, ')'), *word = rest ? strtok(rest + 1, " \n") : NULL; word;
             word = strtok(NULL, " \n"), at++) {
                (void) snprintf(number, sizeof(number), " %d ", at);
                if (strstr(fields, number))
                        LINE("%s: field %d of stat: %s\n", name, at, word);
        }
}

/* ---- descriptors: each has a name, and is described by what the kernel says of all kinds ---- */

static struct {
        const char *name;
        int fd;
} files[FILES_MAX];
static size_t n_files;

static int have(const char *name, int fd) {
        files[n_files].name = name;
        files[n_files++].fd = need(fd, name);
        return fd;
}

static int fd_of(const char *name) {
        for (size_t i = 0; i < n_files; i++)
                if (strcmp(files[i].name, name) == 0)
                        return files[i].fd;
        abort();
}

static void describe_file(const char *name, int fd) {
        struct f_owner_ex owner = { 0 };
        char path[64], link[512] = "";
        int unread = -1;
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = readlink(path, link, sizeof(link) - 1);
        /* Sockets and pipes have other inode numbers afterwards. */
        LINE("%s: %s\n", name, n > 0 && link[0] != '/' && !strstr(link, "anon_inode") ? "without a path" : link);
        LINE("%s: flags %o, of the descriptor %d, signal %d\n", name, (unsigned) fcntl(fd, F_GETFL) & ~AS_OPENED,
             fcntl(fd, F_GETFD), fcntl(fd, F_GETSIG));
        if (fcntl(fd, F_GETOWN_EX, &owner) == 0)
                LINE("%s: owner %d %d\n", name, owner.type, (int) owner.pid);
        LINE("%s: size of pipe %d\n", name, fcntl(fd, F_GETPIPE_SZ));
        if (ioctl(fd, FIONREAD, &unread) == 0 && !strstr(link, "/proc/"))
                LINE("%s: %d bytes unread\n", name, unread);
        (void) snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
        describe_lines(path, " pos eventfd-count sigmask clockid Pid it_interval lock ");
}

static void describe_files(void) {
        for (size_t i = 0; i < n_files; i++)
                describe_file(files[i].name, files[i].fd);
}

static int64_t deadline_usec;

static void make_files(void) {
        char path[64];
        int fd, both[2];
        const struct f_owner_ex owner = { F_OWNER_TID, gettid() };
        const struct itimerspec hour = { .it_interval = { 3600, 0 }, .it_value = { 7200, 0 } };
        struct itimerspec at = { 0 };
        struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = 77 };
        sigset_t set;

        (void) snprintf(path, sizeof(path), "everything.%d", rank);
        fd = have("file for appending, O_SYNC", open(path, O_RDWR | O_CREAT | O_APPEND | O_SYNC | O_CLOEXEC, 0640));
        need((int) write(fd, "0123456789", 10), "write");
        (void) lseek(fd, 4, SEEK_SET);
        have("the same file under another descriptor", fcntl(fd, F_DUPFD, 100));
        fd = have("the same file, opened anew, O_NOATIME", open(path, O_RDONLY | O_NOATIME));
        (void) lseek(fd, 7, SEEK_SET);
        fd = open(path, O_RDONLY | O_DIRECT);
        if (fd >= 0)
                have("the same file with O_DIRECT", fd);
        have("path only", open(path, O_PATH));
        (void) snprintf(path, sizeof(path), "everything.link.%d", rank);
        need(symlink("nowhere", path), "symlink");
        have("symbolic link, path only", open(path, O_PATH | O_NOFOLLOW));
        have("working directory", open(".", O_RDONLY | O_DIRECTORY));
        fd = have("file without a name, O_TMPFILE", open("/tmp", O_TMPFILE | O_RDWR, 0600));
        need((int) write(fd, "nameless", 8), "write");
        (void) snprintf(path, sizeof(path), "/tmp/fifo.%d", rank);
        need(mkfifo(path, 0600), "mkfifo");
        fd = have("named pipe", open(path, O_RDWR | O_NONBLOCK));
        need((int) write(fd, "fifo", 4), "write");
        need(pipe2(both, O_NONBLOCK), "pipe");
        have("pipe, to be read", both[0]);
        fd = have("pipe, to be written, O_ASYNC", both[1]);
        need(fcntl(fd, F_SETPIPE_SZ, 131072), "F_SETPIPE_SZ");
        need(fcntl(fd, F_SETOWN_EX, &owner), "F_SETOWN_EX");
        need(fcntl(fd, F_SETSIG, SIGRTMIN + 5), "F_SETSIG");
        need((int) write(fd, "in the pipe", 11), "write");
        need(fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC), "F_SETFL");
        have("eventfd", eventfd(7, EFD_NONBLOCK));
        sigemptyset(&set);
        sigaddset(&set, SIGRTMIN + 6);
        have("signalfd", signalfd(-1, &set, SFD_CLOEXEC));
        fd = have("timerfd", timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
        need(timerfd_settime(fd, 0, &hour, NULL), "timerfd_settime");
        fd = have("timerfd at a point in time", timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
        deadline_usec = now_usec() + 3600000000;
        at.it_value = (struct timespec) { .tv_sec = deadline_usec / 1000000, .tv_nsec = deadline_usec % 1000000 * 1000 };
        need(timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL), "timerfd_settime");
        fd = have("epoll", epoll_create1(EPOLL_CLOEXEC));
        need(epoll_ctl(fd, EPOLL_CTL_ADD, fd_of("timerfd"), &event), "epoll_ctl");
        event.events = EPOLLOUT | EPOLLONESHOT;
        need(epoll_ctl(fd, EPOLL_CTL_ADD, fd_of("pipe, to be written, O_ASYNC"), &event), "epoll_ctl");
        fd = have("inotify", inotify_init1(IN_NONBLOCK));
        need(inotify_add_watch(fd, "/tmp", IN_DELETE_SELF | IN_MOVE_SELF), "inotify_add_watch");
        have("/dev/null", open("/dev/null", O_RDWR));
        have("/dev/zero", open("/dev/zero", O_RDONLY));
        have("/dev/urandom", open("/dev/urandom", O_RDONLY));
        have("/proc/self/maps", open("/proc/self/maps", O_RDONLY));
        fd = have("memfd", memfd_create("everything", MFD_ALLOW_SEALING));
        need(ftruncate(fd, 8192), "ftruncate");
        need(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), "F_ADD_SEALS");
}

/* A timer may go off later by what a move takes to look at it. */
static void describe_deadline(void) {
        struct itimerspec left = { 0 };
        int64_t least_usec;

        (void) timerfd_gettime(fd_of("timerfd at a point in time"), &left);
        least_usec = deadline_usec - now_usec() - 100000;
        LINE("timerfd at a point in time: %s\n",
             left.it_value.tv_sec * 1000000 + left.it_value.tv_nsec / 1000 >= least_usec ? "not early" : "early");
}

static void describe_epoll(void) {
        char path[64], line[512];
        unsigned long all = 0;
        FILE *f;

        (void) snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd_of("epoll"));
        f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
                if (strncmp(line, "tfd:", 4) == 0 && strstr(line, " pos")) /* in any order */
                        all += hash_more(HASH_START, line, (size_t) (strstr(line, " pos") - line));
        if (f)
                (void) fclose(f);
        LINE("epoll: what it waits for is %lx\n", all);
}

static void describe_contents(void) {
        char text[16] = "";
        struct stat st;
        int fd = fd_of("file without a name, O_TMPFILE");

        LINE("contents of the nameless file: %zd %s\n", pread(fd, text, sizeof(text) - 1, 0), text);
        LINE("the named file has %lld bytes\n", fstat(fd_of("path only"), &st) == 0 ? (long long) st.st_size : -1);
        LINE("seals %d\n", fcntl(fd_of("memfd"), F_GET_SEALS));
        LINE("two descriptors are one open file: %ld; another is not: %d\n",
             syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, fd_of("file for appending, O_SYNC"),
                     fd_of("the same file under another descriptor")),
             syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, fd_of("file for appending, O_SYNC"),
                     fd_of("the same file, opened anew, O_NOATIME")) != 0);
        describe_epoll();
        describe_deadline();
}

/* ---- sockets ---- */

static void set(int fd, int level, int option, int value) {
        if (setsockopt(fd, level, option, &value, sizeof(value)) < 0)
                (void) fprintf(stderr, "everything: rank %d: option %d of level %d: %s\n", rank, option, level, strerror(errno));
}

static struct sockaddr_in loopback(int port) {
        return (struct sockaddr_in) { .sin_family = AF_INET,
                                      .sin_port = htons((uint16_t) port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static void make_sockets(void) {
        const struct timeval second = { .tv_sec = 1234 };
        const struct linger linger = { 1, 17 };
        struct sockaddr_nl netlink = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
        struct sockaddr_in address = loopback(20000 + rank);
        struct sockaddr_in6 address6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons(21000) };
        struct sockaddr_un name = { .sun_family = AF_UNIX };
        int listener, fd, both[2];

        listener = have("listening socket", socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
        set(listener, SOL_SOCKET, SO_REUSEPORT, 1);
        need(bind(listener, (struct sockaddr *) &address, sizeof(address)), "bind");
        need(listen(listener, 5), "listen");
        fd = have("connection, this end", socket(AF_INET, SOCK_STREAM, 0));
        need(connect(fd, (struct sockaddr *) &address, sizeof(address)), "connect");
        have("connection, other end", accept(listener, NULL, NULL));
        set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
        set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 3000);
        set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 300);
        set(fd, IPPROTO_TCP, TCP_KEEPCNT, 5);
        set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        set(fd, SOL_SOCKET, SO_OOBINLINE, 1);
        set(fd, SOL_SOCKET, SO_PRIORITY, 3);
        set(fd, SOL_SOCKET, SO_RCVLOWAT, 2);
        set(fd, IPPROTO_IP, IP_TOS, 0x10);
        set(fd, IPPROTO_IP, IP_TTL, 33);
        need(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second)), "SO_RCVTIMEO");
        need(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second)), "SO_SNDTIMEO");
        need(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), "SO_LINGER");
        need((int) send(fd, "to the other end", 16, 0), "send");
        need((int) send(fd_of("connection, other end"), "back", 4, 0), "send");
        fd = have("UDP socket, connected", socket(AF_INET, SOCK_DGRAM, 0));
        set(fd, SOL_SOCKET, SO_BROADCAST, 1);
        set(fd, IPPROTO_IP, IP_PKTINFO, 1);
        set(fd, IPPROTO_IP, IP_FREEBIND, 1);
        set(fd, SOL_SOCKET, SO_RCVBUF, 100000);
        set(fd, SOL_SOCKET, SO_SNDBUF, 90000);
        address = loopback(22000 + rank);
        need(bind(fd, (struct sockaddr *) &address, sizeof(address)), "bind");
        address = loopback(22100 + rank);
        need(connect(fd, (struct sockaddr *) &address, sizeof(address)), "connect");
        fd = socket(AF_INET6, SOCK_STREAM, 0);
        if (fd >= 0) {
                have("IPv6 socket", fd);
                set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
                set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
                address6.sin6_port = htons((uint16_t) (21000 + rank));
                if (bind(fd, (struct sockaddr *) &address6, sizeof(address6)) == 0)
                        need(listen(fd, 3), "listen");
        }
        need(socketpair(AF_UNIX, SOCK_STREAM, 0, both), "socketpair");
        have("Unix stream, one end", both[0]);
        have("Unix stream, other end", both[1]);
        set(both[0], SOL_SOCKET, SO_PASSCRED, 0);
        need((int) write(both[0], "forth", 5), "write");
        need((int) write(both[1], "and back", 8), "write");
        need(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, both), "socketpair");
        have("Unix packets, one end", both[0]);
        have("Unix packets, other end", both[1]);
        need((int) write(both[0], "one", 3), "write");
        need((int) write(both[0], "another", 7), "write");
        fd = have("Unix datagrams, abstract name", socket(AF_UNIX, SOCK_DGRAM, 0));
        (void) snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "everything.%d", rank);
        need(bind(fd, (struct sockaddr *) &name, sizeof(name)), "bind");
        fd = have("Unix listener, path", socket(AF_UNIX, SOCK_STREAM, 0));
        (void) snprintf(name.sun_path, sizeof(name.sun_path), "/tmp/socket.%d", rank);
        need(bind(fd, (struct sockaddr *) &name, sizeof(name)), "bind");
        need(listen(fd, 4), "listen");
        fd = have("netlink socket", socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
        netlink.nl_groups = 0;
        need(bind(fd, (struct sockaddr *) &netlink, sizeof(netlink)), "bind");
}

static void describe_socket(const char *name, int fd) {
        static const struct {
                int level, option;
                const char *name;
        } options[] = {
#define OPTION(level, option) { level, option, #option }
                OPTION(SOL_SOCKET, SO_TYPE),        OPTION(SOL_SOCKET, SO_PROTOCOL),     OPTION(SOL_SOCKET, SO_DOMAIN),
                OPTION(SOL_SOCKET, SO_ACCEPTCONN),  OPTION(SOL_SOCKET, SO_SNDBUF),       OPTION(SOL_SOCKET, SO_RCVBUF),
                OPTION(SOL_SOCKET, SO_PRIORITY),    OPTION(SOL_SOCKET, SO_RCVLOWAT),     OPTION(SOL_SOCKET, SO_SNDTIMEO),
                OPTION(SOL_SOCKET, SO_RCVTIMEO),    OPTION(SOL_SOCKET, SO_REUSEADDR),    OPTION(SOL_SOCKET, SO_REUSEPORT),
                OPTION(SOL_SOCKET, SO_BROADCAST),   OPTION(SOL_SOCKET, SO_KEEPALIVE),    OPTION(SOL_SOCKET, SO_OOBINLINE),
                OPTION(SOL_SOCKET, SO_LINGER),      OPTION(SOL_SOCKET, SO_PASSCRED),     OPTION(SOL_SOCKET, SO_DONTROUTE),
                OPTION(IPPROTO_TCP, TCP_NODELAY),   OPTION(IPPROTO_TCP, TCP_CORK),       OPTION(IPPROTO_TCP, TCP_KEEPIDLE),
                OPTION(IPPROTO_TCP, TCP_KEEPINTVL), OPTION(IPPROTO_TCP, TCP_KEEPCNT),    OPTION(IPPROTO_IP, IP_TOS),
                OPTION(IPPROTO_IP, IP_TTL),         OPTION(IPPROTO_IP, IP_FREEBIND),     OPTION(IPPROTO_IP, IP_PKTINFO),
                OPTION(IPPROTO_IPV6, IPV6_V6ONLY),  OPTION(IPPROTO_IPV6, IPV6_FREEBIND), OPTION(IPPROTO_IPV6, IPV6_RECVPKTINFO),
#undef OPTION
        };
        unsigned char value[64];
        struct sockaddr_storage address;
        socklen_t bytes;
        int domain = 0;

        bytes = sizeof(domain);
        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) < 0)
                return;
        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
                /* The kernel gives what is meant for other families, too, and it is nothing of
                 * theirs. */
                if ((options[i].level == IPPROTO_IPV6 && domain != AF_INET6) ||
                    /* CRIU leaves it on where a listening socket has the same port. */
                    (options[i].option == SO_REUSEPORT && strncmp(name, "connection", 10) == 0) ||
                    ((options[i].level == IPPROTO_IP || options[i].level == IPPROTO_TCP) && domain != AF_INET &&
                     domain != AF_INET6))
                        continue;
                bytes = sizeof(value);
                if (getsockopt(fd, options[i].level, options[i].option, value, &bytes) < 0)
                        continue;
                LINE("%s: %s", name, options[i].name);
                for (socklen_t k = 0; k < bytes; k++)
                        LINE(" %02x", value[k]);
                LINE("\n");
        }
        for (int far = 0; far < 2; far++) {
                bytes = sizeof(address);
                memset(&address, 0, sizeof(address));
                if ((far ? getpeername : getsockname)(fd, (struct sockaddr *) &address, &bytes) < 0)
                        continue;
                LINE("%s: %s", name, far ? "peer" : "address");
                for (socklen_t k = 0; k < bytes && k < 40; k++)
                        LINE(" %02x", ((unsigned char *) &address)[k]);
                LINE("\n");
        }
}

static void describe_queue(const char *name) {
        char text[32] = "";
        ssize_t n = recv(fd_of(name), text, sizeof(text) - 1, MSG_PEEK | MSG_DONTWAIT);

        LINE("%s: next is %zd %s\n", name, n, text);
}

static void describe_sockets(void) {
        for (size_t i = 0; i < n_files; i++)
                describe_socket(files[i].name, files[i].fd);
        describe_queue("connection, this end");
        describe_queue("connection, other end");
        describe_queue("Unix stream, one end");
        describe_queue("Unix stream, other end");
        describe_queue("Unix packets, other end");
}

/* ---- memory ---- */

static struct {
        const char *name;
        char *base;
} areas[16];
static size_t n_areas;

static char *area(const char *name, int flags, int advice) {
        char *base = mmap(NULL, 1 << 21, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);

        if (base == MAP_FAILED)
                need(-1, name);
        memset(base, 1 + (int) n_areas, 8192);
        if (advice >= 0 && madvise(base, 1 << 21, advice) < 0)
                need(-1, name);
        areas[n_areas].name = name;
        areas[n_areas++].base = base;
        return base;
}

static aio_context_t aio;

static void make_memory(void) {
        char *base;

        (void) area("grows down", MAP_PRIVATE | MAP_GROWSDOWN, -1);
        base = area("locked", MAP_PRIVATE, -1);
        need(mlock(base, 8192), "mlock");
        (void) area("huge pages wanted", MAP_PRIVATE, MADV_HUGEPAGE);
        (void) area("no huge pages", MAP_PRIVATE, MADV_NOHUGEPAGE);
        (void) area("not for children", MAP_PRIVATE, MADV_DONTFORK);
        (void) area("read in order", MAP_PRIVATE, MADV_SEQUENTIAL);
        (void) area("read at random", MAP_PRIVATE, MADV_RANDOM);
        (void) area("not in core files", MAP_PRIVATE, MADV_DONTDUMP);
        (void) area("zeros in children", MAP_PRIVATE, MADV_WIPEONFORK);
        (void) area("shared", MAP_SHARED, -1);
        (void) area("without reserve", MAP_PRIVATE | MAP_NORESERVE, -1);
        base = area("protected", MAP_PRIVATE, -1);
        need(mprotect(base + 4096, 4096, PROT_NONE), "mprotect");
        need((int) syscall(SYS_io_setup, 5, &aio), "io_setup");
}

/* The flags of /proc/self/smaps of the areas; those of huge pages are what the kernel does about
 * them, and no state of the program. */
static void describe_memory(void) {
        char line[512];
        FILE *f = fopen("/proc/self/smaps", "re");
        unsigned long low = 0, high = 0;
        const char *name = NULL;

        while (f && fgets(line, sizeof(line), f)) {
                unsigned long from, to;

                if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
                        low = from, high = to, name = NULL;
                        for (size_t i = 0; i < n_areas; i++)
                                if ((unsigned long) areas[i].base >= low && (unsigned long) areas[i].base < high)
                                        name = areas[i].name;
                } else if (name && strncmp(line, "VmFlags:", 8) == 0) {
                        char *soft = strstr(line, " sd");

                        if (soft)
                                memmove(soft, soft + 3, strlen(soft + 3) + 1);
                        LINE("memory, %s: %s", name, line);
                }
        }
        if (f)
                (void) fclose(f);
        for (size_t i = 0; i < n_areas; i++)
                LINE("memory, %s: begins with %d, ends with %d\n", areas[i].name, areas[i].base[0], areas[i].base[(1 << 21) - 1]);
        LINE("asynchronous requests: %ld\n", syscall(SYS_io_getevents, aio, 0L, 0L, NULL, NULL));
}

/* ---- the process itself, and its threads ---- */

static char alternate[65536];
static timer_t cpu_timer, far_timer;

static void on_signal(int signo) {
}

static _Atomic bool thread_ready;

static void *thread_main(void *arg) {
        sigset_t all;

        (void) prctl(PR_SET_NAME, arg);
        sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, NULL);
        thread_ready = true;
        (void) pause();
        return NULL;
}

static void make_process(void) {
        const stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
        const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART | SA_NODEFER };
        const struct itimerval later = { .it_interval = { 5000, 0 }, .it_value = { 7000, 0 } };
        const struct itimerspec far = { .it_interval = { 3000, 0 }, .it_value = { 4000, 0 } };
        const union sigval value = { .sival_int = 4711 };
        struct sigevent none = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 7 };
        struct rlimit limit;
        pthread_t thread;
        FILE *f;

        (void) umask(027);
        need(sigaltstack(&stack, NULL), "sigaltstack");
        need(sigaction(SIGRTMIN + 3, &action, NULL), "sigaction");
        (void) signal(SIGUSR2, SIG_IGN);
        /* The signals are for this thread only: others, that libraries made before main(), would
         * take them. */
        need(-pthread_sigqueue(pthread_self(), SIGRTMIN + 8, value), "pthread_sigqueue");
        need(-pthread_sigqueue(pthread_self(), SIGRTMIN + 8, value), "pthread_sigqueue");
        need((int) syscall(SYS_tgkill, getpid(), getpid(), SIGRTMIN + 6), "tgkill");
        need(setitimer(ITIMER_PROF, &later, NULL), "setitimer");
        need(setitimer(ITIMER_VIRTUAL, &later, NULL), "setitimer");
        need(timer_create(CLOCK_PROCESS_CPUTIME_ID, &none, &cpu_timer), "timer_create");
        need(timer_settime(cpu_timer, 0, &far, NULL), "timer_settime");
        need(timer_create(CLOCK_MONOTONIC, &none, &far_timer), "timer_create");
        need(timer_settime(far_timer, 0, &far, NULL), "timer_settime");
        need((int) syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0), "membarrier");
        need(getrlimit(RLIMIT_CORE, &limit), "getrlimit");
        limit.rlim_cur = limit.rlim_max < 12345 ? limit.rlim_max : 12345;
        need(setrlimit(RLIMIT_CORE, &limit), "setrlimit");
        need(getrlimit(RLIMIT_STACK, &limit), "getrlimit");
        limit.rlim_cur = 4 << 20;
        need(setrlimit(RLIMIT_STACK, &limit), "setrlimit");
        need(prctl(PR_SET_CHILD_SUBREAPER, 1), "PR_SET_CHILD_SUBREAPER");
        need(prctl(PR_SET_NAME, "every thing"), "PR_SET_NAME");
        need(-pthread_create(&thread, NULL, thread_main, "second thread"), "pthread_create");
        while (!thread_ready)
                pause_usec(1000);
        f = fopen("/proc/self/oom_score_adj", "we");
        if (!f || fputs("500", f) < 0 || fclose(f) != 0)
                need(-1, "oom_score_adj");
}

static void describe_timer(const char *name, const struct timeval *interval, bool armed) {
        LINE("timer %s: armed %d, each %ld\n", name, armed, (long) interval->tv_sec);
}

static void describe_process(void) {
        struct itimerval timer;
        struct itimerspec spec;
        struct utsname names;
        stack_t stack;
        struct sigaction action;
        int reaper = -1;

        LINE("page size %lu, base of the interpreter %lx, random bytes at %lx, hash %lx\n", getauxval(AT_PAGESZ),
             getauxval(AT_BASE), getauxval(AT_RANDOM), (unsigned long) hash_more(HASH_START, (void *) getauxval(AT_RANDOM), 16));
        describe_hash("/proc/self/auxv");
        describe_hash("/proc/self/environ");
        describe_hash("/proc/self/cmdline");
        describe_stat("process", getpid(), " 4 5 6 7 8 19 20 26 27 28 40 41 45 46 47 48 49 50 51 ");
        describe_lines("/proc/self/status", " Name Umask Uid Gid Groups NSpid SigPnd ShdPnd SigBlk SigIgn SigCgt NoNewPrivs "
                                            "Seccomp CapInh CapPrm CapEff CapBnd CapAmb ");
        describe_lines("/proc/self/oom_score_adj", " 0 500 ");
        for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
                struct rlimit limit;

                if (getrlimit(resource, &limit) == 0)
                        LINE("limit %d: %lx %lx\n", resource, (unsigned long) limit.rlim_cur, (unsigned long) limit.rlim_max);
        }
        (void) sigaltstack(NULL, &stack);
        LINE("alternate stack: %p %zu %d\n", stack.ss_sp, stack.ss_size, stack.ss_flags);
        (void) sigaction(SIGRTMIN + 3, NULL, &action);
        LINE("handler: %p %x\n", (void *) action.sa_handler, (unsigned) action.sa_flags);
        (void) getitimer(ITIMER_PROF, &timer);
        describe_timer("of profiles", &timer.it_interval, timer.it_value.tv_sec > 0);
        (void) getitimer(ITIMER_VIRTUAL, &timer);
        describe_timer("of the program's time", &timer.it_interval, timer.it_value.tv_sec > 0);
        (void) timer_gettime(cpu_timer, &spec);
        LINE("timer of the processor's time: armed %d, each %ld\n", spec.it_value.tv_sec > 0, (long) spec.it_interval.tv_sec);
        (void) timer_gettime(far_timer, &spec);
        LINE("timer of the clock: armed %d, each %ld\n", spec.it_value.tv_sec > 0, (long) spec.it_interval.tv_sec);
        LINE("membarrier: %ld\n", syscall(SYS_membarrier, MEMBARRIER_CMD_GET_REGISTRATIONS, 0, 0));
        LINE("restartable sequences: %s\n", syscall(SYS_rseq, (char *) __builtin_thread_pointer() + __rseq_offset,
                                                    __rseq_size > 32 ? __rseq_size : 32, 0, RSEQ_SIG) < 0
                                                    ? strerror(errno)
                                                    : "were not registered");
        (void) prctl(PR_GET_CHILD_SUBREAPER, &reaper);
        LINE("subreaper %d, personality %lx\n", reaper, (unsigned long) personality(0xffffffff));
        (void) uname(&names);
        LINE("host %s\n", names.nodename);
}

static void describe_threads(void) {
        for (int tid = 1; tid < 200; tid++) {
                char path[64];

                (void) snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
                if (access(path, F_OK) == 0)
                        describe_lines(path, " Name Pid SigBlk ");
        }
}

/* ---- children: each describes itself into shared memory when it is asked, or is described from
 * outside ---- */

struct child {
        pid_t pid;
        int ask[2], answer[2];
        char *text;
};

static struct child attributes, terminal;
static pid_t zombie, stopped, shares_files, strict;
static int master = -1;

static void describe_attributes(void) {
        int pdeathsig = 0;

        (void) prctl(PR_GET_PDEATHSIG, &pdeathsig);
        LINE("child: signal at its parent's end %d, no huge pages %d, policy %d, nice %d\n", pdeathsig,
             prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), sched_getscheduler(0), getpriority(PRIO_PROCESS, 0));
        LINE("child: I/O priority %#lx, timer slack %d ns\n", syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0),
             prctl(PR_GET_TIMERSLACK));
        describe_lines("/proc/self/coredump_filter", " 00000015 00000033 ");
        LINE("child: umask %o\n", (unsigned) umask(0));
        (void) umask(031);
        describe_stat("child", getpid(), " 4 5 6 ");
        describe_lines("/proc/self/status", " Name Umask ShdPnd ");
}

static void describe_terminal(void) {
        int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC), unread = -1;
        struct termios settings = { 0 };

        LINE("child with a terminal: session %d, foreground %d, %s\n", (int) tcgetsid(fd), (int) tcgetpgrp(fd),
             fd >= 0 ? "/dev/tty" : strerror(errno));
        (void) ioctl(fd, FIONREAD, &unread);
        (void) tcgetattr(fd, &settings);
        LINE("child with a terminal: %d bytes unread, modes %x %x %x %x, least %d\n", unread, settings.c_iflag, settings.c_oflag,
             settings.c_cflag, settings.c_lflag, settings.c_cc[VMIN]);
        if (fd >= 0)
                (void) close(fd);
        describe_stat("child with a terminal", getpid(), " 5 6 7 8 ");
}

static _Noreturn void serve(struct child *child, void (*describe)(void)) {
        char byte;

        while (read(child->ask[0], &byte, 1) == 1) {
                out = fmemopen(child->text, TEXT_BYTES, "w");
                describe();
                (void) fclose(out);
                (void) !write(child->answer[1], "", 1);
        }
        _exit(0);
}

static void begin(struct child *child, void (*setup)(void), void (*describe)(void)) {
        need(pipe(child->ask), "pipe");
        need(pipe(child->answer), "pipe");
        child->text = mmap(NULL, TEXT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        child->pid = need(fork(), "fork");
        if (child->pid > 0)
                return;
        setup();
        serve(child, describe);
}

static void ask(struct child *child) {
        char byte;

        (void) !write(child->ask[1], "", 1);
        while (read(child->answer[0], &byte, 1) < 0 && errno == EINTR)
                ;
        LINE("%s", child->text);
}

static void become_attributes(void) {
        const struct sched_param param = { 0 };
        const union sigval value = { .sival_int = 815 };
        sigset_t blocked;
        int filter;

        need(prctl(PR_SET_PDEATHSIG, SIGKILL), "PR_SET_PDEATHSIG");
        need(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), "PR_SET_THP_DISABLE");
        need(sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &param), "SCHED_BATCH");
        need(setpriority(PRIO_PROCESS, 0, 3), "setpriority");
        need((int) syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7)), "ioprio_set");
        need(prctl(PR_SET_TIMERSLACK, 70000), "PR_SET_TIMERSLACK");
        filter = need(open("/proc/self/coredump_filter", O_WRONLY), "coredump_filter");
        need((int) write(filter, "0x15", 4), "coredump_filter");
        (void) close(filter);
        (void) umask(031);
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGRTMIN + 1);
        need(sigprocmask(SIG_BLOCK, &blocked, NULL), "sigprocmask");
        need(sigqueue(getpid(), SIGRTMIN + 1, value), "sigqueue");
        need(setpgid(0, 0), "setpgid");
        need(prctl(PR_SET_NAME, "attributes"), "PR_SET_NAME");
}

/* The terminal's foreground group is a child of this process. */
static void become_terminal(void) {
        struct termios settings;
        pid_t pid;
        int slave;

        need(setsid(), "setsid");
        slave = need(open(ptsname(master), O_RDWR), "slave");
        need(ioctl(slave, TIOCSCTTY, 0), "TIOCSCTTY");
        (void) signal(SIGTTOU, SIG_IGN);
        need(tcgetattr(slave, &settings), "tcgetattr");
        cfmakeraw(&settings);
        settings.c_cc[VMIN] = 3;
        need(tcsetattr(slave, TCSANOW, &settings), "tcsetattr");
        need((int) write(slave, "printed\nand not read\n", 21), "write");
        pid = need(fork(), "fork");
        if (pid == 0) {
                (void) setpgid(0, 0);
                while (true)
                        (void) pause();
        }
        need(setpgid(pid, pid) < 0 && errno != EACCES ? -1 : 0, "setpgid");
        need(tcsetpgrp(slave, pid), "tcsetpgrp");
}

/* Returns the state, which is another one for a moment after a restore, and while the process is
 * looked at or stands still with all others. */
static char wait_for_state(pid_t pid, char state) {
        const int64_t end = now_usec() + 5000000;
        char path[64], line[512], is = '?';

        (void) snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        while (is != state && now_usec() < end) {
                FILE *f = fopen(path, "re");

                if (f && fgets(line, sizeof(line), f))
                        is = strrchr(line, ')')[2];
                if (f)
                        (void) fclose(f);
                if (is != state)
                        pause_usec(1000);
        }
        return is;
}

static int shares_main(void *arg) {
        return pause();
}

static void make_children(void) {
        static struct winsize window = { .ws_row = 43, .ws_col = 101 };
        int held[2];
        char *stack;

        master = have("master of a terminal", posix_openpt(O_RDWR | O_NOCTTY));
        need(grantpt(master), "grantpt");
        need(unlockpt(master), "unlockpt");
        need(ioctl(master, TIOCSWINSZ, &window), "TIOCSWINSZ");
        begin(&terminal, become_terminal, describe_terminal);
        begin(&attributes, become_attributes, describe_attributes);
        zombie = need(fork(), "fork");
        if (zombie == 0)
                _exit(42);
        stopped = need(fork(), "fork");
        if (stopped == 0) {
                (void) raise(SIGSTOP);
                _exit(0);
        }
        need(pipe(held), "pipe");
        strict = need(fork(), "fork");
        if (strict == 0) {
                char byte;

                (void) close(held[1]);
                (void) prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
                (void) !read(held[0], &byte, 1);
                (void) syscall(SYS_exit, 0);
        }
        (void) close(held[0]);
        stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        shares_files = need(clone(shares_main, stack + 65536, CLONE_FILES | SIGCHLD, NULL), "clone");
        have("pidfd of a child", (int) syscall(SYS_pidfd_open, stopped, 0));
        (void) wait_for_state(zombie, 'Z');
        (void) wait_for_state(stopped, 'T');
        (void) wait_for_state(strict, 'S');
        (void) wait_for_state(shares_files, 'S');
        out = fopen("/dev/null", "we");
        ask(&terminal);
        (void) fclose(out);
        need((int) write(master, "typed, and not read\n", 20), "write");
}

static void describe_children(void) {
        struct winsize window = { 0 };
        siginfo_t info = { 0 };

        ask(&attributes);
        ask(&terminal);
        LINE("zombie: %d", waitid(P_PID, (id_t) zombie, &info, WEXITED | WNOWAIT | WNOHANG));
        LINE(" %d %d %d\n", (int) info.si_pid == zombie, info.si_code, info.si_status);
        describe_stat("zombie", zombie, " 3 4 5 6 ");
        LINE("stopped: %c, seccomp: %c, shares descriptors: %c\n", wait_for_state(stopped, 'T'), wait_for_state(strict, 'S'),
             wait_for_state(shares_files, 'S'));
        describe_stat("stopped", stopped, " 4 5 6 ");
        describe_stat("seccomp", strict, " 4 5 6 ");
        describe_stat("shares descriptors", shares_files, " 4 ");
        LINE("descriptors are shared: %ld\n", syscall(SYS_kcmp, getpid(), shares_files, KCMP_FILES, 0, 0));
        LINE("a child has the same open file: %ld\n",
             syscall(SYS_kcmp, getpid(), attributes.pid, KCMP_FILE, fd_of("file for appending, O_SYNC"),
                     fd_of("file for appending, O_SYNC")));
        (void) ioctl(master, TIOCGWINSZ, &window);
        LINE("terminal: %d x %d, foreground group %d, %s\n", window.ws_row, window.ws_col, (int) tcgetpgrp(master),
             ptsname(master));
}

/* ---- System V and POSIX IPC ---- */

static int semaphores, messages;
static sem_t *semaphore;

static void make_ipc(void) {
        struct {
                long type;
                char text[8];
        } message = { 5, "message" };
        char name[32];

        semaphores = need(semget(0x700 + rank, 3, IPC_CREAT | 0600), "semget");
        for (int i = 0; i < 3; i++)
                need(semctl(semaphores, i, SETVAL, i + 1), "semctl");
        messages = need(msgget(0x800 + rank, IPC_CREAT | 0640), "msgget");
        need(msgsnd(messages, &message, sizeof(message.text), 0), "msgsnd");
        (void) snprintf(name, sizeof(name), "/everything.%d", rank);
        semaphore = sem_open(name, O_CREAT, 0600, 3);
        if (semaphore == SEM_FAILED)
                need(-1, "sem_open");
}

static void describe_ipc(void) {
        struct msqid_ds queue = { 0 };
        int value = -1;

        (void) msgctl(messages, IPC_STAT, &queue);
        (void) sem_getvalue(semaphore, &value);
        LINE("semaphores: %d is %d of key %x; %d %d %d; messages: %d has %lu, rights %o; POSIX %d\n", semaphores,
             semget(0x700 + rank, 3, 0), 0x700 + rank, semctl(semaphores, 0, GETVAL), semctl(semaphores, 1, GETVAL),
             semctl(semaphores, 2, GETVAL), messages, (unsigned long) queue.msg_qnum, (unsigned) queue.msg_perm.mode, value);
}

/* ---- the whole ---- */

static void describe(char *text) {
        out = fmemopen(text, TEXT_BYTES, "w");
        describe_files();
        describe_contents();
        describe_sockets();
        describe_memory();
        describe_process();
        describe_threads();
        describe_children();
        describe_ipc();
        if (fflush(out) != 0 || ftell(out) >= TEXT_BYTES - 1)
                need(-1, "the description is too long");
        (void) fclose(out);
}

/* How many lines there are; 0: they differ, and it has been said where. */
static size_t compare(char *first, char *now) {
        size_t lines = 0, different = 0;

        while (*first || *now) {
                int a = (int) strcspn(first, "\n"), b = (int) strcspn(now, "\n");

                if ((a != b || strncmp(first, now, (size_t) a) != 0) && different++ < 20)
                        (void) fprintf(stderr, "everything: rank %d: was '%.*s', is '%.*s'\n", rank, a, first, b, now);
                first += a + (first[a] == '\n');
                now += b + (now[b] == '\n');
                lines++;
        }
        return different > 0 ? 0 : lines;
}

static bool pass_on(long round) {
        static unsigned char given[RING_BYTES], taken[RING_BYTES];
        const int next = (rank + 1) % size, before = (rank + size - 1) % size;

        memset(given, (int) (round + rank), sizeof(given));
        MPI_Sendrecv(given, RING_BYTES, MPI_BYTE, next, 0, taken, RING_BYTES, MPI_BYTE, before, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        memset(given, (int) (round + before), sizeof(given));
        return memcmp(given, taken, sizeof(taken)) == 0;
}

enum request { STOP = 1, LOOK = 2 };

/* All ranks get what the user wants of them in the next round, as rank 0 finds it in the files. */
static int requests(const char *stop_file, const char *look_file) {
        int asked = (access(stop_file, F_OK) == 0 ? STOP : 0) | (access(look_file, F_OK) == 0 ? LOOK : 0);

        MPI_Bcast(&asked, 1, MPI_INT, 0, MPI_COMM_WORLD);
        return asked;
}

/* Called by each rank when it has compared everything. */
static void answer_look(const char *look_file) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
                (void) unlink(look_file);
}

int main(int argc, char **argv) {
        const char *stop_file = option_text(argc, argv, "stop-file", NULL), *look_file = option_text(argc, argv, "look-file", "");
        static char first[TEXT_BYTES], now[TEXT_BYTES];
        size_t lines = 0;
        sigset_t set;
        long rounds = 0;
        int asked = 0;

        /* The threads of MPI take none of them, either. */
        sigemptyset(&set);
        for (int i = 5; i < 9; i++)
                sigaddset(&set, SIGRTMIN + i);
        need(sigprocmask(SIG_BLOCK, &set, NULL), "sigprocmask");
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        make_files();
        make_sockets();
        make_memory();
        make_children();
        make_process();
        make_ipc();
        (void) pass_on(0);
        describe(first);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
                printf("everything: running\n");
                (void) fflush(stdout);
        }
        for (; !(asked & STOP); rounds++) {
                describe(now);
                lines = compare(first, now);
                if (lines == 0 || !pass_on(rounds)) {
                        (void) fprintf(stderr, "everything: rank %d: not as it was, in round %ld\n", rank, rounds);
                        _exit(9);
                }
                if (asked & LOOK)
                        answer_look(look_file);
                pause_usec(20000);
                asked = requests(stop_file, look_file);
        }
        (void) kill(-tcgetpgrp(master), SIGKILL);
        for (pid_t *child = (pid_t[]) { attributes.pid, terminal.pid, stopped, strict, shares_files, 0 }; *child; child++)
                (void) kill(*child, SIGKILL);
        (void) semctl(semaphores, 0, IPC_RMID);
        (void) msgctl(messages, IPC_RMID, NULL);
        if (rank == 0)
                printf("everything: %zu lines of each rank, as at first\n", lines);
        MPI_Finalize();
        return 0;
}
