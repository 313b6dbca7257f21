/*
 * rm-prrte: what PRRTE lacks as the launcher of jobs of rmd, which preloads this into mpirun and
 * its daemons.
 *
 * A daemon writes down which ranks it starts, and how they end (daemon/capsule/rank_end.h), as soon
 * as it gets SIGCHLD: before it has looked itself, mpirun may have told it to kill the others.
 * mpirun ends with the code of the rank of which it hears first: if one crashes, that is most often
 * another one, which aborts since its connection to the first is gone. And a daemon may itself
 * crash when all its ranks have ended well.
 *
 * A daemon is started by a shell, which drops variables whose names are none of its own, as
 * functions that bash exports have. rmd hides them from it, and they are taken out here.
 *
 * mpirun puts each rm-agent into a process group of its own, twice: the child before it calls
 * execve(2), and the parent, which on a busy node comes too late, is refused (EACCES), and warns of
 * it on the user's standard error. Here that is no failure, as long as the child has that group.
 *
 * No other process is to have it. So PRRTE takes it out of its LD_PRELOAD when it starts: what it
 * starts has the environment that it would have without. Like rm-yield it depends on no library but
 * libc, whichever that is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/capsule/rank_end.h"
#include "launcher/prrte/rm-prrte.h"

#define VARIABLE "LD_PRELOAD="

/* The state of the process; a child has it until it executes another program. */
static bool is_daemon, kills;
static void (*handler)(int); /* the daemon's own, of SIGCHLD */
/* The ranks whose end was written down before they were waited for; a ring. */
static pid_t seen[64];
static unsigned seen_next;
static const char *prrte_ends_path = RANK_END_PATH;

static size_t length_of(const char *text) {
        size_t n = 0;

        while (text[n])
                n++;
        return n;
}

static bool begins_with(const char *text, const char *prefix) {
        while (*prefix && *text == *prefix)
                text++, prefix++;
        return !*prefix;
}

static bool is_end(char c) {
        return c == '\0' || c == ':' || c == ' ';
}

/* Takes this library out of the list, whose parts are separated by colons or blanks. False: nothing
 * is left of it. */
static bool strip(char *list, const char *self) {
        char *to = list;
        const char *from = list;

        while (*from) {
                const char *end = from;
                bool ours = begins_with(from, self) && is_end(from[length_of(self)]);

                while (!is_end(*end))
                        end++;
                if (!ours && to > list)
                        *to++ = ':';
                while (from < end && !ours)
                        *to++ = *from++;
                from = *end ? end + 1 : end;
        }
        *to = '\0';
        return to > list;
}

static char *value_of(char *assignment) {
        while (*assignment && *assignment != '=')
                assignment++;
        return *assignment ? assignment + 1 : assignment;
}

void prrte_clean_environment(char **env, const char *self) {
        char **to = env;

        for (; *env; env++)
                if (begins_with(*env, PRRTE_VARIABLE))
                        *to++ = value_of(*env);
                else if (!begins_with(*env, VARIABLE) || strip(*env + sizeof(VARIABLE) - 1, self))
                        *to++ = *env;
        *to = NULL;
}

/* mpirun becomes prterun, and the shell that starts prted becomes that: these still hand it on. */
__attribute__((constructor)) static void begin(void) {
        char name[16] = "";

        (void) syscall(SYS_prctl, PR_GET_NAME, name);
        is_daemon = begins_with(name, "prted");
        if (begins_with(name, "prte"))
                prrte_clean_environment(environ, PRRTE_PRELOAD);
}

/* Writes an end into the file. An end that cannot be written is not known, as without this
 * library. */
static void record(enum rank_end_kind kind, pid_t pid, int status) {
        struct rank_end_record end = { .kind = kind, .pid = pid, .status = status };
        struct timespec now = { 0 };
        long fd = syscall(SYS_openat, AT_FDCWD, prrte_ends_path, O_WRONLY | O_APPEND | O_CLOEXEC);

        if (fd < 0)
                return;
        if (syscall(SYS_lseek, fd, 0, SEEK_END) > (long) RANK_END_MAX_BYTES) {
                (void) syscall(SYS_close, fd);
                return;
        }
        (void) syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
        end.real_usec = (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
        (void) syscall(SYS_write, fd, &end, sizeof(end));
        (void) syscall(SYS_close, fd);
}

/* The process is waited for, and its number may come again. False: its end was not written down. */
static bool forget(pid_t pid) {
        for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
                if (seen[i] == pid) {
                        seen[i] = 0;
                        return true;
                }
        return false;
}

static bool was_seen(pid_t pid) {
        for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
                if (seen[i] == pid)
                        return true;
        return false;
}

/* Converts the status of waitid(2) to that of waitpid(2). */
static int status_of(const siginfo_t *info) {
        return info->si_code == CLD_EXITED ? (info->si_status & 0xff) << 8 : info->si_status & 0x7f;
}

/* Writes down the end of one of the children that have ended; it stays to be waited for. */
static void see_end(void) {
        siginfo_t info = { 0 };

        if (syscall(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT, NULL) < 0 || info.si_pid == 0 ||
            was_seen(info.si_pid))
                return;
        seen[seen_next++ % (sizeof(seen) / sizeof(seen[0]))] = info.si_pid;
        record(kills ? RANK_KILLED : RANK_ENDED, info.si_pid, status_of(&info));
}

static void on_child(int signo) {
        int saved = errno;

        see_end();
        errno = saved;
        if (handler)
                handler(signo);
}

/* The daemon's handler is called by ours. */
int sigaction(int sig, const struct sigaction *act, struct sigaction *oact) {
        int (*next)(int, const struct sigaction *, struct sigaction *) = NULL;
        struct sigaction ours;

        *(void **) &next = dlsym(RTLD_NEXT, "sigaction");
        if (!is_daemon || sig != SIGCHLD || !act || act->sa_flags & SA_SIGINFO || act->sa_handler == SIG_DFL ||
            act->sa_handler == SIG_IGN)
                return next(sig, act, oact);
        ours = *act;
        handler = act->sa_handler;
        ours.sa_handler = on_child;
        return next(sig, &ours, oact);
}

/* The daemon calls it in the child that becomes a rank, and nowhere else. */
int setpgid(pid_t pid, pid_t pgid) {
        long r = syscall(SYS_setpgid, pid, pgid);

        if (r < 0 && errno == EACCES && syscall(SYS_getpgid, pid) == (pgid ? pgid : pid))
                r = 0;
        if (is_daemon && pid == 0)
                record(RANK_BEGUN, (pid_t) syscall(SYS_getpid), 0);
        return (int) r;
}

pid_t waitpid(pid_t pid, int *stat_loc, int options) {
        int status = 0;
        pid_t r = (pid_t) syscall(SYS_wait4, pid, &status, options, NULL);

        if (r > 0 && is_daemon && (WIFEXITED(status) || WIFSIGNALED(status)) && !forget(r))
                record(kills ? RANK_KILLED : RANK_ENDED, r, status);
        if (r > 0 && stat_loc)
                *stat_loc = status;
        return r;
}

int kill(pid_t pid, int sig) {
        kills |= is_daemon && (sig == SIGTERM || sig == SIGKILL);
        return (int) syscall(SYS_kill, pid, sig);
}

void prrte_set_daemon(const char *ends_path) {
        is_daemon = ends_path != NULL;
        kills = false;
        prrte_ends_path = ends_path;
}
