/* Files whose rights are more than a mode: each rank makes a file, a directory and a FIFO with
 * access control lists in each of some directories, and looks again and again whether what the
 * kernel says of them is still the same.
 *
 * usage: attributes --stop-file=F [--tags=N] DIRECTORY...
 *        --tags   the file gets N further attributes of 1 KiB each */
#include <fcntl.h>
#include <mpi.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "common.h"

enum { FILES_MAX = 16, VALUE_BYTES = 1024, NAMED_USER = 1001 };

/* linux/posix_acl_xattr.h: a version, then entries, all little endian. */
struct acl {
        uint32_t version;
        struct {
                uint16_t tag;
                uint16_t rights;
                uint32_t id;
        } entries[5];
};

/* The owner and one named user may read and write, the group nothing at all. The mode says
 * rw-rw----. */
static const struct acl acl = {
        2,
        { { 1, 6, UINT32_MAX }, { 2, 6, NAMED_USER }, { 4, 0, UINT32_MAX }, { 0x10, 6, UINT32_MAX }, { 0x20, 0, UINT32_MAX } }
};

static char files[FILES_MAX][256];
static int n_files;

static void die(const char *what, const char *name) {
        (void) fprintf(stderr, "attributes: %s %s: %s\n", what, name, strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 9);
        _exit(9);
}

static char *file_name(const char *directory, int rank, const char *kind) {
        char *name = files[n_files++];

        (void) snprintf(name, sizeof(files[0]), "%s/attributes-%d-%s", directory, rank, kind);
        return name;
}

static void set(const char *name, const char *attribute, const void *value, size_t bytes) {
        if (setxattr(name, attribute, value, bytes, 0) < 0)
                die(attribute, name);
}

static void files_make(const char *directory, int rank, long tags) {
        const char *file = file_name(directory, rank, "file");
        const char *folder = file_name(directory, rank, "folder");
        const char *fifo = file_name(directory, rank, "fifo");
        static const char value[VALUE_BYTES] = "a tag";
        int fd = open(file, O_WRONLY | O_CREAT | O_EXCL, 0600);

        if (fd < 0 || close(fd) < 0 || mkdir(folder, 0700) < 0 || mkfifo(fifo, 0600) < 0)
                die("make files in", directory);
        set(file, "user.origin", directory, strlen(directory));
        for (long i = 0; i < tags; i++) {
                char attribute[32];

                (void) snprintf(attribute, sizeof(attribute), "user.tag%ld", i);
                set(file, attribute, value, sizeof(value));
        }
        set(file, "system.posix_acl_access", &acl, sizeof(acl));
        set(folder, "user.empty", "", 0);
        set(folder, "system.posix_acl_access", &acl, sizeof(acl));
        set(folder, "system.posix_acl_default", &acl, sizeof(acl));
        set(fifo, "system.posix_acl_access", &acl, sizeof(acl));
}

/* How many attributes and bytes, and a hash of all of it and the mode. The kernel may list them in
 * any order. */
static uint64_t file_hash(const char *name) {
        static char names[65536];
        static char value[65536];
        uint64_t sum = 0;
        struct stat st;
        ssize_t n = listxattr(name, names, sizeof(names));

        if (n < 0 || stat(name, &st) < 0)
                return 0;
        for (char *p = names; p < names + n; p += strlen(p) + 1) {
                ssize_t bytes = getxattr(name, p, value, sizeof(value));

                if (bytes < 0)
                        return 0;
                sum += hash_more(hash_more(HASH_START, p, strlen(p)), value, (size_t) bytes);
        }
        return hash_more(sum, &st.st_mode, sizeof(st.st_mode));
}

int main(int argc, char **argv) {
        const char *stop_file = option_text(argc, argv, "stop-file", "/nonexistent");
        long tags = option_number(argc, argv, "tags", 0);
        uint64_t before[FILES_MAX];
        int all_bad;
        int bad = 0;
        int go = 1;
        int rank;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        for (int i = 1; i < argc && n_files + 3 <= FILES_MAX; i++)
                if (argv[i][0] == '/')
                        files_make(argv[i], rank, tags);
        for (int i = 0; i < n_files; i++)
                before[i] = file_hash(files[i]);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
                printf("attributes: running\n");
                (void) fflush(stdout);
        }
        while (go) {
                pause_usec(10000);
                go = access(stop_file, F_OK) != 0;
                MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        for (int i = 0; i < n_files; i++)
                if (before[i] == 0 || file_hash(files[i]) != before[i]) {
                        printf("attributes: rank %d: %s has other attributes\n", rank, files[i]);
                        bad++;
                }
        MPI_Allreduce(&bad, &all_bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0)
                printf("attributes: %d files, %s\n", n_files, all_bad || n_files == 0 ? "BAD" : "good");
        MPI_Finalize();
        return all_bad || n_files == 0 ? 1 : 0;
}
