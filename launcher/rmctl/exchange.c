/* rmctl export-checkpoint, import-checkpoint: the file is read and written here, with the caller's
 * rights; its bytes go through a socket that rmd names. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/util.h"
#include "launcher/rmctl/checkpoint.h"
#include "launcher/rmctl/human.h"

#define CHUNK_BYTES (256U << 10)
#define SHOWN_USEC 500000U
#define STDIO "-"

/* The data that goes from one descriptor to the other. */
struct flow {
        struct call *call;
        const char *what;
        uint64_t bytes;
        uint64_t shown_usec;
};

/* ---- the end by a signal ---- */

static const int ending_signals[] = { SIGINT, SIGTERM, SIGHUP };
/* The data that a handler needs at the end, at any time. */
static struct {
        const char *volatile unfinished; /* a file that goes; NULL: there is none */
        const char *volatile said;
} ending;

static void on_signal(int number) {
        const char *said = ending.said;

        if (ending.unfinished)
                (void) unlink(ending.unfinished);
        if (said)
                (void) !write(STDERR_FILENO, said, strlen(said));
        (void) raise(number); /* SA_RESETHAND: the caller is to see it */
}

/* malloc'ed, as long as the program runs: a handler may be reading it. */
static void ending_say(const struct call *call, const char *what) {
        ending.said = xasprintf("%srmctl: %s: interrupted: %s\n", isatty(STDERR_FILENO) == 1 ? "\n" : "", call->verb->name, what);
}

static void ending_catch(void) {
        const struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int) SA_RESETHAND };
        struct sigaction before;

        for (size_t i = 0; i < ARRAY_SIZE(ending_signals); i++)
                if (sigaction(ending_signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
                        (void) sigaction(ending_signals[i], &action, NULL);
}

/* Signals wait meanwhile. */
static void ending_hold(sigset_t *ret_before) {
        sigset_t set;

        (void) sigemptyset(&set);
        for (size_t i = 0; i < ARRAY_SIZE(ending_signals); i++)
                (void) sigaddset(&set, ending_signals[i]);
        (void) sigprocmask(SIG_BLOCK, &set, ret_before);
}

/* `unfinished`: from now on; NULL: there is nothing to be done any more. */
static void ending_resume(const sigset_t *before, const char *unfinished) {
        ending.unfinished = unfinished;
        if (!unfinished)
                ending.said = NULL;
        (void) sigprocmask(SIG_SETMASK, before, NULL);
}

/* ---- the bytes ---- */

static void flow_show(struct flow *flow) {
        cleanup_free char *bytes = human_bytes(flow->bytes);
        cleanup_free char *text = xasprintf("%s: %s", flow->what, bytes);

        if (now_usec() < flow->shown_usec + SHOWN_USEC)
                return;
        flow->shown_usec = now_usec();
        call_progress(text);
}

/* 1: that was all; 2: the reader has gone, and reports why. */
static int flow_step(struct flow *flow, int from, int to, uint8_t *chunk) {
        ssize_t n = read(from, chunk, CHUNK_BYTES);
        int r;

        if (n == 0)
                return 1;
        if (n < 0)
                return errno == EINTR ? 0 : error_sys(&flow->call->err, -errno, "cannot read the checkpoint");
        r = write_all(to, chunk, (size_t) n);
        if (r == -EPIPE || r == -ECONNRESET)
                return 2;
        if (r < 0)
                return error_sys(&flow->call->err, r, "cannot write the checkpoint");
        flow->bytes += (uint64_t) n;
        flow_show(flow);
        return 0;
}

static int flow_run(struct flow *flow, int from, int to) {
        cleanup_free uint8_t *chunk = xrealloc(NULL, CHUNK_BYTES);
        int r;

        do
                r = flow_step(flow, from, to, chunk);
        while (r == 0);
        call_progress("");
        return r;
}

/* ---- rmd ---- */

static int connect_to(struct call *call, const char *path, int *ret_fd) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        size_t n = strlen(path);

        if (n >= sizeof(address.sun_path))
                return error_set(&call->err, -EPROTO, "unexpected reply from rmd");
        memcpy(address.sun_path, path, n);
        if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
                return error_sys(&call->err, -errno, "cannot connect to rm-mover");
        *ret_fd = take_fd(&fd);
        return 0;
}

/* Whether it was all: what was asked for is over. */
static int wait_end(struct call *call, Rm__LocalReply **ret) {
        int r = client_receive(call->client, 0, ret, &call->err);

        if (r == 0 && (*ret)->body_case != RM__LOCAL_REPLY__BODY_OK) {
                rm__local_reply__free_unpacked(*ret, NULL);
                return error_set(&call->err, -EPROTO, "unexpected reply from rmd");
        }
        return r;
}

/* --key-file, for rmd: "" when it was not given. The caller frees it. */
static int read_key_file(struct call *call, char **ret) {
        const char *path = call_flag(call, "key-file");

        *ret = path ? realpath(path, NULL) : xstrdup("");
        return *ret ? 0 : error_sys(&call->err, -errno, "cannot find the key %s", path);
}

/* ---- export ---- */

static void show_gathering(const Rm__Exchange *exchange) {
        cleanup_free char *text = xasprintf("this node gets the parts of it: %u of %u", exchange->parts_here, exchange->parts);

        call_progress(text);
}

/* Until this node has all parts, and the socket is there. */
static int open_export(struct call *call, Rm__ExportCheckpoint *body, int *ret_fd) {

        for (;;) {
                Rm__LocalReply *reply = NULL;
                int r = call_request(call, &body->base, RM__LOCAL_REPLY__BODY_EXCHANGE, &reply);
                bool open = r == 0 && *reply->exchange->socket;

                if (r == 0 && !open)
                        show_gathering(reply->exchange);
                if (r == 0)
                        body->since_usec = reply->exchange->since_usec;
                if (open) {
                        call_progress("");
                        r = connect_to(call, reply->exchange->socket, ret_fd);
                }
                if (reply)
                        rm__local_reply__free_unpacked(reply, NULL);
                if (r < 0 || open)
                        return r;
                (void) call_pause(0);
        }
}

/* The output file, which gets its name when all of it is there. */
struct output {
        const char *path; /* "-": standard output */
        char *new_path; /* while it is written */
        int fd;
};

static int output_open(struct call *call, const char *path, struct output *ret) {
        sigset_t before;
        int r;

        *ret = (struct output) { .path = path, .fd = STDOUT_FILENO };
        if (strcmp(path, STDIO) == 0)
                return isatty(STDOUT_FILENO) == 1 ? call_usage(call, "a checkpoint is nothing to look at: redirect the output") : 0;
        if (access(path, F_OK) == 0)
                return error_set(&call->err, -EEXIST, "%s is there already; remove it first, or take another name", path);
        ret->new_path = xasprintf("%s.XXXXXX", path);
        ending_hold(&before);
        ret->fd = mkstemp(ret->new_path);
        r = ret->fd < 0 ? error_sys(&call->err, -errno, "cannot write %s", path) : 0;
        ending_resume(&before, r == 0 ? ret->new_path : NULL);
        return r;
}

/* Gives the file its name, but never in the place of another file; where there are no links that
 * cannot be done at once. */
static int output_name(const struct output *o) {
        if (link(o->new_path, o->path) == 0)
                return 0;
        if (errno == EEXIST)
                return -EEXIST;
        return rename(o->new_path, o->path) < 0 ? -errno : 0;
}

/* `r`: of what was written; it is returned, or what failed here. */
static int output_close(struct call *call, struct output *o, int r) {
        sigset_t before;

        if (!o->new_path || o->fd < 0) {
                free(o->new_path);
                return r;
        }
        if (r == 0 && fsync(o->fd) < 0)
                r = error_sys(&call->err, -errno, "cannot write %s", o->path);
        ending_hold(&before);
        if (r == 0 && (r = output_name(o)) < 0)
                (void) error_sys(&call->err, r, "cannot write %s", o->path);
        (void) unlink(o->new_path);
        ending_resume(&before, NULL);
        (void) close(o->fd);
        free(o->new_path);
        return r;
}

static void report_exported(const struct call *call, const char *path, uint64_t bytes) {
        cleanup_free char *text = human_bytes(bytes);

        if (strcmp(path, STDIO) == 0)
                return;
        if (call->json)
                call_print_json(NULL,
                                json_pack("{s:s,s:s,s:I}", "exported", call->args[0], "file", path, "bytes", (json_int_t) bytes));
        else
                (void) printf("checkpoint %s: %s in %s\n", call->args[0], text, path);
}

static int run_export(struct call *call) {
        Rm__ExportCheckpoint body = RM__EXPORT_CHECKPOINT__INIT;
        struct flow flow = { .call = call, .what = "exported" };
        Rm__LocalReply *reply = NULL;
        cleanup_close int fd = -1;
        cleanup_free char *key_file = NULL;
        struct output output;
        int r = checkpoint_read_name(call, false, &body.job, &body.checkpoint);

        if (r == 0)
                r = read_key_file(call, &key_file);
        if (r < 0)
                return r;
        body.key_file = key_file;
        (void) signal(SIGPIPE, SIG_IGN);
        ending_say(call, strcmp(call->args[1], STDIO) == 0 ? "what was written is no checkpoint" : "no file was written");
        ending_catch();
        r = output_open(call, call->args[1], &output);
        if (r == 0)
                r = open_export(call, &body, &fd);
        if (r == 0)
                call_progress("it is being verified");
        if (r == 0)
                r = flow_run(&flow, fd, output.fd);
        if (r == 2)
                r = error_sys(&call->err, -EPIPE, "cannot write the checkpoint");
        if (r == 1)
                r = wait_end(call, &reply);
        if (reply)
                rm__local_reply__free_unpacked(reply, NULL);
        r = output_close(call, &output, r);
        if (r == 0)
                report_exported(call, call->args[1], flow.bytes);
        return r;
}

/* ---- import ---- */

static int open_import(struct call *call, int *ret_fd) {
        Rm__ImportCheckpoint body = RM__IMPORT_CHECKPOINT__INIT;
        cleanup_free char *key_file = NULL;
        Rm__LocalReply *reply = NULL;
        int r = read_key_file(call, &key_file);

        if (r < 0)
                return r;
        body.key_file = key_file;
        r = call_request(call, &body.base, RM__LOCAL_REPLY__BODY_EXCHANGE, &reply);
        if (r < 0)
                return r;
        r = connect_to(call, reply->exchange->socket, ret_fd);
        rm__local_reply__free_unpacked(reply, NULL);
        return r;
}

static int input_open(struct call *call, const char *path, int *ret_fd) {
        *ret_fd = strcmp(path, STDIO) == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
        return *ret_fd < 0 ? error_sys(&call->err, -errno, "cannot read %s", path) : 0;
}

static int run_import(struct call *call) {
        struct flow flow = { .call = call, .what = "sent" };
        cleanup_close int file_fd = -1, fd = -1;
        Rm__LocalReply *reply = NULL;
        int r = input_open(call, call->args[0], &file_fd);

        (void) signal(SIGPIPE, SIG_IGN);
        ending_say(call, "nothing was imported");
        ending_catch();
        if (r == 0)
                r = open_import(call, &fd);
        if (r == 0)
                r = flow_run(&flow, file_fd, fd);
        if (r < 0)
                return r;
        ending_say(call, "it had been sent; 'rmctl list-checkpoints' shows whether it was imported");
        (void) shutdown(fd, SHUT_WR);
        call_progress("it is being verified");
        r = wait_end(call, &reply);
        call_progress("");
        if (r < 0)
                return r;
        if (call->json)
                call_print_json(NULL, json_pack("{s:s,s:I}", "imported", call->args[0], "bytes", (json_int_t) flow.bytes));
        else
                (void) puts(reply->ok->text);
        rm__local_reply__free_unpacked(reply, NULL);
        return 0;
}

const struct verb verb_export_checkpoint = {
        .name = "export-checkpoint",
        .args = "JOB.N FILE",
        .min_args = 2,
        .max_args = 2,
        .role = ROLE_OWNER,
        .help = "write a checkpoint into a file\n"
                "It stays good when the cluster has removed the checkpoint, and forgotten the job: import-checkpoint brings both "
                "back.\n"
                "Only import-checkpoint can read it: it is encrypted with the cluster's key. FILE '-' is standard output.",
        .flags = { { "key-file", "KEY", "encrypt it with the key in that file of this node, not the cluster's (root only)" } },
        .run = run_export,
};

const struct verb verb_import_checkpoint = {
        .name = "import-checkpoint",
        .args = "FILE",
        .min_args = 1,
        .max_args = 1,
        .role = ROLE_OWNER,
        .help = "bring a checkpoint back that was exported\n"
                "Of a job of yours that has ended, or that the cluster has forgotten; restart-job lets it go on from there.\n"
                "FILE '-' is standard input.",
        .flags = { { "key-file", "KEY", "it was exported with the key in that file, also by another cluster (root only)" } },
        .run = run_import,
};
