/*
 * rm-prrte: what PRRTE lacks as the launcher of jobs of rmd, which preloads this into mpirun.
 *
 * mpirun puts each rm-agent into a process group of its own, twice: the child before it calls execve(2), and the parent, which on a busy node comes too late, is refused
 * (EACCES), and warns of it on the user's standard error. Here that is no failure, as long as the child has that group.
 *
 * No other process is to have it. So PRRTE takes it out of its LD_PRELOAD when it starts: what it starts has the environment that it would have without. Like rm-yield it depends
 * on no library but libc, whichever that is.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/prrte/rm-prrte.h"

#define VARIABLE "LD_PRELOAD="

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

/* Takes this library out of the list, whose parts are separated by colons or blanks. False: nothing is left of it. */
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

void prrte_clean_environment(char **env, const char *self) {
        char **to = env;

        for (; *env; env++)
                if (!begins_with(*env, VARIABLE) || strip(*env + sizeof(VARIABLE) - 1, self))
                        *to++ = *env;
        *to = NULL;
}

/* mpirun becomes prterun, and the shell that starts prted becomes that: these still hand it on. */
__attribute__((constructor)) static void begin(void) {
        char name[16] = "";

        (void) syscall(SYS_prctl, PR_GET_NAME, name);
        if (begins_with(name, "prte"))
                prrte_clean_environment(environ, PRRTE_PRELOAD);
}

int setpgid(pid_t pid, pid_t pgid) {
        long r = syscall(SYS_setpgid, pid, pgid);

        if (r < 0 && errno == EACCES && syscall(SYS_getpgid, pid) == (pgid ? pgid : pid))
                r = 0;
        return (int) r;
}
