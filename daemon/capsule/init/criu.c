#include "daemon/capsule/init/criu.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sched.h>
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
#include "common/util.h"
#include "daemon/capsule/cgroup.h"
#include "daemon/capsule/init/init.h"
#include "daemon/capsule/init/mend.h"
#include "daemon/capsule/init/remap.h"
#include "daemon/capsule/log_tail.h"
#include "proto/criu.pb-c.h"

#define GATE "criu.conf"
#define DUMP_LOG "dump.log"
#define RESTORE_LOG "restore.log"

enum {
        REQ_RESTORE = 2,
        REQ_NOTIFY = 6,
        NETWORK_LOCK_SKIP = 3,
        LOG_LEVEL = 1, /* errors only: writing much of a log is part of the freeze */
        GATE_WAIT_USEC = 5000000,
        FROZEN_WAIT_USEC = 1000000,
        TEXT_BYTES = 500,
};

struct criu {
        struct init *init;
        pid_t dump_pid;    /* waits at the gate or dumps; 0: none */
        pid_t restore_pid; /* service worker */
        struct source rpc; /* to it; fd -1: none */
        criu_done_fn done; /* NULL: nothing is being done */
        bool remapped;     /* the dump may have left helper links */
        bool answered;
};

int criu_create(struct init *init, struct criu **ret) {
        struct criu *criu = xcalloc(1, sizeof(*criu));

        criu->init = init;
        criu->rpc.fd = -1;
        *ret = criu; /* lives as long as the process */
        return 0;
}

static void finish(struct criu *criu, int error, const char *log) {
        criu_done_fn done = criu->done;
        char text[TEXT_BYTES] = "";

        if (error < 0)
                log_tail_errors(log, text, sizeof(text));
        criu->done = NULL;
        done(criu->init, error, error < 0 && !*text ? "CRIU failed without telling why" : text);
}

/* prlimit() on another user's process needs CAP_SYS_RESOURCE, or the real ids of its owner. Hosts that withhold that
 * capability (containers) get the latter. */
static void adopt_real_ids(const Capsule__Spec *spec) {
        if (prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE, 0, 0, 0) == 1)
                return;
        (void) setresgid(spec->gid, 0, 0);
        (void) setresuid(spec->uid, 0, 0);
}

/* The ranks beside us poll without pause, and every time slice they get while CRIU waits is part of the freeze. Never a real-time
 * class: what is restored inherits it until CRIU puts back what each task had, and ranks that poll with it stop the machine. */
static void hurry(void) {
        (void) setpriority(PRIO_PROCESS, 0, -20);
}

/* In the child. CRIU must not die of a reader that goes away: it would leave the payload half cured. */
static _Noreturn void execute(const struct init *init, char *const *argv, int keep_fd) {
        sigset_t none;

        (void) signal(SIGPIPE, SIG_IGN);
        sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
        if (keep_fd >= 0)
                (void) set_cloexec(keep_fd, false);
        (void) chdir("/");
        hurry();
        adopt_real_ids(init->spec);
        execv(argv[0], argv);
        log_error("cannot run %s: %s", argv[0], strerror(errno));
        _exit(127);
}

int criu_preload_dump(struct criu *criu, struct rm_error *error) {
        struct init *init = criu->init;
        cleanup_free char *gate = xasprintf("/proc/1/fd/%d/" GATE, init->node.runtime);
        char *argv[] = { init->spec->criu_path, (char *) "dump", (char *) "--no-default-config", (char *) "--config", gate, NULL };

        if (criu->dump_pid != 0)
                return 0;
        if (mkfifoat(init->node.runtime, GATE, 0600) < 0 && errno != EEXIST)
                return error_sys(error, -errno, "cannot make CRIU's gate");
        criu->dump_pid = fork();
        if (criu->dump_pid == 0)
                execute(init, argv, -1);
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

        while ((fd = openat(criu->init->node.runtime, GATE, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0) {
                if (errno != ENXIO)
                        return -errno;
                if (now_usec() > deadline || kill(criu->dump_pid, 0) < 0)
                        return -ETIMEDOUT;
                usleep(200);
        }
        return fd;
}

int criu_dump(struct criu *criu, int images_fd, bool stream, criu_done_fn done, struct rm_error *error) {
        const struct init *init = criu->init;
        cleanup_free char *options = NULL;
        cleanup_close int gate = -1;
        int r = criu_preload_dump(criu, error);

        if (r < 0)
                return r;
        criu->remapped = remap_wanted("/proc");
        options = xasprintf("tree %d\n"
                            "images-dir /proc/1/fd/%d\n"
                            "work-dir /proc/1/fd/%d\n"
                            "log-file " DUMP_LOG "\n"
                            "verbosity %d\n"
                            "freeze-cgroup %s/payload\n"
                            "leave-running\n"
                            "manage-cgroups ignore\n"
                            "network-lock skip\n"
                            "tcp-established\n"
                            "ext-unix-sk\n"
                            "file-locks\n"
                            "link-remap\n"
                            "ghost-limit 1G\n"
                            "%s%s",
                            init->payload_pid, images_fd, init->node.runtime, LOG_LEVEL, init->spec->cgroup_dir,
                            criu->remapped ? REMAP_OPTION : "", stream ? "stream\n" : "");
        (void) unlinkat(init->node.runtime, DUMP_LOG, 0);
        gate = open_gate(criu);
        if (gate < 0) {
                criu_unload(criu);
                return error_sys(error, gate, "CRIU does not start");
        }
        r = write_all(gate, options, strlen(options));
        if (r < 0)
                return error_sys(error, r, "CRIU does not take its options");
        criu->done = done;
        return 0;
}

static int send_request(struct criu *criu, const Criu__Req *request) {
        size_t size = criu__req__get_packed_size(request);
        cleanup_free uint8_t *data = xcalloc(1, size);

        (void) criu__req__pack(request, data);
        return send(criu->rpc.fd, data, size, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void close_rpc(struct criu *criu) {
        if (criu->rpc.fd < 0)
                return;
        source_remove(criu->init->epoll_fd, &criu->rpc);
        close(criu->rpc.fd);
        criu->rpc.fd = -1;
}

/* All tasks are restored and stand in a ptrace stop; when CRIU lets go of them they walk into the freezer. CRIU itself
 * was in the payload's group, so that what it made is born there, and must leave it first. */
static void before_resume(struct criu *criu) {
        const struct node_fds *node = &criu->init->node;
        Criu__Req answer = CRIU__REQ__INIT;
        int r = cgroup_enter(node->cgroup_init, criu->restore_pid);

        if (r == 0)
                r = cgroup_set_frozen(node->cgroup_payload, criu->init->spec->cgroup_v1, true);
        if (r < 0)
                log_error("cannot freeze what was restored: %s", strerror(-r));
        answer.type = REQ_NOTIFY;
        answer.has_notify_success = true;
        answer.notify_success = r == 0;
        (void) send_request(criu, &answer);
}

static int wait_frozen(const struct init *init) {
        uint64_t deadline = now_usec() + FROZEN_WAIT_USEC;
        int r;

        while ((r = cgroup_is_frozen(init->node.cgroup_payload, init->spec->cgroup_v1)) == 0) {
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
                criu->init->payload_pid = response->restore->pid;
                r = wait_frozen(criu->init);
        }
        close_rpc(criu);
        if (criu->done)
                finish(criu, r, RESTORE_LOG);
}

static void on_rpc(struct source *source, uint32_t events) {
        struct criu *criu = source->data;
        uint8_t data[8192];
        ssize_t n = recv(source->fd, data, sizeof(data), MSG_DONTWAIT);
        Criu__Resp *response;

        (void) events;
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
        struct init *init = criu->init;
        char fd_text[16];
        char *argv[] = { init->spec->criu_path, (char *) "swrk", fd_text, NULL };
        int sockets[2];

        if (criu->restore_pid != 0)
                return 0;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
                return error_sys(error, -errno, "cannot make a socket pair");
        snprintf(fd_text, sizeof(fd_text), "%d", sockets[1]);
        set_next_pid(free_pid);
        criu->restore_pid = fork();
        if (criu->restore_pid == 0) {
                if (cgroup_enter(init->node.cgroup_payload, 0) < 0)
                        _exit(127);
                execute(init, argv, sockets[1]);
        }
        close(sockets[1]);
        criu->rpc = (struct source) { .fd = sockets[0], .fn = on_rpc, .data = criu };
        if (criu->restore_pid < 0 || source_add(init->epoll_fd, &criu->rpc, EPOLLIN) < 0) {
                close(sockets[0]);
                criu->rpc.fd = -1;
                criu->restore_pid = 0;
                return error_set(error, -EAGAIN, "cannot start CRIU");
        }
        return 0;
}

int criu_restore(struct criu *criu, int images_fd, criu_done_fn done, struct rm_error *error) {
        Criu__Req request = CRIU__REQ__INIT;
        Criu__Opts opts = CRIU__OPTS__INIT;
        int r = criu_preload_restore(criu, 0, error);

        if (r < 0)
                return r;
        mend_images(images_fd);
        opts.images_dir_fd = images_fd;
        opts.has_work_dir_fd = true;
        opts.work_dir_fd = criu->init->node.runtime;
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
        request.type = REQ_RESTORE;
        request.opts = &opts;
        (void) unlinkat(criu->init->node.runtime, RESTORE_LOG, 0);
        r = send_request(criu, &request);
        if (r < 0)
                return error_sys(error, r, "CRIU does not take its request");
        criu->done = done;
        return 0;
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
                        remap_show("/proc");
                else if (dump)
                        criu_forget_dump(criu);
                finish(criu, status == 0 && dump ? 0 : -EIO, dump ? DUMP_LOG : RESTORE_LOG);
        }
        return true;
}

void criu_forget_dump(struct criu *criu) {
        if (criu->remapped)
                remap_remove("/proc");
        criu->remapped = false;
}

void criu_unload(struct criu *criu) {
        if (criu->done)
                return;
        if (criu->dump_pid > 0)
                (void) kill(criu->dump_pid, SIGKILL);
        close_rpc(criu); /* the service worker ends by itself */
        if (criu->restore_pid > 0)
                (void) kill(criu->restore_pid, SIGKILL);
}
