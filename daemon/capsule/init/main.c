/* rm-capsule: PID 1 of a capsule. Started by rmd with the runtime directory; descriptor 3 takes the
 * outcome. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/capsule/cgroup.h"
#include "daemon/capsule/init/core_ops.h"
#include "daemon/capsule/init/criu/criu.h"
#include "daemon/capsule/init/criu/link_remap.h"
#include "daemon/capsule/init/criu/waiting.h"
#include "daemon/capsule/init/ctl.h"
#include "daemon/capsule/init/fencing.h"
#include "daemon/capsule/init/init.h"
#include "daemon/capsule/init/memory/fill.h"
#include "daemon/capsule/init/ops.h"
#include "daemon/capsule/init/program_socket.h"
#include "daemon/capsule/init/ranks/agents.h"
#include "daemon/capsule/init/ranks/announce.h"
#include "daemon/capsule/init/ranks/ending.h"
#include "daemon/capsule/init/ranks/park.h"
#include "daemon/capsule/init/ranks/rank_watch.h"
#include "daemon/capsule/init/ranks/ranks.h"
#include "daemon/capsule/init/setup.h"
#include "daemon/capsule/init/stdio.h"
#include "daemon/capsule/init/verify/blocker_scan.h"
#include "daemon/capsule/init/verify/watch.h"
#include "daemon/capsule/init/verify/written.h"

enum { REPORT_FD = 3, LOG_FILE_BYTES = 256 * 1024 };

static void reap(struct init *init) {
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
                if (ending_reaped(init->ending, pid, status))
                        continue;
                if (WIFSTOPPED(status)) {
                        waiting_stopped(init->waiting, pid, status);
                        continue;
                }
                if (criu_reaped(init->criu, pid, status) || fill_reaped(init->fill, pid))
                        continue;
                if (pid == init->core.payload_pid)
                        ops_payload_exited(init->ops, status);
        }
}

static void on_signal(struct source *source, uint32_t events) {
        struct signalfd_siginfo info;

        while (read(source->fd, &info, sizeof(info)) == (ssize_t) sizeof(info))
                ;
        reap(source->data);
}

static void on_cgroup_event(struct source *source, uint32_t events) {
        struct init *init = source->data;
        char text[256];

        (void) !pread(source->fd, text, sizeof(text), 0); /* else it is reported again and again */
        ops_check_frozen(init->ops);
}

static int watch_signals(struct init *init) {
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        (void) signal(SIGPIPE, SIG_IGN);
        if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
                return -errno;
        init->signals = (struct source) { .fn = on_signal, .data = init };
        init->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return init->signals.fd < 0 ? -errno : source_add(init->core.epoll_fd, &init->signals, EPOLLIN);
}

static int watch_cgroup(struct init *init) {
        init->cgroup_events = (struct source) { .fn = on_cgroup_event, .data = init };
        init->cgroup_events.fd = cgroup_open_events(init->core.node.cgroup_payload);
        if (init->cgroup_events.fd < 0)
                return 0;
        return source_add(init->core.epoll_fd, &init->cgroup_events, EPOLLPRI);
}

static void on_request(struct init *init, Capsule__Request *request, struct ticket ticket) {
        ops_handle(init->ops, request, ticket);
}

static void on_connected(struct init *init) {
        ops_resync(init->ops);
}

static void on_drained(struct init *init) {
        stdio_report(init->stdio, false);
}

static const struct ctl_handlers ctl_handlers = { .request = on_request, .connected = on_connected, .drained = on_drained };

/* Creates the modules whose creation cannot fail. */
static void create_rooms(struct init *init) {
        struct core *core = &init->core;

        core->empty_messages = xcalloc(1, sizeof(*core->empty_messages));
        init->waiting = waiting_create();
        init->criu = criu_create(core, init->waiting);
        init->fill = fill_create(core, init->criu);
        init->park = park_create(core);
        init->announce = announce_create(core, init->ranks, init->park);
        init->ending = ending_create(core, init->park);
        init->rank_watch = rank_watch_create(core);
        init->watch = watch_create(core);
        init->written = written_create(core);
}

static int start(struct init *init, struct rm_error *error) {
        int r = setup_capsule_side(init, error);

        if (r < 0)
                return r;
        init->core.phase = CAPSULE__PHASE__PHASE_EMPTY;
        init->core.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        r = init->core.epoll_fd < 0 ? -errno : watch_signals(init);
        if (r == 0)
                r = watch_cgroup(init);
        if (r < 0)
                return error_sys(error, r, "cannot watch signals and the control group");
        init->ranks = ranks_create();
        r = stdio_create(init, &init->stdio, error);
        if (r == 0)
                r = agents_create(&init->core, &init->agents, error);
        if (r == 0)
                r = program_socket_create(init, init->ranks, &init->program_socket, error);
        if (r < 0)
                return r;
        (void) ops_create(init, &init->ops);
        create_rooms(init);
        written_watch(init->written);
        r = fencing_create(init, &init->fencing, error);
        if (r < 0)
                return r;
        r = ctl_create(init, &ctl_handlers, &init->ctl);
        return r < 0 ? error_sys(error, r, "cannot listen on the control socket") : 0;
}

static int timeout_msec(const struct init *init) {
        const uint64_t deadlines[] = {
                ops_deadline(init->ops),
                stdio_deadline(init->stdio),
                watch_deadline(init->watch),
                fill_deadline(init->fill),
                program_socket_deadline(init->program_socket),
                announce_deadline(init->announce),
                park_deadline(init->park),
                rank_watch_deadline(init->rank_watch),
                agents_deadline(init->agents),
                written_deadline(init->written),
                ending_deadline(init->ending),
        };
        uint64_t next = UINT64_MAX, now = now_usec();

        for (size_t i = 0; i < ARRAY_SIZE(deadlines); i++)
                next = deadlines[i] < next ? deadlines[i] : next;
        if (next == UINT64_MAX)
                return -1;
        return next <= now ? 0 : (int) ((next - now + 999) / 1000);
}

static void run_loop(struct init *init) {
        while (!init->quit) {
                int r = loop_once(init->core.epoll_fd, timeout_msec(init));
                uint64_t now = now_usec();

                if (r < 0)
                        break;
                if (ops_deadline(init->ops) <= now || init->cgroup_events.fd < 0)
                        ops_timeout(init->ops);
                if (stdio_deadline(init->stdio) <= now)
                        stdio_retry(init->stdio);
                if (fill_deadline(init->fill) <= now)
                        fill_timeout(init->fill);
                if (program_socket_deadline(init->program_socket) <= now)
                        program_socket_timeout(init->program_socket);
                if (announce_deadline(init->announce) <= now)
                        announce_timeout(init->announce);
                if (agents_deadline(init->agents) <= now)
                        agents_timeout(init->agents);
                if (ending_deadline(init->ending) <= now)
                        ending_timeout(init->ending);
                if (park_deadline(init->park) <= now)
                        park_timeout(init->park);
                if (rank_watch_deadline(init->rank_watch) <= now)
                        rank_watch_timeout(init->rank_watch);
                if (watch_deadline(init->watch) <= now)
                        watch_timeout(init->watch);
                if (written_deadline(init->written) <= now)
                        written_timeout(init->written);
        }
}

static _Noreturn void give_up(const struct rm_error *error) {
        (void) write_all(REPORT_FD, error_text(error), strlen(error_text(error)));
        log_error("%s", error_text(error));
        _exit(1);
}

/* The end of PID 1 ends all processes of the capsule and, with them, its namespaces. */
static _Noreturn void be_init(struct init *init) {
        struct rm_error error = { 0 };
        int r = start(init, &error);

        if (r < 0) {
                error_prefix(&error, "capsule %s", init->core.spec->id);
                give_up(&error);
        }
        (void) write_all(REPORT_FD, "OK", 2);
        close(REPORT_FD);
        run_loop(init);
        link_delete(&init->link);
        _exit(0);
}

/* rmd may be the last to be killed when memory is short (-900 in its unit); we are what holds the
 * user's job together, so the job's processes and helpers go before us, but rmd and what the node
 * cannot do without stay. To go below what we were given takes a privilege that some hosts
 * withhold. */
static void set_oom_score(void) {
        if (write_text("/proc/self/oom_score_adj", "-500") < 0)
                (void) write_text("/proc/self/oom_score_adj", "0");
}

/* Leaves rmd's session, terminal and keys, of which nothing may reach a user's program. */
static void detach(void) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        int log = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

        (void) setsid();
        (void) umask(022);
        set_oom_score();
        (void) dup2(null, STDIN_FILENO);
        (void) dup2(null, STDOUT_FILENO);
        (void) dup2(log >= 0 ? log : null, STDERR_FILENO);
        (void) syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
        (void) set_cloexec(REPORT_FD, true);
}

int main(int argc, char **argv) {
        struct init init = { .core = { .ops = &core_ops, .epoll_fd = -1 } };
        const char *action = getenv("CRTOOLS_SCRIPT_ACTION");
        struct rm_error error = { 0 };
        pid_t pid;
        int r;

        log_setup("rm-capsule", LOG_INFO);
        log_limit_file(LOG_FILE_BYTES); /* it lies on the node's /run */
        if (argc == 1 && action)
                return link_remap_script(action);
        if (argc != 2 || fcntl(REPORT_FD, F_GETFD) < 0) {
                fprintf(stderr, "rm-capsule is started by rmd, not by hand\n");
                return 2;
        }
        if (chdir(argv[1]) < 0)
                return 2;
        detach();
        r = setup_read_spec(argv[1], &init.core.spec, &error);
        if (r == 0)
                r = setup_node_side(&init, argv[1], &error);
        if (r == 0)
                r = setup_unshare(&error);
        if (r < 0) {
                error_prefix(&error, "capsule %s", init.core.spec ? init.core.spec->id : argv[1]);
                give_up(&error);
        }
        pid = fork();
        if (pid == 0)
                be_init(&init);
        return pid < 0 ? 1 : 0;
}
