/* Prints what each rank finds around it, one "surroundings: RANK WHAT=VALUE" a line: who it is,
 * where, with which limits, arguments and environment.
 *
 * usage: surroundings [NAME...]     (names of variables to print) */
#include <fcntl.h>
#include <grp.h>
#include <linux/ioprio.h>
#include <mpi.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common.h"

static int rank;

static void say(const char *what, const char *value) {
        printf("surroundings: %d %s=%s\n", rank, what, value);
}

static void say_number(const char *what, long long value) {
        printf("surroundings: %d %s=%lld\n", rank, what, value);
}

static void say_limit(const char *what, int resource) {
        struct rlimit limit;

        if (getrlimit(resource, &limit) == 0)
                printf("surroundings: %d %s=%lld:%lld\n", rank, what, (long long) limit.rlim_cur, (long long) limit.rlim_max);
}

static void say_status(void) {
        static const char *const requested[] = { "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:" };
        FILE *f = fopen("/proc/self/status", "re");
        char line[256];

        while (f && fgets(line, sizeof(line), f))
                for (size_t i = 0; i < sizeof(requested) / sizeof(requested[0]); i++)
                        if (strncmp(line, requested[i], strlen(requested[i])) == 0) {
                                line[strcspn(line, "\n")] = 0;
                                printf("surroundings: %d %.*s=%s\n", rank, (int) strlen(requested[i]) - 1, requested[i],
                                       line + strlen(requested[i]) + 1);
                        }
        if (f)
                (void) fclose(f);
}

int main(int argc, char **argv) {
        gid_t groups[64];
        char text[4096];
        mode_t mask = umask(0);
        int n;

        (void) umask(mask);
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        say_number("uid", getuid());
        say_number("euid", geteuid());
        say_number("gid", getgid());
        n = getgroups(64, groups);
        for (int i = 0; i < n; i++)
                say_number("group", groups[i]);
        printf("surroundings: %d umask=%04o\n", rank, mask);
        say("cwd", getcwd(text, sizeof(text)) ? text : "?");
        say("hostname", gethostname(text, sizeof(text)) == 0 ? text : "?");
        say_limit("nofile", RLIMIT_NOFILE);
        say_limit("core", RLIMIT_CORE);
        say_limit("stack", RLIMIT_STACK);
        say_limit("memlock", RLIMIT_MEMLOCK);
        say_limit("cpu", RLIMIT_CPU);
        say_limit("nproc", RLIMIT_NPROC);
        say_number("nice", getpriority(PRIO_PROCESS, 0));
        say_number("scheduling", sched_getscheduler(0));
        say_number("io_priority", syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0));
        say_status();
        for (int i = 1; i < argc; i++) {
                const char *value = getenv(argv[i]);

                printf("surroundings: %d arg%d=%s\n", rank, i, argv[i]);
                if (value)
                        say(argv[i], value);
        }
        MPI_Finalize();
        return 0;
}
