/*
 * Drives capsules without rmd, for experiments and tests: commands on stdin, one a line; outcomes
 * and events on stdout.
 *
 *   adopt
 *   create ID HOSTNAME UPLINK|- ADDRESS/PREFIX MAC UID GID up|cut HOSTS_FILE|-
 *   run ID CWD COMMAND...        by /bin/sh, with our environment
 *   signal ID NUMBER | freeze ID | thaw ID | cut ID | open ID | preload ID | status ID
 *   eof ID OFFSET | carry ID FILE | prepare ID FILE|-
 *   dump ID DIR | dump-pages ID DIR | stream ID DIR | restore ID DIR | restore-pages ID DIR
 *   input ID OFFSET TEXT...      a newline is added
 *   reply ID AGENT_ID STATUS | destroy ID | quit
 *
 * Every command answers "ok USEC COMMAND ID" or "error USEC COMMAND ID: TEXT". Events: "ready",
 * "output ID STREAM END", "agent ID AGENT_ID HOST COMMAND", "gone ID AGENT_ID", "exited ID
 * WAIT_STATUS", "lost ID".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/capsule.h"

enum { WORDS_MAX = 12, SAVED_STATE_FILE_MAX = 64 * 1024, HOSTS_FILE_MAX = 1024 * 1024, PEERS_MAX = 64 };

struct try {
        struct event_base *base;
        struct capsule_ctx *ctx;
        const char *spool;
};

/* A command until it is answered. */
struct asked {
        uint64_t started_usec;
        char *command;
        char *id;
        char *file; /* for a carry */
};

static struct asked *ask(const char *command, const char *id) {
        struct asked *a = xcalloc(1, sizeof(*a));

        a->started_usec = now_usec();
        a->command = xstrdup(command);
        a->id = xstrdup(id);
        return a;
}

static void answer(struct asked *a, int error, const char *text) {
        unsigned long usec = (unsigned long) (now_usec() - a->started_usec);

        if (error < 0)
                printf("error %lu %s %s: %s (%s)\n", usec, a->command, a->id, text, strerror(-error));
        else
                printf("ok %lu %s %s\n", usec, a->command, a->id);
        fflush(stdout);
        free(a->command);
        free(a->id);
        free(a->file);
        free(a);
}

static void on_done(struct capsule *capsule, int error, const char *text, void *arg) {
        (void) capsule;
        answer(arg, error, text);
}

static void on_saved_state(struct capsule *capsule, int error, const char *text, const void *saved_state, size_t size, void *arg) {
        struct asked *a = arg;

        (void) capsule;
        if (error == 0)
                error = write_file_atomic(a->file, saved_state, size, 0600, false);
        answer(a, error, text);
}

static void on_ready(struct capsule *capsule, int error, const char *text, void *userdata) {
        (void) userdata;
        printf("ready %s %d %d %s %s\n", capsule_id(capsule), error, (int) capsule_init_pid(capsule),
               capsule_phase_name(capsule_phase(capsule)), text);
        fflush(stdout);
}

static void on_output(struct capsule *capsule, int stream, uint64_t end, void *userdata) {
        (void) userdata;
        printf("output %s %d %llu\n", capsule_id(capsule), stream, (unsigned long long) end);
        fflush(stdout);
}

static void on_agent(struct capsule *capsule, const char *id, const char *host, const char *command, void *userdata) {
        (void) userdata;
        printf("agent %s %s %s %s\n", capsule_id(capsule), id, host, command);
        fflush(stdout);
}

static void on_gone(struct capsule *capsule, const char *id, void *userdata) {
        (void) userdata;
        printf("gone %s %s\n", capsule_id(capsule), id);
        fflush(stdout);
}

static void on_exited(struct capsule *capsule, int wait_status, void *userdata) {
        (void) userdata;
        printf("exited %s %d\n", capsule_id(capsule), wait_status);
        fflush(stdout);
}

static void on_lost(struct capsule *capsule, const char *text, void *userdata) {
        (void) userdata;
        printf("lost %s %s\n", capsule_id(capsule), text);
        fflush(stdout);
}

static const struct capsule_callbacks callbacks = {
        .ready = on_ready,
        .output = on_output,
        .agent_request = on_agent,
        .agent_gone = on_gone,
        .exited = on_exited,
        .lost = on_lost,
};

/* The addresses that may be reached: those that begin the lines of the hosts file. */
static size_t read_peers(const char *hosts, uint32_t *peers, size_t max) {
        char address[INET_ADDRSTRLEN];
        struct in_addr in;
        size_t n = 0;

        for (; hosts && n < max; hosts = strchr(hosts, '\n') ? strchr(hosts, '\n') + 1 : NULL)
                if (sscanf(hosts, "%15s", address) == 1 && inet_pton(AF_INET, address, &in) == 1)
                        peers[n++] = in.s_addr;
        return n;
}

static int do_create(struct try *try, char **w, struct rm_error *error) {
        struct capsule_spec spec = { .id = w[1], .hostname = w[2], .uplink = strcmp(w[3], "-") == 0 ? NULL : w[3] };
        cleanup_free char *spool = xasprintf("%s/%s", try->spool, w[1]);
        cleanup_free char *hosts = NULL;
        struct capsule *capsule;
        uint32_t peers[PEERS_MAX];
        unsigned mac[6] = { 0 };
        char *slash = strchr(w[4], '/');
        size_t size;

        if (slash) {
                *slash = '\0';
                spec.prefix = (uint8_t) atoi(slash + 1);
                spec.address = inet_addr(w[4]);
        }
        (void) sscanf(w[5], "%x:%x:%x:%x:%x:%x", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]);
        for (size_t i = 0; i < 6; i++)
                spec.mac[i] = (uint8_t) mac[i];
        spec.uid = (uid_t) atoi(w[6]);
        spec.gid = (gid_t) atoi(w[7]);
        spec.cut = strcmp(w[8], "cut") == 0;
        if (strcmp(w[9], "-") != 0 && read_file(w[9], HOSTS_FILE_MAX, &hosts, &size) < 0)
                return error_set(error, -ENOENT, "no file %s", w[9]);
        spec.hosts = hosts;
        spec.peers = peers;
        spec.n_peers = read_peers(hosts, peers, PEERS_MAX);
        spec.spool_dir = spool;
        return capsule_create(try->ctx, &spec, &callbacks, NULL, &capsule, error);
}

static int do_run(struct capsule *capsule, char **w, struct asked *a) {
        const char *argv[] = { "/bin/sh", "-c", w[3], NULL };
        struct rlimit limits[RLIM_NLIMITS];
        struct capsule_command command = {
                .argv = argv, .cwd = w[2], .umask = 022, .rlimits = limits, .env = (const char *const *) environ
        };

        for (unsigned i = 0; i < RLIM_NLIMITS; i++)
                (void) getrlimit(i, &limits[i]);
        return capsule_run(capsule, &command, on_done, a);
}

static int do_prepare(struct capsule *capsule, char **w, struct asked *a) {
        cleanup_free char *saved_state = NULL;
        size_t size = 0;

        if (strcmp(w[2], "-") != 0 && read_file(w[2], SAVED_STATE_FILE_MAX, &saved_state, &size) < 0)
                return -ENOENT;
        return capsule_restore_prepare(capsule, saved_state, size, on_done, a);
}

static int do_input(struct capsule *capsule, char **w, struct asked *a) {
        cleanup_free char *text = xasprintf("%s\n", w[3]);

        return capsule_input(capsule, strtoull(w[2], NULL, 10), text, strlen(text), on_done, a);
}

static void print_status(const struct capsule *capsule) {
        struct capsule_status s;

        capsule_get_status(capsule, &s);
        printf("status %s phase %s %s stdin %llu%s stdout %llu..%llu pid %d exit %d %s %llu op %d %s killed %s\n",
               capsule_id(capsule), capsule_phase_name(s.phase), s.cut ? "cut" : "open", (unsigned long long) s.stdin_offset,
               s.stdin_closed ? " closed" : "", (unsigned long long) s.output_begin[1], (unsigned long long) s.output_end[1],
               (int) s.payload_pid, s.wait_status, s.filling ? "lacks" : "complete", (unsigned long long) s.fill_bytes, s.op_error,
               s.op_text, s.killed);
}

/* Positive: nothing will be answered later. */
static int act(struct capsule *capsule, char **w, struct asked *a) {
        const char *c = w[0];

        if (strcmp(c, "run") == 0)
                return do_run(capsule, w, a);
        if (strcmp(c, "signal") == 0)
                return capsule_signal(capsule, atoi(w[2]), false, on_done, a);
        if (strcmp(c, "freeze") == 0)
                return capsule_freeze(capsule, on_done, a);
        if (strcmp(c, "thaw") == 0)
                return capsule_thaw(capsule, on_done, a);
        if (strcmp(c, "cut") == 0)
                return capsule_cut(capsule, on_done, a);
        if (strcmp(c, "open") == 0)
                return capsule_open(capsule, on_done, a);
        if (strcmp(c, "preload") == 0)
                return capsule_criu_preload(capsule, on_done, a);
        if (strcmp(c, "dump") == 0 || strcmp(c, "dump-pages") == 0 || strcmp(c, "stream") == 0)
                return capsule_dump(capsule, w[2], *c == 's', c[strlen("dump")] == '-', 0, on_done, a);
        if (strcmp(c, "carry") == 0) {
                a->file = xstrdup(w[2]);
                return capsule_get_saved_state(capsule, on_saved_state, a);
        }
        if (strcmp(c, "prepare") == 0)
                return do_prepare(capsule, w, a);
        if (strcmp(c, "restore") == 0 || strcmp(c, "restore-pages") == 0)
                return capsule_restore(capsule, w[2], c[strlen("restore")] != '\0', 0, on_done, a);
        if (strcmp(c, "input") == 0)
                return do_input(capsule, w, a);
        if (strcmp(c, "eof") == 0)
                return capsule_input(capsule, strtoull(w[2], NULL, 10), NULL, 0, on_done, a);
        if (strcmp(c, "reply") == 0)
                return capsule_agent_reply(capsule, w[2], atoi(w[3]), on_done, a);
        if (strcmp(c, "destroy") == 0) {
                capsule_destroy(capsule, false, on_done, a);
                return 0;
        }
        if (strcmp(c, "status") == 0) {
                print_status(capsule);
                return 1;
        }
        return -EINVAL;
}

static void *choose(struct capsule *capsule, const char *id, void *arg) {
        (void) capsule;
        (void) id;
        return arg;
}

/* The number of words after which the rest of the line is one. */
static size_t words_of(const char *line) {
        if (strncmp(line, "run ", 4) == 0 || strncmp(line, "input ", 6) == 0)
                return 4;
        return WORDS_MAX;
}

static void handle_line(struct try *try, char *line) {
        char *w[WORDS_MAX + 1] = { 0 };
        struct rm_error error = { 0 };
        size_t limit = words_of(line);
        size_t n = 0;
        struct capsule *capsule;
        struct asked *a;
        int r;

        while (n + 1 < limit && (w[n] = strsep(&line, " ")))
                n++;
        if (line)
                w[n++] = line;
        if (n == 0 || !*w[0])
                return;
        for (size_t i = n; i < WORDS_MAX; i++)
                w[i] = (char *) "";
        if (strcmp(w[0], "quit") == 0) {
                (void) event_base_loopbreak(try->base);
                return;
        }
        a = ask(w[0], w[1]);
        if (strcmp(w[0], "adopt") == 0) {
                r = capsule_adopt_all(try->ctx, &callbacks, choose, NULL, &error);
                answer(a, r, error_text(&error));
                return;
        }
        if (strcmp(w[0], "create") == 0) {
                r = do_create(try, w, &error);
                answer(a, r, error_text(&error));
                return;
        }
        capsule = capsule_find(try->ctx, w[1]);
        r = capsule ? act(capsule, w, a) : -ENOENT;
        if (r != 0)
                answer(a, r < 0 ? r : 0, "");
}

static void on_stdin(struct bufferevent *in, void *arg) {
        char *line;

        while ((line = evbuffer_readln(bufferevent_get_input(in), NULL, EVBUFFER_EOL_LF))) {
                handle_line(arg, line);
                free(line);
        }
}

static void on_stdin_end(struct bufferevent *in, short what, void *arg) {
        struct try *try = arg;

        (void) in;
        (void) what;
        (void) event_base_loopbreak(try->base);
}

int main(int argc, char **argv) {
        struct try try = { .base = event_base_new() };
        struct capsule_config config = { .base = try.base, .kdat_path = "/run/criu.kdat", .criu_path = "/usr/sbin/criu" };
        struct rm_error error = { 0 };
        struct bufferevent *in;

        if (argc != 4) {
                fprintf(stderr, "usage: capsule-try RUNTIME_DIR SPOOL_DIR RM_CAPSULE < COMMANDS\n");
                return 2;
        }
        (void) signal(SIGPIPE, SIG_IGN);
        config.runtime_dir = argv[1];
        config.init_path = argv[3];
        config.cgroup_parent = getenv("CAPSULE_TRY_CGROUP");
        try.spool = argv[2];
        if (capsule_ctx_create(&config, &try.ctx, &error) < 0) {
                fprintf(stderr, "capsule-try: %s\n", error_text(&error));
                return 1;
        }
        (void) set_nonblock(STDIN_FILENO, true);
        in = bufferevent_socket_new(try.base, STDIN_FILENO, 0);
        bufferevent_setcb(in, on_stdin, NULL, on_stdin_end, &try);
        (void) bufferevent_enable(in, EV_READ);
        (void) event_base_dispatch(try.base);
        bufferevent_free(in);
        capsule_ctx_destroy(try.ctx);
        event_base_free(try.base);
        return 0;
}
