#include "daemon/node/child_run.h"

#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"
#include "common/timer.h"
#include "common/util.h"

struct child_run {
        pid_t pid;
        int pidfd, output;
        struct event *exit_event, *output_event, *timer;
        struct child_run_spec spec; /* what is pointed at is gone, but for the callbacks' context */
        bool abandoned;
        struct child_end end;
        char *said;
        size_t said_bytes;
};

static void run_free(struct child_run *run) {
        if (run->exit_event)
                event_free(run->exit_event);
        if (run->output_event)
                event_free(run->output_event);
        if (run->timer)
                event_free(run->timer);
        cleanup_close_fd(&run->pidfd);
        cleanup_close_fd(&run->output);
        free(run->said);
        free(run);
}

/* The child leads its process group, so this number cannot be reused before it has been waited
 * for. */
static void kill_group(const struct child_run *run) {
        (void) kill(-run->pid, SIGKILL);
        (void) pidfd_send_signal(run->pidfd, SIGKILL, NULL, 0);
}

/* Returns false when there is nothing more to be read, now or at all. */
static bool read_some(struct child_run *run) {
        size_t space = run->spec.output_most_bytes + 1 - run->said_bytes;
        ssize_t n = space > 0 ? read(run->output, run->said + run->said_bytes, space) : 0;

        if (n > 0)
                run->said_bytes += (size_t) n;
        if (run->said_bytes > run->spec.output_most_bytes)
                run->end.flooded = true;
        return n > 0 && !run->end.flooded;
}

static void stop(struct child_run *run) {
        (void) event_del(run->timer);
        (void) event_del(run->output_event);
        kill_group(run);
        if (run->spec.on_killed && !run->abandoned)
                run->spec.on_killed(run->spec.context, &run->end);
}

static void on_output_event(evutil_socket_t fd, short what, void *arg) {
        struct child_run *run = arg;

        if (read_some(run))
                return;
        (void) event_del(run->output_event); /* no process writes any more, or the limit of the output is reached */
        if (run->end.flooded)
                stop(run);
}

static void on_exit_event(evutil_socket_t fd, short what, void *arg) {
        struct child_run *run = arg;

        if (run->spec.ends_group)
                kill_group(run);
        if (waitid(P_PIDFD, (id_t) run->pidfd, &run->end.info, WEXITED) < 0)
                run->end.error = -errno;
        while (read_some(run))
                ;
        run->said[run->said_bytes] = '\0';
        run->end.output = run->said;
        run->end.output_bytes = run->said_bytes;
        if (!run->abandoned)
                run->spec.done(run->spec.context, &run->end);
        run_free(run);
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
        struct child_run *run = arg;

        run->end.overran = true;
        stop(run);
}

static int start(struct child_run *run, const struct child_run_spec *spec) {
        char *const environment[] = { (char *) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *) "LC_ALL=C.UTF-8", NULL };
        struct child_spec child = { .program = spec->program,
                                    .argv = spec->argv,
                                    .environment = environment,
                                    .streams = { -1, -1, -1 },
                                    .leads_group = true };
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        run->output = fds[0];
        child.streams[STDOUT_FILENO] = fds[1];
        /* Only our end: it may write more at once than a pipe holds. */
        r = set_nonblock(fds[0], true);
        if (r == 0)
                r = child_start(&child, &run->pid, &run->pidfd);
        (void) close(fds[1]);
        return r;
}

int child_run_start(struct event_base *base, const struct child_run_spec *spec, struct child_run **ret) {
        struct child_run *run = xcalloc(1, sizeof(*run));
        int r;

        *run = (struct child_run) { .pidfd = -1, .output = -1, .spec = *spec };
        r = start(run, spec);
        if (r < 0) {
                run_free(run);
                return r;
        }
        run->said = xcalloc(1, spec->output_most_bytes + 2);
        run->exit_event = event_new(base, run->pidfd, EV_READ, on_exit_event, run);
        run->output_event = event_new(base, run->output, EV_READ | EV_PERSIST, on_output_event, run);
        run->timer = evtimer_new(base, on_timer, run);
        if (!run->exit_event || !run->output_event || !run->timer || event_add(run->exit_event, NULL) < 0 ||
            event_add(run->output_event, NULL) < 0)
                abort(); /* no memory, as in xcalloc() */
        timer_arm(run->timer, spec->timeout_usec);
        *ret = run;
        return 0;
}

void child_run_abandon(struct child_run *run) {
        if (!run)
                return;
        run->abandoned = true;
        kill_group(run);
}

int child_end_error(const struct child_end *end, const char *program, uint64_t timeout_usec, struct rm_error *err) {
        if (end->overran)
                return error_set(err, -ETIME, "killed after %.1f s", (double) timeout_usec / 1e6);
        if (end->flooded)
                return error_set(err, -EFBIG, "killed: it wrote more than it may");
        if (end->error < 0)
                return error_sys(err, end->error, "exit status unknown");
        if (end->info.si_code == CLD_EXITED && end->info.si_status == 0)
                return 0;
        if (end->info.si_code != CLD_EXITED)
                return error_set(err, -EPROTO, "crashed (%s)", strsignal(end->info.si_status));
        if (end->output && end->output[0])
                return error_set(err, -EPROTO, "%.*s", RM_ERROR_TEXT_BYTES / 2, end->output);
        return error_set(err, -EPROTO, "%s failed and did not say why", program);
}
