/* A job whose user wants more than is his: it keeps files open whose paths somebody changes
 * meanwhile, and says when one of them, or the process itself, has become another user's.
 *
 * usage: trespass --stop-file=F [--hold=PATH] [--mode=OCTAL] [--ghost=PATH] [--seconds=N]
 *        --hold    keeps PATH open for reading and writing
 *        --ghost   makes PATH, keeps it open and removes its name
 * Says "trespass: gained ..." for what it should not have, "trespass: kept to itself" at the end if
 * there was nothing. */
#include <fcntl.h>
#include <mpi.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "common.h"

static int open_held(const char *path) {
        int fd = open(path, O_RDWR);

        if (fd < 0)
                (void) fprintf(stderr, "trespass: open %s: %s\n", path, strerror(errno));
        return fd;
}

static int open_ghost(const char *path) {
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);

        if (fd < 0 || write(fd, "mine\n", 5) != 5 || unlink(path) < 0)
                (void) fprintf(stderr, "trespass: ghost %s: %s\n", path, strerror(errno));
        return fd;
}

/* 1 if the file is not the user's: its first bytes tell what could be read. */
static int gained_file(int fd) {
        char text[41] = "";
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid == getuid())
                return 0;
        (void) pread(fd, text, sizeof(text) - 1, 0);
        text[strcspn(text, "\n")] = '\0';
        printf("trespass: gained a file of user %u, it reads: %s\n", (unsigned) st.st_uid, text);
        return 1;
}

static int gained_capabilities(void) {
        FILE *f = fopen("/proc/self/status", "re");
        unsigned long long caps = 0;
        char line[256];

        while (f && fgets(line, sizeof(line), f))
                (void) sscanf(line, "CapEff: %llx", &caps);
        if (f)
                (void) fclose(f);
        if (caps != 0)
                printf("trespass: gained capabilities %llx\n", caps);
        return caps != 0;
}

/* A set-user-ID program that it runs would keep root's rights where it gives them up. */
static int gained_securebits(void) {
        int bits = prctl(PR_GET_SECUREBITS);

        if (bits != 0)
                printf("trespass: gained securebits %#x\n", (unsigned) bits);
        return bits != 0;
}

static int gained_identity(uid_t before) {
        if (geteuid() == before && getuid() == before)
                return 0;
        printf("trespass: gained user id %u\n", (unsigned) geteuid());
        return 1;
}

int main(int argc, char **argv) {
        const char *stop_file = option_text(argc, argv, "stop-file", "/nonexistent");
        const char *hold = option_text(argc, argv, "hold", NULL);
        const char *ghost = option_text(argc, argv, "ghost", NULL);
        int64_t end_usec = now_usec() + option_number(argc, argv, "seconds", 60) * 1000000;
        uid_t uid = getuid();
        int gained = 0;
        int rank, fds[2];

        (void) MPI_Init(&argc, &argv);
        (void) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        fds[0] = hold ? open_held(hold) : -1;
        fds[1] = ghost ? open_ghost(ghost) : -1;
        printf("trespass: running\n");
        (void) fflush(stdout);
        while (!gained && access(stop_file, F_OK) < 0 && now_usec() < end_usec) {
                gained = gained_file(fds[0]) | gained_file(fds[1]) | gained_identity(uid) | gained_capabilities() |
                         gained_securebits();
                pause_usec(20000);
        }
        if (!gained)
                printf("trespass: kept to itself\n");
        (void) fflush(stdout);
        (void) MPI_Finalize();
        return 0;
}
