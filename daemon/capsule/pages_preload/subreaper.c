/* Preloaded into `criu restore`. A process whose session has lost its first process, as a daemon,
 * is a child of the first process of its group, which adopts orphans (PR_SET_CHILD_SUBREAPER). CRIU
 * makes the first process of that session anew for a moment, as a child of the first process of the
 * group; but CRIU tells that one to adopt orphans only later, so PID 1 would get the daemon, and no
 * later dump would find it below the first process.
 *
 * CRIU lets the first process of the group begin its session before it makes any child, which is
 * the moment that is needed here. */
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) pid_t setsid(void);

/* Children have what was noted here before they were made, and adopt nobody. */
pid_t setsid(void) {
        static bool begun;
        pid_t session = (pid_t) syscall(SYS_setsid);

        if (!begun && session > 0)
                (void) syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        begun = true;
        return session;
}
