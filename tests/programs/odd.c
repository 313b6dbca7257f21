/* Rarely used state of a process: it must be the same after a move, or the move refused, but never
 * lost or weakened without a word.
 *
 * usage: odd MODE --stop-file=F [--dir=D]
 *        memfd-exe   runs a program that has no file: itself, from a memfd
 *        seals       a memfd that is sealed against writing and growing
 *        keyring     a key in the session keyring
 *        robust      a robust mutex in shared memory, whose owner ends while it holds it
 *        undumpable  PR_SET_DUMPABLE is 0
 *        seccomp     a filter that refuses one call, and no_new_privs
 *        gone        the working directory, in D, has been removed
 *        stop-criu   stops every process of CRIU's that it sees
 *        nameless    watches a file of D by inotify, which it has open and has removed
 *        of-ended    has /proc/PID/stat open, of a child that has ended and is not waited for
 *        of-name     likewise /proc/PID/comm
 *        since-ended likewise /proc/PID/status, which it has opened before the child ended
 *        daemon      two processes, one the other's child, of a session whose first process has
 *                    ended
 *        deleted-name a file of D whose name ends with " (deleted)"
 *        fifo        a FIFO of D that it has open at both ends, with data, and has removed
 * Prints "odd: running", then at the end "odd: MODE good" or what is wrong. No MPI. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common.h"

static const char *wrong; /* what is wrong; NULL: nothing yet */

struct mode {
        const char *name;
        void (*begin)(int argc, char **argv);
        void (*scan)(void); /* every 20 ms, and at the end */
};

/* ---- memfd-exe: the program starts itself anew, from memory ---- */

static void memfd_exe_begin(int argc, char **argv) {
        char link[PATH_MAX] = "", path[64];
        ssize_t n = readlink("/proc/self/exe", link, sizeof(link) - 1);
        int from, to;

        if (n > 0 && strstr(link, "memfd:"))
                return;
        from = open("/proc/self/exe", O_RDONLY);
        to = memfd_create("odd", 0);
        while (from >= 0 && to >= 0 && sendfile(to, from, NULL, 1 << 20) > 0)
                ;
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", to);
        (void) execv(path, argv);
        wrong = "cannot run from a memfd";
}

static void memfd_exe_scan(void) {
        char link[PATH_MAX] = "";

        if (readlink("/proc/self/exe", link, sizeof(link) - 1) <= 0 || !strstr(link, "memfd:"))
                wrong = "the program is another file";
}

/* ---- seals ---- */

static int sealed_fd = -1;

static void seals_begin(int argc, char **argv) {
        sealed_fd = memfd_create("odd", MFD_ALLOW_SEALING);
        if (sealed_fd < 0 || write(sealed_fd, "sealed", 6) != 6 || fcntl(sealed_fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW) < 0)
                wrong = "cannot seal a memfd";
}

static void seals_scan(void) {
        if (fcntl(sealed_fd, F_GET_SEALS) != (F_SEAL_WRITE | F_SEAL_GROW))
                wrong = "the seals are others";
        else if (pwrite(sealed_fd, "broken", 6, 0) >= 0)
                wrong = "a sealed memfd was written";
}

/* ---- keyring ---- */

static void keyring_begin(int argc, char **argv) {
        if (syscall(SYS_add_key, "user", "odd", "secret", 6, KEY_SPEC_SESSION_KEYRING) < 0)
                wrong = "cannot add a key";
}

static void keyring_scan(void) {
        char text[16] = "";
        long key = syscall(SYS_request_key, "user", "odd", NULL, 0);

        if (key < 0 || syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof(text) - 1) != 6 || strcmp(text, "secret") != 0)
                wrong = "the key is gone";
}

/* ---- robust ---- */

static pthread_mutex_t *robust;
static pid_t robust_owner;

static void robust_begin(int argc, char **argv) {
        pthread_mutexattr_t attributes;

        robust = mmap(NULL, sizeof(*robust), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        (void) pthread_mutexattr_init(&attributes);
        (void) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        (void) pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        (void) pthread_mutex_init(robust, &attributes);
        robust_owner = fork();
        if (robust_owner == 0) {
                (void) pthread_mutex_lock(robust);
                for (;;)
                        (void) pause();
        }
        pause_usec(200000);
}

static void robust_end(void) {
        int r;

        (void) kill(robust_owner, SIGKILL);
        (void) waitpid(robust_owner, NULL, 0);
        r = pthread_mutex_trylock(robust);
        if (r != EOWNERDEAD)
                wrong = "the mutex does not tell that its owner has ended";
}

static void robust_scan(void) {
        if (pthread_mutex_trylock(robust) != EBUSY)
                wrong = "the mutex is free";
}

/* ---- undumpable ---- */

static void undumpable_begin(int argc, char **argv) {
        (void) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static void undumpable_scan(void) {
        if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
                wrong = "it is dumpable";
}

/* ---- seccomp ---- */

static void seccomp_begin(int argc, char **argv) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdir, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .len = 4, .filter = code };

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
                wrong = "cannot set a filter";
}

static void seccomp_scan(void) {
        if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
                wrong = "no_new_privs is gone";
        else if (syscall(SYS_mkdir, "/tmp/odd", 0700) == 0 || errno != ENOTTY)
                wrong = "the filter is gone";
}

/* ---- gone ---- */

static void gone_begin(int argc, char **argv) {
        const char *dir = option_text(argc, argv, "dir", "/tmp");
        char path[PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s/odd-gone", dir);
        if (mkdir(path, 0700) < 0 || chdir(path) < 0 || rmdir(path) < 0)
                wrong = "cannot be in a removed directory";
}

static void gone_scan(void) {
        char path[PATH_MAX] = "";
        struct stat st;

        if (readlink("/proc/self/cwd", path, sizeof(path) - 1) <= 0 || stat(".", &st) < 0)
                wrong = "the working directory cannot be seen";
        else if (st.st_uid != getuid() || st.st_nlink != 0 || !strstr(path, "odd-gone"))
                wrong = "the working directory is another one";
}

/* ---- stop-criu ---- */

static void stop_criu_begin(int argc, char **argv) {
}

static void stop_criu_scan(void) {
        DIR *dir = opendir("/proc");
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                char path[300], name[32] = "";
                FILE *f;

                if (!isdigit((unsigned char) entry->d_name[0]))
                        continue;
                (void) snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
                f = fopen(path, "re");
                if (f && fgets(name, sizeof(name), f) && strncmp(name, "criu", 4) == 0)
                        (void) kill(atoi(entry->d_name), SIGSTOP);
                if (f)
                        (void) fclose(f);
        }
        if (dir)
                (void) closedir(dir);
}

/* ---- nameless ---- */

static void nameless_begin(int argc, char **argv) {
        char path[PATH_MAX];
        int notices = inotify_init1(IN_CLOEXEC), fd;

        (void) snprintf(path, sizeof(path), "%s/nameless", option_text(argc, argv, "dir", "/tmp"));
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || notices < 0 || inotify_add_watch(notices, path, IN_MODIFY) < 0 || unlink(path) < 0)
                wrong = "cannot watch a file";
}

static void nothing_scan(void) {
}

/* ---- files of processes: the kernel says that root owns them when the process has ended ---- */

static int file_of_process = -1;

static void open_file_of(pid_t pid, const char *name, int flags) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, name);
        file_of_process = open(path, flags);
        if (file_of_process < 0)
                wrong = "cannot open a file of a process";
}

/* The child ends when it is killed. */
static pid_t start_child(void) {
        pid_t pid = fork();

        if (pid == 0)
                for (;;)
                        (void) pause();
        if (pid < 0)
                wrong = "there is no child";
        return pid;
}

static void end_child(pid_t pid) {
        siginfo_t info;

        if (wrong || kill(pid, SIGKILL) < 0 || waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT) < 0)
                wrong = "no child ends";
}

static void of_ended_begin(int argc, char **argv) {
        pid_t pid = start_child();

        end_child(pid);
        open_file_of(pid, "stat", O_RDONLY);
}

static void of_name_begin(int argc, char **argv) {
        pid_t pid = start_child();

        end_child(pid);
        open_file_of(pid, "comm", O_RDONLY);
}

static void since_ended_begin(int argc, char **argv) {
        pid_t pid = start_child();

        open_file_of(pid, "status", O_RDONLY);
        end_child(pid);
}

static void of_process_scan(void) {
        char text[16];

        if (!wrong && pread(file_of_process, text, sizeof(text), 0) <= 0)
                wrong = "the file of a process says nothing";
}

/* ---- daemon ---- */

static pid_t *daemons; /* in shared memory: the daemon, its child, its parent and its session as it began */

static pid_t stat_of(pid_t pid, int *ret_session) {
        char path[64], text[512] = "";
        FILE *f;
        int parent = 0;

        (void) snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        f = fopen(path, "re");
        if (f && fgets(text, sizeof(text), f) && strrchr(text, ')'))
                (void) sscanf(strrchr(text, ')') + 1, " %*c %d %*d %d", &parent, ret_session);
        if (f)
                (void) fclose(f);
        return parent;
}

static void daemon_begin(int argc, char **argv) {
        pid_t child;
        int session = 0;

        daemons = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        child = fork();
        if (child == 0) {
                (void) setsid();
                if (fork() == 0) {
                        child = fork();
                        if (child > 0) {
                                daemons[1] = child;
                                daemons[0] = getpid();
                        }
                        for (;;)
                                (void) pause();
                }
                _exit(0);
        }
        (void) waitpid(child, NULL, 0);
        while (daemons[0] == 0)
                pause_usec(1000);
        daemons[2] = stat_of(daemons[0], &session);
        daemons[3] = session;
        if (session != child)
                wrong = "the daemon has no session of its own";
}

static void daemon_scan(void) {
        int session = 0, of_child = 0;

        if (stat_of(daemons[0], &session) != daemons[2])
                wrong = "another process has adopted the daemon";
        else if (stat_of(daemons[1], &of_child) != daemons[0])
                wrong = "the child of the daemon has another parent";
        else if (session != daemons[3] || of_child != session)
                wrong = "the session of the daemon is another one";
}

static void daemon_end(void) {
        for (int i = 1; daemons && i >= 0; i--)
                if (daemons[i] > 0)
                        (void) kill(daemons[i], SIGKILL);
}

/* ---- fifo ---- */

static int fifo[2] = { -1, -1 };

static void fifo_begin(int argc, char **argv) {
        char path[PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s/odd-fifo", option_text(argc, argv, "dir", "/tmp"));
        if (mkfifo(path, 0600) == 0) {
                fifo[0] = open(path, O_RDONLY | O_NONBLOCK);
                fifo[1] = open(path, O_WRONLY);
        }
        if (unlink(path) < 0 || write(fifo[1], "data", 4) != 4)
                wrong = "there is no FIFO";
}

/* Data that was written before comes out, and so does what is written now. */
static void fifo_scan(void) {
        char text[8] = "";

        if (read(fifo[0], text, sizeof(text) - 1) != 4 || strcmp(text, "data") != 0 || write(fifo[1], "data", 4) != 4)
                wrong = "the data in the FIFO is gone";
}

/* ---- deleted-name ---- */

static char deleted_name[PATH_MAX];
static int deleted_fd = -1;

static void deleted_name_begin(int argc, char **argv) {
        (void) snprintf(deleted_name, sizeof(deleted_name), "%s/odd (deleted)", option_text(argc, argv, "dir", "/tmp"));
        deleted_fd = open(deleted_name, O_RDWR | O_CREAT, 0600);
        if (write(deleted_fd, "data", 4) != 4)
                wrong = "there is no file";
}

static void deleted_name_scan(void) {
        struct stat named, opened;
        char text[8] = "";

        if (stat(deleted_name, &named) < 0 || fstat(deleted_fd, &opened) < 0 || named.st_ino != opened.st_ino ||
            pread(deleted_fd, text, sizeof(text) - 1, 0) != 4 || strcmp(text, "data") != 0)
                wrong = "the file is another one";
}

static const struct mode modes[] = {
        { "memfd-exe", memfd_exe_begin, memfd_exe_scan },
        { "seals", seals_begin, seals_scan },
        { "keyring", keyring_begin, keyring_scan },
        { "robust", robust_begin, robust_scan },
        { "undumpable", undumpable_begin, undumpable_scan },
        { "seccomp", seccomp_begin, seccomp_scan },
        { "gone", gone_begin, gone_scan },
        { "stop-criu", stop_criu_begin, stop_criu_scan },
        { "nameless", nameless_begin, nothing_scan },
        { "of-ended", of_ended_begin, of_process_scan },
        { "of-name", of_name_begin, of_process_scan },
        { "since-ended", since_ended_begin, of_process_scan },
        { "daemon", daemon_begin, daemon_scan },
        { "fifo", fifo_begin, fifo_scan },
        { "deleted-name", deleted_name_begin, deleted_name_scan },
};

int main(int argc, char **argv) {
        const char *stop_file = option_text(argc, argv, "stop-file", "/nonexistent");
        const struct mode *mode = NULL;

        for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]) && argc > 1; i++)
                if (strcmp(argv[1], modes[i].name) == 0)
                        mode = &modes[i];
        if (!mode)
                return 2;
        mode->begin(argc, argv);
        printf("odd: running\n");
        (void) fflush(stdout);
        while (!wrong && access(stop_file, F_OK) < 0) {
                mode->scan();
                pause_usec(20000);
        }
        if (!wrong && robust)
                robust_end();
        daemon_end();
        printf("odd: %s %s\n", mode->name, wrong ? wrong : "good");
        return wrong != NULL;
}
