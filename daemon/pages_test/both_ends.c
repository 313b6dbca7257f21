#include "daemon/pages_test/both_ends.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/openat.h"
#include "common/util.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/criu/image_identity.h"
#include "daemon/capsule/log_tail.h"
#include "daemon/capsule/pages_preload/preload.h"
#include "daemon/pages/page_store.h"
#include "daemon/pages/serve.h"
#include "daemon/pages/track.h"
#include "daemon/pages/vmflags.h"
#include "daemon/pages_test/process.h"

#define WORK_DIR OWN_DIR "/work"
#define IMAGES_DIR WORK_DIR "/images"
#define FLAGS_DIR WORK_DIR "/vmflags"
#define REPORT_FILE WORK_DIR "/pages"
#define DUMP_LOG "dump.log"
#define RESTORE_LOG "restore.log"
#define SOCKET "lazy-pages.socket" /* CRIU looks for it in its work directory */

enum {
        OWNER = 65534, /* user nobody: CRIU runs as the owner of a job, and what it may do is a part of what is tried */
        STEP_BYTES = 64 << 10,
        STOP_LIMIT_USEC = 1000000,
        PID_CHARS = 16,
        CORE_MAX_BYTES = 1 << 20,
};

struct test {
        const struct both_ends *ends;
        pid_t pid;
        struct track *track;
        struct page_store *store;
};

static Capsule__Spec owner(void) {
        Capsule__Spec spec = CAPSULE__SPEC__INIT;

        spec.uid = spec.gid = OWNER;
        return spec;
}

/* Executes a program in a child, as the owner, without any right that we were started with. */
static _Noreturn void execute(const char *path, char *const *argv, char *const *env, uint64_t capabilities) {
        const Capsule__Spec spec = owner();
        int null = open("/dev/null", O_RDWR);

        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                (void) dup2(null, fd);
        (void) close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
        (void) !chdir("/");
        if (identity_become(&spec, capabilities, IDENTITY_NO_GROUP) == 0)
                (void) execve(path, argv, env);
        _exit(127);
}

/* ---- the process ---- */

static int await_stop(pid_t pid, struct rm_error *error) {
        int status;

        if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
                return error_set(error, -ECHILD, "the process to be dumped has ended by itself");
        return kill(pid, SIGCONT) < 0 ? -errno : 0;
}

static int start_process(struct test *test, struct rm_error *error) {
        char *argv[] = { (char *) "rm-pages-test", (char *) "--process", NULL };
        char *env[] = { NULL };

        test->pid = fork();
        if (test->pid < 0)
                return error_sys(error, -errno, "cannot start a process");
        if (test->pid == 0) {
                (void) setsid(); /* CRIU dumps whole sessions */
                execute("/proc/self/exe", argv, env, 0);
        }
        return await_stop(test->pid, error);
}

/* ---- the source ---- */

static int copy_run(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        static uint8_t data[STEP_BYTES];
        const struct test *test = ctx;
        int r = 0;

        while (start < end && r == 0) {
                size_t size = end - start < sizeof(data) ? end - start : sizeof(data);
                ssize_t n = track_read(test->track, start, data, size);

                n = n > 0 ? n / PAGES_PAGE_BYTES * PAGES_PAGE_BYTES : 0;
                if (n > 0)
                        r = page_store_write(test->store, start, data, (size_t) n);
                start += n > 0 ? (size_t) n : PAGES_PAGE_BYTES; /* it has vanished: what is present is told in the end */
        }
        return r;
}

static int keep_run(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        const struct test *test = ctx;

        return page_store_keep(test->store, start, end);
}

static int save_flags(pid_t pid, struct rm_error *error) {
        char proc[PID_CHARS + 8], name[PID_CHARS];
        cleanup_close int proc_fd = -1, dir_fd = -1;
        int r;

        (void) snprintf(proc, sizeof(proc), "/proc/%d", (int) pid);
        (void) snprintf(name, sizeof(name), "%d", (int) pid);
        proc_fd = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
        dir_fd = open(FLAGS_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
        r = vmflags_save(proc_fd, dir_fd, name);
        return r < 0 ? error_sys(error, r, "cannot keep the flags of mappings") : 0;
}

static int copy_while_it_runs(struct test *test, struct rm_error *error) {
        cleanup_close int pidfd = (int) syscall(SYS_pidfd_open, test->pid, 0);
        int r = track_supported(error);

        if (r == 0)
                r = track_start(pidfd, 1U << MAP_KIND_LAZY, STOP_LIMIT_USEC, &test->track, error);
        if (r == 0)
                r = page_store_create("rm-pages-test", &test->store);
        if (r == 0)
                r = track_round(test->track, copy_run, test, error);
        if (r == 0)
                r = save_flags(test->pid, error);
        if (r == 0 && kill(test->pid, PROCESS_CHANGE) < 0)
                r = -errno;
        return r == 0 ? await_stop(test->pid, error) : r;
}

static int copy_the_rest(struct test *test, struct rm_error *error) {
        int r = track_last_and_present(test->track, copy_run, keep_run, test, error);

        if (r == 0)
                r = page_store_drop_others(test->store);
        track_end(test->track);
        test->track = NULL;
        return r;
}

/* ---- CRIU ---- */

static int criu_failed(const char *log, const char *what, struct rm_error *error) {
        char text[400] = "";

        log_tail_errors(log, text, sizeof(text));
        return error_set(error, -EIO, "CRIU's %s failed: %s", what, *text ? text : "no message");
}

static pid_t start_criu(const struct test *test, const char *const *options, bool dump) {
        cleanup_free char *library = xasprintf("LD_PRELOAD=%s", test->ends->library);
        char *env[] = { (char *) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *) "XDG_RUNTIME_DIR=" WORK_DIR, dump ? library : NULL,
                        (char *) PAGES_VARIABLE "=" REPORT_FILE, NULL };
        char *argv[32] = { (char *) test->ends->criu,
                           (char *) (dump ? "dump" : "restore"),
                           (char *) "--no-default-config",
                           (char *) "--images-dir",
                           (char *) IMAGES_DIR,
                           (char *) "--work-dir",
                           (char *) WORK_DIR,
                           (char *) "--unprivileged",
                           (char *) "--manage-cgroups=ignore",
                           (char *) "--network-lock",
                           (char *) "skip",
                           (char *) "--verbosity=1",
                           NULL };
        size_t n = 0;
        pid_t pid;

        while (argv[n])
                n++;
        while (*options && n + 1 < ARRAY_SIZE(argv))
                argv[n++] = (char *) *options++;
        pid = fork();
        if (pid == 0)
                execute(test->ends->criu, argv, env, identity_criu_capabilities(dump ? IDENTITY_DUMP : IDENTITY_RESTORE));
        return pid;
}

static int await_success(pid_t pid) {
        int status = -1;

        return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -EIO;
}

static int dump(const struct test *test, struct rm_error *error) {
        char pid[PID_CHARS];
        const char *const options[] = { "--tree", pid, "--leave-stopped", "--log-file", DUMP_LOG, NULL };
        int r;

        (void) snprintf(pid, sizeof(pid), "%d", (int) test->pid);
        r = write_file_atomic(REPORT_FILE, FLAGS_DIR "\n", strlen(FLAGS_DIR "\n"), 0644, false);
        if (r < 0)
                return error_sys(error, r, "cannot write " REPORT_FILE);
        return await_success(start_criu(test, options, true)) < 0 ? criu_failed(WORK_DIR "/" DUMP_LOG, "dump", error) : 0;
}

static int scan_images(const struct both_ends *ends, struct rm_error *error) {
        cleanup_dir DIR *dir = opendir(IMAGES_DIR);
        const char *name;
        struct stat st;
        int64_t bytes = 0;

        if (!dir)
                return error_sys(error, -errno, "cannot read " IMAGES_DIR);
        while ((name = next_name(dir)))
                if (fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
                        bytes += st.st_size;
        if (bytes > PROCESS_IMAGE_BYTES)
                return error_set(error, -EOPNOTSUPP, "CRIU's images hold %" PRIi64 " KiB: %s has no effect on this CRIU",
                                 bytes >> 10, ends->library);
        return 0;
}

/* ---- the destination ---- */

static int listen_for_criu(struct rm_error *error) {
        struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = WORK_DIR "/" SOCKET };
        cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 || listen(fd, 1) < 0 ||
            chmod(address.sun_path, 0666) < 0)
                return error_sys(error, -errno, "cannot listen for CRIU");
        return take_fd(&fd);
}

/* CRIU may end before it connects. */
static int await_connection(int listen_fd, pid_t criu) {
        cleanup_close int pidfd = (int) syscall(SYS_pidfd_open, criu, 0);
        struct pollfd polled[] = { { .fd = listen_fd, .events = POLLIN }, { .fd = pidfd, .events = POLLIN } };

        while (poll(polled, ARRAY_SIZE(polled), -1) < 0)
                if (errno != EINTR)
                        return -errno;
        return polled[0].revents ? accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC) : -ECHILD;
}

/* The bounding set is lifted as for every restore: CRIU has no capability to drop others. */
static int lift_bounding(const struct test *test, struct rm_error *error) {
        cleanup_free char *path = xasprintf(IMAGES_DIR "/core-%d.img", (int) test->pid);
        cleanup_free uint8_t *lifted = NULL;
        cleanup_free char *image = NULL;
        size_t size = 0;
        int r = read_file(path, CORE_MAX_BYTES, &image, &size);

        if (r < 0)
                return error_sys(error, r, "%s", path);
        lifted = xcalloc(1, image_identity_lifted_bytes(size));
        size = image_identity_lift_bounding((uint8_t *) image, size, lifted);
        r = write_file_atomic(path, (const char *) lifted, size, 0644, false);
        return r < 0 ? error_sys(error, r, "%s", path) : 0;
}

static int restore(struct test *test, struct rm_error *error) {
        static const char *const options[] = { "--lazy-pages", "--restore-detached", "--log-file", RESTORE_LOG, NULL };
        static const struct serve_ops ops = { 0 };
        cleanup_close int listen_fd = lift_bounding(test, error) < 0 ? -1 : listen_for_criu(error), fd = -1;
        struct serve *serve = serve_create(&ops, NULL);
        pid_t criu = listen_fd < 0 ? -1 : start_criu(test, options, false);
        int r = criu < 0 ? -EIO : 0;

        serve_add(serve, test->pid, take_ptr(test->store));
        if (r == 0)
                r = fd = await_connection(listen_fd, criu);
        if (r >= 0)
                r = serve_accept(serve, fd, error);
        if (r == 0)
                r = serve_run(serve, error);
        if (r < 0 && criu > 0)
                (void) kill(criu, SIGKILL);
        if (await_success(criu) < 0 && (r >= 0 || r == -ECHILD || r == -EPIPE)) {
                error_clear(error);
                r = criu_failed(WORK_DIR "/" RESTORE_LOG, "restore", error);
        }
        serve_destroy(serve);
        return r;
}

static int scan_memory(pid_t pid, struct rm_error *error) {
        int status = -1;

        if (kill(pid, PROCESS_SCAN) < 0 || waitpid(pid, &status, 0) != pid)
                return error_sys(error, -errno, "the restored process has vanished");
        if (status == 0)
                return 0;
        if (WIFEXITED(status))
                return error_set(error, -EBADMSG, "after the restore %s is not as it was",
                                 process_memory_name(WEXITSTATUS(status)));
        return error_set(error, -EBADMSG, "the restored process ended by signal %d", WTERMSIG(status));
}

/* ---- all of it ---- */

static int make_directories(struct rm_error *error) {
        static const char *const dirs[] = { WORK_DIR, IMAGES_DIR, FLAGS_DIR };

        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
                if (mkdir(dirs[i], 0755) < 0 || chown(dirs[i], OWNER, OWNER) < 0)
                        return error_sys(error, -errno, "cannot make %s", dirs[i]);
        return 0;
}

/* To find out what this kernel can do takes CRIU longer than all the rest. */
static int give_kdat(const struct both_ends *ends, struct rm_error *error) {
        int r = ends->kdat ? write_file_atomic(WORK_DIR "/criu.kdat", ends->kdat, ends->kdat_bytes, 0644, false) : 0;

        return r < 0 ? error_sys(error, r, "cannot write " WORK_DIR "/criu.kdat") : 0;
}

int both_ends_try(const struct both_ends *ends, struct rm_error *error) {
        struct test test = { .ends = ends };
        int r;

        *ends->stage = "start of a process";
        r = make_directories(error);
        if (r == 0)
                r = give_kdat(ends, error);
        if (r == 0)
                r = start_process(&test, error);
        *ends->stage = "tracking";
        if (r == 0)
                r = copy_while_it_runs(&test, error);
        *ends->stage = "dump";
        if (r == 0)
                r = dump(&test, error);
        if (r == 0)
                r = copy_the_rest(&test, error);
        if (r == 0)
                r = scan_images(ends, error);
        *ends->stage = "restore";
        if (r == 0 && (kill(test.pid, SIGKILL) < 0 || waitpid(test.pid, NULL, 0) != test.pid))
                r = -errno;
        if (r == 0)
                r = restore(&test, error);
        *ends->stage = "look at the restored memory";
        if (r == 0)
                r = scan_memory(test.pid, error);
        track_end(test.track);
        page_store_destroy(test.store);
        return r;
}
