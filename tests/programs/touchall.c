/* Uses what programs use beside MPI, and verifies in every round that it still works as it should.
 *
 * usage: touchall KIND[,KIND...] [--seconds=S | --stop-file=F] [--dir=D]
 *   KIND   shm tmp append threads pipes child itimer timer timerfd sleep signals epoll locks all
 *   --dir  where `append` writes, a folder that all nodes share (default: the current one) */
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "common.h"

#define SHM_BYTES (1U << 20)
#define TICK_USEC 10000
#define THREADS 3
/* The pause is not shorter: threads that wake thousands of times a second beside one that spins
 * make a Linux 6.18 scheduler starve every other session of the machine for seconds, rmd or no
 * rmd. */
#define THREAD_PAUSE_USEC 10000

static int rank;
static const char *shared_dir;
static int failures;

static void wrong(const char *kind, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void wrong(const char *kind, const char *fmt, ...) {
        char text[256];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        failures++;
        (void) fprintf(stderr, "touchall: rank %d: %s: %s (%s)\n", rank, kind, text, strerror(errno));
}

static void must(bool ok, const char *kind, const char *what) {
        if (ok)
                return;
        wrong(kind, "%s failed", what);
        MPI_Abort(MPI_COMM_WORLD, 9);
}

/* ---- shm: a mapped file in /dev/shm, also found again by its name ---- */

static struct {
        char path[64];
        uint64_t *map;
} shm;

static void shm_start(void) {
        int fd;

        (void) snprintf(shm.path, sizeof(shm.path), "/dev/shm/touchall.%d", rank);
        fd = open(shm.path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        must(fd >= 0 && ftruncate(fd, SHM_BYTES) == 0, "shm", "making its file");
        shm.map = mmap(NULL, SHM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        must(shm.map != MAP_FAILED, "shm", "mmap");
        (void) close(fd);
}

static void shm_step(long round) {
        size_t words = SHM_BYTES / sizeof(uint64_t);
        uint64_t through_name;
        int fd;

        /* Every 64th word: most of it stays a hole. */
        for (size_t i = 0; i < words; i += 64) {
                if (round > 0 && shm.map[i] != (uint64_t) (round - 1) * 1000 + i)
                        wrong("shm", "word %zu of round %ld is not what was written", i, round);
                shm.map[i] = (uint64_t) round * 1000 + i;
        }
        fd = open(shm.path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || pread(fd, &through_name, 8, 64 * 8) != 8 || through_name != (uint64_t) round * 1000 + 64)
                wrong("shm", "the file is not what is mapped");
        if (fd >= 0)
                (void) close(fd);
}

static void shm_finish(void) {
        must(unlink(shm.path) == 0, "shm", "unlink");
}

/* ---- tmp: an open file, a deleted open file, a folder, a symbolic link ---- */

static struct {
        char dir[64];
        int open_fd;
        int deleted_fd;
} tmp;

static void tmp_start(void) {
        char path[128];

        (void) snprintf(tmp.dir, sizeof(tmp.dir), "/tmp/touchall.%d", rank);
        must(mkdir(tmp.dir, 0700) == 0, "tmp", "mkdir");
        (void) snprintf(path, sizeof(path), "%s/open", tmp.dir);
        tmp.open_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
        must(tmp.open_fd >= 0, "tmp", "open");
        (void) snprintf(path, sizeof(path), "%s/link", tmp.dir);
        must(symlink("open", path) == 0, "tmp", "symlink");
        (void) snprintf(path, sizeof(path), "%s/deleted", tmp.dir);
        tmp.deleted_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        must(tmp.deleted_fd >= 0 && unlink(path) == 0, "tmp", "unlink of an open file");
}

static void tmp_step(long round) {
        char path[128];
        char line[32];
        char back[32] = "";
        struct stat st;
        int n = snprintf(line, sizeof(line), "%10ld\n", round);
        off_t at = round * n;
        int fd;

        if (write(tmp.open_fd, line, (size_t) n) != n || lseek(tmp.open_fd, 0, SEEK_CUR) != at + n)
                wrong("tmp", "the open file's position is not %ld", (long) at + n);
        if (pwrite(tmp.deleted_fd, line, (size_t) n, at) != n || pread(tmp.deleted_fd, back, (size_t) n, at) != n ||
            strcmp(line, back) != 0)
                wrong("tmp", "the deleted file does not hold what was written");
        (void) snprintf(path, sizeof(path), "%s/link", tmp.dir);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || st.st_size != at + n || (st.st_mode & 0777) != 0640 || st.st_uid != getuid())
                wrong("tmp", "through its link, the file is not as it was made");
        if (fd >= 0)
                (void) close(fd);
}

static void tmp_finish(void) {
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/link", tmp.dir);
        must(unlink(path) == 0, "tmp", "unlink");
        (void) snprintf(path, sizeof(path), "%s/open", tmp.dir);
        must(unlink(path) == 0 && rmdir(tmp.dir) == 0, "tmp", "rmdir");
}

/* ---- append: a file that grows, in a folder that all nodes share ---- */

static struct {
        char path[4096];
        int fd;
        FILE *buffered;
        long lines;
} append;

static void append_start(void) {
        (void) snprintf(append.path, sizeof(append.path), "%s/touchall.append.%d", shared_dir, rank);
        append.fd = open(append.path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
        must(append.fd >= 0, "append", append.path);
        append.buffered = fopen(append.path, "ae");
        must(append.buffered != NULL, "append", "fopen");
}

static void append_step(long round) {
        char line[64];
        int n = snprintf(line, sizeof(line), "%d %ld\n", rank, append.lines++);

        if (write(append.fd, line, (size_t) n) != n)
                wrong("append", "write");
        /* A line stays in the program's own buffer over a few rounds. */
        if (round % 5 == 4) {
                (void) fprintf(append.buffered, "%d %ld\n", rank, append.lines++);
                if (fflush(append.buffered) != 0)
                        wrong("append", "fflush");
        }
}

static void append_finish(void) {
        FILE *f = fopen(append.path, "re");
        long n = 0;
        long at;
        int who;

        must(f != NULL, "append", "reading it again");
        while (fscanf(f, "%d %ld", &who, &at) == 2) {
                if (who != rank || at != n)
                        wrong("append", "line %ld is '%d %ld'", n, who, at);
                n++;
        }
        if (n != append.lines)
                wrong("append", "%ld lines of %ld", n, append.lines);
        (void) fclose(f);
        (void) fclose(append.buffered);
        (void) close(append.fd);
        must(unlink(append.path) == 0, "append", "unlink");
}

/* ---- threads: which pass a token around under a lock ---- */

static struct {
        pthread_t id[THREADS];
        pthread_mutex_t lock;
        pthread_cond_t changed;
        int turn;
        long passed;
        bool stop;
} threads = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static __thread double thread_own;

static void *thread_main(void *arg) {
        int me = (int) (intptr_t) arg;

        thread_own = me + 0.25;
        (void) pthread_mutex_lock(&threads.lock);
        while (!threads.stop) {
                if (threads.turn != me) {
                        (void) pthread_cond_wait(&threads.changed, &threads.lock);
                        continue;
                }
                threads.turn = (me + 1) % THREADS;
                threads.passed++;
                (void) pthread_cond_broadcast(&threads.changed);
                (void) pthread_mutex_unlock(&threads.lock);
                pause_usec(THREAD_PAUSE_USEC);
                (void) pthread_mutex_lock(&threads.lock);
        }
        (void) pthread_mutex_unlock(&threads.lock);
        if (fabs(thread_own - me - 0.25) > 0)
                wrong("threads", "thread %d lost what is its own", me);
        return NULL;
}

static void threads_start(void) {
        for (int i = 0; i < THREADS; i++)
                must(pthread_create(&threads.id[i], NULL, thread_main, (void *) (intptr_t) i) == 0, "threads", "pthread_create");
}

static void threads_step(long round) {
        static long last;
        int64_t end = now_usec() + 10 * 1000000;
        long passed;

        do {
                (void) pthread_mutex_lock(&threads.lock);
                passed = threads.passed;
                (void) pthread_mutex_unlock(&threads.lock);
                if (passed > last)
                        break;
                pause_usec(THREAD_PAUSE_USEC);
        } while (now_usec() < end);
        if (passed <= last)
                wrong("threads", "they stand still in round %ld", round);
        last = passed;
}

static void threads_finish(void) {
        (void) pthread_mutex_lock(&threads.lock);
        threads.stop = true;
        (void) pthread_cond_broadcast(&threads.changed);
        (void) pthread_mutex_unlock(&threads.lock);
        for (int i = 0; i < THREADS; i++)
                (void) pthread_join(threads.id[i], NULL);
}

/* ---- pipes: that are never empty, so that there is always something to lose ---- */

static struct {
        int fd[2];
        unsigned char next_in;
        unsigned char next_out;
} pipes;

static void pipes_fill(size_t n) {
        while (n-- > 0)
                if (write(pipes.fd[1], &pipes.next_in, 1) == 1)
                        pipes.next_in++;
}

static void pipes_start(void) {
        must(pipe2(pipes.fd, O_CLOEXEC) == 0, "pipes", "pipe");
        pipes_fill(3000);
}

static void pipes_step(long round) {
        unsigned char buffer[1000];
        ssize_t n = read(pipes.fd[0], buffer, sizeof(buffer));

        if (n != (ssize_t) sizeof(buffer))
                wrong("pipes", "%zd bytes in round %ld", n, round);
        for (ssize_t i = 0; i < n; i++)
                if (buffer[i] != pipes.next_out++)
                        wrong("pipes", "byte %zd of round %ld", i, round);
        pipes_fill(sizeof(buffer));
}

static void pipes_finish(void) {
        (void) close(pipes.fd[0]);
        (void) close(pipes.fd[1]);
}

/* ---- child: a program of its own that answers over pipes, and whose exit code is to be collected
 * ---- */

static struct {
        pid_t pid;
        FILE *to;
        FILE *from;
} child;

static int child_main(void) {
        long number;

        while (scanf("%ld", &number) == 1) {
                printf("%ld\n", number * 2 + 1);
                (void) fflush(stdout);
        }
        return 42;
}

static void child_start(void) {
        int down[2];
        int up[2];
        char self[4096];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

        must(n > 0 && pipe2(down, O_CLOEXEC) == 0 && pipe2(up, O_CLOEXEC) == 0, "child", "pipe");
        self[n] = 0;
        child.pid = fork();
        if (child.pid == 0) {
                if (dup2(down[0], 0) < 0 || dup2(up[1], 1) < 0)
                        _exit(1);
                (void) execl(self, self, "--child", (char *) NULL);
                _exit(1);
        }
        must(child.pid > 0, "child", "fork");
        (void) close(down[0]);
        (void) close(up[1]);
        child.to = fdopen(down[1], "w");
        child.from = fdopen(up[0], "r");
        must(child.to && child.from, "child", "fdopen");
}

static void child_step(long round) {
        long answer = 0;

        (void) fprintf(child.to, "%ld\n", round);
        if (fflush(child.to) != 0 || fscanf(child.from, "%ld", &answer) != 1 || answer != round * 2 + 1)
                wrong("child", "it answers %ld in round %ld", answer, round);
        if (kill(child.pid, 0) < 0)
                wrong("child", "its pid is not its pid");
}

static void child_finish(void) {
        int status = 0;

        (void) fclose(child.to);
        if (waitpid(child.pid, &status, 0) != child.pid || !WIFEXITED(status) || WEXITSTATUS(status) != 42)
                wrong("child", "it ended with status %x", (unsigned) status);
        (void) fclose(child.from);
}

/* ---- timers: periodic, so that too few and too many ticks are seen ---- */

struct ticks {
        const char *kind;
        volatile sig_atomic_t count;
        int64_t start_usec;
        long last;
};

static struct ticks itimer = { .kind = "itimer" };
static struct ticks timer = { .kind = "timer" };
static timer_t timer_id;
static int timer_fd;
static uint64_t timerfd_count;
static int64_t timerfd_start_usec;

static void on_alarm(int signo) {
        itimer.count++;
}

static void on_timer(int signo, siginfo_t *info, void *context) {
        timer.count++;
}

/* A tick lost in the crowd of a loaded machine is none of ours; a timer that stands, or runs wild,
 * is. */
static void ticks_check(struct ticks *t, long round) {
        int64_t end = now_usec() + 10 * 1000000;
        long most;

        while (t->count <= t->last && now_usec() < end)
                pause_usec(1000);
        if (t->count <= t->last)
                wrong(t->kind, "it stands still in round %ld", round);
        most = (long) ((now_usec() - t->start_usec) / TICK_USEC) + 2;
        if (t->count > most)
                wrong(t->kind, "%ld ticks where there can be %ld", (long) t->count, most);
        t->last = t->count;
}

static void itimer_start(void) {
        struct itimerval every = { { 0, TICK_USEC }, { 0, TICK_USEC } };
        struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };

        itimer.start_usec = now_usec();
        must(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &every, NULL) == 0, "itimer", "setitimer");
}

static void itimer_step(long round) {
        ticks_check(&itimer, round);
}

static void itimer_finish(void) {
        const struct itimerval none = { 0 };

        (void) setitimer(ITIMER_REAL, &none, NULL);
}

static void timer_start(void) {
        struct itimerspec every = { { 0, TICK_USEC * 1000 }, { 0, TICK_USEC * 1000 } };
        struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 3 };
        struct sigaction action = { .sa_sigaction = on_timer, .sa_flags = SA_RESTART | SA_SIGINFO };

        timer.start_usec = now_usec();
        must(sigaction(SIGRTMIN + 3, &action, NULL) == 0 && timer_create(CLOCK_MONOTONIC, &event, &timer_id) == 0 &&
                     timer_settime(timer_id, 0, &every, NULL) == 0,
             "timer", "timer_create");
}

static void timer_step(long round) {
        ticks_check(&timer, round);
}

static void timer_finish(void) {
        (void) timer_delete(timer_id);
}

static void timerfd_start(void) {
        struct itimerspec every = { { 0, TICK_USEC * 1000 }, { 0, TICK_USEC * 1000 } };

        timerfd_start_usec = now_usec();
        timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        must(timer_fd >= 0 && timerfd_settime(timer_fd, 0, &every, NULL) == 0, "timerfd", "timerfd_settime");
}

static void timerfd_step(long round) {
        uint64_t n = 0;
        ssize_t r;

        /* Blocks until there was a tick. */
        do
                r = read(timer_fd, &n, sizeof(n));
        while (r < 0 && errno == EINTR);
        timerfd_count += n;
        if (r != sizeof(n) || n == 0 || timerfd_count > (uint64_t) ((now_usec() - timerfd_start_usec) / TICK_USEC) + 2)
                wrong("timerfd", "%llu ticks in round %ld", (unsigned long long) n, round);
}

static void timerfd_finish(void) {
        (void) close(timer_fd);
}

/* ---- sleep: neither shorter than asked for, nor for ever ---- */

static void sleep_step(long round) {
        int64_t start = now_usec();
        int64_t until = start + 150000;
        struct timespec at = { .tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000 };

        pause_usec(50000);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
                ;
        if (now_usec() < until)
                wrong("sleep", "it woke %lld us early in round %ld", (long long) (until - now_usec()), round);
        if (now_usec() > until + 20 * 1000000)
                wrong("sleep", "it overslept by %lld us in round %ld", (long long) (now_usec() - until), round);
}

/* ---- signals: handled, with values, and pending over a round ---- */

static volatile sig_atomic_t signals_handled;
static volatile sig_atomic_t signals_value;

static void on_usr1(int signo) {
        signals_handled++;
}

static void on_value(int signo, siginfo_t *info, void *context) {
        signals_value = info->si_value.sival_int;
}

static void signals_start(void) {
        struct sigaction usr1 = { .sa_handler = on_usr1, .sa_flags = SA_RESTART };
        struct sigaction value = { .sa_sigaction = on_value, .sa_flags = SA_RESTART | SA_SIGINFO };
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGUSR2);
        (void) sigaddset(&set, SIGRTMIN + 5);
        must(sigaction(SIGUSR1, &usr1, NULL) == 0 && sigaction(SIGRTMIN + 4, &value, NULL) == 0 &&
                     pthread_sigmask(SIG_BLOCK, &set, NULL) == 0,
             "signals", "sigaction");
}

static void signals_step(long round) {
        const union sigval number = { .sival_int = (int) round };
        const struct timespec at_once = { 0 };
        siginfo_t info;
        sigset_t set;

        (void) raise(SIGUSR1);
        if (signals_handled != round + 1)
                wrong("signals", "%d handled in round %ld", (int) signals_handled, round);
        (void) pthread_sigqueue(pthread_self(), SIGRTMIN + 4, number);
        if (signals_value != (int) round)
                wrong("signals", "value %d in round %ld", (int) signals_value, round);
        /* The signals that were sent in the round before are still pending; a queued one with its
         * value. */
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGUSR2);
        if (round > 0 && sigtimedwait(&set, &info, &at_once) != SIGUSR2)
                wrong("signals", "a pending signal was lost in round %ld", round);
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGRTMIN + 5);
        if (round > 0 && (sigtimedwait(&set, &info, &at_once) != SIGRTMIN + 5 || info.si_value.sival_int != (int) round - 1))
                wrong("signals", "a queued signal was lost in round %ld", round);
        (void) pthread_kill(pthread_self(), SIGUSR2);
        (void) pthread_sigqueue(pthread_self(), SIGRTMIN + 5, number);
}

/* ---- epoll: over an eventfd ---- */

static int epoll_fd;
static int event_fd;

static void epoll_start(void) {
        struct epoll_event event = { .events = EPOLLIN, .data.u64 = 77 };

        epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        event_fd = eventfd(5, EFD_CLOEXEC);
        must(epoll_fd >= 0 && event_fd >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event_fd, &event) == 0, "epoll", "epoll_ctl");
}

static void epoll_step(long round) {
        struct epoll_event event = { 0 };
        uint64_t value = 0;
        const uint64_t next = (uint64_t) round + 6;

        if (epoll_wait(epoll_fd, &event, 1, 5000) != 1 || event.data.u64 != 77)
                wrong("epoll", "no event in round %ld", round);
        if (read(event_fd, &value, 8) != 8 || value != (uint64_t) round + 5)
                wrong("epoll", "value %llu in round %ld", (unsigned long long) value, round);
        if (write(event_fd, &next, 8) != 8)
                wrong("epoll", "write");
}

/* ---- locks: a lock of a file that another process must find ---- */

static int lock_fd;
static char lock_path[64];

static void locks_start(void) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 10 };

        (void) snprintf(lock_path, sizeof(lock_path), "/tmp/touchall.lock.%d", rank);
        lock_fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        must(lock_fd >= 0 && flock(lock_fd, LOCK_EX | LOCK_NB) == 0 && fcntl(lock_fd, F_SETLK, &lock) == 0, "locks", "locking");
}

static void locks_step(long round) {
        int fd = open(lock_path, O_RDWR | O_CLOEXEC);
        int status = 0;
        pid_t pid;

        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
                wrong("locks", "the flock was gone in round %ld", round);
        pid = fork();
        if (pid == 0) {
                struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 10 };

                _exit(fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK ? 0 : 1);
        }
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (status != 0)
                wrong("locks", "the POSIX lock was gone in round %ld", round);
        /* Closing any descriptor of the file drops the process's POSIX locks: take it again. */
        if (fd >= 0) {
                struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 10 };

                (void) close(fd);
                (void) fcntl(lock_fd, F_SETLK, &lock);
        }
}

static void locks_finish(void) {
        (void) close(lock_fd);
        (void) unlink(lock_path);
}

static void nothing(void) {
}

static const struct kind {
        const char *name;
        void (*start)(void);
        void (*step)(long round);
        void (*finish)(void);
} kinds[] = {
        /* The child first: it is to inherit nothing of the others. */
        { "child", child_start, child_step, child_finish },
        { "shm", shm_start, shm_step, shm_finish },
        { "tmp", tmp_start, tmp_step, tmp_finish },
        { "append", append_start, append_step, append_finish },
        { "threads", threads_start, threads_step, threads_finish },
        { "pipes", pipes_start, pipes_step, pipes_finish },
        { "itimer", itimer_start, itimer_step, itimer_finish },
        { "timer", timer_start, timer_step, timer_finish },
        { "timerfd", timerfd_start, timerfd_step, timerfd_finish },
        { "sleep", nothing, sleep_step, nothing },
        { "signals", signals_start, signals_step, nothing },
        { "epoll", epoll_start, epoll_step, nothing },
        { "locks", locks_start, locks_step, locks_finish },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static bool requested(const char *list, const char *name) {
        char padded[512];
        char needle[64];

        (void) snprintf(padded, sizeof(padded), ",%s,", list);
        (void) snprintf(needle, sizeof(needle), ",%s,", name);
        return strstr(padded, needle) || strstr(padded, ",all,");
}

int main(int argc, char **argv) {
        const char *list = argc > 1 ? argv[1] : "all";
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        int64_t end = now_usec() + option_number(argc, argv, "seconds", 5) * 1000000;
        long round = 0;
        int all = 0;
        int go = 1;

        if (option_set(argc, argv, "child"))
                return child_main();
        shared_dir = option_text(argc, argv, "dir", ".");
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        for (size_t i = 0; i < KINDS; i++)
                if (requested(list, kinds[i].name))
                        kinds[i].start();
        if (rank == 0) {
                printf("touchall: running\n");
                (void) fflush(stdout);
        }
        for (; go; round++) {
                for (size_t i = 0; i < KINDS; i++)
                        if (requested(list, kinds[i].name))
                                kinds[i].step(round);
                pause_usec(5000);
                go = stop_file ? access(stop_file, F_OK) != 0 : now_usec() < end;
                MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        for (size_t i = 0; i < KINDS; i++)
                if (requested(list, kinds[i].name))
                        kinds[i].finish();
        MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0)
                printf("touchall: %s: %ld rounds, %s\n", list, round, all ? "BAD" : "good");
        MPI_Finalize();
        return all ? 1 : 0;
}
