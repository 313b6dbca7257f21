/* Measures the transfer by a pair of movers: from a given memory (through vmsplice, as CRIU does
 * it) or from a real `criu dump --stream`, over loopback. Prints rate and phases, the median of
 * several, for each codec that is named. */
#include <argp.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/transfer/mover.h"
#include "tests/unit/mover/mover_pair.h"

#define RUNS_MAX 101
#define CODECS_MAX 4

struct options {
        char *base; /* of our own */
        const char *key_file;
        const char *out_dir;
        const char *images_dir;
        const char *command;
        const char *trees[8]; /* role=from:to */
        size_t n_trees;
        size_t mib;
        unsigned zero_percent;
        const char *data; /* NULL: random */
        Rm__MoverCodec codecs[CODECS_MAX];
        size_t n_codecs;
        unsigned runs;
        bool lines;
        bool plain;
        bool keep;
};

struct result {
        double mbps;
        uint64_t total_usec;
        uint64_t capture_usec;
        uint64_t wait_usec;
        uint64_t trees_usec;
        uint64_t end_usec;
        uint64_t connect_usec;
        uint64_t raw_bytes;
        uint64_t wire_bytes;
};

static const char *const codec_names[] = { "auto", "none", "lz4", "zstd" };

static bool codecs_parse(struct options *o, char *list) {
        char *state = NULL;

        o->n_codecs = 0;
        for (char *name = strtok_r(list, ",", &state); name; name = strtok_r(NULL, ",", &state)) {
                size_t i = 0;

                while (i < ARRAY_SIZE(codec_names) && strcmp(codec_names[i], name) != 0)
                        i++;
                if (i == ARRAY_SIZE(codec_names) || o->n_codecs == CODECS_MAX)
                        return false;
                o->codecs[o->n_codecs++] = (Rm__MoverCodec) i;
        }
        return o->n_codecs > 0;
}

static error_t on_option(int key, char *arg, struct argp_state *state) {
        struct options *o = state->input;

        switch (key) {
        case 'm':
                o->mib = (size_t) atoi(arg);
                return 0;
        case 'z':
                o->zero_percent = (unsigned) atoi(arg);
                return 0;
        case 'd':
                o->data = arg;
                return 0;
        case 'x':
                if (!codecs_parse(o, arg))
                        argp_error(state, "--codec: auto, none, lz4, zstd, or some of these with commas");
                return 0;
        case 'l':
                o->lines = true;
                return 0;
        case 'n':
                o->runs = (unsigned) atoi(arg);
                return 0;
        case 'o':
                o->out_dir = arg;
                return 0;
        case 'i':
                o->images_dir = arg;
                return 0;
        case 'c':
                o->command = arg;
                return 0;
        case 'p':
                o->plain = true;
                return 0;
        case 'k':
                o->keep = true;
                return 0;
        case 't':
                if (o->n_trees < ARRAY_SIZE(o->trees))
                        o->trees[o->n_trees++] = arg;
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static void check(bool ok, const char *what) {
        if (ok)
                return;
        (void) fprintf(stderr, "mover_bench: %s\n", what);
        exit(1);
}

/* Over and over, as far as it goes. */
static void file_fill(char *m, size_t size_bytes, const char *path) {
        char *text = NULL;
        size_t n = 0;

        check(read_file(path, 64U << 20, &text, &n) == 0 && n > 0, "cannot read the file of --data");
        for (size_t at = 0; at < size_bytes; at += n)
                memcpy(m + at, text, size_bytes - at < n ? size_bytes - at : n);
        free(text);
}

/* A smooth field on a grid, as a solver has it. */
static void doubles_fill(char *m, size_t size_bytes) {
        for (size_t i = 0; i < size_bytes / sizeof(double); i++) {
                size_t row = i / 1024;
                double x = (double) (i % 1024) / 1024;
                double y = (double) row / 4096;
                double v = sin(6.3 * x) * cos(6.3 * y) + 0.1 * x * y;

                memcpy(m + i * sizeof(double), &v, sizeof(v));
        }
}

/* Random bytes where something is, so that nothing is zero by accident. */
static void random_fill(const struct options *o, char *m, size_t size_bytes) {
        uint64_t x = 88172645463325252U;

        for (size_t at = 0; at < size_bytes; at += 4096) {
                if ((at >> 12) % 100 < o->zero_percent)
                        continue;
                for (size_t i = 0; i < 4096; i += 8) {
                        x ^= x << 13;
                        x ^= x >> 7;
                        x ^= x << 17;
                        memcpy(m + at + i, &x, 8);
                }
        }
}

static char *memory_make(const struct options *o) {
        size_t size_bytes = o->mib << 20;
        char *m =
                mmap(NULL, size_bytes ? size_bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

        check(m != MAP_FAILED, "no memory");
        if (!o->data || strcmp(o->data, "random") == 0)
                random_fill(o, m, size_bytes);
        else if (strcmp(o->data, "doubles") == 0)
                doubles_fill(m, size_bytes);
        else if (strcmp(o->data, "zeros") != 0)
                file_fill(m, size_bytes, o->data);
        return m;
}

static void pages_write(int fd, char *m, size_t size_bytes) {
        while (size_bytes > 0) {
                struct iovec v = { .iov_base = m, .iov_len = size_bytes > (1U << 20) ? 1U << 20 : size_bytes };
                ssize_t n = vmsplice(fd, &v, 1, 0);

                check(n > 0, "vmsplice");
                m += n;
                size_bytes -= (size_t) n;
        }
}

static void dump_fake(const struct options *o, char *memory) {
        int sock = fake_criu_connect(o->images_dir);
        int fd;

        check(sock >= 0, "the capture socket is not there");
        fd = fake_criu_open(sock, "pages-1.img");
        check(fd >= 0, "the mover does not take a pipe");
        pages_write(fd, memory, o->mib << 20);
        (void) close(fd);
        (void) close(sock);
}

static void say_receive(struct pair *p, const struct options *o, Rm__MoverTree **trees, const char *token) {
        Rm__MoverReceive m = RM__MOVER_RECEIVE__INIT;

        m.address = (char *) "127.0.0.1";
        m.token = (ProtobufCBinaryData) { .data = (uint8_t *) token, .len = strlen(token) };
        m.key_file = (char *) (o->plain ? "" : o->key_file);
        m.cluster = (char *) "bench";
        m.images_dir = (char *) o->out_dir;
        m.trees = trees;
        m.n_trees = o->n_trees;
        pair_say(p, PAIR_RECEIVE, &MOVER_COMMAND(&m));
}

static void say_send(struct pair *p, const struct options *o, uint32_t port, const char *token, Rm__MoverCodec codec) {
        Rm__MoverSend m = RM__MOVER_SEND__INIT;

        m.host = (char *) "127.0.0.1";
        m.port = port;
        m.token = (ProtobufCBinaryData) { .data = (uint8_t *) token, .len = strlen(token) };
        m.key_file = (char *) (o->plain ? "" : o->key_file);
        m.cluster = (char *) "bench";
        m.images_dir = (char *) o->images_dir;
        m.codec = codec;
        pair_say(p, PAIR_SEND, &MOVER_COMMAND(&m));
}

static void say_done(struct pair *p, Rm__MoverTree **trees, size_t n_trees) {
        Rm__MoverDumpDone m = RM__MOVER_DUMP_DONE__INIT;

        m.trees = trees;
        m.n_trees = n_trees;
        pair_say(p, PAIR_SEND, &MOVER_COMMAND(&m));
}

static void expect(struct pair *p, int side, Rm__MoverEvent__BodyCase kind, const char *what, Rm__MoverEvent **ret) {
        Rm__MoverEvent *e = pair_expect(p, side, kind);

        check(e != NULL, what);
        if (ret)
                *ret = e;
        else
                rm__mover_event__free_unpacked(e, NULL);
}

static void trees_parse(const struct options *o, Rm__MoverTree *from, Rm__MoverTree *to) {
        for (size_t i = 0; i < o->n_trees; i++) {
                char *role = xstrdup(o->trees[i]);
                char *source = strchr(role, '=');
                char *target = source ? strchr(source, ':') : NULL;

                check(target != NULL, "a tree is ROLE=FROM:TO");
                *source++ = 0;
                *target++ = 0;
                rm__mover_tree__init(&from[i]);
                rm__mover_tree__init(&to[i]);
                from[i].role = to[i].role = role;
                from[i].path = source;
                to[i].path = target;
        }
}

static void run_once(const struct options *o, char *memory, Rm__MoverCodec codec, struct result *ret) {
        Rm__MoverTree from[8];
        Rm__MoverTree to[8];
        Rm__MoverTree *from_list[8];
        Rm__MoverTree *to_list[8];
        Rm__MoverEvent *e = NULL;
        uint32_t port;
        struct pair p;
        int codes[2];

        trees_parse(o, from, to);
        for (size_t i = 0; i < 8; i++) {
                from_list[i] = &from[i];
                to_list[i] = &to[i];
        }
        pair_start(&p, NULL);
        say_receive(&p, o, to_list, "0123456789abcdef");
        expect(&p, PAIR_RECEIVE, RM__MOVER_EVENT__BODY_LISTENING, "the receiver does not listen", &e);
        port = e->listening->port;
        rm__mover_event__free_unpacked(e, NULL);
        say_send(&p, o, port, "0123456789abcdef", codec);
        expect(&p, PAIR_SEND, RM__MOVER_EVENT__BODY_READY, "the sender does not get ready", NULL);
        pair_say_start(&p);
        if (o->command)
                check(system(o->command) == 0, "the dump failed");
        else
                dump_fake(o, memory);
        say_done(&p, from_list, o->n_trees);
        expect(&p, PAIR_RECEIVE, RM__MOVER_EVENT__BODY_RECEIVED, "nothing was received", NULL);
        expect(&p, PAIR_SEND, RM__MOVER_EVENT__BODY_ACKNOWLEDGED, "nothing was sent", &e);
        *ret = (struct result) {
                .total_usec = e->acknowledged->figures->total_usec,
                .capture_usec = e->acknowledged->figures->capture_usec,
                .wait_usec = e->acknowledged->figures->dump_wait_usec,
                .trees_usec = e->acknowledged->figures->trees_usec,
                .end_usec = e->acknowledged->figures->end_usec,
                .connect_usec = e->acknowledged->figures->connect_usec,
                .raw_bytes = e->acknowledged->figures->raw_bytes,
                .wire_bytes = e->acknowledged->figures->wire_bytes,
        };
        ret->mbps = (double) ret->raw_bytes / (double) ret->total_usec;
        rm__mover_event__free_unpacked(e, NULL);
        pair_finish(&p, codes);
        check(codes[0] == 0 && codes[1] == 0, "a mover ended badly");
}

static int by_rate(const void *a, const void *b) {
        double x = ((const struct result *) a)->mbps;
        double y = ((const struct result *) b)->mbps;

        return (x > y) - (x < y);
}

/* A place for keys and images of its own, unless told where. */
static void places_make(struct options *o) {
        char *key_file;

        o->base = xstrdup("/dev/shm/mover-bench.XXXXXX");
        check(mkdtemp(o->base) != NULL, "no place in /dev/shm");
        key_file = xasprintf("%s/key", o->base);
        check(write_file_atomic(key_file, "0123456789abcdef0123456789abcdef", 32, 0600, false) == 0, "no key");
        o->key_file = key_file;
        if (!o->images_dir)
                o->images_dir = o->base;
        if (!o->out_dir) {
                o->out_dir = xasprintf("%s/out", o->base);
                check(mkdir(o->out_dir, 0700) == 0, "no place for images");
        }
}

static void print(const struct options *o, const char *codec, struct result *results) {
        const struct result *m = &results[o->runs / 2];

        for (unsigned i = 0; o->lines && i < o->runs; i++)
                (void) printf("%s %.1f %llu\n", codec, (double) results[i].total_usec / 1e3,
                              (unsigned long long) results[i].wire_bytes);
        if (o->lines)
                return;
        qsort(results, o->runs, sizeof(results[0]), by_rate);
        (void) printf("%s %s %.0f MB/s (%.0f..%.0f), raw %.1f MiB, wire %.1f MiB, total %.1f ms: capture %.1f (waiting %.1f) trees "
                      "%.1f end %.1f; connect %.1f\n",
                      o->plain ? "plain" : "tls", codec, m->mbps, results[0].mbps, results[o->runs - 1].mbps,
                      (double) m->raw_bytes / 1048576.0, (double) m->wire_bytes / 1048576.0, (double) m->total_usec / 1e3,
                      (double) m->capture_usec / 1e3, (double) m->wait_usec / 1e3, (double) m->trees_usec / 1e3,
                      (double) m->end_usec / 1e3, (double) m->connect_usec / 1e3);
}

int main(int argc, char **argv) {
        static const struct argp_option list[] = {
                { "mib", 'm', "N", 0, "MiB of memory to carry (256)", 0 },
                { "zero", 'z', "PERCENT", 0, "of its pages are zero (0)", 0 },
                { "data", 'd', "KIND", 0, "random, zeros, doubles, or a file (random)", 0 },
                { "codec", 'x', "LIST", 0, "auto, none, lz4, zstd, in turn (auto)", 0 },
                { "lines", 'l', NULL, 0, "a line for each run: codec, ms, bytes sent", 0 },
                { "runs", 'n', "N", 0, "times (5)", 0 },
                { "out", 'o', "DIR", 0, "where images go", 0 },
                { "images", 'i', "DIR", 0, "where the capture socket is made", 0 },
                { "command", 'c', "COMMAND", 0, "a dump with --stream, instead of memory", 0 },
                { "tree", 't', "ROLE=FROM:TO", 0, "a directory to carry", 0 },
                { "plain", 'p', NULL, 0, "without TLS", 0 },
                { "keep", 'k', NULL, 0, "leave the images there", 0 },
                { 0 },
        };
        static const struct argp parser = {
                list, on_option, NULL, "Throughput of a pair of movers over loopback.", NULL, NULL, NULL
        };
        struct options o = { .mib = 256, .runs = 5, .n_codecs = 1 };
        static struct result results[CODECS_MAX][RUNS_MAX];
        char *memory;

        (void) argp_parse(&parser, argc, argv, 0, NULL, &o);
        check(o.runs >= 1 && o.runs <= RUNS_MAX, "runs: 1 to 101");
        (void) signal(SIGPIPE, SIG_IGN);
        places_make(&o);
        memory = memory_make(&o);
        for (unsigned i = 0; i < o.runs; i++)
                for (size_t k = 0; k < o.n_codecs; k++) {
                        run_once(&o, memory, o.codecs[k], &results[k][i]);
                        if (!o.keep) {
                                (void) remove_tree(o.out_dir);
                                (void) mkdir(o.out_dir, 0700);
                        }
                }
        for (size_t k = 0; k < o.n_codecs; k++)
                print(&o, codec_names[o.codecs[k]], results[k]);
        if (!o.keep)
                (void) remove_tree(o.base);
        return 0;
}
