#include "daemon/leader/fence_host.h"

#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"
#include "common/timer.h"
#include "common/util.h"

struct fence_host {
        pid_t pid;
        int pidfd, answer;
        struct event *exit_event, *timer;
        bool overran;
        uint64_t timeout_usec;
        fence_host_done done; /* NULL: nobody asks any more */
        void *context;
};

static void host_free(struct fence_host *host) {
        if (host->exit_event)
                event_free(host->exit_event);
        if (host->timer)
                event_free(host->timer);
        if (host->pidfd >= 0)
                (void) close(host->pidfd);
        if (host->answer >= 0)
                (void) close(host->answer);
        free(host);
}

/* It leads its process group, so this number is nobody else's before it has been waited for. */
static void kill_group(const struct fence_host *host) {
        (void) kill(-host->pid, SIGKILL);
        (void) pidfd_send_signal(host->pidfd, SIGKILL, NULL, 0);
}

static int judge(const struct fence_host *host, const siginfo_t *info, struct rm_error *err) {
        char text[RM_ERROR_TEXT_BYTES / 2];
        ssize_t n = read(host->answer, text, sizeof(text) - 1);

        text[n > 0 ? n : 0] = '\0';
        if (host->overran)
                return error_set(err, -ETIME, "killed after %.1f s", (double) host->timeout_usec / 1e6);
        if (info->si_code == CLD_EXITED && info->si_status == 0)
                return 0;
        if (info->si_code == CLD_EXITED)
                return error_set(err, -EPROTO, "%s", text[0] ? text : "rm-fence-host failed and did not say why");
        return error_set(err, -EPROTO, "crashed (%s)", strsignal(info->si_status));
}

static void on_exit_event(evutil_socket_t fd, short what, void *arg) {
        struct fence_host *host = arg;
        fence_host_done done = host->done;
        void *context = host->context;
        siginfo_t info = { 0 };
        struct rm_error err = { 0 };
        int r;

        if (waitid(P_PIDFD, (id_t) host->pidfd, &info, WEXITED) < 0)
                r = error_sys(&err, -errno, "exit status unknown");
        else
                r = judge(host, &info, &err);
        host_free(host);
        if (done)
                done(context, r < 0 ? &err : NULL);
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
        struct fence_host *host = arg;

        host->overran = true;
        kill_group(host);
}

static int start(struct fence_host *host, const struct fence_order *order) {
        char try_number[16], time[32];
        char *const argv[] = { (char *) "rm-fence-host",
                               (char *) "--plugin",
                               (char *) order->plugin,
                               (char *) "--dir",
                               (char *) (order->directory ? order->directory : RM_PLUGIN_DIR),
                               (char *) "--program",
                               (char *) order->program,
                               (char *) "--cluster",
                               (char *) order->cluster,
                               (char *) "--node",
                               (char *) order->node,
                               (char *) "--address",
                               (char *) order->address,
                               (char *) "--try",
                               try_number,
                               (char *) "--time-usec",
                               time,
                               NULL };
        char *const environment[] = { (char *) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *) "LC_ALL=C.UTF-8", NULL };
        struct child_spec child = {
                .program = order->host_program ? order->host_program : RM_LIBEXEC_DIR "/rm-fence-host",
                .argv = argv,
                .environment = environment,
                .streams = { -1, -1, -1 },
                .leads_group = true,
        };
        int fds[2], r;

        (void) snprintf(try_number, sizeof(try_number), "%u", order->try_number);
        (void) snprintf(time, sizeof(time), "%" PRIu64, order->timeout_usec);
        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;
        host->answer = fds[0];
        child.streams[STDOUT_FILENO] = fds[1];
        r = child_start(&child, &host->pid, &host->pidfd);
        (void) close(fds[1]);
        return r;
}

int fence_host_start(struct event_base *base, const struct fence_order *order, fence_host_done done, void *context,
                     struct fence_host **ret, struct rm_error *err) {
        struct fence_host *host = xcalloc(1, sizeof(*host));
        int r;

        *host = (struct fence_host) {
                .pidfd = -1, .answer = -1, .timeout_usec = order->timeout_usec, .done = done, .context = context
        };
        r = start(host, order);
        if (r < 0) {
                host_free(host);
                return error_sys(err, r, "cannot start rm-fence-host");
        }
        host->exit_event = event_new(base, host->pidfd, EV_READ, on_exit_event, host);
        host->timer = evtimer_new(base, on_timer, host);
        if (!host->exit_event || !host->timer || event_add(host->exit_event, NULL) < 0)
                abort(); /* no memory, as in xcalloc() */
        timer_arm(host->timer, order->timeout_usec);
        *ret = host;
        return 0;
}

void fence_host_abandon(struct fence_host *host) {
        if (!host)
                return;
        host->done = NULL;
        kill_group(host);
}
