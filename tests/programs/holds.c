/* Rank 0 holds something that a move carries, or has to refuse; it looks at it all the time.
 *
 * usage: holds KIND --stop-file=F [--file=PATH] [--drop-file=F] [--program=P]
 *   KIND         posixlock flock ofdlock lease     of --file
 *                shortlock                         of --file, about half of the time
 *                sem msgq                          System V objects
 *                io_uring
 *                program                           a child that runs --program
 *   --drop-file  when this appears, rank 0 lets go of it and says "holds: dropped"
 * Says "holds: running" when it has it, and in the end "holds: good", unless it was not as rank 0
 * had left it. */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <mpi.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common.h"

enum { SEMAPHORES = 3, BACKLOG = 4, KEY = 0x5eed };

struct kind {
        const char *name;
        bool (*start)(void);
        bool (*step)(long round); /* NULL: nothing to look at. False: it is not as it was */
        void (*drop)(void);
};

static const char *file, *program;
static int fd = -1;
static int id = -1;
static int with_key = -1;
static pid_t child;

static bool open_file(void) {
        fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        return fd >= 0;
}

static void drop_fd(void) {
        (void) close(fd);
}

static void drop_child(void) {
        (void) kill(child, SIGKILL);
        (void) waitpid(child, NULL, __WALL);
}

/* ---- locks ---- */

static struct flock some_bytes(short type) {
        return (struct flock) { .l_type = type, .l_whence = SEEK_SET, .l_start = 10, .l_len = 10 };
}

static bool posixlock_start(void) {
        struct flock lock = some_bytes(F_WRLCK);

        return open_file() && fcntl(fd, F_SETLK, &lock) == 0;
}

/* Without the lock between two steps. */
static bool shortlock_step(long round) {
        struct flock lock = some_bytes(F_WRLCK);

        if (fcntl(fd, F_SETLK, &lock) < 0)
                return false;
        pause_usec(20000);
        lock.l_type = F_UNLCK;
        return fcntl(fd, F_SETLK, &lock) == 0;
}

static bool flock_start(void) {
        return open_file() && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static bool ofdlock_start(void) {
        struct flock lock = some_bytes(F_WRLCK);

        return open_file() && fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static bool lease_start(void) {
        return open_file() && fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
}

/* ---- System V ---- */

static bool sem_start(void) {
        unsigned short values[SEMAPHORES] = { 3, 1, 4 };

        /* A set is made and removed first, so that the others have no number that a new name space
         * would give them. */
        (void) semctl(semget(IPC_PRIVATE, 1, 0600), 0, IPC_RMID);
        id = semget(IPC_PRIVATE, SEMAPHORES, 0640);
        with_key = semget(KEY, 1, IPC_CREAT | IPC_EXCL | 0600);
        return id >= 0 && with_key >= 0 && semctl(id, 0, SETALL, values) == 0 && semctl(with_key, 0, SETVAL, 7) == 0;
}

static bool sem_step(long round) {
        struct sembuf take = { 0, -1, IPC_NOWAIT };
        struct sembuf give = { 0, 1, IPC_NOWAIT };
        unsigned short values[SEMAPHORES] = { 0 };
        struct semid_ds ds;

        return semop(id, &take, 1) == 0 && semctl(id, 0, GETALL, values) == 0 && values[0] == 2 && values[1] == 1 &&
               values[2] == 4 && semop(id, &give, 1) == 0 && semctl(id, 0, IPC_STAT, &ds) == 0 &&
               (ds.sem_perm.mode & 0777) == 0640 && semget(KEY, 1, 0) == with_key && semctl(with_key, 0, GETVAL) == 7;
}

static void sem_drop(void) {
        (void) semctl(id, 0, IPC_RMID);
        (void) semctl(with_key, 0, IPC_RMID);
}

struct letter {
        long type;
        long round;
        char text[100];
};

static bool msgq_send(long round) {
        struct letter letter = { 1 + round % 3, round, "" };
        size_t size = sizeof(letter) - sizeof(letter.type) - (size_t) (round % 50);

        (void) memset(letter.text, 'a' + (int) (round % 26), sizeof(letter.text));
        return msgsnd(id, &letter, size, IPC_NOWAIT) == 0;
}

static bool msgq_start(void) {
        id = msgget(KEY, IPC_CREAT | IPC_EXCL | 0600);
        for (long i = 0; i < BACKLOG; i++)
                if (!msgq_send(i))
                        return false;
        return true;
}

/* Each step sends a message and receives one, so that some are always under way. */
static bool msgq_step(long round) {
        struct letter letter;
        size_t size = sizeof(letter) - sizeof(letter.type);

        return msgq_send(round + BACKLOG) && msgget(KEY, 0) == id &&
               msgrcv(id, &letter, size, 1 + round % 3, IPC_NOWAIT) == (ssize_t) size - round % 50 && letter.round == round &&
               letter.text[0] == 'a' + (int) (round % 26);
}

static void msgq_drop(void) {
        (void) msgctl(id, IPC_RMID, NULL);
}

/* ---- others ---- */

static bool io_uring_start(void) {
        struct io_uring_params params = { 0 };

        fd = (int) syscall(SYS_io_uring_setup, 4, &params);
        return fd >= 0;
}

static bool start_child(const char *path) {
        int ready[2];
        char byte;

        if (pipe2(ready, O_CLOEXEC) < 0)
                return false;
        child = fork();
        if (child == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) execl(path, path, "1000", (char *) NULL);
                _exit(1);
        }
        (void) close(ready[1]);
        (void) read(ready[0], &byte, 1); /* the end of file */
        (void) close(ready[0]);
        return child > 0;
}

static bool program_start(void) {
        return start_child(program);
}

static bool child_step(long round) {
        return waitpid(child, NULL, WNOHANG) == 0;
}

static const struct kind kinds[] = {
        { "posixlock", posixlock_start, NULL, drop_fd },      { "flock", flock_start, NULL, drop_fd },
        { "ofdlock", ofdlock_start, NULL, drop_fd },          { "lease", lease_start, NULL, drop_fd },
        { "shortlock", open_file, shortlock_step, drop_fd },  { "sem", sem_start, sem_step, sem_drop },
        { "msgq", msgq_start, msgq_step, msgq_drop },         { "io_uring", io_uring_start, NULL, drop_fd },
        { "program", program_start, child_step, drop_child },
};

static const struct kind *find_kind(const char *name) {
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
                if (strcmp(kinds[i].name, name) == 0)
                        return &kinds[i];
        (void) fprintf(stderr, "holds: no kind '%s'\n", name);
        exit(2);
}

static void say(const char *word) {
        printf("holds: %s\n", word);
        (void) fflush(stdout);
}

/* The step of rank 0. */
static bool hold(const struct kind *kind, const char *drop_file, bool *dropped, long round) {
        if (*dropped)
                return true;
        if (kind->step && !kind->step(round)) {
                (void) fprintf(stderr, "holds: %s is not as it was in round %ld: %s\n", kind->name, round, strerror(errno));
                return false;
        }
        if (access(drop_file, F_OK) == 0) {
                kind->drop();
                *dropped = true;
                say("dropped");
        }
        return true;
}

int main(int argc, char **argv) {
        const struct kind *kind = find_kind(argc > 1 ? argv[1] : "");
        const char *stop_file = option_text(argc, argv, "stop-file", "/nonexistent");
        const char *drop_file = option_text(argc, argv, "drop-file", "/nonexistent");
        bool dropped = false;
        bool good = true;
        int go = 1;
        int rank;

        file = option_text(argc, argv, "file", "/nonexistent");
        program = option_text(argc, argv, "program", "/nonexistent");
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0 && !kind->start()) {
                (void) fprintf(stderr, "holds: %s: %s\n", kind->name, strerror(errno));
                MPI_Abort(MPI_COMM_WORLD, 3);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
                say("running");
        for (long round = 0; go; round++) {
                if (rank == 0 && good)
                        good = hold(kind, drop_file, &dropped, round);
                go = good && access(stop_file, F_OK) != 0;
                MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
                pause_usec(20000);
        }
        if (rank == 0 && !dropped)
                kind->drop();
        if (rank == 0)
                say(good ? "good" : "BAD");
        MPI_Finalize();
        return good ? 0 : 1;
}
