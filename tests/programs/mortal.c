/* Ranks that say what librmrt-ft says at the program socket, and nothing of MPI: what rmd makes of
 * their words and of their ends can be seen without what MPI makes of them.
 *
 * usage: mortal --stop-file=F [--silent] [--quitter=R] [--liar=R]
 *   --stop-file  until it exists; then they have finished
 *   --silent     no rank says anything
 *   --quitter    this rank then ends without having finished, with exit code 0
 *   --liar       this rank says all that it says for all ranks, and much that means nothing
 *
 * Each prints "mortal: rank R is heard", "mortal: rank R knows of N lost: ..." when it hears of
 * more, and "mortal: rank R ends". */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common.h"

enum { HELLO, RECEIVED, LOST, KNOWN, FINISHED };
enum { LOST_MAX = 1024, MSEC_HELLO = 1000, MSEC_FINISHED = 100, FINISHED_TIMES = 100 };

struct word {
        uint64_t fields[5]; /* by number, 1 to 4 */
        uint32_t lost[LOST_MAX];
        size_t n_lost;
};

struct mortal {
        int fd;
        uint32_t rank;
        uint32_t ranks;
        bool lies;
        bool received;
        uint32_t lost[LOST_MAX];
        size_t n_lost;
};

/* ---- proto/program.proto by hand ---- */

static size_t put_number(uint8_t *to, uint64_t value) {
        size_t n = 0;

        for (; value > 127; value >>= 7)
                to[n++] = (uint8_t) (value | 128);
        to[n++] = (uint8_t) value;
        return n;
}

static bool get_number(const uint8_t **at, const uint8_t *end, uint64_t *ret) {
        *ret = 0;
        for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
                uint8_t byte = *(*at)++;

                *ret |= (uint64_t) (byte & 127) << shift;
                if (!(byte & 128))
                        return true;
        }
        return false;
}

static bool get_list(const uint8_t **at, const uint8_t *end, struct word *word) {
        uint64_t size, rank;
        const uint8_t *last;

        if (!get_number(at, end, &size) || size > (uint64_t) (end - *at))
                return false;
        last = *at + size;
        while (*at < last && word->n_lost < LOST_MAX) {
                if (!get_number(at, last, &rank))
                        return false;
                word->lost[word->n_lost++] = (uint32_t) rank;
        }
        return *at == last;
}

/* Notice.loss */
static bool get_word(const uint8_t *data, size_t size, struct word *word) {
        const uint8_t *at = data, *end = data + size;
        uint64_t key, value;

        memset(word, 0, sizeof(*word));
        if (!get_number(&at, end, &key) || key != (4 << 3 | 2) || !get_number(&at, end, &value) || value != (uint64_t) (end - at))
                return false;
        while (at < end) {
                if (!get_number(&at, end, &key))
                        return false;
                if (key == (5 << 3 | 2)) {
                        if (!get_list(&at, end, word))
                                return false;
                } else if (key >> 3 > 4 || key & 7 || !get_number(&at, end, &word->fields[key >> 3])) {
                        return false;
                }
        }
        return true;
}

/* Request.loss */
static void say_for(const struct mortal *m, unsigned word, uint32_t rank, uint64_t count) {
        static const struct sockaddr_un program_socket = { .sun_family = AF_UNIX, .sun_path = "/run/rm/door" };
        uint8_t data[64] = { 5 << 3 | 2, 0 };
        size_t n = 2;

        data[n++] = 1 << 3;
        n += put_number(data + n, word);
        data[n++] = 2 << 3;
        n += put_number(data + n, rank);
        data[n++] = 3 << 3;
        n += put_number(data + n, count);
        data[1] = (uint8_t) (n - 2);
        (void) sendto(m->fd, data, n, MSG_DONTWAIT, (const struct sockaddr *) &program_socket, sizeof(program_socket));
}

static void say(const struct mortal *m, unsigned word, uint64_t count) {
        for (uint32_t rank = 0; m->lies && rank < m->ranks + 3; rank++) {
                say_for(m, word, rank, count);
                say_for(m, FINISHED, rank + 1, UINT32_MAX);
                say_for(m, KNOWN, rank, UINT32_MAX);
                say_for(m, 77, rank, 1);
        }
        if (!m->lies)
                say_for(m, word, m->rank, count);
}

/* ---- what it hears ---- */

static void take_lost(struct mortal *m, const struct word *word) {
        uint64_t from = word->fields[4];

        for (size_t i = 0; i < word->n_lost; i++)
                if (from + i == m->n_lost && m->n_lost < LOST_MAX)
                        m->lost[m->n_lost++] = word->lost[i];
        say(m, KNOWN, m->n_lost);
        if (m->n_lost < word->fields[3] || from + word->n_lost < m->n_lost)
                return;
        (void) printf("mortal: rank %u knows of %zu lost:", m->rank, m->n_lost);
        for (size_t i = 0; i < m->n_lost; i++)
                (void) printf(" %u", m->lost[i]);
        (void) printf("\n");
        (void) fflush(stdout);
}

/* Waits for so long at most. */
static void listen_for(struct mortal *m, int msec) {
        struct pollfd p = { .fd = m->fd, .events = POLLIN };
        uint8_t data[256];
        struct word word;
        ssize_t n;

        if (poll(&p, 1, msec) <= 0)
                return;
        n = recv(m->fd, data, sizeof(data), MSG_DONTWAIT);
        if (n <= 0 || !get_word(data, (size_t) n, &word) || word.fields[2] != m->rank)
                return;
        if (word.fields[1] == RECEIVED) {
                if (!m->received)
                        (void) printf("mortal: rank %u is heard\n", m->rank);
                (void) fflush(stdout);
                m->received = true;
        }
        if (word.fields[1] == LOST && word.n_lost > 0)
                take_lost(m, &word);
}

static void open_ear(struct mortal *m) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        size_t base = offsetof(struct sockaddr_un, sun_path) + 1;
        int n = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "rm/ft/%u", m->rank);

        m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (m->fd < 0 || bind(m->fd, (const struct sockaddr *) &address, (socklen_t) (base + (size_t) n)) < 0) {
                perror("mortal: no socket");
                exit(3);
        }
}

static void live(struct mortal *m, const char *stop_file, bool silent) {
        for (unsigned i = 0; access(stop_file, F_OK) < 0; i++) {
                if (!silent && i % (MSEC_HELLO / 20) == 0 && (!m->received || m->lies))
                        say(m, HELLO, 0);
                listen_for(m, 20);
        }
}

static void finish(struct mortal *m) {
        m->received = false;
        for (unsigned i = 0; i < FINISHED_TIMES && !m->received; i++) {
                say_for(m, FINISHED, m->rank, 0);
                listen_for(m, MSEC_FINISHED);
        }
}

static uint32_t number_of(const char *name) {
        const char *text = getenv(name);

        return text ? (uint32_t) strtoul(text, NULL, 10) : 0;
}

int main(int argc, char **argv) {
        const char *stop_file = option_text(argc, argv, "stop-file", "/nowhere");
        bool silent = option_set(argc, argv, "silent");
        struct mortal m = { .rank = number_of("OMPI_COMM_WORLD_RANK"), .ranks = number_of("OMPI_COMM_WORLD_SIZE") };

        m.lies = (long) m.rank == option_number(argc, argv, "liar", -1);
        open_ear(&m);
        if (m.rank == 0)
                (void) printf("mortal: running\n");
        (void) fflush(stdout);
        live(&m, stop_file, silent);
        if (!silent && (long) m.rank != option_number(argc, argv, "quitter", -1))
                finish(&m);
        (void) printf("mortal: rank %u ends\n", m.rank);
        return 0;
}
