#include "daemon/pages/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fault.h"
#include "common/util.h"
#include "daemon/pages/maps.h"
#include "daemon/pages/passing.h"
#include "daemon/pages/threads.h"

enum {
        VDSO_MAX_BYTES = 64 << 10,
        TRIES_MAX = 20, /* for a thread that is out of its restartable sequence */
        TRY_AGAIN_USEC = 1000,
        LATE_TRIES_MAX = 20, /* for a machine so busy that a try takes longer than its limit */
        UNREACHABLE_TRIES_MAX = 2, /* for a thread that just waits for a disk; in vfork(2) it may wait indefinitely */
        CLOSE_USEC = 5000000,
        LATE_PAUSE_USEC = 500000,
        LATE_TRY_USEC = 20000,
};

struct answer {
        struct rm_error error; /* code 0: the descriptor comes with it */
        uint64_t stopped_usec;
        bool unreachable; /* a thread was in the kernel all the time */
        bool late;        /* the helper goes on until the process runs again */
};

struct helper {
        int answer_fd;
        int proc_fd;
        bool answered;
};

/* ---- in the helper process ---- */

static void answer_late(struct helper *helper, int64_t descriptor) {
        struct answer answer = { .late = true, .unreachable = true };

        if (helper->answered)
                return;
        helper->answered = true;
        error_set(&answer.error, -ETIMEDOUT, "somebody has frozen the process, which keeps descriptor %d until it runs again",
                  (int) descriptor);
        (void) passing_send(helper->answer_fd, &answer, sizeof(answer), -1);
        /* rm-mover may end now, and with it what it has open. */
        (void) close_range(STDERR_FILENO + 1, (unsigned) helper->proc_fd - 1, 0);
        (void) close_range((unsigned) helper->proc_fd + 1, ~0U, 0);
}

/* The program may have changed what is there, but only its own threads could be hurt by that. Read
 * while they are stopped. */
static int find_instruction(int proc_fd, int memory_fd, uint64_t *ret, struct rm_error *err) {
        cleanup_free uint8_t *code = xcalloc(1, VDSO_MAX_BYTES);
        struct maps maps;
        int r = maps_read(proc_fd, &maps);

        if (r < 0)
                return error_sys(err, r, "read the mappings");
        r = -EOPNOTSUPP;
        for (size_t i = 0; i < maps.n && r < 0; i++) {
                const struct map *map = &maps.items[i];
                uint64_t size = map->end - map->start < VDSO_MAX_BYTES ? map->end - map->start : VDSO_MAX_BYTES;
                ssize_t n = map->kind == MAP_KIND_VDSO ? pread(memory_fd, code, size, (off_t) map->start) : 0;

                for (ssize_t k = 0; k + 1 < n && r < 0; k++)
                        if (code[k] == 0x0f && code[k + 1] == 0x05) {
                                *ret = map->start + (uint64_t) k;
                                r = 0;
                        }
        }
        maps_finish(&maps);
        return r == 0 ? 0 : error_set(err, r, "there is no system call instruction in a vdso");
}

/* The process must not keep the descriptor: a dump that finds it there refuses the process. Where
 * the process was frozen just now, rm-mover gets its answer, and the descriptor is closed when the
 * process runs again. Until then its threads stay traced. */
static int close_there(struct helper *helper, struct threads *threads, uint64_t instruction, int64_t descriptor,
                       struct rm_error *err) {
        const struct threads_call call = { .instruction = instruction, .number = SYS_close, .argument = (uint64_t) descriptor };
        int64_t result = -1;
        int r = threads_call(threads, &call, now_usec() + CLOSE_USEC, &result, NULL);

        while (r == -ETIMEDOUT || r == -EAGAIN) {
                answer_late(helper, descriptor);
                /* A process that is ended meanwhile must be found with the thread's own
                 * registers. */
                (void) usleep(LATE_PAUSE_USEC);
                r = threads_call(threads, &call, now_usec() + LATE_TRY_USEC, &result, NULL);
        }
        if (r == 0)
                r = (int) result;
        if (r < 0)
                return error_sys(err, r, "close descriptor %d in the process", (int) descriptor);
        return 0;
}

static int make_and_take(struct helper *helper, struct threads *threads, int pidfd, uint64_t instruction, uint64_t deadline_usec,
                         int *ret_fd, struct rm_error *err) {
        const struct threads_call call = { .instruction = instruction,
                                           .number = SYS_userfaultfd,
                                           .argument = UFFD_USER_MODE_ONLY | O_CLOEXEC | O_NONBLOCK };
        cleanup_close int fd = -1;
        int64_t theirs = -1;
        int r, error;

        r = threads_call(threads, &call, deadline_usec, &theirs, err);
        if (r < 0)
                return r;
        if (theirs < 0)
                return error_sys(err, (int) theirs, "userfaultfd() in the process");
        r = fault_wait("mover.track.made", err);
        if (r < 0)
                return r;
        fd = (int) syscall(SYS_pidfd_getfd, pidfd, (int) theirs, 0);
        error = errno;
        r = close_there(helper, threads, instruction, theirs, err);
        if (r < 0)
                return r;
        if (fd < 0)
                return error_sys(err, -error, "take the descriptor out of the process");
        *ret_fd = take_fd(&fd);
        return 0;
}

static int take_once(struct helper *helper, int pidfd, int proc_fd, uint64_t deadline_usec, int *ret_fd, bool *ret_unreachable,
                     struct rm_error *err) {
        struct threads *threads = NULL;
        uint64_t instruction = 0;
        int r = threads_stop(proc_fd, deadline_usec, &threads, err);
        /* Opened while it is stopped: this memory, and none of an execve(2) before. */
        cleanup_close int memory_fd = r < 0 ? -1 : openat(proc_fd, "mem", O_RDONLY | O_CLOEXEC);

        if (r == 0 && memory_fd < 0)
                r = error_sys(err, -errno, "open the memory");
        if (r == 0)
                r = threads_choose(threads, memory_fd, err);
        if (r == 0)
                r = find_instruction(proc_fd, memory_fd, &instruction, err);
        if (r == 0)
                r = make_and_take(helper, threads, pidfd, instruction, deadline_usec, ret_fd, err);
        *ret_unreachable = r == -ETIMEDOUT && threads_unreachable(threads);
        threads_release(threads);
        return r;
}

/* Nothing but SIGKILL ends it, and the stops of threads show as SIGCHLD, which therefore must not
 * be ignored. */
static void guard(void) {
        sigset_t all;

        (void) sigfillset(&all);
        (void) sigprocmask(SIG_SETMASK, &all, NULL);
        (void) signal(SIGCHLD, SIG_DFL);
        (void) setpgid(0, 0);
}

static _Noreturn void help(int pidfd, int proc_fd, uint64_t limit_usec, int answer_fd) {
        struct helper helper = { .answer_fd = answer_fd, .proc_fd = proc_fd };
        struct answer answer = { 0 };
        int fd = -1, r = -EAGAIN;

        guard();
        for (int i = 0; i < TRIES_MAX && r == -EAGAIN; i++) {
                uint64_t begin_usec;

                if (i > 0)
                        (void) usleep(TRY_AGAIN_USEC);
                error_clear(&answer.error);
                begin_usec = now_usec();
                r = take_once(&helper, pidfd, proc_fd, begin_usec + limit_usec, &fd, &answer.unreachable, &answer.error);
                answer.stopped_usec = now_usec() - begin_usec;
        }
        if (!helper.answered)
                (void) passing_send(answer_fd, &answer, sizeof(answer), fd);
        _exit(0);
}

/* ---- here ---- */

static int start_helper(int pidfd, int proc_fd, uint64_t limit_usec, pid_t *ret_pid, int *ret_fd) {
        int ends[2];
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return -errno;
        pid = fork();
        if (pid == 0)
                help(pidfd, proc_fd, limit_usec, ends[1]);
        (void) close(ends[1]);
        if (pid < 0) {
                (void) close(ends[0]);
                return -EAGAIN;
        }
        *ret_pid = pid;
        *ret_fd = ends[0];
        return 0;
}

/* Lets one helper try. A process that it stopped too late for its limit goes on when it ends. */
static int take_by_helper(int pidfd, int proc_fd, uint64_t limit_usec, int *ret_fd, struct answer *ret_answer,
                          struct rm_error *err) {
        cleanup_close int from_helper = -1;
        cleanup_close int fd = -1;
        struct answer answer = { 0 };
        pid_t pid = -1;
        int r = start_helper(pidfd, proc_fd, limit_usec, &pid, &from_helper);

        if (r < 0)
                return error_sys(err, r, "start a process that traces");
        r = passing_receive(from_helper, &answer, sizeof(answer), &fd);
        while (!(r == 0 && answer.late) && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        if (r < 0)
                return error_sys(err, r, "hear of the process that traces");
        *ret_answer = answer;
        if (answer.error.code < 0)
                return error_set(err, answer.error.code, "%s", answer.error.text);
        /* A process that shares the table of descriptors may have put another one there. */
        if (fd < 0 || !passing_is_userfaultfd(fd))
                return error_set(err, -EPROTO, "what came out of the process is no userfaultfd");
        *ret_fd = take_fd(&fd);
        return 0;
}

int remote_userfaultfd(int pidfd, int proc_fd, uint64_t limit_usec, int *ret_fd, uint64_t *ret_stopped_usec, struct rm_error *err) {
        /* The end is as long as all tries take if each keeps to its limit, and the program then
         * runs as long; with many threads one does not. */
        uint64_t end_usec = now_usec() + 2 * LATE_TRIES_MAX * limit_usec;
        struct answer answer = { 0 };
        int most = LATE_TRIES_MAX, r = -ETIMEDOUT;

        for (int i = 0; i < most && r == -ETIMEDOUT && !answer.late && now_usec() + answer.stopped_usec < end_usec; i++) {
                (void) usleep((useconds_t) answer.stopped_usec); /* the program runs at least half of the time */
                error_clear(err);
                r = take_by_helper(pidfd, proc_fd, limit_usec, ret_fd, &answer, err);
                most = answer.unreachable ? UNREACHABLE_TRIES_MAX : LATE_TRIES_MAX;
        }
        if (r == 0 && ret_stopped_usec)
                *ret_stopped_usec = answer.stopped_usec;
        return r;
}
