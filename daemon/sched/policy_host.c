#include "daemon/sched/policy_host.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/sched/policy_model.h"
#include "daemon/sched/snapshot.h"

enum {
        GRACE_USEC = 250 * 1000,         /* after the budget: for starting, reading the snapshot, printing the plan */
        LIST_USEC = 10 * 1000 * 1000,
        MAX_STDERR_BYTES = 64 * 1024,
        MAX_ANSWER_BYTES = 512 * 1024 * 1024,
};

#define HOST "rm-plugin-host"
#define OWN_ERROR HOST ": " /* begins the line that says why the host itself gave up */

struct policy_host {
        struct event_base *base;
        char *program, *directory;
        uint64_t memory_bytes;
        json_t *good_models; /* policy: the last text of it that has answered */

        /* The run in hand; pid 0: none. */
        pid_t pid;
        int pidfd;
        struct event *exit_event, *timer;
        struct bufferevent *in, *out, *err; /* of the child */
        bool overran;
        uint64_t budget_usec;
        char *what; /* "policy 'x'", for errors */
        char *policy, *model; /* the text, when the policy is one */
        const struct rm_snapshot *snapshot; /* NULL: it lists */
        policy_host_done done;
        policy_host_listed listed;
        void *context;
};

struct policy_host *policy_host_create(struct event_base *base, const struct policy_host_config *config) {
        struct policy_host *host = xcalloc(1, sizeof(*host));

        host->base = base;
        host->program = xstrdup(config->program ? config->program : RM_LIBEXEC_DIR "/" HOST);
        host->directory = xstrdup(config->directory ? config->directory : RM_POLICY_DIR);
        host->memory_bytes = config->memory_bytes;
        host->good_models = json_object();
        host->pidfd = -1;
        return host;
}

/* ---- the end of a run ---- */

static void close_stream(struct bufferevent **stream) {
        if (*stream)
                bufferevent_free(take_ptr(*stream));
}

static void end_run(struct policy_host *host) {
        close_stream(&host->in);
        close_stream(&host->out);
        close_stream(&host->err);
        if (host->exit_event)
                event_free(host->exit_event);
        if (host->timer)
                event_free(host->timer);
        host->exit_event = host->timer = NULL;
        if (host->pidfd >= 0)
                (void) close(host->pidfd);
        host->pidfd = -1;
        free(take_ptr(host->what));
        free(take_ptr(host->policy));
        free(take_ptr(host->model));
        host->pid = 0;
        host->overran = false;
}

void policy_host_cancel(struct policy_host *host) {
        if (host->pid > 0 && host->pidfd >= 0) {
                (void) pidfd_send_signal(host->pidfd, SIGKILL, NULL, 0);
                (void) waitid(P_PIDFD, (id_t) host->pidfd, &(siginfo_t) { 0 }, WEXITED);
        }
        end_run(host);
}

void policy_host_destroy(struct policy_host *host) {
        if (!host)
                return;
        policy_host_cancel(host);
        json_decref(host->good_models);
        free(host->program);
        free(host->directory);
        free(host);
}

/* Returns all that the child has written before it ended. */
static struct evbuffer *drain_stream(struct bufferevent *stream, size_t max_bytes) {
        struct evbuffer *data = bufferevent_get_input(stream);

        (void) evbuffer_unfreeze(data, 0);
        while (evbuffer_get_length(data) < max_bytes && evbuffer_read(data, bufferevent_getfd(stream), -1) > 0)
                ;
        return data;
}

/* The last line that the child printed: its own error comes last. */
static const char *last_line(struct policy_host *host) {
        struct evbuffer *data = drain_stream(host->err, 2 * MAX_STDERR_BYTES);
        char *text, *line;

        (void) evbuffer_add(data, "", 1);
        text = (char *) evbuffer_pullup(data, -1);
        for (size_t n = strlen(text); n > 0 && text[n - 1] == '\n'; n--)
                text[n - 1] = '\0';
        line = strrchr(text, '\n');
        return line ? line + 1 : text;
}

/* How it ended, in words. 0 when it ended well. */
static int judge_exit(struct policy_host *host, struct rm_error *err) {
        siginfo_t info = { 0 };
        const char *said;

        if (waitid(P_PIDFD, (id_t) host->pidfd, &info, WEXITED) < 0)
                return error_sys(err, -errno, "%s: exit status unknown", host->what);
        said = last_line(host);
        if (host->overran)
                return error_set(err, -ETIME, "%s: killed: no answer after %" PRIu64 " ms", host->what,
                                 (host->budget_usec + GRACE_USEC) / 1000);
        if (info.si_code == CLD_EXITED && info.si_status == 0)
                return 0;
        if (info.si_code == CLD_EXITED && strncmp(said, OWN_ERROR, strlen(OWN_ERROR)) == 0)
                return error_set(err, -EPROTO, "%s", said + strlen(OWN_ERROR));
        if (info.si_code == CLD_EXITED)
                return error_set(err, -EPROTO, "%s: ended with status %d%s%s", host->what, info.si_status, said[0] ? ": " : "",
                                 said);
        return error_set(err, -EPROTO, "%s: crashed (%s)%s%s", host->what, strsignal(info.si_status), said[0] ? ": " : "", said);
}

static void finish_place(struct policy_host *host, int r, struct rm_error *err) {
        policy_host_done done = host->done;
        void *context = host->context;
        struct plan_answer answer = { 0 };
        struct evbuffer *out = drain_stream(host->out, MAX_ANSWER_BYTES);

        if (r == 0) {
                r = plan_parse(evbuffer_pullup(out, -1), evbuffer_get_length(out), host->snapshot, &answer, err);
                if (r == 0)
                        r = plan_validate(host->snapshot, answer.plan, err);
                if (r < 0)
                        error_prefix(err, "%s: invalid answer", host->what);
        }
        if (r == 0 && host->model)
                (void) json_object_set_new(host->good_models, host->policy, json_string(host->model));
        end_run(host);
        done(context, r == 0 ? &answer : NULL, r == 0 ? NULL : err);
        plan_answer_finish(&answer);
}

static void finish_list(struct policy_host *host, int r, struct rm_error *err) {
        policy_host_listed listed = host->listed;
        void *context = host->context;
        struct evbuffer *out = drain_stream(host->out, MAX_ANSWER_BYTES);
        json_t *list = NULL;

        if (r == 0) {
                list = json_loadb((const char *) evbuffer_pullup(out, -1), evbuffer_get_length(out), 0, NULL);
                if (!json_is_array(list))
                        (void) error_set(err, -EPROTO, "%s: no list was returned", host->what);
        }
        end_run(host);
        listed(context, json_is_array(list) ? list : NULL, json_is_array(list) ? NULL : err);
        json_decref(list);
}

static void on_exit_event(evutil_socket_t fd, short what, void *context) {
        struct policy_host *host = context;
        struct rm_error err = { 0 };
        int r = judge_exit(host, &err);

        if (host->snapshot)
                finish_place(host, r, &err);
        else
                finish_list(host, r, &err);
}

static void on_timer(evutil_socket_t fd, short what, void *context) {
        struct policy_host *host = context;

        host->overran = true;
        (void) pidfd_send_signal(host->pidfd, SIGKILL, NULL, 0);
}

/* ---- while it runs ---- */

/* A policy may chatter as it likes: the end of it is what counts. */
static void on_err(struct bufferevent *stream, void *context) {
        struct evbuffer *data = bufferevent_get_input(stream);
        size_t size_bytes = evbuffer_get_length(data);

        if (size_bytes > MAX_STDERR_BYTES)
                (void) evbuffer_drain(data, size_bytes - MAX_STDERR_BYTES);
}

/* The child has all that it is to read. */
static void on_written(struct bufferevent *stream, void *context) {
        close_stream(&((struct policy_host *) context)->in);
}

/* ---- the start of a run ---- */

/* Socket pairs, not pipes: writing to a child that is gone is then an error and no signal. */
static int make_stream(struct policy_host *host, struct bufferevent **ret, int *ret_child) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        *ret_child = pair[1];
        *ret = bufferevent_socket_new(host->base, pair[0], BEV_OPT_CLOSE_ON_FREE);
        if (!*ret)
                abort(); /* no memory, as in xcalloc() */
        return set_nonblock(pair[0], true);
}

/* After too much output, or its end, a stream is not watched any more; the exit decides. */
static void watch(struct policy_host *host, const char *question, uint64_t kill_usec) {
        bufferevent_setcb(host->in, NULL, on_written, NULL, host);
        bufferevent_setcb(host->err, on_err, NULL, NULL, host);
        bufferevent_setwatermark(host->out, EV_READ, 0, MAX_ANSWER_BYTES);
        host->exit_event = event_new(host->base, host->pidfd, EV_READ, on_exit_event, host);
        host->timer = evtimer_new(host->base, on_timer, host);
        if (bufferevent_enable(host->out, EV_READ) < 0 || bufferevent_enable(host->err, EV_READ) < 0 ||
            bufferevent_write(host->in, question, strlen(question)) < 0 || !host->exit_event || !host->timer ||
            event_add(host->exit_event, NULL) < 0)
                abort(); /* no memory, as in xcalloc() */
        timer_arm(host->timer, kill_usec);
        if (!question[0])
                close_stream(&host->in);
}

static int begin(struct policy_host *host, char *const argv[], const char *question, uint64_t kill_usec, struct rm_error *err) {
        char *const environment[] = { (char *) "PATH=/usr/bin:/bin", (char *) "LC_ALL=C.UTF-8", NULL };
        struct child_spec child = { .program = host->program, .argv = argv, .environment = environment, .streams = { -1, -1, -1 } };
        struct bufferevent **streams[] = { &host->in, &host->out, &host->err };
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(streams) && r == 0; i++)
                r = make_stream(host, streams[i], &child.streams[i]);
        if (r == 0)
                r = child_start(&child, &host->pid, &host->pidfd);
        for (size_t i = 0; i < ARRAY_SIZE(streams); i++)
                if (child.streams[i] >= 0)
                        (void) close(child.streams[i]);
        if (r < 0) {
                (void) error_sys(err, r, "%s: starting %s", host->what, host->program);
                policy_host_cancel(host);
                return r;
        }
        watch(host, question, kill_usec);
        return 0;
}

/* The snapshot as JSON, with the model in it when there is one. */
static char *write_question(const struct rm_snapshot *snapshot, const char *model) {
        json_t *root = snapshot_to_json(snapshot);
        char *text = NULL;

        if (root && (!model || json_object_set_new(root, MODEL_FIELD, json_string(model)) == 0))
                text = json_dumps(root, JSON_COMPACT);
        json_decref(root);
        return text;
}

/* `model` is taken over (NULL ok). */
static int run(struct policy_host *host, const char *policy, char *model, const struct rm_snapshot *snapshot, uint64_t budget_usec,
               policy_host_done done, void *context, struct rm_error *err) {
        char time[32], memory[32];
        char *const argv[] = { (char *) HOST,
                               (char *) "--kind",
                               (char *) "policy",
                               (char *) "--policy",
                               (char *) policy,
                               (char *) "--dir",
                               host->directory,
                               (char *) "--time-usec",
                               time,
                               (char *) "--memory-bytes",
                               memory,
                               NULL };
        cleanup_free char *text = NULL, *own_model = model;

        if (host->pid > 0)
                return error_set(err, -EBUSY, "policy '%s': the policy host is busy with %s", policy, host->what);
        text = write_question(snapshot, model);
        if (!text)
                return error_set(err, -EINVAL, "policy '%s': %s", policy,
                                 model ? "the model is no UTF-8 text" : "writing the snapshot");
        (void) snprintf(time, sizeof(time), "%" PRIu64, budget_usec);
        (void) snprintf(memory, sizeof(memory), "%" PRIu64, host->memory_bytes);
        host->what = xasprintf("policy '%s'", policy);
        host->policy = xstrdup(policy);
        host->model = take_ptr(own_model);
        host->budget_usec = budget_usec;
        host->snapshot = snapshot;
        host->done = done;
        host->context = context;
        return begin(host, argv, text, budget_usec + GRACE_USEC, err);
}

int policy_host_run(struct policy_host *host, const char *policy, const struct rm_snapshot *snapshot, uint64_t budget_usec,
                    policy_host_done done, void *context, struct rm_error *err) {
        char *model = NULL;
        int r = model_read(host->directory, policy, &model, err);

        return r < 0 ? r : run(host, policy, model, snapshot, budget_usec, done, context, err);
}

bool policy_host_has_older(const struct policy_host *host, const char *policy) {
        const char *good = json_string_value(json_object_get(host->good_models, policy));
        cleanup_free char *now = NULL;

        /* A model that cannot be read any more counts as changed, too. */
        return good && (model_read(host->directory, policy, &now, NULL) < 0 || !now || strcmp(now, good) != 0);
}

int policy_host_run_older(struct policy_host *host, const char *policy, const struct rm_snapshot *snapshot, uint64_t budget_usec,
                          policy_host_done done, void *context, struct rm_error *err) {
        const char *good = json_string_value(json_object_get(host->good_models, policy));

        if (!policy_host_has_older(host, policy))
                return error_set(err, -ENOENT, "policy '%s': no other version", policy);
        return run(host, policy, xstrdup(good), snapshot, budget_usec, done, context, err);
}

int policy_host_list(struct policy_host *host, policy_host_listed listed, void *context, struct rm_error *err) {
        char *const argv[] = {
                (char *) HOST, (char *) "--kind", (char *) "policy", (char *) "--list", (char *) "--dir", host->directory, NULL
        };

        if (host->pid > 0)
                return error_set(err, -EBUSY, "listing policies: the policy host is busy with %s", host->what);
        host->what = xstrdup("listing policies");
        host->budget_usec = LIST_USEC;
        host->snapshot = NULL;
        host->listed = listed;
        host->context = context;
        return begin(host, argv, "", LIST_USEC, err);
}
