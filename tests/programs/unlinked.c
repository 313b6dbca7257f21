/* Files that are open but no longer under the name they were opened by: each rank has one without
 * any name and one with another name, in each of some directories, goes on appending to them, and
 * reads everything back at the end.
 *
 * usage: unlinked --stop-file=F DIRECTORY... */
#include <fcntl.h>
#include <mpi.h>
#include <sys/stat.h>

#include "common.h"

enum { FILES_MAX = 16 };

struct file {
        char name[256];
        char other[256]; /* "": none */
        int fd;
};

struct files {
        struct file list[FILES_MAX];
        int n;
        uint64_t lines;
};

static void die(const char *what, const char *name) {
        (void) fprintf(stderr, "unlinked: %s %s: %s\n", what, name, strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 9);
        _exit(9);
}

static void file_make(struct files *f, const char *directory, int rank, bool other) {
        struct file *file = &f->list[f->n++];

        (void) snprintf(file->name, sizeof(file->name), "%s/unlinked-%d-%s", directory, rank, other ? "a" : "gone");
        file->fd = open(file->name, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
        if (file->fd < 0)
                die("open", file->name);
        if (other) {
                (void) snprintf(file->other, sizeof(file->other), "%s/unlinked-%d-b", directory, rank);
                (void) unlink(file->other);
                if (link(file->name, file->other) < 0)
                        die("link", file->other);
        }
        if (unlink(file->name) < 0)
                die("unlink", file->name);
}

static void append(struct files *f) {
        char line[32];
        int n = snprintf(line, sizeof(line), "%010llu\n", (unsigned long long) f->lines++);

        for (int i = 0; i < f->n; i++)
                if (write(f->list[i].fd, line, (size_t) n) != n)
                        die("write", f->list[i].name);
}

static bool file_good(const struct file *file, uint64_t lines) {
        char line[12] = "";
        char want[32];
        struct stat by_fd;
        struct stat by_name;

        for (uint64_t i = 0; i < lines; i++) {
                (void) snprintf(want, sizeof(want), "%010llu\n", (unsigned long long) i);
                if (pread(file->fd, line, 11, (off_t) (i * 11)) != 11 || memcmp(line, want, 11) != 0)
                        return false;
        }
        if (pread(file->fd, line, 1, (off_t) (lines * 11)) != 0 || access(file->name, F_OK) == 0 || fstat(file->fd, &by_fd) < 0)
                return false;
        if (!file->other[0])
                return by_fd.st_nlink == 0;
        return by_fd.st_nlink == 1 && stat(file->other, &by_name) == 0 && by_name.st_ino == by_fd.st_ino &&
               unlink(file->other) == 0;
}

int main(int argc, char **argv) {
        const char *stop_file = option_text(argc, argv, "stop-file", "/nonexistent");
        struct files f = { .n = 0 };
        int all_bad;
        int bad = 0;
        int go = 1;
        int rank;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        for (int i = 1; i < argc && f.n < FILES_MAX; i++)
                if (argv[i][0] == '/') {
                        file_make(&f, argv[i], rank, false);
                        file_make(&f, argv[i], rank, true);
                }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
                printf("unlinked: running\n");
                (void) fflush(stdout);
        }
        while (go) {
                append(&f);
                pause_usec(10000);
                go = access(stop_file, F_OK) != 0;
                MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        for (int i = 0; i < f.n; i++)
                if (!file_good(&f.list[i], f.lines)) {
                        printf("unlinked: rank %d: %s is damaged after %llu lines\n", rank, f.list[i].name,
                               (unsigned long long) f.lines);
                        bad++;
                }
        MPI_Allreduce(&bad, &all_bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0)
                printf("unlinked: %s\n", all_bad ? "BAD" : "good");
        MPI_Finalize();
        return all_bad ? 1 : 0;
}
