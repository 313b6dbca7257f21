#include "daemon/capsule/init/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/capsule/init/ctl.h"
#include "daemon/capsule/init/init.h"
#include "daemon/capsule/init/quota.h"
#include "daemon/capsule/spool.h"

/* Open MPI 5.0.7 drops what mpirun reads at once beyond this, when rank 0 is under another
 * daemon. */
#define INPUT_PIPE_BYTES 4096

enum {
        PUMP_BYTES = 1024 * 1024,
        UNACKED_MAX_BYTES = 256 * 1024 * 1024, /* then the payload blocks */
        INPUT_MAX_BYTES = 8 * 1024 * 1024,
        REPORT_BACKLOG_BYTES = 64 * 1024,
        RETRY_USEC = 1000000,
};

/* stdout or stderr. We hold the FIFO for reading and writing: it never ends and never blocks. */
struct output {
        struct source source; /* fd -1: not open */
        struct spool spool;
        struct stdio *stdio;
        uint64_t acked;
        uint64_t reported;
        uint64_t allowed; /* bytes that may be kept before the next look at the quota */
        bool watched;
        Capsule__Stall stuck; /* for which reason nothing is taken */
        Capsule__Stall stall_reported; /* to rmd, last */
};

/* Input the FIFO had no room for. Kept in order of arrival, which is that of the offsets. */
struct input {
        struct input *next;
        struct ticket ticket;
        bool end;    /* of file */
        size_t size; /* 0: all of it was here already, and is only to be acknowledged in its turn */
        size_t done;
        uint8_t data[];
};

struct stdio {
        struct init *init;
        struct output outputs[2];
        struct source in; /* fd -1: not open; the write end only, once the payload has it */
        struct input *first;
        struct input **last;
        uint64_t queued_end; /* offset that the next input must have */
        uint64_t offset;     /* that the FIFO has taken */
        uint64_t deadline;
        size_t queued_bytes;
        bool in_watched;
        bool null;
        bool closed;
        bool running;
};

static const char *const fifo_paths[] = { STDIO_DIR "/0", STDIO_DIR "/1", STDIO_DIR "/2" };

static void watch(struct stdio *stdio, struct source *source, bool *watched, bool want, uint32_t events) {
        if (source->fd < 0 || *watched == want)
                return;
        if (want)
                (void) source_add(stdio->init->core.epoll_fd, source, events);
        else
                source_remove(stdio->init->core.epoll_fd, source);
        *watched = want;
}

static void update_output(struct output *o) {
        bool space = o->spool.end - o->acked < UNACKED_MAX_BYTES;

        watch(o->stdio, &o->source, &o->watched, o->stdio->running && space && o->stuck == CAPSULE__STALL__STALL_NONE, EPOLLIN);
}

static void update_input(struct stdio *stdio) {
        watch(stdio, &stdio->in, &stdio->in_watched, stdio->running && stdio->first, EPOLLOUT);
}

static void report(struct output *o, uint32_t stream) {
        Capsule__Output output = CAPSULE__OUTPUT__INIT;

        output.stream = stream;
        output.end = o->spool.end;
        o->reported = o->spool.end;
        ctl_send(o->stdio->init->ctl, &output.base);
}

void stdio_report(struct stdio *stdio, bool all) {
        for (uint32_t i = 0; i < 2; i++) {
                struct output *o = &stdio->outputs[i];

                if (all || (o->reported != o->spool.end && ctl_backlog(stdio->init->ctl) < REPORT_BACKLOG_BYTES))
                        report(o, i + 1);
        }
}

static void stall(struct output *o, Capsule__Stall why) {
        Capsule__Stalled stalled = CAPSULE__STALLED__INIT;

        o->stuck = why;
        o->stdio->deadline = now_usec() + RETRY_USEC;
        if (o->stall_reported == why)
                return;
        o->stall_reported = why;
        stalled.why = why;
        ctl_send(o->stdio->init->ctl, &stalled.base);
}

/* 0: it has to wait. */
static size_t allowed_bytes(struct output *o) {
        const struct init *init = o->stdio->init;
        Capsule__Stall why;

        if (o->allowed == 0) {
                o->allowed = quota_scan(init->core.spec, init->core.node.spool, o->spool.end - o->acked, &why);
                if (o->allowed == 0)
                        stall(o, why);
        }
        return o->allowed < PUMP_BYTES ? (size_t) o->allowed : PUMP_BYTES;
}

static void on_output(struct source *source, uint32_t events) {
        struct output *o = source->data;
        size_t allowed = allowed_bytes(o);
        ssize_t n = allowed > 0 ? spool_splice(&o->spool, source->fd, allowed) : 0;

        if (n > 0)
                o->allowed -= (uint64_t) n;
        if (n < 0 && n != -EAGAIN) {
                if (o->stuck == CAPSULE__STALL__STALL_NONE)
                        log_warn("cannot keep output: %s; the payload waits", strerror((int) -n));
                stall(o, CAPSULE__STALL__STALL_DISK);
        }
        update_output(o);
        stdio_report(o->stdio, false);
}

uint64_t stdio_deadline(const struct stdio *stdio) {
        return stdio->deadline;
}

void stdio_retry(struct stdio *stdio) {
        stdio->deadline = UINT64_MAX;
        for (size_t i = 0; i < 2; i++) {
                stdio->outputs[i].stuck = CAPSULE__STALL__STALL_NONE;
                update_output(&stdio->outputs[i]);
        }
}

int stdio_empty(struct stdio *stdio) {
        int result = 0;

        stdio_pause(stdio);
        for (size_t i = 0; i < 2; i++) {
                struct output *o = &stdio->outputs[i];
                int r = o->source.fd >= 0 ? spool_drain(&o->spool, o->source.fd) : 0;

                result = r < 0 ? r : result;
        }
        stdio_report(stdio, true);
        return result;
}

static void pop_input(struct stdio *stdio, int error, const char *text) {
        struct input *input = stdio->first;

        stdio->first = input->next;
        if (!stdio->first)
                stdio->last = &stdio->first;
        stdio->queued_bytes -= sizeof(*input) + input->size;
        ctl_reply(stdio->init->ctl, input->ticket, error, text);
        free(input);
}

static void close_input(struct stdio *stdio) {
        watch(stdio, &stdio->in, &stdio->in_watched, false, 0);
        cleanup_close_fd(&stdio->in.fd);
        stdio->closed = true;
}

static void push_input(struct stdio *stdio) {
        while (stdio->first && stdio->running) {
                struct input *input = stdio->first;
                ssize_t n;

                if (input->end || stdio->in.fd < 0) {
                        bool end = input->end;

                        close_input(stdio);
                        pop_input(stdio, end ? 0 : -EPIPE, end ? NULL : "the program has closed its standard input");
                        continue;
                }
                if (input->size == 0) {
                        pop_input(stdio, 0, NULL);
                        continue;
                }
                n = write(stdio->in.fd, input->data + input->done, input->size - input->done);
                if (n < 0 && errno == EAGAIN)
                        break;
                if (n < 0) {
                        close_input(stdio);
                        continue;
                }
                input->done += (size_t) n;
                stdio->offset += (uint64_t) n;
                if (input->done == input->size)
                        pop_input(stdio, 0, NULL);
        }
        update_input(stdio);
}

static void on_input(struct source *source, uint32_t events) {
        push_input(source->data);
}

void stdio_input(struct stdio *stdio, struct ticket ticket, uint64_t offset, const void *data, size_t size) {
        const char *refusal = NULL;
        struct input *input;
        size_t skip;
        int error = -EPIPE;

        if (stdio->null)
                refusal = "standard input is /dev/null";
        else if (offset > stdio->queued_end) {
                refusal = "there is a gap in the input";
                error = -ERANGE;
        } else if (stdio->queued_bytes + sizeof(*input) + size > INPUT_MAX_BYTES) {
                refusal = "too much input at once";
                error = -ENOBUFS;
        }
        if (refusal) {
                ctl_reply(stdio->init->ctl, ticket, error, refusal);
                return;
        }
        skip = stdio->queued_end - offset < size ? (size_t) (stdio->queued_end - offset) : size;
        if (size > 0 && skip == size && !stdio->first) { /* all of it known and taken */
                ctl_reply(stdio->init->ctl, ticket, 0, NULL);
                return;
        }
        input = xcalloc(1, sizeof(*input) + size - skip);
        input->ticket = ticket;
        input->end = size == 0;
        input->size = size - skip;
        memcpy(input->data, (const uint8_t *) data + skip, input->size);
        *stdio->last = input;
        stdio->last = &input->next;
        stdio->queued_end += input->size;
        stdio->queued_bytes += sizeof(*input) + input->size;
        push_input(stdio);
}

void stdio_set_null(struct stdio *stdio) {
        stdio->null = true;
        stdio->closed = true;
}

void stdio_ack(struct stdio *stdio, uint32_t stream, uint64_t offset) {
        struct output *o;

        if (stream != 1 && stream != 2)
                return;
        o = &stdio->outputs[stream - 1];
        if (offset <= o->acked || offset > o->spool.end)
                return;
        o->acked = offset;
        spool_trim(&o->spool, offset);
        update_output(o);
}

void stdio_pause(struct stdio *stdio) {
        stdio->running = false;
        for (size_t i = 0; i < 2; i++)
                update_output(&stdio->outputs[i]);
        update_input(stdio);
}

void stdio_resume(struct stdio *stdio) {
        stdio->running = true;
        for (size_t i = 0; i < 2; i++)
                update_output(&stdio->outputs[i]);
        push_input(stdio);
}

static int make_fifo(const struct init *init, const char *path, struct rm_error *error) {
        if (mkfifo(path, 0600) < 0 || chmod(path, 0600) < 0 || chown(path, init->core.spec->uid, init->core.spec->gid) < 0)
                return error_sys(error, -errno, "cannot make %s", path);
        return 0;
}

int stdio_create(struct init *init, struct stdio **ret, struct rm_error *error) {
        static const char *const names[] = { "stdout", "stderr" };
        struct stdio *stdio = xcalloc(1, sizeof(*stdio));
        int r = 0;

        stdio->init = init;
        stdio->last = &stdio->first;
        stdio->deadline = UINT64_MAX;
        *ret = stdio; /* lives as long as the process */
        if (mkdir(STDIO_DIR, 0755) < 0)
                return error_sys(error, -errno, "cannot make " STDIO_DIR);
        for (size_t i = 0; i < ARRAY_SIZE(fifo_paths) && r == 0; i++)
                r = make_fifo(init, fifo_paths[i], error);
        if (r < 0)
                return r;
        for (size_t i = 0; i < 2; i++) {
                struct output *o = &stdio->outputs[i];
                int fd = open(fifo_paths[i + 1], O_RDWR | O_NONBLOCK | O_CLOEXEC);

                if (fd < 0)
                        return error_sys(error, -errno, "cannot open %s", fifo_paths[i + 1]);
                o->stdio = stdio;
                o->source = (struct source) { .fd = fd, .fn = on_output, .data = o };
                spool_init(&o->spool, init->core.node.spool, names[i], 0);
        }
        /* The FIFO is open for both directions until the payload has its end, so that neither
         * side's open waits. */
        stdio->in = (struct source) { .fn = on_input, .data = stdio };
        stdio->in.fd = open(fifo_paths[0], O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (stdio->in.fd < 0)
                return error_sys(error, -errno, "cannot open %s", fifo_paths[0]);
        (void) fcntl(stdio->in.fd, F_SETPIPE_SZ, INPUT_PIPE_BYTES);
        return 0;
}

int stdio_attach(bool stdin_null) {
        for (int i = 0; i < 3; i++) {
                const char *path = i == 0 && stdin_null ? "/dev/null" : fifo_paths[i];
                int fd = open(path, i == 0 ? O_RDONLY : O_WRONLY);

                if (fd < 0 || dup2(fd, i) < 0)
                        return -errno;
                if (fd > 2)
                        close(fd);
        }
        return 0;
}

void stdio_connected(struct stdio *stdio) {
        int fd = stdio->closed ? -1 : open(fifo_paths[0], O_WRONLY | O_NONBLOCK | O_CLOEXEC);

        if (fd >= 0)
                (void) fcntl(fd, F_SETPIPE_SZ, INPUT_PIPE_BYTES);
        cleanup_close_fd(&stdio->in.fd);
        stdio->in.fd = fd; /* -1 when the payload has closed its end already */
}

void stdio_get(const struct stdio *stdio, uint64_t ret_begin[2], uint64_t ret_end[2], uint64_t *ret_stdin_offset,
               bool *ret_stdin_closed) {
        for (size_t i = 0; i < 2; i++) {
                ret_begin[i] = stdio->outputs[i].spool.begin;
                ret_end[i] = stdio->outputs[i].spool.end;
        }
        *ret_stdin_offset = stdio->offset;
        *ret_stdin_closed = stdio->closed;
}

void stdio_get_saved_state(const struct stdio *stdio, Capsule__SavedState *saved_state) {
        saved_state->stdin_offset = stdio->offset;
        saved_state->stdin_closed = stdio->closed;
        saved_state->stdin_null = stdio->null;
        for (size_t i = 0; i < saved_state->n_output_end; i++)
                saved_state->output_end[i] = stdio->outputs[i].spool.end;
}

int stdio_set_saved_state(struct stdio *stdio, const Capsule__SavedState *saved_state) {
        if (saved_state->n_output_end != 2)
                return -EBADMSG;
        for (size_t i = 0; i < 2; i++) {
                struct output *o = &stdio->outputs[i];
                char name[sizeof(o->spool.name)];

                memcpy(name, o->spool.name, sizeof(name));
                spool_finish(&o->spool);
                spool_init(&o->spool, stdio->init->core.node.spool, name, saved_state->output_end[i]);
                o->acked = o->reported = saved_state->output_end[i];
        }
        stdio->offset = stdio->queued_end = saved_state->stdin_offset;
        stdio->closed = saved_state->stdin_closed;
        stdio->null = saved_state->stdin_null;
        return 0;
}
