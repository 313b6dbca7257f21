/* Takes more than its share of one thing, each mode with a bound of its own, and says how far it
 * came.
 *
 * usage: hog --memory=MB                 touches memory, and keeps it
 *        hog --forks=N                   children that sleep
 *        hog --fill=FILE --mb=N          writes a file
 *        hog --inodes=DIR --files=N      makes empty files
 *        any: [--stop-file=F]            then waits for that file, for ten minutes at most
 * Says "hog: running" first, "hog: N MB" and the like as it goes on, and "hog: stopped at N ...:
 * REASON" or "hog: all N ..." at the end. */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "common.h"

enum { STEP_MB = 8, CHILD_SECONDS = 120, WAIT_SECONDS = 600 };

#define MB ((size_t) 1 << 20)

static void report(const char *what, long n, long all, const char *unit, int error) {
        if (n < all)
                printf("hog: %s stopped at %ld %s: %s\n", what, n, unit, strerror(error));
        else
                printf("hog: %s all %ld %s\n", what, n, unit);
        (void) fflush(stdout);
}

/* Every step is told, since the end of it may be that of the process. */
static void eat_memory(long all_mb) {
        long mb = 0;

        for (; mb < all_mb; mb += STEP_MB) {
                char *memory = malloc(STEP_MB * MB);

                if (!memory)
                        break;
                memset(memory, 'x', STEP_MB * MB);
                printf("hog: %ld MB\n", mb + STEP_MB);
                (void) fflush(stdout);
        }
        report("memory", mb, all_mb, "MB", ENOMEM);
}

static void bear_children(long all) {
        long n = 0;
        int error = 0;

        for (; n < all; n++) {
                pid_t pid = fork();

                if (pid == 0) {
                        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                        (void) alarm(CHILD_SECONDS);
                        for (;;)
                                (void) pause();
                }
                if (pid < 0) {
                        error = errno;
                        break;
                }
        }
        report("forks", n, all, "children", error);
}

static void fill_file(const char *path, long all_mb) {
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        char *block = calloc(1, MB);
        int error = fd < 0 ? errno : 0;
        long mb = 0;

        for (; fd >= 0 && block && mb < all_mb; mb++) {
                ssize_t n = write(fd, block, MB);

                if (n != (ssize_t) MB) {
                        error = n < 0 ? errno : ENOSPC;
                        break;
                }
        }
        report(path, mb, all_mb, "MB", error);
}

static void make_files(const char *dir, long all) {
        char path[4096];
        int error = 0;
        long n = 0;

        for (; n < all; n++) {
                int fd;

                (void) snprintf(path, sizeof(path), "%s/hog.%ld", dir, n);
                fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
                if (fd < 0) {
                        error = errno;
                        break;
                }
                (void) close(fd);
        }
        report("inodes", n, all, "files", error);
}

int main(int argc, char **argv) {
        const char *fill = option_text(argc, argv, "fill", NULL);
        const char *dir = option_text(argc, argv, "inodes", NULL);
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        long memory_mb = option_number(argc, argv, "memory", 0);
        long forks = option_number(argc, argv, "forks", 0);
        int64_t end = now_usec() + (int64_t) WAIT_SECONDS * 1000000;

        MPI_Init(&argc, &argv);
        printf("hog: running\n");
        (void) fflush(stdout);
        if (memory_mb > 0)
                eat_memory(memory_mb);
        if (forks > 0)
                bear_children(forks);
        if (fill)
                fill_file(fill, option_number(argc, argv, "mb", 0));
        if (dir)
                make_files(dir, option_number(argc, argv, "files", 0));
        while (stop_file && access(stop_file, F_OK) != 0 && now_usec() < end)
                pause_usec(50000);
        MPI_Finalize();
        printf("hog: done\n");
        return 0;
}
