#include "rtlib/ft/program_socket.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/program_socket.h"
#include "proto/program.pb-c.h"
#include "rtlib/ft/watch.h"

#define HELLO_MSEC 1000
#define HELLO_TIMES 10
#define FINISHED_MSEC 100
#define FINISHED_TIMES 100
#define STACK_BYTES (256 * 1024)

static const struct sockaddr_un program_socket = { .sun_family = AF_UNIX, .sun_path = PROGRAM_SOCKET_PATH };

static struct {
        _Atomic int fd;
        struct sockaddr_un name;
        socklen_t name_bytes;
        uint32_t rank;
        struct losses *losses;
        atomic_uint received; /* answers to what it said */
} here = { .fd = -1 };

bool program_socket_is_requested(void) {
        const char *wish = getenv("RM_ON_RANK_LOSS");

        return wish && strcmp(wish, "continue") == 0 && access(PROGRAM_SOCKET_PATH, F_OK) == 0;
}

/* The program may have closed it unknowingly, and have something else there now. */
static bool is_ours(int fd) {
        struct sockaddr_un name;
        socklen_t bytes = sizeof(name);

        return fd >= 0 && getsockname(fd, (struct sockaddr *) &name, &bytes) == 0 && bytes == here.name_bytes &&
               memcmp(&name, &here.name, bytes) == 0;
}

static int open_socket(void) {
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

        if (fd < 0)
                return -errno;
        if (bind(fd, (const struct sockaddr *) &here.name, here.name_bytes) < 0) {
                r = -errno;
                (void) close(fd);
                return r;
        }
        here.fd = fd;
        return 0;
}

static void say(Program__Loss__Step step, uint32_t count) {
        Program__Loss loss = PROGRAM__LOSS__INIT;
        Program__Request request = PROGRAM__REQUEST__INIT;
        uint8_t data[PROGRAM_SOCKET_MESSAGE_BYTES];
        int fd = here.fd;

        loss.step = step;
        loss.rank = here.rank;
        loss.count = count;
        request.body_case = PROGRAM__REQUEST__BODY_LOSS;
        request.loss = &loss;
        if (is_ours(fd))
                (void) sendto(fd, data, program__request__pack(&request, data), MSG_NOSIGNAL | MSG_DONTWAIT,
                              (const struct sockaddr *) &program_socket, sizeof(program_socket));
}

static void apply_loss(const Program__Loss *loss) {
        if (loss->step == PROGRAM__LOSS__STEP__RECEIVED)
                here.received++;
        else if (loss->step == PROGRAM__LOSS__STEP__LOST)
                say(PROGRAM__LOSS__STEP__KNOWN, losses_add(here.losses, loss->from, loss->lost, loss->n_lost));
}

static void receive(void) {
        uint8_t data[PROGRAM_SOCKET_MESSAGE_BYTES + 1];
        ssize_t n;

        while (is_ours(here.fd) && (n = recv(here.fd, data, sizeof(data), MSG_DONTWAIT)) >= 0) {
                Program__Notice *notice =
                        n <= PROGRAM_SOCKET_MESSAGE_BYTES ? program__notice__unpack(NULL, (size_t) n, data) : NULL;

                if (notice && notice->body_case == PROGRAM__NOTICE__BODY_LOSS)
                        apply_loss(notice->loss);
                if (notice)
                        program__notice__free_unpacked(notice, NULL);
        }
}

/* Waits for so long, or until something is heard. Returns how long it has waited: no longer than it
 * was to, so that the time for which a move froze the process does not count. */
static int wait_msec(struct pollfd *fd, int msec) {
        struct timespec start, now;
        int64_t waited;

        (void) clock_gettime(CLOCK_MONOTONIC, &start);
        (void) poll(fd, 1, msec);
        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        waited = (now.tv_sec - start.tv_sec) * INT64_C(1000) + (now.tv_nsec - start.tv_nsec) / 1000000;
        return waited < msec ? (int) waited : msec;
}

static void *run(void *arg) {
        int msec = HELLO_MSEC;

        for (;;) {
                struct pollfd fd = { .fd = here.fd, .events = POLLIN };

                if (here.received == 0)
                        say(PROGRAM__LOSS__STEP__HELLO, 0);
                if (!is_ours(here.fd) && open_socket() < 0)
                        fd.fd = -1;
                msec = wait_msec(&fd, msec);
                receive();
                msec = watch_tick(msec);
        }
        return NULL;
}

static int start_thread(void) {
        sigset_t all, before;
        pthread_attr_t attr;
        pthread_t thread;
        int r;

        (void) sigfillset(&all);
        (void) pthread_attr_init(&attr);
        (void) pthread_attr_setstacksize(&attr, STACK_BYTES);
        (void) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        (void) pthread_sigmask(SIG_SETMASK, &all, &before);
        r = -pthread_create(&thread, &attr, run, NULL);
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        (void) pthread_attr_destroy(&attr);
        return r;
}

/* Waits for rmd's first answer: a rank that rmd does not know is not missed when it ends. */
static int await_answer(void) {
        const struct timespec pause = { .tv_nsec = 1000000 };

        for (int i = 0; here.received == 0; i++) {
                if (i == HELLO_TIMES * HELLO_MSEC)
                        return -ETIMEDOUT;
                (void) nanosleep(&pause, NULL);
        }
        return 0;
}

int program_socket_start(uint32_t rank, struct losses *losses) {
        int r;

        here.rank = rank;
        here.losses = losses;
        here.name_bytes = program_socket_ft_address(rank, &here.name);
        r = open_socket();
        if (r == 0)
                r = start_thread();
        return r < 0 ? r : await_answer();
}

void program_socket_finish(void) {
        const struct timespec pause = { .tv_nsec = FINISHED_MSEC * 1000000L / 10 };
        unsigned received = here.received;

        for (int i = 0; here.received == received && i < FINISHED_TIMES * 10; i++) {
                if (i % 10 == 0)
                        say(PROGRAM__LOSS__STEP__FINISHED, 0);
                (void) nanosleep(&pause, NULL);
        }
}
