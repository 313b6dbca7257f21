/* A program that grows and shrinks, and speaks with PID 1 of its capsule by itself, without librmrt
 * (proto/program.proto). Its active ranks add up their numbers, over and over, and one wrong sum
 * ends it with 1.
 *
 * usage: resizes --stop-file=FILE [--gap-usec=N] [--fail-file=FILE] [--dawdle-file=FILE]
 *         [--communicators=N] [--silent]
 *   --fail-file  rank 1 ends with 7 once it is there    --silent  says nothing of its end
 *   --communicators=N  makes and frees so many, tells what each leaves behind, and ends
 *   --dawdle-file  as long as it is there no change that has begun is done: rank 0 keeps the others
 *                  waiting */
#include <mpi.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common.h"

enum word { ASK, REQUESTED, BEGIN, BEGUN, MADE, PARKED, WAKE, AWAKE, FINISH, END, RECEIVED };

struct resize {
        uint64_t word, rank, epoch, ranks;
};

static int rank, size, program_socket = -1;
static uint64_t active, epoch; /* of the world that this rank is or was in last */
static const struct sockaddr_un program_socket_address = { .sun_family = AF_UNIX, .sun_path = "/run/rm/door" };

/* ---- messages, as protobuf has them ---- */

static size_t put(unsigned char *data, size_t n, unsigned field, uint64_t value) {
        data[n++] = (unsigned char) (field << 3);
        for (; value >= 128; value >>= 7)
                data[n++] = (unsigned char) (value | 128);
        data[n++] = (unsigned char) value;
        return n;
}

static void say(enum word word, uint64_t of_epoch, uint64_t ranks) {
        unsigned char body[64], data[80];
        size_t n = put(body, 0, 1, word);

        n = put(body, n, 2, (uint64_t) rank);
        n = put(body, n, 3, of_epoch);
        n = put(body, n, 4, ranks);
        data[0] = 4 << 3 | 2; /* Request.resize */
        data[1] = (unsigned char) n;
        memcpy(data + 2, body, n);
        (void) sendto(program_socket, data, n + 2, MSG_DONTWAIT, (const struct sockaddr *) &program_socket_address,
                      sizeof(program_socket_address));
}

static uint64_t take_number(const unsigned char *data, size_t n, size_t *at) {
        uint64_t value = 0;

        for (int shift = 0; *at < n && shift < 64; shift += 7) {
                unsigned char byte = data[(*at)++];

                value |= (uint64_t) (byte & 127) << shift;
                if (!(byte & 128))
                        break;
        }
        return value;
}

/* A Notice: its serial is passed over. */
static bool read_notice(const unsigned char *data, size_t n, struct resize *ret) {
        uint64_t values[5] = { 0 };
        size_t at = 0;
        bool found = false;

        while (at < n) {
                unsigned char key = data[at++];
                uint64_t value = take_number(data, n, &at);

                if (key == (3 << 3 | 2))
                        found = true; /* what follows are its fields */
                else if (found && key >> 3 < 5)
                        values[key >> 3] = value;
        }
        *ret = (struct resize) { values[1], values[2], values[3], values[4] };
        return found;
}

static bool receive(int timeout_msec, struct resize *ret) {
        struct pollfd poll_fd = { .fd = program_socket, .events = POLLIN };
        unsigned char data[256];
        ssize_t n;

        if (timeout_msec != 0 && poll(&poll_fd, 1, timeout_msec) <= 0)
                return false;
        n = recv(program_socket, data, sizeof(data), MSG_DONTWAIT);
        return n > 0 && read_notice(data, (size_t) n, ret);
}

/* Says it until it is heard, or 10 s. */
static void insist(enum word word, uint64_t of_epoch, uint64_t ranks) {
        for (int i = 0; i < 100; i++) {
                struct resize notice;

                say(word, of_epoch, ranks);
                if (receive(100, &notice) && notice.word == RECEIVED && (word == FINISH || notice.epoch == of_epoch))
                        return;
        }
}

static void listen_as_rank(void) {
        struct sockaddr_un name = { .sun_family = AF_UNIX };
        int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "rm/rank/%d", rank);

        program_socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (program_socket < 0 || bind(program_socket, (const struct sockaddr *) &name,
                                       (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) n)) < 0) {
                perror("resizes: cannot listen");
                MPI_Abort(MPI_COMM_WORLD, 2);
        }
}

/* ---- worlds ---- */

static MPI_Comm make_world(void) {
        int range[1][3] = { { 0, (int) active - 1, 1 } };
        MPI_Group all, group;
        MPI_Comm comm;

        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Group_range_incl(all, 1, range, &group);
        MPI_Comm_create_group(MPI_COMM_WORLD, group, (int) (epoch % 32768), &comm);
        MPI_Group_free(&all);
        MPI_Group_free(&group);
        return comm;
}

/* False: the program ends. */
static bool wait_parked(void) {
        bool received = false;

        say(PARKED, epoch, 0);
        for (;;) {
                struct resize notice = { 0 };

                if (!receive(received ? -1 : 1000, &notice)) {
                        if (!received)
                                say(PARKED, epoch, 0);
                        continue;
                }
                if (notice.word == RECEIVED && notice.epoch == epoch)
                        received = true;
                if (notice.word != END && (notice.word != WAKE || notice.epoch <= epoch || notice.ranks <= (uint64_t) rank))
                        continue;
                say(AWAKE, notice.epoch, 0);
                epoch = notice.epoch;
                active = notice.ranks;
                return notice.word == WAKE;
        }
}

/* The message of rank 0 to the others at each step. */
enum { EPOCH, RANKS, STOP, FIELDS };

static void scan(uint64_t *now, const char *stop_file) {
        static uint64_t requested_epoch, requested_ranks;
        static int64_t next;
        struct resize notice;

        now[EPOCH] = now[RANKS] = 0;
        now[STOP] = access(stop_file, F_OK) == 0;
        while (receive(0, &notice)) {
                if (notice.epoch <= epoch)
                        continue;
                if (notice.word == REQUESTED) {
                        requested_epoch = notice.epoch;
                        requested_ranks = notice.ranks;
                        next = 0;
                } else if (notice.word == BEGUN) {
                        now[EPOCH] = notice.epoch;
                        now[RANKS] = notice.ranks;
                        requested_epoch = 0;
                        return;
                }
        }
        if (now_usec() < next)
                return;
        next = now_usec() + (requested_epoch ? 100000 : 1000000);
        if (requested_epoch && requested_ranks != active)
                say(BEGIN, requested_epoch, requested_ranks);
        else
                say(ASK, epoch, active);
}

static bool add_up(MPI_Comm world) {
        long mine = rank, sum = 0, expected = (long) active * ((long) active - 1) / 2;

        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, world);
        if (sum == expected)
                return true;
        (void) printf("resizes: rank %d: the sum of %lu ranks is %ld, not %ld\n", rank, (unsigned long) active, sum, expected);
        return false;
}

/* Changes the world. The new one of a rank that is not in it any more is MPI_COMM_NULL. */
static MPI_Comm change(MPI_Comm world, const uint64_t *to, const char *dawdle_file) {
        bool stays = (uint64_t) rank < to[RANKS];

        MPI_Barrier(world);
        MPI_Comm_free(&world);
        epoch = to[EPOCH];
        active = to[RANKS];
        if (!stays)
                return MPI_COMM_NULL;
        world = make_world();
        while (rank == 0 && dawdle_file && access(dawdle_file, F_OK) == 0)
                pause_usec(20000);
        MPI_Barrier(world);
        if (rank == 0) {
                insist(MADE, epoch, active);
                (void) printf("resizes: %lu ranks\n", (unsigned long) active);
                (void) fflush(stdout);
        }
        return world;
}

static long resident_kib(void) {
        FILE *file = fopen("/proc/self/status", "re");
        char line[256];
        long kib = 0;

        while (file && fgets(line, sizeof(line), file))
                if (strncmp(line, "RssAnon:", 8) == 0)
                        kib = strtol(line + 8, NULL, 10);
        if (file)
                (void) fclose(file);
        return kib;
}

/* Measures how much memory Open MPI keeps of a communicator that is freed, without rmd: to know
 * whether Open MPI or rmd makes a program grow. The communicators have all ranks and two of them in
 * turns, and those within one node leave nothing. */
static void make_communicators(long n) {
        long before = 0;

        for (long i = 0; i < n + n / 10; i++) {
                uint64_t none[FIELDS] = { 0 };
                MPI_Comm world;

                if (i == n / 10)
                        before = resident_kib();
                epoch++;
                active = i % 2 ? 2 : (uint64_t) size;
                if ((uint64_t) rank >= active)
                        continue;
                world = make_world();
                MPI_Barrier(world);
                if (!add_up(world))
                        exit(1);
                MPI_Bcast(none, FIELDS, MPI_UINT64_T, 0, world);
                MPI_Barrier(world);
                MPI_Comm_free(&world);
        }
        if (rank == 0)
                (void) printf("resizes: each communicator of all leaves %ld bytes\n", (resident_kib() - before) * 1024 / (n / 2));
}

int main(int argc, char **argv) {
        const char *stop_file = option_text(argc, argv, "stop-file", "/nowhere");
        const char *fail_file = option_text(argc, argv, "fail-file", NULL);
        const char *dawdle_file = option_text(argc, argv, "dawdle-file", NULL);
        long communicators = option_number(argc, argv, "communicators", 0);
        long gap_usec = option_number(argc, argv, "gap-usec", 2000);
        const char *text = getenv("RM_ACTIVE_RANKS");
        bool good = true, ends = false;
        uint64_t now[FIELDS] = { 0 };
        MPI_Comm world = MPI_COMM_NULL;
        long steps = 0;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        if (communicators > 0) {
                make_communicators(communicators);
                MPI_Finalize();
                return 0;
        }
        listen_as_rank();
        active = text ? strtoul(text, NULL, 10) : (uint64_t) size;
        if ((uint64_t) rank < active)
                world = make_world();
        if (rank == 0)
                (void) printf("resizes: running, %lu of %d ranks\n", (unsigned long) active, size);
        (void) fflush(stdout);
        while (good && !ends) {
                if (world == MPI_COMM_NULL) {
                        if (!wait_parked())
                                break;
                        world = make_world();
                        MPI_Barrier(world);
                }
                if (rank == 1 && fail_file && access(fail_file, F_OK) == 0)
                        exit(7);
                good = add_up(world);
                if (rank == 0)
                        scan(now, stop_file);
                MPI_Bcast(now, FIELDS, MPI_UINT64_T, 0, world);
                ends = now[STOP] != 0;
                if (now[EPOCH] && !ends)
                        world = change(world, now, dawdle_file);
                pause_usec(gap_usec);
                steps++;
        }
        if (rank == 0 && !option_set(argc, argv, "silent"))
                insist(FINISH, epoch, active);
        if (rank == 0)
                (void) printf("resizes: %s after %ld steps on %lu ranks\n", good ? "ends well" : "fails", steps,
                              (unsigned long) active);
        MPI_Finalize();
        return good ? 0 : 1;
}
