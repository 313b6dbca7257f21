/* Many users who mean harm to the rmd of this node: for SECONDS, one process for each uid from
 * FIRST on plays all of these at the local socket, each with connections of its own:
 *   silent   connects and says nothing; a connection that rmd closes is made again
 *   half     says hello and begins requests that it never ends, as large as rmd lets it
 *   deaf     asks for lists without end and never reads an answer
 *   flood    asks for lists without end and reads the answers
 *   huge     submits jobs with an environment of 900 kB that cannot run (no ranks), over and over
 *   noise    sends what is no request
 *   comer    connects and goes away
 * Rates are bounded, so that what is measured is rmd and not the machine: each connection acts
 * every 200 ms, which makes 34,000 actions a second of 200 users.
 * And they are nice: whether users leave each other a processor is the kernel's matter.
 * usage: hostile SOCKET SECONDS FIRST COUNT        (as root)
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NSEC 200000000L
#define BLOCK (1U << 20)

enum part { SILENT, HALF, DEAF, FLOOD, HUGE_JOBS, NOISE, COMER, PARTS };

/* Connections of one user in each part. */
static const int parts[PARTS] = { 16, 6, 4, 4, 1, 1, 2 };
#define MOST 64

struct client {
        enum part part;
        int fd;
        size_t sent; /* of the greeting and what follows it */
};

static struct sockaddr_un where = { .sun_family = AF_UNIX };
static uint8_t *half, *lists, *huge;
static size_t half_bytes, lists_bytes, huge_bytes;

static size_t header(uint8_t *out, uint32_t payload) {
        const uint8_t bytes[8] = { 'R',
                                   'M',
                                   'L',
                                   '1',
                                   (uint8_t) (payload >> 24),
                                   (uint8_t) (payload >> 16),
                                   (uint8_t) (payload >> 8),
                                   (uint8_t) payload };

        memcpy(out, bytes, sizeof(bytes));
        return sizeof(bytes);
}

static size_t add(uint8_t *out, const char *payload, size_t n) {
        size_t at = header(out, (uint32_t) n);

        memcpy(out + at, payload, n);
        return at + n;
}

static size_t hello(uint8_t *out) {
        return add(out, "\x08\x01\x52\x05\x08\x01\x12\x01x", 9);
}

static size_t varint(uint8_t *out, uint64_t v) {
        size_t n = 0;

        for (; v >= 128; v >>= 7)
                out[n++] = (uint8_t) (v | 128);
        out[n++] = (uint8_t) v;
        return n;
}

/* The messages that a user sends, made once. */
static void make_texts(void) {
        const size_t env = 900000;
        uint8_t inner[16], outer[16];
        size_t n;

        half = calloc(1, 5U << 20);
        n = hello(half);
        n += header(half + n, 4000000);
        memcpy(half + n, "\x08\x02\x5a", 3); /* a submission */
        half_bytes = n + 3999999;

        lists = calloc(1, BLOCK);
        lists_bytes = hello(lists);
        while (lists_bytes < BLOCK - 100) {
                lists_bytes += add(lists + lists_bytes, "\x08\x03\x8a\x01\x02\x10\x01", 7); /* list-jobs --all */
                lists_bytes += add(lists + lists_bytes, "\x08\x04\xaa\x01\x00", 5);         /* status */
                lists_bytes += add(lists + lists_bytes, "\x08\x05\xb2\x01\x00", 5);         /* list-moves */
                lists_bytes += add(lists + lists_bytes, "\x08\x06\xba\x01\x00", 5);         /* events */
                lists_bytes += add(lists + lists_bytes, "\x08\x07\x82\x01\x00", 5);         /* list-nodes */
        }

        /* LocalRequest { id, submit_job { spec { env, cwd } } } */
        size_t text = varint(inner, env);
        size_t spec = 1 + text + env + 3;
        size_t submit = 1 + varint(outer, spec) + spec;

        huge = calloc(1, 3U << 20);
        huge_bytes = hello(huge);
        for (int k = 0; k < 2; k++) {
                size_t at = huge_bytes;

                n = at + 8;
                memcpy(huge + n, "\x08\x09\x5a", 3);
                n += 3;
                n += varint(huge + n, submit);
                huge[n++] = 0x0a;
                n += varint(huge + n, spec);
                huge[n++] = 0x3a;
                n += varint(huge + n, env);
                memset(huge + n, 'x', env);
                n += env;
                memcpy(huge + n, "\x42\x01/", 3);
                n += 3;
                (void) header(huge + at, (uint32_t) (n - at - 8));
                huge_bytes = n;
        }
}

static void lose(struct client *c) {
        (void) close(c->fd);
        c->fd = -1;
        c->sent = 0;
}

static void meet(struct client *c) {
        c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (c->fd >= 0 && connect(c->fd, (struct sockaddr *) &where, sizeof(where)) < 0)
                lose(c);
}

/* Everything that has come; false when the connection is over. */
static int drain(struct client *c) {
        static uint8_t bytes[65536];
        ssize_t n;

        while ((n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
                ;
        return n < 0 && errno == EAGAIN;
}

/* Goes on sending `text`; from the beginning of `again` when it is through. */
static void report(struct client *c, const uint8_t *text, size_t bytes, size_t again) {
        ssize_t n = 1;

        for (int i = 0; i < 4 && n > 0; i++) {
                if (c->sent == bytes && again > 0)
                        c->sent = again;
                n = send(c->fd, text + c->sent, bytes - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
                if (n > 0)
                        c->sent += (size_t) n;
        }
        if (n < 0 && errno != EAGAIN)
                lose(c);
}

static void act(struct client *c) {
        const size_t greeting = 17;
        uint8_t *noise = half + 100;
        char byte;

        if (c->fd < 0) {
                meet(c);
                if (c->fd < 0)
                        return;
        }
        switch (c->part) {
        case SILENT:
                if (recv(c->fd, &byte, 1, MSG_DONTWAIT) == 0)
                        lose(c);
                break;
        case HALF:
                report(c, half, half_bytes, 0);
                if (c->fd >= 0 && !drain(c))
                        lose(c);
                break;
        case DEAF:
                report(c, lists, lists_bytes, greeting);
                break;
        case FLOOD:
                report(c, lists, lists_bytes, greeting);
                if (c->fd >= 0 && !drain(c))
                        lose(c);
                break;
        case HUGE_JOBS:
                report(c, huge, huge_bytes, greeting);
                if (c->fd >= 0 && !drain(c))
                        lose(c);
                break;
        case NOISE:
                report(c, noise, 1000, 0);
                if (c->fd >= 0 && !drain(c))
                        lose(c);
                break;
        case COMER:
        default:
                lose(c);
                break;
        }
}

static void play(uid_t uid, time_t end) {
        const struct timespec pause = { .tv_nsec = PAUSE_NSEC };
        struct client clients[MOST];
        int n = 0;

        if (nice(10) < 0 || setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
                _exit(2);
        for (int part = 0; part < PARTS; part++)
                for (int i = 0; i < parts[part] && n < MOST; i++)
                        clients[n++] = (struct client) { .part = (enum part) part, .fd = -1 };
        while (time(NULL) < end) {
                for (int i = 0; i < n; i++)
                        act(&clients[i]);
                (void) nanosleep(&pause, NULL);
        }
        _exit(0);
}

int main(int argc, char **argv) {
        time_t end;
        int first, count;

        if (argc != 5 || strlen(argv[1]) >= sizeof(where.sun_path)) {
                (void) fprintf(stderr, "usage: hostile SOCKET SECONDS FIRST COUNT\n");
                return 2;
        }
        strcpy(where.sun_path, argv[1]);
        end = time(NULL) + atoi(argv[2]);
        first = atoi(argv[3]);
        count = atoi(argv[4]);
        make_texts();
        for (int i = 0; i < count; i++)
                if (fork() == 0)
                        play((uid_t) (first + i), end);
        while (wait(NULL) > 0)
                ;
        return 0;
}
