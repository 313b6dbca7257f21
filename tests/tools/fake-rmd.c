/* A stand-in for rmd: speaks proto/local.proto with made-up nodes, and runs the program of a
 * submitted job right here.
 *   fake-rmd SOCKET [--pending MS] [--cut BYTES] [--away MS] [--refuse TEXT] [--no-spool]
 *            [--lose N] [--lose-done N] [--go-back AT,TO,DIFFERS]
 * --pending: jobs wait that long from when a client is told why, with a reason that changes
 * half-way; --cut: connections break after so many bytes sent, inside a frame as it comes;
 * --go-back: once AT bytes of output were sent, jobs go back to a checkpoint when there were TO,
 * from where byte DIFFERS is another; SIGUSR1: break all connections and be away for --away. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/frame.h"
#include "common/util.h"
#include "launcher/client/buffer.h"
#include "proto/local.pb-c.h"

#define MAX_CLIENTS 32
#define MAX_JOBS 64
#define CHUNK 30000U

struct fake_job {
        uint64_t id;
        char *name;
        char *token;
        char **argv;
        uint32_t ranks;
        Rm__JobState state;
        const char *reason;
        uint64_t submit_usec; /* monotonic */
        unsigned n_reasons; /* that it has waited for */
        uint64_t reported_usec; /* when a client was first told of the last of them, 0: not yet */
        uint64_t start_real_usec;
        pid_t pid;
        int in, out[2];
        struct buffer spool[2];
        struct buffer input; /* to be written to the child */
        uint64_t input_taken;
        bool input_eof;
        int exit_code;
        int status;
        bool reaped, cancelled;
        uint32_t attempt;
        uint64_t recover_usec; /* RECOVERING until then */
};

struct fake_client {
        int fd;
        struct buffer in, out;
        size_t sent_bytes;
        struct fake_job *job;
        uint32_t attach_id;
        uint64_t offset[2];
        bool final_sent;
        int reported_state;
        const char *reported_reason;
        uint32_t follow_id;
        uint64_t next_event;
        uint64_t next_event_usec;
};

struct fake_node {
        const char *name;
        const char *state;
        uint32_t cores, usable, ranks;
        const char *reason;
        uint64_t drained_usec;
        uint64_t deadline_usec;
        Rm__NodeCondition said; /* OK: nothing */
};

struct fake {
        const char *path;
        int listen_fd, signal_fd;
        uint64_t away_until_usec;
        uint64_t pending_usec, away_usec;
        size_t cut_bytes;
        const char *refuse;
        uint64_t back_at, back_to, back_differs; /* back_at 0: jobs do not go back */
        bool leaving;
        unsigned lose; /* that many submissions are taken, and the daemon goes away before it answers */
        unsigned lose_done; /* likewise of what front ends say of having all output */
        struct fake_client clients[MAX_CLIENTS];
        struct fake_job jobs[MAX_JOBS];
        size_t n_jobs;
        struct fake_node nodes[6];
        uint64_t start_real_usec;
};

static void reply_send(struct fake_client *c, uint32_t id, Rm__LocalReply *reply) {
        size_t size;
        uint8_t *frame;

        reply->id = id;
        frame = frame_pack(FRAME_MAGIC_LOCAL, &reply->base, &size);
        buffer_add(&c->out, frame, size);
        free(frame);
}

static void reply_error(struct fake_client *c, uint32_t id, int code, const char *fmt, ...) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__Error error = RM__ERROR__INIT;
        char text[512];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        error.code = code;
        error.text = text;
        reply.body_case = RM__LOCAL_REPLY__BODY_ERROR;
        reply.error = &error;
        reply_send(c, id, &reply);
}

static void reply_ok(struct fake_client *c, uint32_t id, uint64_t number, const char *text) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__Ok ok = RM__OK__INIT;

        ok.id = number;
        ok.text = (char *) text;
        reply.body_case = RM__LOCAL_REPLY__BODY_OK;
        reply.ok = &ok;
        reply_send(c, id, &reply);
}

/* ---- jobs ---- */

static const char *state_name(Rm__JobState state) {
        const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(&rm__job_state__descriptor, (int) state);

        return v->name + strlen("JOB_");
}

static struct fake_job *job_find(struct fake *f, uint64_t id) {
        for (size_t i = 0; i < f->n_jobs; i++)
                if (f->jobs[i].id == id)
                        return &f->jobs[i];
        return NULL;
}

/* The words of "mpirun -n N PROGRAM ARGS" from PROGRAM on; tests give no other option. */
static char **program_of(const Rm__JobSpec *spec) {
        char **argv = xcalloc(spec->n_argv + 1, sizeof(char *));
        size_t n = 0;

        for (size_t i = 3; i < spec->n_argv; i++)
                argv[n++] = xstrdup(spec->argv[i]);
        return argv;
}

static void job_start(struct fake_job *j) {
        int in[2], out[2], err[2];

        if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
                abort();
        j->pid = fork();
        if (j->pid == 0) {
                sigset_t none;

                (void) sigemptyset(&none);
                (void) sigprocmask(SIG_SETMASK, &none, NULL);
                (void) signal(SIGPIPE, SIG_DFL);
                (void) signal(SIGINT, SIG_DFL);
                (void) signal(SIGQUIT, SIG_DFL);
                (void) setsid();
                (void) dup2(in[0], 0);
                (void) dup2(out[1], 1);
                (void) dup2(err[1], 2);
                (void) execvp(j->argv[0], j->argv);
                (void) dprintf(2, "fake mpirun: cannot run %s\n", j->argv[0]);
                _exit(127);
        }
        (void) close(in[0]);
        (void) close(out[1]);
        (void) close(err[1]);
        j->in = in[1];
        j->out[0] = out[0];
        j->out[1] = err[0];
        (void) set_nonblock(j->in, true);
        (void) set_nonblock(j->out[0], true);
        (void) set_nonblock(j->out[1], true);
        j->state = RM__JOB_STATE__JOB_RUNNING;
        j->reason = "";
        j->start_real_usec = now_real_usec();
}

/* A node is lost; some time later the job is placed again. The program itself notices nothing. */
static void job_go_back(const struct fake *f, struct fake_job *j) {
        uint8_t *output = j->spool[0].data + j->spool[0].start;

        if (j->attempt == 1) {
                j->attempt = 2;
                j->state = RM__JOB_STATE__JOB_RECOVERING;
                j->recover_usec = now_usec() + 200000;
        } else if (j->state == RM__JOB_STATE__JOB_RECOVERING && now_usec() >= j->recover_usec) {
                if (f->back_differs < j->spool[0].used)
                        output[f->back_differs] = '!';
                j->state = RM__JOB_STATE__JOB_RUNNING;
        }
}

/* A reason stands for half of the time from when a client was told of it. */
static void job_wait(const struct fake *f, struct fake_job *j) {
        static const char *const reasons[] = { "needs 8 cores, 4 are free", "needs 8 cores, 6 are free" };

        if (j->n_reasons > 0 && (j->reported_usec == 0 || now_usec() < j->reported_usec + f->pending_usec / 2))
                return;
        if (f->pending_usec == 0 || j->n_reasons == ARRAY_SIZE(reasons)) {
                job_start(j);
                return;
        }
        j->reason = reasons[j->n_reasons++];
        j->reported_usec = 0;
}

static void job_tick(struct fake *f, struct fake_job *j) {
        if (j->state == RM__JOB_STATE__JOB_RECOVERING)
                job_go_back(f, j);

        if (j->state == RM__JOB_STATE__JOB_PENDING) {
                if (j->cancelled) {
                        j->state = RM__JOB_STATE__JOB_CANCELLED;
                        j->reason = "by its user";
                } else {
                        job_wait(f, j);
                }
        }
        if (j->pid > 0 && j->reaped && j->out[0] < 0 && j->out[1] < 0 && j->state == RM__JOB_STATE__JOB_RUNNING) {
                j->exit_code = WIFEXITED(j->status) ? WEXITSTATUS(j->status) : 128 + WTERMSIG(j->status);
                j->state = j->cancelled ? RM__JOB_STATE__JOB_CANCELLED
                                        : (j->exit_code ? RM__JOB_STATE__JOB_FAILED : RM__JOB_STATE__JOB_COMPLETED);
                j->reason = j->cancelled ? "by its user" : "";
        }
}

static void job_pump(struct fake_job *j, int i) {
        uint8_t chunk[65536];
        ssize_t n = read(j->out[i], chunk, sizeof(chunk));

        if (n > 0)
                buffer_add(&j->spool[i], chunk, (size_t) n);
        else if (n == 0 || errno != EAGAIN) {
                (void) close(j->out[i]);
                j->out[i] = -1;
        }
}

static void job_feed(struct fake_job *j) {
        ssize_t n;

        if (j->in < 0)
                return;
        if (j->input.used > 0) {
                n = write(j->in, buffer_data(&j->input), j->input.used);
                if (n > 0)
                        buffer_drop(&j->input, (size_t) n);
                else if (n < 0 && errno != EAGAIN)
                        buffer_drop(&j->input, j->input.used);
        }
        if (j->input.used == 0 && j->input_eof) {
                (void) close(j->in);
                j->in = -1;
        }
}

static void fill_job(const struct fake_job *j, Rm__JobView *view, Rm__Job *job, Rm__JobSpec *spec) {
        rm__job_view__init(view);
        rm__job__init(job);
        rm__job_spec__init(spec);
        view->job = job;
        view->state = (char *) state_name(j->state);
        view->nodes = (char *) (j->state == RM__JOB_STATE__JOB_PENDING ? "" : "n[1-4]");
        job->spec = spec;
        job->id = j->id;
        job->state = j->state;
        job->reason = (char *) (j->reason ? j->reason : "");
        job->submit_usec = now_real_usec() - (now_usec() - j->submit_usec);
        job->start_usec = j->start_real_usec;
        job->exit_code = j->exit_code;
        job->moves = 3;
        job->policy = (char *) "distrib";
        spec->name = j->name;
        spec->user = (char *) "alice";
        spec->cwd = (char *) "/home/alice";
        spec->ranks = j->ranks;
        spec->argv = j->argv;
        while (j->argv[spec->n_argv])
                spec->n_argv++;
}

static void send_update(const struct fake *f, struct fake_client *c, bool final) {
        Rm__Checkpoint checkpoint = RM__CHECKPOINT__INIT, *checkpoints[] = { &checkpoint };
        Rm__Capsule head = RM__CAPSULE__INIT, *capsules[] = { &head };
        uint64_t ends[2] = { f->back_to, 0 };
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__JobUpdate update = RM__JOB_UPDATE__INIT;
        Rm__JobView view;
        Rm__Job job;
        Rm__JobSpec spec;

        fill_job(c->job, &view, &job, &spec);
        if (f->back_at > 0) {
                checkpoint.id = 3;
                checkpoint.state = RM__CHECKPOINT_STATE__CHECKPOINT_DONE;
                checkpoint.output_end = ends;
                checkpoint.n_output_end = 2;
                job.checkpoints = checkpoints;
                job.n_checkpoints = 1;
                job.capsules = capsules;
                job.n_capsules = 1;
                job.attempt = c->job->attempt;
                job.restart_reason = (char *) "node n3 is down";
                job.restored_from = job.attempt > 1 ? checkpoint.id : 0;
        }
        update.job = &view;
        update.final = final;
        reply.body_case = RM__LOCAL_REPLY__BODY_JOB_UPDATE;
        reply.job_update = &update;
        reply_send(c, c->attach_id, &reply);
        c->reported_state = (int) c->job->state;
        c->reported_reason = c->job->reason;
        if (c->job->reported_usec == 0)
                c->job->reported_usec = now_usec();
}

static void send_output(struct fake_client *c, unsigned i) {
        struct buffer *spool = &c->job->spool[i];

        while (c->offset[i] < spool->used && c->out.used < 256000) {
                Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
                Rm__JobOutput output = RM__JOB_OUTPUT__INIT;
                size_t n = spool->used - c->offset[i];

                if (n > CHUNK)
                        n = CHUNK;
                output.job = c->job->id;
                output.stream = i + 1;
                output.offset = c->offset[i];
                output.attempt = c->job->attempt;
                output.data.data = spool->data + spool->start + c->offset[i];
                output.data.len = n;
                reply.body_case = RM__LOCAL_REPLY__BODY_JOB_OUTPUT;
                reply.job_output = &output;
                reply_send(c, c->attach_id, &reply);
                c->offset[i] += n;
        }
}

static void client_serve_job(const struct fake *f, struct fake_client *c) {
        struct fake_job *j = c->job;
        bool all;

        if (!j || c->final_sent)
                return;
        if (c->reported_state != (int) j->state || c->reported_reason != j->reason)
                send_update(f, c, false);
        if (j->state == RM__JOB_STATE__JOB_RECOVERING)
                return;
        send_output(c, 0);
        send_output(c, 1);
        if (f->back_at > 0 && j->attempt == 1 && c->offset[0] >= f->back_at)
                job_go_back(f, j);
        all = c->offset[0] == j->spool[0].used && c->offset[1] == j->spool[1].used;
        if (j->state >= RM__JOB_STATE__JOB_COMPLETED && all) {
                send_update(f, c, true);
                c->final_sent = true;
        }
}

/* ---- requests ---- */

static void answer_submit(struct fake *f, struct fake_client *c, uint32_t id, uint64_t job) {
        if (f->lose > 0) {
                f->lose--;
                f->leaving = true;
        } else {
                reply_ok(c, id, job, "");
        }
}

static void do_submit(struct fake *f, struct fake_client *c, uint32_t id, const Rm__JobSpec *spec) {
        struct fake_job *j = &f->jobs[f->n_jobs];

        if (f->refuse) {
                reply_error(c, id, EINVAL, "%s", f->refuse);
                return;
        }
        for (size_t i = 0; i < f->n_jobs; i++)
                if (f->jobs[i].token && strcmp(f->jobs[i].token, spec->token) == 0) {
                        (void) fprintf(stderr, "submit: job %llu again\n", (unsigned long long) f->jobs[i].id);
                        answer_submit(f, c, id, f->jobs[i].id);
                        return;
                }
        f->n_jobs++;
        *j = (struct fake_job) { .id = 7 + f->n_jobs - 1, .in = -1, .out = { -1, -1 }, .attempt = f->back_at > 0 };
        j->name = xstrdup(spec->name);
        j->token = xstrdup(spec->token);
        j->ranks = spec->ranks;
        j->argv = program_of(spec);
        j->submit_usec = now_usec();
        j->state = RM__JOB_STATE__JOB_PENDING;
        j->reason = "";
        j->input_eof = !spec->input;
        (void) fprintf(stderr, "submit: name=%s ranks=%u policy=%s priority=%d group_size=%u env=%zu cwd=%s input=%d\n", spec->name,
                       spec->ranks, spec->policy, spec->priority, spec->group_size, spec->n_env, spec->cwd, spec->input);
        answer_submit(f, c, id, j->id);
}

static void do_attach(struct fake *f, struct fake_client *c, uint32_t id, const Rm__AttachJob *attach) {
        c->job = job_find(f, attach->job);
        if (!c->job) {
                reply_error(c, id, ENOENT, "no job %llu", (unsigned long long) attach->job);
                return;
        }
        if (f->back_at > 0)
                (void) fprintf(stderr, "attach: attempt %u from %llu\n", attach->attempt,
                               (unsigned long long) attach->stdout_offset);
        c->attach_id = id;
        c->offset[0] = attach->stdout_offset;
        c->offset[1] = attach->stderr_offset;
        c->reported_state = -1;
        c->final_sent = false;
        if (attach->input) {
                Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
                Rm__JobInputAck ack = RM__JOB_INPUT_ACK__INIT;

                ack.job = attach->job;
                ack.offset = c->job->input_taken;
                reply.body_case = RM__LOCAL_REPLY__BODY_JOB_INPUT_ACK;
                reply.job_input_ack = &ack;
                reply_send(c, id, &reply);
        }
}

static void do_input(struct fake *f, struct fake_client *c, uint32_t id, const Rm__JobInput *input) {
        struct fake_job *j = job_find(f, input->job);
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__JobInputAck ack = RM__JOB_INPUT_ACK__INIT;

        if (!j || j->state != RM__JOB_STATE__JOB_RUNNING) {
                reply_error(c, id, j ? EAGAIN : ENOENT, "no such job runs");
                return;
        }
        if (input->offset > j->input_taken) {
                (void) fprintf(stderr, "HOLE in input\n");
                abort();
        }
        if (input->offset + input->data.len > j->input_taken) {
                size_t skip = (size_t) (j->input_taken - input->offset);

                buffer_add(&j->input, input->data.data + skip, input->data.len - skip);
                j->input_taken += input->data.len - skip;
        }
        j->input_eof = j->input_eof || input->eof;
        ack.job = input->job;
        ack.offset = j->input_taken;
        reply.body_case = RM__LOCAL_REPLY__BODY_JOB_INPUT_ACK;
        reply.job_input_ack = &ack;
        reply_send(c, id, &reply);
}

static void do_signal(struct fake *f, struct fake_client *c, uint32_t id, uint64_t job, uint32_t signo, bool cancel) {
        struct fake_job *j = job_find(f, job);

        if (!j || j->state >= RM__JOB_STATE__JOB_COMPLETED) {
                reply_error(c, id, ESRCH, j ? "job %llu has ended" : "no job %llu", (unsigned long long) job);
                return;
        }
        j->cancelled = j->cancelled || cancel;
        if (j->pid > 0 && !j->reaped)
                (void) kill(-j->pid, signo ? (int) signo : SIGTERM);
        reply_ok(c, id, job, "");
}

static void do_output_ack(struct fake *f, struct fake_client *c, uint32_t id, const Rm__OutputAck *ack) {
        if (!ack->done)
                return;
        (void) fprintf(stderr, "output-done: job %llu, %llu and %llu bytes\n", (unsigned long long) ack->job,
                       (unsigned long long) ack->stdout_offset, (unsigned long long) ack->stderr_offset);
        if (f->lose_done > 0) {
                f->lose_done--;
                f->leaving = true;
        } else {
                reply_ok(c, id, ack->job, "");
        }
}

static void do_list_nodes(struct fake *f, struct fake_client *c, uint32_t id, const Rm__ListNodes *list) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__NodeList nodes = RM__NODE_LIST__INIT;
        Rm__NodeView views[ARRAY_SIZE(f->nodes)];
        Rm__Node inner[ARRAY_SIZE(f->nodes)];
        Rm__NodeView *pointers[ARRAY_SIZE(f->nodes)];
        Rm__NodeCondition *said[ARRAY_SIZE(f->nodes)];
        char addresses[ARRAY_SIZE(f->nodes)][32];

        for (size_t k = 0; k < list->n_names; k++) {
                bool known = false;

                for (size_t i = 0; i < ARRAY_SIZE(f->nodes); i++)
                        known = known || strcmp(f->nodes[i].name, list->names[k]) == 0;
                if (!known) {
                        reply_error(c, id, ENOENT, "no node '%s' (known: n[1-6])", list->names[k]);
                        return;
                }
        }
        nodes.nodes = pointers;
        for (size_t i = 0; i < ARRAY_SIZE(f->nodes); i++) {
                struct fake_node *n = &f->nodes[i];
                bool requested = list->n_names == 0;

                for (size_t k = 0; k < list->n_names; k++)
                        requested = requested || strcmp(n->name, list->names[k]) == 0;
                if (!requested)
                        continue;
                if (n->drained_usec && now_usec() > n->drained_usec) {
                        n->state = "DRAINED";
                        n->ranks = 0;
                }
                rm__node_view__init(&views[i]);
                rm__node__init(&inner[i]);
                views[i].node = &inner[i];
                views[i].state = (char *) n->state;
                views[i].usable_cores = n->usable;
                views[i].ranks = n->ranks;
                views[i].capsules = n->ranks / 2;
                views[i].leader = i == 0;
                (void) snprintf(addresses[i], sizeof(addresses[i]), "10.77.0.%zu", i + 1);
                inner[i].name = (char *) n->name;
                inner[i].address = addresses[i];
                inner[i].port = 7700;
                inner[i].cores = n->cores;
                inner[i].memory_bytes = UINT64_C(67318919168);
                inner[i].topology = (char *) "Package:2 L3Cache:1 Core:8 PU:1";
                inner[i].boot_id = (char *) "3f0c";
                inner[i].health =
                        strcmp(n->state, "DOWN") == 0 ? RM__NODE_HEALTH__NODE_HEALTH_DOWN : RM__NODE_HEALTH__NODE_HEALTH_UP;
                inner[i].health_since_usec = f->start_real_usec - UINT64_C(3723) * 1000000;
                inner[i].drain = n->reason != NULL;
                inner[i].drain_reason = (char *) (n->reason ? n->reason : "");
                inner[i].drain_by = (char *) (n->reason ? "root" : "");
                inner[i].drain_since_usec = n->reason ? f->start_real_usec : 0;
                inner[i].drain_deadline_usec = n->deadline_usec;
                said[i] = &n->said;
                inner[i].conditions = &said[i];
                inner[i].n_conditions = n->said.condition != RM__CONDITION__CONDITION_OK;
                views[i].condition = n->said.condition;
                inner[i].available_set = i == 2;
                inner[i].available_cores = i == 2 ? 4 : 0;
                pointers[nodes.n_nodes++] = &views[i];
        }
        reply.body_case = RM__LOCAL_REPLY__BODY_NODES;
        reply.nodes = &nodes;
        reply_send(c, id, &reply);
}

static void do_drain(struct fake *f, struct fake_client *c, uint32_t id, char **names, size_t n_names, const char *reason,
                     uint64_t deadline_usec, bool update) {
        for (size_t k = 0; k < n_names; k++) {
                struct fake_node *n = NULL;

                for (size_t i = 0; i < ARRAY_SIZE(f->nodes); i++)
                        if (strcmp(f->nodes[i].name, names[k]) == 0)
                                n = &f->nodes[i];
                if (!n) {
                        reply_error(c, id, ENOENT, "no node '%s' (known: n[1-6])", names[k]);
                        return;
                }
                if (reason && n->reason && !update) {
                        reply_error(c, id, EALREADY, "node '%s' is drained already (by root: %s): change the reason with --update",
                                    names[k], n->reason);
                        return;
                }
                n->reason = reason ? xstrdup(reason) : NULL;
                n->deadline_usec = deadline_usec > 0 ? now_real_usec() + deadline_usec : 0;
                n->state = reason ? "DRAINING" : "IDLE";
                /* n6, and a node with a deadline, never get there. */
                n->drained_usec = reason && deadline_usec == 0 && strcmp(n->name, "n6") != 0 ? now_usec() + 700000 : 0;
                if (reason && strcmp(reason, "lost") == 0) { /* it goes down meanwhile */
                        n->state = "DOWN";
                        n->drained_usec = 0;
                }
        }
        reply_ok(c, id, 0, "");
}

static void do_report(struct fake *f, struct fake_client *c, const Rm__LocalRequest *request) {
        const Rm__ReportHealth *in = request->report_health;

        for (size_t k = 0; k < in->n_names; k++)
                for (size_t i = 0; i < ARRAY_SIZE(f->nodes); i++) {
                        struct fake_node *n = &f->nodes[i];

                        if (strcmp(n->name, in->names[k]) != 0)
                                continue;
                        rm__node_condition__init(&n->said);
                        n->said.source = xstrdup(in->source[0] ? in->source : "report");
                        n->said.condition = in->condition;
                        n->said.reason = xstrdup(in->reason);
                        n->said.by = (char *) "root";
                        n->said.since_usec = now_real_usec() - UINT64_C(60) * 1000000;
                        n->state = in->condition >= RM__CONDITION__CONDITION_FAILING ? "FAILING" : "IDLE";
                }
        reply_ok(c, request->id, 0, "");
}

/* Checkpoint 2 is done, and 3 has failed. */
static void fill_checkpoints(Rm__Job *job) {
        static char *stored[] = { (char *) "n1", (char *) "n2" };
        static Rm__CheckpointPart parts[2], *part_list[] = { &parts[0], &parts[1] };
        static Rm__Checkpoint one, *list[] = { &one };

        for (int i = 0; i < 2; i++) {
                rm__checkpoint_part__init(&parts[i]);
                parts[i].capsule = i - 1;
                parts[i].node = stored[i];
                parts[i].stored = stored;
                parts[i].n_stored = 2;
                parts[i].raw_bytes = (uint64_t) (i + 1) << 30;
                parts[i].stored_bytes = UINT64_C(100) << 20;
                parts[i].store_usec = 2100000;
        }
        rm__checkpoint__init(&one);
        one.id = 2;
        one.state = RM__CHECKPOINT_STATE__CHECKPOINT_DONE;
        one.cause = RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_INTERVAL;
        one.start_usec = now_real_usec() - UINT64_C(90) * 1000000;
        one.pause_usec = 120000;
        one.parts = part_list;
        one.n_parts = 2;
        job->checkpoints = list;
        job->n_checkpoints = 1;
        job->last_checkpoint = 3;
        job->checkpoint_error = (char *) "n2: no space left";
        job->spec->checkpoint_usec = UINT64_MAX;
        job->restored_from = 1;
}

static void do_list_jobs(struct fake *f, struct fake_client *c, uint32_t id, const Rm__ListJobs *list) {
        static char *argv[] = { (char *) "hpcc", NULL };
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__JobList jobs = RM__JOB_LIST__INIT;
        Rm__JobView views[MAX_JOBS + 3], *pointers[MAX_JOBS + 3];
        Rm__Job inner[MAX_JOBS + 3];
        Rm__JobSpec specs[MAX_JOBS + 3];
        struct fake_job extra[] = {
                { .id = 3,
                  .name = (char *) "hpcc",
                  .argv = argv,
                  .ranks = 8,
                  .state = RM__JOB_STATE__JOB_RUNNING,
                  .submit_usec = now_usec() - UINT64_C(400) * 1000000,
                  .start_real_usec = now_real_usec() - UINT64_C(380) * 1000000 },
                { .id = 4,
                  .name = (char *) "a-rather-long-name-of-a-weather-forecast",
                  .argv = argv,
                  .ranks = 1024,
                  .state = RM__JOB_STATE__JOB_PENDING,
                  .reason = "needs 1024 cores, 48 are free, and \033[31mthe rest\033[0m is drained",
                  .submit_usec = now_usec() - UINT64_C(7300) * 1000000 },
                { .id = 5,
                  .name = (char *) "fold",
                  .argv = argv,
                  .ranks = 16,
                  .state = RM__JOB_STATE__JOB_FOLDED,
                  .reason = "n3 has 4 of 16 cores",
                  .submit_usec = now_usec() - 5000000,
                  .start_real_usec = now_real_usec() - 3000000 },
        };
        Rm__Capsule capsules[3] = { RM__CAPSULE__INIT, RM__CAPSULE__INIT, RM__CAPSULE__INIT };
        Rm__Capsule *cp[3] = { &capsules[0], &capsules[1], &capsules[2] };

        for (int i = 0; i < 3; i++) {
                capsules[i].index = i - 1;
                capsules[i].ranks = i ? 4 : 0;
                capsules[i].node = (char *) (i == 2 ? "n2" : "n1");
                capsules[i].address = 0x0a4d8001U + (unsigned) i;
                capsules[i].state = RM__CAPSULE_STATE__CAPSULE_READY;
                capsules[i].image_bytes = 31457280;
                capsules[i].freeze_usec = 281000;
                capsules[i].moves = (unsigned) i;
        }
        jobs.jobs = pointers;
        for (size_t i = 0; i < ARRAY_SIZE(extra) + f->n_jobs; i++) {
                struct fake_job *j = i < ARRAY_SIZE(extra) ? &extra[i] : &f->jobs[i - ARRAY_SIZE(extra)];
                bool requested = list->n_jobs == 0 && (list->all || j->state < RM__JOB_STATE__JOB_COMPLETED);

                for (size_t k = 0; k < list->n_jobs; k++)
                        requested = requested || list->jobs[k] == j->id;
                if (!requested)
                        continue;
                fill_job(j, &views[i], &inner[i], &specs[i]);
                if (j->id == 3) {
                        inner[i].capsules = cp;
                        inner[i].n_capsules = 3;
                        fill_checkpoints(&inner[i]);
                        views[i].checkpoint_interval_usec = UINT64_C(300) * 1000000;
                        views[i].expected_loss_usec = UINT64_C(150) * 1000000;
                }
                pointers[jobs.n_jobs++] = &views[i];
        }
        if (list->n_jobs > 0 && jobs.n_jobs == 0) {
                reply_error(c, id, ENOENT, "no job %llu", (unsigned long long) list->jobs[0]);
                return;
        }
        reply.body_case = RM__LOCAL_REPLY__BODY_JOBS;
        reply.jobs = &jobs;
        reply_send(c, id, &reply);
}

static void do_list_moves(struct fake *f, struct fake_client *c, uint32_t id) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__MoveList moves = RM__MOVE_LIST__INIT;
        Rm__Move m[4] = { RM__MOVE__INIT, RM__MOVE__INIT, RM__MOVE__INIT, RM__MOVE__INIT };
        Rm__Move *pointers[4] = { &m[0], &m[1], &m[2], &m[3] };

        for (int i = 0; i < 4; i++) {
                m[i].id = (uint64_t) i + 1;
                m[i].job = 3;
                m[i].capsule = i == 3 ? 1 : i - 1;
                m[i].from = (char *) "n1";
                m[i].to = (char *) "n3";
                m[i].state =
                        i == 2 ? RM__MOVE_STATE__MOVE_RUNNING : (i == 1 ? RM__MOVE_STATE__MOVE_ABORTED : RM__MOVE_STATE__MOVE_DONE);
                m[i].reason = (char *) "n1 is drained";
                m[i].error = (char *) (i == 1 ? "restore: criu ended with 1" : "");
                m[i].start_usec = f->start_real_usec - 9000000;
                m[i].end_usec = i == 2 ? 0 : f->start_real_usec - 8500000;
                m[i].freeze_usec = i == 0 ? 281337 : 0;
                m[i].image_bytes = i == 0 ? 31457280 : 0;
                m[i].codec = i == 0 ? RM__MOVE_CODEC__MOVE_CODEC_ZSTD : RM__MOVE_CODEC__MOVE_CODEC_UNKNOWN;
                m[i].saved_bytes = i == 0 ? 62914560 : 0;
                m[i].tracked = i == 0;
                m[i].untracked = (char *) (i == 3 ? "a process is traced (pid 1234)" : "");
                m[i].ahead_rounds = i == 0 ? 5 : 0;
                m[i].last_bytes = i == 0 ? 1153434 : 0;
                m[i].fill_usec = i == 0 ? 631337 : 0;
                m[i].waiting = (char *) (i == 2 ? "12 MB of its memory have not yet arrived" : "");
                m[i].memory_bytes = i == 0 ? 121457280 : 0;
                m[i].dump_usec = i == 0 ? 101337 : 0;
                m[i].transfer_usec = i == 0 ? 81337 : 0;
                m[i].restore_usec = i == 0 ? 91337 : 0;
                m[i].commit_usec = i == 0 ? 7337 : 0;
        }
        moves.moves = pointers;
        moves.n_moves = 4;
        reply.body_case = RM__LOCAL_REPLY__BODY_MOVES;
        reply.moves = &moves;
        reply_send(c, id, &reply);
}

static void send_event(struct fake *f, struct fake_client *c, uint64_t index, bool end) {
        static const char *const kinds[] = { "node-up", "job-started", "move-committed", "node-drained" };
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__EventList events = RM__EVENT_LIST__INIT;
        Rm__Event event = RM__EVENT__INIT;
        Rm__Event *pointer = &event;
        char text[64];

        (void) snprintf(text, sizeof(text), "something happened to n%llu", (unsigned long long) index % 4 + 1);
        event.index = index;
        event.time_usec = f->start_real_usec + index * 1000000;
        event.kind = (char *) kinds[index % 4];
        event.node = (char *) "n1";
        event.job = index % 4 == 1 ? 3 : 0;
        event.text = text;
        events.events = &pointer;
        events.n_events = 1;
        events.end = end;
        reply.body_case = RM__LOCAL_REPLY__BODY_EVENTS;
        reply.events = &events;
        reply_send(c, c->follow_id, &reply);
}

static void do_follow(struct fake *f, struct fake_client *c, uint32_t id, const Rm__FollowEvents *follow) {
        c->follow_id = id;
        c->next_event = follow->since + 1;
        for (; c->next_event < 5; c->next_event++)
                send_event(f, c, c->next_event, c->next_event == 4 && !follow->follow);
        if (!follow->follow && follow->since >= 4) {
                Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
                Rm__EventList events = RM__EVENT_LIST__INIT;

                events.end = true;
                reply.body_case = RM__LOCAL_REPLY__BODY_EVENTS;
                reply.events = &events;
                reply_send(c, id, &reply);
        }
        c->next_event_usec = follow->follow ? now_usec() + 200000 : 0;
}

static void do_status(struct fake *f, struct fake_client *c, uint32_t id) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__Status status = RM__STATUS__INIT;
        Rm__AvailabilityStatus availability = RM__AVAILABILITY_STATUS__INIT;
        char *warnings[] = { (char *) "n6: no heartbeat for 34 s", NULL };

        availability.path = (char *) "/etc/rmd/availability";
        availability.error = (char *) "/etc/rmd/availability:3: 'n1:x' has no number of cores";
        availability.changed_usec = f->start_real_usec;
        status.cluster = (char *) "demo";
        status.node = (char *) "n1";
        status.leader = (char *) "n1";
        status.log_index = 1234;
        status.nodes_up = 5;
        status.nodes = 6;
        status.jobs_running = 2;
        status.jobs_pending = 1;
        status.moves_running = 1;
        status.availability = &availability;
        status.warnings = warnings;
        warnings[1] = availability.error;
        status.n_warnings = 2;
        status.policy = (char *) "distrib";
        status.rmd_version = (char *) "0.2.0";
        status.up_usec = UINT64_C(93784) * 1000000;
        reply.body_case = RM__LOCAL_REPLY__BODY_STATUS;
        reply.status = &status;
        reply_send(c, id, &reply);
}

/* The reply has figures of n2 only. */
static void do_use(struct fake_client *c, uint32_t id) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__Use use = RM__USE__INIT;
        Rm__NodeUse node = RM__NODE_USE__INIT, *pointers[] = { &node };

        node.node = (char *) "n2";
        node.memory_free_bytes = UINT64_C(5368709120);
        use.nodes = pointers;
        use.n_nodes = 1;
        reply.body_case = RM__LOCAL_REPLY__BODY_USE;
        reply.use = &use;
        reply_send(c, id, &reply);
}

static void do_policies(struct fake_client *c, uint32_t id) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__PolicyList policies = RM__POLICY_LIST__INIT;
        Rm__PolicyView p[2] = { RM__POLICY_VIEW__INIT, RM__POLICY_VIEW__INIT };
        Rm__PolicyView *pointers[2] = { &p[0], &p[1] };

        p[0].name = (char *) "distrib";
        p[0].description = (char *) "optimal distribution (GLPK)";
        p[0].is_default = true;
        p[1].name = (char *) "greedy";
        p[1].description = (char *) "first fit by priority";
        policies.policies = pointers;
        policies.n_policies = 2;
        reply.body_case = RM__LOCAL_REPLY__BODY_POLICIES;
        reply.policies = &policies;
        reply_send(c, id, &reply);
}

static void do_text(struct fake_client *c, uint32_t id, const char *json) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__Text text = RM__TEXT__INIT;

        text.text = (char *) json;
        reply.body_case = RM__LOCAL_REPLY__BODY_TEXT;
        reply.text = &text;
        reply_send(c, id, &reply);
}

static void do_hello(struct fake_client *c, uint32_t id) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__HelloReply hello = RM__HELLO_REPLY__INIT;

        hello.version = 1;
        hello.node = (char *) "n1";
        hello.cluster = (char *) "demo";
        hello.rmd_version = (char *) "0.2.0";
        hello.admin = true;
        reply.body_case = RM__LOCAL_REPLY__BODY_HELLO;
        reply.hello = &hello;
        reply_send(c, id, &reply);
}

static void handle(struct fake *f, struct fake_client *c, const Rm__LocalRequest *r) {
        static const char plan[] = "{\"version\":1,\"policy\":\"distrib\",\"method\":\"exact\",\"cost\":12.5,\"bound\":12.5,"
                                   "\"proven\":true,\"time_usec\":5120,"
                                   "\"placement\":[{\"job\":\"3\",\"node\":\"n1\",\"ranks\":4},{\"job\":\"3\",\"node\":\"n2\","
                                   "\"ranks\":4}],\"waiting\":[\"4\"]}";

        switch (r->body_case) {
        case RM__LOCAL_REQUEST__BODY_HELLO:
                do_hello(c, r->id);
                break;
        case RM__LOCAL_REQUEST__BODY_SUBMIT_JOB:
                do_submit(f, c, r->id, r->submit_job->spec);
                break;
        case RM__LOCAL_REQUEST__BODY_ATTACH_JOB:
                do_attach(f, c, r->id, r->attach_job);
                break;
        case RM__LOCAL_REQUEST__BODY_JOB_INPUT:
                do_input(f, c, r->id, r->job_input);
                break;
        case RM__LOCAL_REQUEST__BODY_OUTPUT_ACK:
                do_output_ack(f, c, r->id, r->output_ack);
                break;
        case RM__LOCAL_REQUEST__BODY_SIGNAL_JOB:
                do_signal(f, c, r->id, r->signal_job->job, r->signal_job->signal, false);
                break;
        case RM__LOCAL_REQUEST__BODY_CANCEL_JOB:
                do_signal(f, c, r->id, r->cancel_job->job, r->cancel_job->signal, true);
                break;
        case RM__LOCAL_REQUEST__BODY_LIST_NODES:
                do_list_nodes(f, c, r->id, r->list_nodes);
                break;
        case RM__LOCAL_REQUEST__BODY_LIST_JOBS:
                do_list_jobs(f, c, r->id, r->list_jobs);
                break;
        case RM__LOCAL_REQUEST__BODY_REPORT_HEALTH:
                do_report(f, c, r);
                break;
        case RM__LOCAL_REQUEST__BODY_DRAIN_NODE:
                do_drain(f, c, r->id, r->drain_node->names, r->drain_node->n_names, r->drain_node->reason,
                         r->drain_node->deadline_usec, r->drain_node->update);
                break;
        case RM__LOCAL_REQUEST__BODY_RESUME_NODE:
                do_drain(f, c, r->id, r->resume_node->names, r->resume_node->n_names, NULL, 0, false);
                break;
        case RM__LOCAL_REQUEST__BODY_MIGRATE_JOB:
                reply_ok(c, r->id, 4, "");
                break;
        case RM__LOCAL_REQUEST__BODY_CHECKPOINT_JOB:
                if (r->checkpoint_job->job == 3)
                        reply_ok(c, r->id, r->checkpoint_job->stop ? 3 : 2, "");
                else
                        reply_error(c, r->id, EINVAL, "checkpoint-job: the job does not run");
                break;
        case RM__LOCAL_REQUEST__BODY_RESTART_JOB:
                if (r->restart_job->checkpoint <= 2)
                        reply_ok(c, r->id, 0, "");
                else
                        reply_error(c, r->id, ENOENT, "restart-job: job 3 has no checkpoint %u (it has: 2)",
                                    (unsigned) r->restart_job->checkpoint);
                break;
        case RM__LOCAL_REQUEST__BODY_REMOVE_CHECKPOINT:
                reply_ok(c, r->id, 0, "");
                break;
        case RM__LOCAL_REQUEST__BODY_GET_STATUS:
                do_status(f, c, r->id);
                break;
        case RM__LOCAL_REQUEST__BODY_LIST_MOVES:
                do_list_moves(f, c, r->id);
                break;
        case RM__LOCAL_REQUEST__BODY_FOLLOW_EVENTS:
                do_follow(f, c, r->id, r->follow_events);
                break;
        case RM__LOCAL_REQUEST__BODY_GET_USE:
                do_use(c, r->id);
                break;
        case RM__LOCAL_REQUEST__BODY_LIST_POLICIES:
                do_policies(c, r->id);
                break;
        case RM__LOCAL_REQUEST__BODY_GET_SNAPSHOT:
                do_text(c, r->id, "{\"version\":1,\"nodes\":[{\"name\":\"n1\",\"cores\":16}],\"jobs\":[]}");
                break;
        case RM__LOCAL_REQUEST__BODY_GET_PLAN:
                do_text(c, r->id, plan);
                break;
        default:
                reply_error(c, r->id, EOPNOTSUPP, "unknown request");
                break;
        }
}

/* ---- loop ---- */

static void client_drop(struct fake_client *c) {
        (void) close(c->fd);
        buffer_finish(&c->in);
        buffer_finish(&c->out);
        *c = (struct fake_client) { .fd = -1 };
}

static void client_read(struct fake *f, struct fake_client *c) {
        uint8_t chunk[65536];
        ssize_t n = recv(c->fd, chunk, sizeof(chunk), 0);
        uint32_t size;

        if (n <= 0) {
                if (n == 0 || errno != EAGAIN)
                        client_drop(c);
                return;
        }
        buffer_add(&c->in, chunk, (size_t) n);
        while (c->in.used >= FRAME_HEADER_BYTES) {
                Rm__LocalRequest *request;

                if (frame_header_read(buffer_data(&c->in), FRAME_MAGIC_LOCAL, FRAME_MAX_LOCAL_BYTES, &size) < 0)
                        abort();
                if (c->in.used < FRAME_HEADER_BYTES + size)
                        break;
                request = rm__local_request__unpack(NULL, size, buffer_data(&c->in) + FRAME_HEADER_BYTES);
                if (!request)
                        abort();
                buffer_drop(&c->in, FRAME_HEADER_BYTES + size);
                handle(f, c, request);
                rm__local_request__free_unpacked(request, NULL);
        }
}

static void client_write(struct fake *f, struct fake_client *c) {
        size_t n = c->out.used;
        ssize_t sent;

        if (f->cut_bytes && c->job && c->sent_bytes + n > f->cut_bytes)
                n = f->cut_bytes - c->sent_bytes;
        sent = send(c->fd, buffer_data(&c->out), n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
                buffer_drop(&c->out, (size_t) sent);
                c->sent_bytes += (size_t) sent;
        }
        if ((sent < 0 && errno != EAGAIN) || (f->cut_bytes && c->job && c->sent_bytes >= f->cut_bytes))
                client_drop(c);
}

/* The socket has its name once it listens, so that who sees it is answered. */
static void start_listening(struct fake *f) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", f->path);
        (void) unlink(address.sun_path);
        f->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (f->listen_fd < 0 || bind(f->listen_fd, (struct sockaddr *) &address, sizeof(address)) < 0 ||
            listen(f->listen_fd, 64) < 0 || rename(address.sun_path, f->path) < 0) {
                perror(f->path);
                exit(1);
        }
}

static void go_away(struct fake *f) {
        for (size_t i = 0; i < MAX_CLIENTS; i++)
                if (f->clients[i].fd >= 0)
                        client_drop(&f->clients[i]);
        (void) close(f->listen_fd);
        (void) unlink(f->path);
        f->listen_fd = -1;
        f->leaving = false;
        f->away_until_usec = now_usec() + f->away_usec;
}

static void take_signals(struct fake *f) {
        struct signalfd_siginfo info;
        int status;
        pid_t pid;

        while (read(f->signal_fd, &info, sizeof(info)) == (ssize_t) sizeof(info)) {
                if (info.ssi_signo == SIGUSR1)
                        go_away(f);
                if (info.ssi_signo == SIGTERM) {
                        (void) unlink(f->path);
                        exit(0);
                }
        }
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                for (size_t i = 0; i < f->n_jobs; i++)
                        if (f->jobs[i].pid == pid) {
                                f->jobs[i].reaped = true;
                                f->jobs[i].status = status;
                        }
}

static void accept_clients(struct fake *f) {
        for (;;) {
                int fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                size_t i = 0;

                if (fd < 0)
                        return;
                while (i < MAX_CLIENTS && f->clients[i].fd >= 0)
                        i++;
                if (i == MAX_CLIENTS)
                        (void) close(fd);
                else
                        f->clients[i] = (struct fake_client) { .fd = fd };
        }
}

static void turn(struct fake *f) {
        struct pollfd p[2 + MAX_CLIENTS + 3 * MAX_JOBS];
        size_t n = 2;

        if (f->listen_fd < 0 && now_usec() >= f->away_until_usec)
                start_listening(f);
        p[0] = (struct pollfd) { .fd = f->listen_fd, .events = POLLIN };
        p[1] = (struct pollfd) { .fd = f->signal_fd, .events = POLLIN };
        for (size_t i = 0; i < MAX_CLIENTS; i++)
                p[n++] = (struct pollfd) { .fd = f->clients[i].fd,
                                           .events = (short) (POLLIN | (f->clients[i].out.used ? POLLOUT : 0)) };
        for (size_t i = 0; i < f->n_jobs; i++) {
                p[n++] = (struct pollfd) { .fd = f->jobs[i].out[0], .events = POLLIN };
                p[n++] = (struct pollfd) { .fd = f->jobs[i].out[1], .events = POLLIN };
                p[n++] = (struct pollfd) { .fd = f->jobs[i].input.used ? f->jobs[i].in : -1, .events = POLLOUT };
        }
        if (poll(p, n, 20) < 0)
                return;
        if (p[1].revents)
                take_signals(f);
        if (p[0].revents && f->listen_fd >= 0)
                accept_clients(f);
        for (size_t i = 0; i < f->n_jobs; i++) {
                for (int k = 0; k < 2; k++)
                        if (f->jobs[i].out[k] >= 0)
                                job_pump(&f->jobs[i], k);
                job_feed(&f->jobs[i]);
                job_tick(f, &f->jobs[i]);
        }
        if (f->leaving)
                go_away(f);
        for (size_t i = 0; i < MAX_CLIENTS; i++) {
                struct fake_client *c = &f->clients[i];

                if (c->fd >= 0)
                        client_read(f, c);
                if (c->fd >= 0)
                        client_serve_job(f, c);
                if (c->fd >= 0 && c->next_event_usec && now_usec() >= c->next_event_usec) {
                        send_event(f, c, c->next_event++, false);
                        c->next_event_usec += 300000;
                }
                if (c->fd >= 0 && c->out.used > 0)
                        client_write(f, c);
        }
}

static void set_go_back(struct fake *f, char *words) {
        f->back_at = strtoull(words, &words, 10);
        f->back_to = strtoull(words + 1, &words, 10);
        f->back_differs = strtoull(words + 1, &words, 10);
}

int main(int argc, char **argv) {
        static struct fake f;
        sigset_t set;

        f.path = argv[1];
        f.away_usec = 1000000;
        for (int i = 2; i + 1 < argc; i += 2) {
                if (strcmp(argv[i], "--pending") == 0)
                        f.pending_usec = strtoull(argv[i + 1], NULL, 10) * 1000;
                else if (strcmp(argv[i], "--away") == 0)
                        f.away_usec = strtoull(argv[i + 1], NULL, 10) * 1000;
                else if (strcmp(argv[i], "--cut") == 0)
                        f.cut_bytes = strtoull(argv[i + 1], NULL, 10);
                else if (strcmp(argv[i], "--go-back") == 0)
                        set_go_back(&f, argv[i + 1]);
                else if (strcmp(argv[i], "--refuse") == 0)
                        f.refuse = argv[i + 1];
                else if (strcmp(argv[i], "--lose") == 0)
                        f.lose = (unsigned) strtoul(argv[i + 1], NULL, 10);
                else if (strcmp(argv[i], "--lose-done") == 0)
                        f.lose_done = (unsigned) strtoul(argv[i + 1], NULL, 10);
        }
        if (argc < 2)
                return 2;
        (void) signal(SIGPIPE, SIG_IGN);
        f.start_real_usec = now_real_usec();
        f.nodes[0] = (struct fake_node) { "n1", "ALLOCATED", 16, 16, 16, NULL, 0 };
        f.nodes[1] = (struct fake_node) { "n2", "MIXED", 16, 16, 6, NULL, 0 };
        f.nodes[2] = (struct fake_node) { "n3", "MIXED", 16, 4, 16, NULL, 0 };
        f.nodes[3] = (struct fake_node) { "n4", "IDLE", 128, 128, 0, NULL, 0 };
        f.nodes[4] = (struct fake_node) { "n5", "DRAINED", 16, 0, 0, "new memory, ticket 4711", 0 };
        f.nodes[5] = (struct fake_node) { "n6", "DOWN", 16, 0, 0, NULL, 0 };
        for (size_t i = 0; i < MAX_CLIENTS; i++)
                f.clients[i].fd = -1;
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigaddset(&set, SIGUSR1);
        (void) sigaddset(&set, SIGTERM);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        f.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        start_listening(&f);
        for (;;)
                turn(&f);
}
