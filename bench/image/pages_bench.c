/* Measures the transfer of the private memory of running processes, over loopback: they write some
 * of their pages all the time, are stopped when the mover says that the rest is worth no more
 * rounds, and the time from then on counts. */
#include <argp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/transfer/mover.h"
#include "tests/unit/mover/mover_pair.h"

#define TOKEN "0123456789abcdef"
#define STEP_USEC 1000U /* of all of them together: else their wake-ups would be what takes the processors */

struct options {
        char *base; /* of our own */
        char *out_dir;
        char *key_file;
        char *procs_file;
        size_t processes;
        size_t mib;
        double percent;
        uint64_t rate;
        unsigned runs;
};

static error_t on_option(int key, char *arg, struct argp_state *state) {
        struct options *o = state->input;

        switch (key) {
        case 'p':
                o->processes = (size_t) atoi(arg);
                return 0;
        case 'm':
                o->mib = (size_t) atoi(arg);
                return 0;
        case 'w':
                o->percent = atof(arg);
                return 0;
        case 'r':
                return parse_bytes(arg, &o->rate) < 0 ? EINVAL : 0;
        case 'n':
                o->runs = (unsigned) atoi(arg);
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static void check(bool ok, const char *what) {
        if (ok)
                return;
        (void) fprintf(stderr, "pages_bench: %s\n", what);
        exit(1);
}

/* ---- the processes ---- */

static void write_for_ever(const struct options *o, int ready_fd) {
        size_t pages = o->mib << 8;
        uint64_t *area = mmap(NULL, pages << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        useconds_t step_usec = STEP_USEC * (useconds_t) o->processes;
        double due = 0;
        uint64_t x = 88172645463325252U;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        check(area != MAP_FAILED, "no memory");
        for (size_t i = 0; i < pages << 9; i++) {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                area[i] = x;
        }
        (void) write_all(ready_fd, "", 1);
        for (size_t at = 0;; (void) usleep(step_usec))
                for (due += (double) pages * o->percent / 100 * step_usec / 1e6; due >= 1; due--) {
                        area[at << 9] += 1;
                        at = (at + 7919) % pages;
                }
}

static pid_t *processes_start(const struct options *o) {
        pid_t *pids = xcalloc(o->processes, sizeof(*pids));
        int ends[2];
        char byte;

        check(pipe(ends) == 0, "pipe");
        for (size_t i = 0; i < o->processes; i++) {
                pids[i] = fork();
                if (pids[i] == 0) {
                        write_for_ever(o, ends[1]);
                        _exit(0);
                }
                check(pids[i] > 0, "fork");
        }
        for (size_t i = 0; i < o->processes; i++)
                check(read_all(ends[0], &byte, 1) == 0, "a process has ended");
        (void) close(ends[0]);
        (void) close(ends[1]);
        return pids;
}

static void processes_signal(const struct options *o, const pid_t *pids, int number) {
        for (size_t i = 0; i < o->processes; i++)
                (void) kill(pids[i], number);
        for (size_t i = 0; number == SIGSTOP && i < o->processes; i++)
                (void) waitpid(pids[i], NULL, WUNTRACED);
}

static void procs_write(const struct options *o, const pid_t *pids) {
        FILE *f = fopen(o->procs_file, "we");

        check(f != NULL, "no file for pids");
        for (size_t i = 0; i < o->processes; i++)
                (void) fprintf(f, "%d\n", (int) pids[i]);
        (void) fclose(f);
}

/* ---- a move ---- */

static void say_receive(struct pair *p, const struct options *o) {
        Rm__MoverReceive m = RM__MOVER_RECEIVE__INIT;

        m.address = (char *) "127.0.0.1";
        m.token = (ProtobufCBinaryData) { .data = (uint8_t *) TOKEN, .len = strlen(TOKEN) };
        m.key_file = o->key_file;
        m.cluster = (char *) "bench";
        m.images_dir = o->out_dir;
        pair_say(p, PAIR_RECEIVE, &MOVER_COMMAND(&m));
}

static void say_send(struct pair *p, const struct options *o, uint32_t port) {
        Rm__MoverSend m = RM__MOVER_SEND__INIT;

        m.host = (char *) "127.0.0.1";
        m.port = port;
        m.token = (ProtobufCBinaryData) { .data = (uint8_t *) TOKEN, .len = strlen(TOKEN) };
        m.key_file = o->key_file;
        m.cluster = (char *) "bench";
        m.images_dir = o->base;
        m.codec = RM__MOVER_CODEC__MOVER_CODEC_NONE;
        pair_say(p, PAIR_SEND, &MOVER_COMMAND(&m));
}

static void say_precopy(struct pair *p, const struct options *o) {
        Rm__MoverPrecopy m = RM__MOVER_PRECOPY__INIT;

        m.procs_file = o->procs_file;
        m.bytes_per_sec = o->rate;
        m.pages = true;
        pair_say(p, PAIR_SEND, &MOVER_COMMAND(&m));
}

static void say_done(struct pair *p) {
        Rm__MoverDumpDone m = RM__MOVER_DUMP_DONE__INIT;

        pair_say(p, PAIR_SEND, &MOVER_COMMAND(&m));
}

static Rm__MoverEvent *await(struct pair *p, int side, Rm__MoverEvent__BodyCase kind, const char *what) {
        Rm__MoverEvent *e = pair_expect(p, side, kind);

        check(e != NULL, what);
        return e;
}

static void dump_fake(const struct options *o) {
        int sock = fake_criu_connect(o->base);
        int fd = sock < 0 ? -1 : fake_criu_open(sock, "inventory.img");

        check(fd >= 0, "the mover does not take images");
        (void) close(fd);
        (void) close(sock);
}

static void print(const Rm__MoverFigures *f, uint64_t ended_usec) {
        (void) printf("ahead %.1f MiB in %.1f ms, %llu rounds; last %.2f MiB in %.1f ms; start to acknowledgement %.1f ms; to the "
                      "mover's end %.1f ms more\n",
                      (double) f->ahead_bytes / 1048576.0, (double) f->ahead_usec / 1e3, (unsigned long long) f->ahead_rounds,
                      (double) f->last_bytes / 1048576.0, (double) f->last_usec / 1e3, (double) f->total_usec / 1e3,
                      (double) ended_usec / 1e3);
}

static void run_once(const struct options *o, const pid_t *pids) {
        struct pair p;
        Rm__MoverEvent *e;
        uint64_t acknowledged_usec;
        int codes[2];

        procs_write(o, pids);
        pair_start(&p, NULL);
        say_receive(&p, o);
        e = await(&p, PAIR_RECEIVE, RM__MOVER_EVENT__BODY_LISTENING, "the receiver does not listen");
        say_send(&p, o, e->listening->port);
        rm__mover_event__free_unpacked(e, NULL);
        e = await(&p, PAIR_SEND, RM__MOVER_EVENT__BODY_READY, "the sender does not get ready");
        rm__mover_event__free_unpacked(e, NULL);
        say_precopy(&p, o);
        e = await(&p, PAIR_SEND, RM__MOVER_EVENT__BODY_PRECOPIED, "nothing goes ahead");
        check(e->precopied->figures->pages, e->precopied->figures->untracked);
        rm__mover_event__free_unpacked(e, NULL);
        processes_signal(o, pids, SIGSTOP);
        pair_say_start(&p);
        dump_fake(o);
        say_done(&p);
        e = await(&p, PAIR_SEND, RM__MOVER_EVENT__BODY_ACKNOWLEDGED, "nothing was sent");
        acknowledged_usec = now_usec();
        pair_finish(&p, codes);
        check(codes[0] == 0 && codes[1] == 0, "a mover ended badly");
        print(e->acknowledged->figures, now_usec() - acknowledged_usec);
        rm__mover_event__free_unpacked(e, NULL);
        processes_signal(o, pids, SIGCONT);
}

/* Offsets are addresses: too large for most file systems. */
static void places_make(struct options *o) {
        o->base = xstrdup("/dev/shm/pages-bench.XXXXXX");
        check(mkdtemp(o->base) != NULL, "no place in /dev/shm");
        o->key_file = xasprintf("%s/key", o->base);
        o->procs_file = xasprintf("%s/procs", o->base);
        o->out_dir = xasprintf("%s/out", o->base);
        check(write_file_atomic(o->key_file, "0123456789abcdef0123456789abcdef", 32, 0600, false) == 0, "no key");
        check(mkdir(o->out_dir, 0700) == 0, "no place for images");
}

int main(int argc, char **argv) {
        static const struct argp_option list[] = {
                { "processes", 'p', "N", 0, "so many (1)", 0 },
                { "mib", 'm', "N", 0, "memory of each, in MiB (256)", 0 },
                { "write", 'w', "PERCENT", 0, "of its pages that each writes in a second (1)", 0 },
                { "rate", 'r', "BYTES", 0, "at most so much goes ahead in a second (no limit)", 0 },
                { "runs", 'n', "N", 0, "times (3)", 0 },
                { 0 },
        };
        static const struct argp parser = {
                list, on_option, NULL, "A pair of movers that carries the memory of running processes, over loopback. For root.",
                NULL, NULL,      NULL
        };
        struct options o = { .processes = 1, .mib = 256, .percent = 1, .runs = 3 };
        cleanup_free pid_t *pids = NULL;

        (void) argp_parse(&parser, argc, argv, 0, NULL, &o);
        check(o.processes >= 1, "at least one process");
        (void) signal(SIGPIPE, SIG_IGN);
        places_make(&o);
        pids = processes_start(&o);
        for (unsigned i = 0; i < o.runs; i++) {
                check(mount("none", o.out_dir, "tmpfs", 0, "size=16g") == 0, "no tmpfs for what arrives");
                run_once(&o, pids);
                (void) umount2(o.out_dir, MNT_DETACH);
        }
        processes_signal(&o, pids, SIGKILL);
        (void) remove_tree(o.base);
        return 0;
}
