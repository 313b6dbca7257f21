#include "daemon/capsule/init/criu/criu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/openat.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/capsule/cgroup.h"
#include "daemon/capsule/init/base/groups.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/base/loop.h"
#include "daemon/capsule/init/core.h"
#include "daemon/capsule/init/criu/clocks.h"
#include "daemon/capsule/init/criu/dump_needs.h"
#include "daemon/capsule/init/criu/fd_broker.h"
#include "daemon/capsule/init/criu/image_files.h"
#include "daemon/capsule/init/criu/image_fixup.h"
#include "daemon/capsule/init/criu/image_identity.h"
#include "daemon/capsule/init/criu/link_remap.h"
#include "daemon/capsule/init/criu/waiting.h"
#include "daemon/capsule/init/criu/watches.h"
#include "daemon/capsule/log_tail.h"
#include "daemon/capsule/pages_preload/preload.h"
#include "proto/criu.pb-c.h"

/* Below the directory that node.criu names. */
#define GATE "dump.conf"
#define RESTORE_CONF "restore.conf"
#define PAGES "pages" /* see preload.h */
#define DUMP_LOG "dump.log"
#define RESTORE_LOG "restore.log"

enum {
        REQ_RESTORE = 2,
        REQ_NOTIFY = 6,
        NETWORK_LOCK_SKIP = 3,
        LOG_LEVEL = 2, /* errors and warnings: writing much of a log is part of the freeze */
        GATE_WAIT_USEC = 5000000,
        FROZEN_WAIT_USEC = 1000000,
        TIMEOUT_USEC = 600 * 1000000,
        LINKS_USEC = 5000000, /* a directory of the owner's may have any number of names */
        TEXT_BYTES = 500,
};

struct criu {
        struct core *core;
        struct waiting *waiting;
        pid_t dump_pid;    /* waits at the gate or dumps; 0: none */
        pid_t restore_pid; /* service worker */
        struct source rpc; /* to it; fd -1: none */
        criu_done_fn done; /* NULL: nothing is being done */
        pid_t fd_broker;      /* 0: none */
        uint64_t deadline; /* UINT64_MAX: none */
        bool expired;
        bool remapped; /* the dump may have left helper links */
};

struct criu *criu_create(struct core *core, struct waiting *waiting) {
        struct criu *criu = xcalloc(1, sizeof(*criu));

        criu->core = core;
        criu->waiting = waiting;
        criu->rpc.fd = -1;
        criu->deadline = UINT64_MAX;
        return criu;
}

/* An operation of CRIU begins: from here on `done` is owed. */
static void begin(struct criu *criu, criu_done_fn done, uint64_t timeout_usec) {
        criu->done = done;
        criu->expired = false;
        criu->deadline = now_usec() + (timeout_usec != 0 ? timeout_usec : TIMEOUT_USEC);
}

static void end_fd_broker(struct criu *criu) {
        fd_broker_end(criu->fd_broker);
        criu->fd_broker = 0;
}

static int lend_images(struct criu *criu, int images_fd, const struct clocks *clocks, struct rm_error *error) {
        pid_t pid = fd_broker_start(criu->core->spec, images_fd, clocks, error);

        end_fd_broker(criu);
        if (pid < 0)
                return pid;
        criu->fd_broker = pid;
        return 0;
}

static void say_end(int wait_status, char *text, size_t size) {
        if (WIFSIGNALED(wait_status))
                (void) text_format(text, size, "CRIU was killed by signal %d (%s)", WTERMSIG(wait_status),
                                   strsignal(WTERMSIG(wait_status)));
        else
                (void) text_format(text, size, "CRIU failed without an error message, with exit status %d",
                                   WEXITSTATUS(wait_status));
}

/* `wait_status`: as CRIU has ended; 0: it has not. */
static void finish(struct criu *criu, int error, const char *log, int wait_status) {
        criu_done_fn done = criu->done;
        char text[TEXT_BYTES] = "";

        if (error < 0)
                log_tail_errors(log, text, sizeof(text));
        if (error < 0 && criu->expired)
                snprintf(text, sizeof(text), "CRIU took too long and was killed");
        else if (error < 0 && (!*text || WIFSIGNALED(wait_status)))
                say_end(wait_status, text, sizeof(text));
        criu->done = NULL;
        criu->deadline = UINT64_MAX;
        end_fd_broker(criu);
        done(criu->core, error, text);
}

uint64_t criu_deadline(const struct criu *criu) {
        return criu->deadline;
}

/* A dump that is killed leaves the payload as it is after a dump: the parasite in each task undoes
 * itself when its end of the socket is closed. */
void criu_cancel(struct criu *criu) {
        pid_t pid = criu->dump_pid > 0 ? criu->dump_pid : criu->restore_pid;

        if (criu->done && pid > 0)
                (void) kill(pid, SIGKILL);
}

void criu_timeout(struct criu *criu) {
        if (!criu->done || criu->deadline > now_usec())
                return;
        criu->deadline = UINT64_MAX;
        criu->expired = true;
        criu_cancel(criu);
}

pid_t criu_restore_pid(const struct criu *criu) {
        return criu->restore_pid;
}

/* The ranks beside us poll without pause, and every time slice they get while CRIU waits is part of
 * the freeze. Never a real-time class: what is restored inherits it until CRIU puts back what each
 * task had, and ranks that poll with it stop the machine. */
static void expedite(void) {
        (void) setpriority(PRIO_PROCESS, 0, -20);
}

/* Restored processes may have higher hard limits than we were started with, and their owner may not
 * raise his own. */
static void raise_hard_limits(void) {
        for (unsigned i = 0; i < RLIM_NLIMITS; i++) {
                struct rlimit limit;

                if (getrlimit(i, &limit) < 0)
                        continue;
                limit.rlim_max = RLIM_INFINITY;
                (void) setrlimit(i, &limit);
        }
}

/* Runs CRIU in the child, as the job's owner: names and memory that he controls decide what CRIU
 * opens, makes and links, so it must have no right that he lacks. His home may hold a configuration
 * for CRIU, and what PID 1 was started with does not concern it, so the environment is ours. CRIU
 * must not die of a reader that goes away: it would leave the payload half cured. */
static _Noreturn void execute(const struct core *core, char *const *argv, const int *keep_fds, size_t n_fds,
                              enum identity_work work) {
        bool dump = work != IDENTITY_RESTORE;
        cleanup_free char *pages = xasprintf(PAGES_VARIABLE "=/proc/self/fd/%d/" PAGES, core->node.criu);
        char *const env[] = { (char *) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *) "XDG_RUNTIME_DIR=" CRIU_KDAT_DIR,
                              (char *) (dump ? "LD_PRELOAD=" PAGES_LIBRARY : "LD_PRELOAD=" RESTORE_LIBRARY), pages, NULL };
        sigset_t none;
        int r;

        (void) signal(SIGPIPE, SIG_IGN);
        sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
        for (size_t i = 0; i < n_fds; i++)
                (void) set_cloexec(keep_fds[i], false);
        (void) !chdir("/");
        expedite();
        (void) write_text("/proc/self/oom_score_adj", "0"); /* as the payload */
        raise_hard_limits();
        /* A restored process inherits the hard limit until CRIU sets its own. */
        r = identity_refuse_core(dump);
        if (r == 0)
                r = identity_become(core->spec, identity_criu_capabilities(work), dump ? CGROUP_FREEZER_GID : IDENTITY_NO_GROUP);
        if (r < 0)
                log_error("cannot become the job's owner: %s", strerror(-r));
        else
                execve(argv[0], argv, env);
        log_error("cannot run %s: %s", argv[0], strerror(errno));
        _exit(127);
}

/* A job of root is restored by root: there is nothing its owner may not do. */
static bool as_owner(const struct criu *criu) {
        return criu->core->spec->uid != 0;
}

static int make_log(const struct criu *criu, const char *name) {
        const struct core *core = criu->core;
        cleanup_close int fd = -1;

        (void) unlinkat(core->node.criu, name, 0);
        fd = openat(core->node.criu, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        return fd < 0 || fchown(fd, core->spec->uid, core->spec->gid) < 0 ? -errno : 0;
}

int criu_preload_dump(struct criu *criu, struct rm_error *error) {
        struct core *core = criu->core;
        const int keep[] = { core->node.criu, core->node.cgroup_payload };
        cleanup_free char *gate = xasprintf("/proc/self/fd/%d/" GATE, core->node.criu);
        char *argv[] = { core->spec->criu_path, (char *) "dump", (char *) "--no-default-config", (char *) "--config", gate, NULL };

        if (criu->dump_pid != 0)
                return 0;
        if ((mkfifoat(core->node.criu, GATE, 0644) < 0 && errno != EEXIST) || fchmodat(core->node.criu, GATE, 0644, 0) < 0)
                return error_sys(error, -errno, "cannot make the FIFO for CRIU's options");
        criu->dump_pid = fork();
        if (criu->dump_pid == 0)
                execute(core, argv, keep, ARRAY_SIZE(keep), IDENTITY_DUMP);
        if (criu->dump_pid < 0) {
                criu->dump_pid = 0;
                return error_sys(error, -errno, "cannot start CRIU");
        }
        return 0;
}

/* Waits until CRIU stands at the gate. */
static int open_gate(struct criu *criu) {
        uint64_t deadline = now_usec() + GATE_WAIT_USEC;
        int fd;

        while ((fd = openat(criu->core->node.criu, GATE, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0) {
                if (errno != ENXIO)
                        return -errno;
                if (now_usec() > deadline || kill(criu->dump_pid, 0) < 0)
                        return -ETIMEDOUT;
                usleep(200);
        }
        return fd;
}

/* Starts another CRIU for the dump if need be: until its group was frozen the owner's processes
 * could end or stop the CRIU that waited for it. */
static int revive_dump(struct criu *criu, struct rm_error *error) {
        if (criu->dump_pid > 0 && waitpid(criu->dump_pid, NULL, WNOHANG) == criu->dump_pid)
                criu->dump_pid = 0;
        if (criu->dump_pid > 0)
                (void) kill(criu->dump_pid, SIGCONT);
        return criu_preload_dump(criu, error);
}

static char *dump_options(const struct criu *criu, bool stream) {
        const struct core *core = criu->core;

        return xasprintf("tree %d\n"
                         "images-dir /proc/%d/fd/%d\n"
                         "work-dir /proc/self/fd/%d\n"
                         "log-file " DUMP_LOG "\n"
                         "verbosity=%d\n"
                         "freeze-cgroup /proc/self/fd/%d\n"
                         "leave-running\n"
                         "manage-cgroups=ignore\n"
                         "network-lock skip\n"
                         "tcp-established\n"
                         "ext-unix-sk\n"
                         "file-locks\n"
                         "link-remap\n"
                         "ghost-limit %d\n"
                         "%s%s%s",
                         core->payload_pid, (int) criu->fd_broker, FD_BROKER_FD, core->node.criu, LOG_LEVEL,
                         core->node.cgroup_payload, DUMP_NAMELESS_MAX_BYTES, as_owner(criu) ? "unprivileged\n" : "",
                         criu->remapped ? LINK_REMAP_OPTION : "", stream ? "stream\n" : "");
}

/* CRIU waits for its options meanwhile; its library looks for this once it has them. */
static int report_library(const struct criu *criu, bool pages) {
        cleanup_free char *text = xasprintf("/proc/%d/fd/%d/" CRIU_KEPT_FLAGS "\n", (int) criu->fd_broker, FD_BROKER_FD);

        if (pages)
                return write_file_atomic(CRIU_WORK_DIR PAGES, text, strlen(text), 0644, false);
        return unlinkat(criu->core->node.criu, PAGES, 0) == 0 || errno == ENOENT ? 0 : -errno;
}

static void close_rpc(struct criu *criu) {
        if (criu->rpc.fd < 0)
                return;
        source_remove(criu->core->epoll_fd, &criu->rpc);
        cleanup_close_fd(&criu->rpc.fd);
}

void criu_unload_restore(struct criu *criu) {
        if (criu->done)
                return;
        close_rpc(criu); /* the service worker ends by itself */
        if (criu->restore_pid > 0)
                (void) kill(criu->restore_pid, SIGKILL);
}

/* Ends what was preloaded and never used. */
static void unload(struct criu *criu) {
        if (criu->done)
                return;
        end_fd_broker(criu);
        if (criu->dump_pid > 0)
                (void) kill(criu->dump_pid, SIGKILL);
        criu_unload_restore(criu);
}

int criu_dump(struct criu *criu, int images_fd, const struct dump_needs *needs, bool stream, bool pages, uint64_t timeout_usec,
              criu_done_fn done, struct rm_error *error) {
        cleanup_free char *options = NULL;
        cleanup_close int gate = -1;
        int r = revive_dump(criu, error);

        if (r < 0)
                return r;
        /* A stream needs no more than to enter; its directory lies below one that only root can
         * enter. */
        if (fchmod(images_fd, 0755) < 0 || (!stream && fchown(images_fd, criu->core->spec->uid, criu->core->spec->gid) < 0))
                return error_sys(error, -errno, "cannot share the directory for the images");
        r = lend_images(criu, images_fd, NULL, error);
        if (r < 0)
                return r;
        r = watches_report(&needs->watches, criu->core->spec, criu->core->node.criu, error);
        if (r < 0)
                return r;
        criu->remapped = needs->remap;
        options = dump_options(criu, stream);
        r = make_log(criu, DUMP_LOG);
        if (r == 0)
                r = report_library(criu, pages);
        if (r == 0)
                r = gate = open_gate(criu);
        if (r < 0) {
                unload(criu);
                return error_sys(error, r, "CRIU did not start");
        }
        r = write_all(gate, options, strlen(options));
        if (r < 0) {
                unload(criu);
                return error_sys(error, r, "cannot send CRIU its options");
        }
        begin(criu, done, timeout_usec);
        return 0;
}

static int send_request(struct criu *criu, const Criu__Req *request) {
        size_t size = criu__req__get_packed_size(request);
        cleanup_free uint8_t *data = xcalloc(1, size);

        (void) criu__req__pack(request, data);
        return send(criu->rpc.fd, data, size, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* All tasks are restored and stand in a ptrace stop; when CRIU lets go of them they walk into the
 * freezer. CRIU itself was in the payload's group, so that what it made is born there, and must
 * leave it first. */
static void before_resume(struct criu *criu) {
        const struct node_fds *node = &criu->core->node;
        Criu__Req answer = CRIU__REQ__INIT;
        int r = groups_enter(criu->core, LEAF_INIT, criu->restore_pid);

        if (r == 0)
                r = cgroup_set_frozen(node->cgroup_payload, criu->core->spec->cgroup_v1, true);
        if (r < 0)
                log_error("cannot freeze the restored processes: %s", strerror(-r));
        answer.type = REQ_NOTIFY;
        answer.has_notify_success = true;
        answer.notify_success = r == 0;
        (void) send_request(criu, &answer);
}

static int wait_frozen(const struct core *core) {
        uint64_t deadline = now_usec() + FROZEN_WAIT_USEC;
        int r;

        while ((r = cgroup_is_frozen(core->node.cgroup_payload, core->spec->cgroup_v1)) == 0) {
                if (now_usec() > deadline)
                        return -ETIMEDOUT;
                usleep(100);
        }
        return r < 0 ? r : 0;
}

static void on_notify(struct criu *criu, const Criu__Resp *response) {
        Criu__Req answer = CRIU__REQ__INIT;

        if (response->notify && response->notify->script && strcmp(response->notify->script, "pre-resume") == 0) {
                before_resume(criu);
                return;
        }
        answer.type = REQ_NOTIFY;
        answer.has_notify_success = true;
        answer.notify_success = true;
        (void) send_request(criu, &answer);
}

static void on_restored(struct criu *criu, const Criu__Resp *response) {
        int r = response->success && response->restore ? 0 : -EIO;

        if (r == 0) {
                criu->core->payload_pid = response->restore->pid;
                r = wait_frozen(criu->core);
        }
        close_rpc(criu);
        if (criu->done)
                finish(criu, r, CRIU_WORK_DIR RESTORE_LOG, 0);
}

static void on_rpc(struct source *source, uint32_t events) {
        struct criu *criu = source->data;
        uint8_t data[8192];
        ssize_t n = recv(source->fd, data, sizeof(data), MSG_DONTWAIT);
        Criu__Resp *response;

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        response = n > 0 ? criu__resp__unpack(NULL, (size_t) n, data) : NULL;
        if (!response) {
                close_rpc(criu); /* its end is noticed by criu_reaped() */
                return;
        }
        if (response->type == REQ_NOTIFY)
                on_notify(criu, response);
        else
                on_restored(criu, response);
        criu__resp__free_unpacked(response, NULL);
}

static void set_next_pid(unsigned pid) {
        char text[16];

        if (pid == 0)
                return;
        snprintf(text, sizeof(text), "%u", pid);
        (void) write_text("/proc/sys/kernel/ns_last_pid", text);
}

int criu_preload_restore(struct criu *criu, unsigned free_pid, struct rm_error *error) {
        struct core *core = criu->core;
        char fd_text[16];
        char *argv[] = { core->spec->criu_path, (char *) "--no-default-config", (char *) "swrk", fd_text, NULL };
        int sockets[2];

        if (criu->restore_pid != 0)
                return 0;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
                return error_sys(error, -errno, "cannot make a socket pair");
        snprintf(fd_text, sizeof(fd_text), "%d", sockets[1]);
        set_next_pid(free_pid);
        criu->restore_pid = fork();
        if (criu->restore_pid == 0) {
                const int keep[] = { core->node.criu, sockets[1] };

                if (groups_enter(core, LEAF_PAYLOAD, 0) < 0)
                        _exit(127);
                execute(core, argv, keep, ARRAY_SIZE(keep), IDENTITY_RESTORE);
        }
        close(sockets[1]);
        criu->rpc = (struct source) { .fd = sockets[0], .fn = on_rpc, .data = criu };
        if (criu->restore_pid < 0 || source_add(core->epoll_fd, &criu->rpc, EPOLLIN) < 0) {
                close(sockets[0]);
                criu->rpc.fd = -1;
                criu->restore_pid = 0;
                return error_set(error, -EAGAIN, "cannot start CRIU");
        }
        return 0;
}

/* CRIU takes out of the images what it has read of memory. */
static int share_image(int dir_fd, const char *name, uid_t owner) {
        bool memory = strncmp(name, "pages-", 6) == 0;

        if (fchmodat(dir_fd, name, 0644, 0) < 0 || (memory && fchownat(dir_fd, name, owner, (gid_t) -1, AT_SYMLINK_NOFOLLOW) < 0))
                return -errno;
        return 0;
}

/* The owner's CRIU reads the images, which lie below a directory that only root can enter. */
static int share_images(int images_fd, uid_t owner) {
        cleanup_dir DIR *dir = opendir_at(images_fd, ".");
        int r = dir && fchmod(dirfd(dir), 0755) == 0 ? 0 : -errno;
        const char *name;

        while (r == 0 && (name = next_name(dir)))
                if (name[0] != '.')
                        r = share_image(images_fd, name, owner);
        return r;
}

/* By the service protocol only a number of ours can name the directory for the log, and our
 * descriptors are root's. */
static int write_restore_config(const struct core *core) {
        cleanup_free char *text = xasprintf("work-dir /proc/self/fd/%d\n", core->node.criu);

        return write_file_atomic(CRIU_WORK_DIR RESTORE_CONF, text, strlen(text), 0644, false);
}

static int request_restore(struct criu *criu, bool join_time, bool lazy) {
        cleanup_free char *images = xasprintf("/proc/%d/fd/%d", (int) criu->fd_broker, FD_BROKER_FD);
        cleanup_free char *config = xasprintf("/proc/self/fd/%d/" RESTORE_CONF, criu->core->node.criu);
        cleanup_free char *fd_broker = xasprintf("%d", (int) criu->fd_broker);
        Criu__JoinNamespace join = CRIU__JOIN_NAMESPACE__INIT;
        Criu__JoinNamespace *joins[] = { &join };
        Criu__Req request = CRIU__REQ__INIT;
        Criu__Opts opts = CRIU__OPTS__INIT;

        opts.images_dir_fd = -1;
        opts.images_dir = images;
        opts.config_file = config;
        opts.log_file = (char *) RESTORE_LOG;
        opts.has_log_level = true;
        opts.log_level = LOG_LEVEL;
        opts.has_notify_scripts = opts.notify_scripts = true;
        opts.has_tcp_established = opts.tcp_established = true;
        opts.has_ext_unix_sk = opts.ext_unix_sk = true;
        opts.has_file_locks = opts.file_locks = true;
        opts.has_link_remap = opts.link_remap = true;
        opts.has_manage_cgroups_mode = true;
        opts.has_network_lock = true;
        opts.network_lock = NETWORK_LOCK_SKIP;
        opts.has_unprivileged = opts.unprivileged = as_owner(criu);
        opts.has_lazy_pages = opts.lazy_pages = lazy;
        opts.has_auto_dedup = opts.auto_dedup = true; /* or memory is there twice until all of it is read */
        join.ns = (char *) "time";
        join.ns_file = fd_broker;
        opts.join_ns = joins;
        opts.n_join_ns = join_time ? 1 : 0;
        request.type = REQ_RESTORE;
        request.opts = &opts;
        return send_request(criu, &request);
}

/* The kernel says these only of the process that asks; PID 1 has those that all in a capsule begin
 * with. */
static uint32_t own_securebits(void) {
        int bits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);

        return bits < 0 ? 0 : (uint32_t) bits;
}

static int see_to_images(const struct criu *criu, int images_fd, const Capsule__Inventory *inventory, bool rollback,
                         struct rm_error *error) {
        const struct core *core = criu->core;
        const struct image_identity_scope scope = { core->spec, inventory, own_securebits() };
        int r = image_files_check(images_fd, inventory, error);

        if (r < 0)
                return r;
        r = image_fixup(images_fd, rollback, &scope, waiting_again, criu->waiting, error);

        if (r < 0)
                return r;
        r = share_images(images_fd, core->spec->uid);
        if (r == 0)
                r = write_restore_config(core);
        if (r == 0)
                r = make_log(criu, RESTORE_LOG);
        return r < 0 ? error_sys(error, r, "cannot prepare the images for CRIU") : 0;
}

int criu_restore(struct criu *criu, int images_fd, const Capsule__Inventory *inventory, bool lazy, bool rollback,
                 uint64_t timeout_usec, criu_done_fn done, struct rm_error *error) {
        struct clocks clocks;
        bool own_clocks;
        int r = criu_preload_restore(criu, 0, error);

        if (r < 0)
                return r;
        r = see_to_images(criu, images_fd, inventory, rollback, error);
        if (r < 0)
                return r;
        /* Without root's rights CRIU makes no time namespace, but joins that of a process. */
        own_clocks = as_owner(criu) && clocks_read_image(images_fd, &clocks) == 0;
        r = lend_images(criu, images_fd, own_clocks ? &clocks : NULL, error);
        if (r < 0)
                return r;
        r = request_restore(criu, own_clocks, lazy);
        if (r < 0) {
                unload(criu);
                return error_sys(error, r, "cannot send CRIU its request");
        }
        begin(criu, done, timeout_usec);
        return 0;
}

typedef void (*links_fn)(const char *proc);

static void change_links_as_owner(int error, int report_fd, const void *arg) {
        if (error == 0)
                (*(const links_fn *) arg)("/proc");
        (void) write_all(report_fd, &error, sizeof(error));
}

/* Names in directories that the owner controls: with his rights, and one more to see what his
 * processes have open. */
static void change_links(const struct criu *criu, links_fn fn) {
        int error = 0;
        int r = identity_ask(criu->core->spec, UINT64_C(1) << CAP_SYS_PTRACE, change_links_as_owner, &fn, LINKS_USEC, &error,
                             sizeof(error));

        if (r < 0)
                error = r;
        if (error < 0)
                log_warn("links that CRIU has made to files without a name may be left: %s", strerror(-error));
}

bool criu_reaped(struct criu *criu, pid_t pid, int status) {
        bool dump = pid == criu->dump_pid;

        if (pid == 0 || (!dump && pid != criu->restore_pid))
                return false;
        if (dump)
                criu->dump_pid = 0;
        else
                criu->restore_pid = 0;
        /* A restore's outcome has come over the socket, unless it died before. */
        if (!dump && criu->rpc.fd >= 0)
                on_rpc(&criu->rpc, EPOLLIN);
        if (criu->done && (dump || criu->rpc.fd < 0 || status != 0)) {
                close_rpc(criu);
                if (dump && criu->remapped && status == 0)
                        change_links(criu, link_remap_show);
                else if (dump)
                        criu_forget_dump(criu);
                finish(criu, status == 0 && dump ? 0 : -EIO, dump ? CRIU_WORK_DIR DUMP_LOG : CRIU_WORK_DIR RESTORE_LOG, status);
        }
        return true;
}

void criu_forget_dump(struct criu *criu) {
        if (criu->remapped)
                change_links(criu, link_remap_remove);
        criu->remapped = false;
}
