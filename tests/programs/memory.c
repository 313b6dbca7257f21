/* Holds memory, part of it zero, verifies it again and again, and measures how long the world stood
 * still: each rank plays ping-pong with the one half a world away and reports the gaps between two
 * answers.
 *
 * usage: memory [--mb=N] [--zero-percent=P] [--seconds=S | --stop-file=F] [--gap-msec=G] [--alone]
 *         [--dirty | --dirty-percent=P] [--repeat]
 *               [--only-rank=R] [--shared] [--pause-usec=U]
 *   --mb            of each rank (default 64), or with --only-rank=R of that one, the others
 *                   holding 4
 *   --zero-percent  of it that was never written to but is there (default 25)
 *   --gap-msec      gaps from this length on are printed at once (default 50): "gap RANK USEC"
 *   --alone         no MPI, one process: what is measured beside rmd
 *   --dirty         goes on writing: every page gets new contents again and again
 *   --dirty-percent so many of them do
 *   --repeat        each page repeats its first 64 bytes, so that it can be compressed
 *   --pause-usec    after each MiB that was verified, and written (default 2000)
 *   --shared        it is a file in /dev/shm, mapped as shared memory, as that of
 *                   MPI_Win_allocate_shared() */
#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>

#include "common.h"

#define PAGE 4096U
#define REPEAT_WORDS 8U
#define PAGES_A_STEP 256U /* 1 MiB: verifying must not become the gap */

struct memory {
        int rank;
        int size;
        unsigned char *base;
        uint16_t *generation; /* of each page: how often it was written anew */
        size_t pages;
        unsigned zero_percent;
        unsigned dirty_percent;
        bool repeat;
        size_t next;
        uint64_t rounds;
        int64_t longest_usec;
        int64_t gap_usec;
        int64_t pause_usec;
};

/* Zero pages lie scattered between full ones, as in a real program's heap. */
static bool page_is_zero(const struct memory *m, size_t page) {
        return (page * 61 + 17) % 100 < m->zero_percent;
}

static bool page_is_dirtied(const struct memory *m, size_t page) {
        return (page * 37 + 5) % 100 < m->dirty_percent;
}

static uint64_t page_seed(const struct memory *m, size_t page) {
        return ((uint64_t) m->generation[page] << 48) ^ ((uint64_t) m->rank << 40) ^ page;
}

static void page_fill(const struct memory *m, size_t page) {
        uint64_t seed = page_seed(m, page);
        uint64_t *words = (uint64_t *) (void *) (m->base + page * PAGE);

        if (page_is_zero(m, page)) {
                memset(words, 0, PAGE);
                return;
        }
        for (size_t i = 0; i < PAGE / 8; i++)
                words[i] = m->repeat && i >= REPEAT_WORDS ? words[i - REPEAT_WORDS] : random_next(&seed);
}

static bool page_good(const struct memory *m, size_t page) {
        uint64_t seed = page_seed(m, page);
        const uint64_t *words = (const uint64_t *) (const void *) (m->base + page * PAGE);
        bool zero = page_is_zero(m, page);

        for (size_t i = 0; i < PAGE / 8; i++)
                if (words[i] != (zero ? 0 : m->repeat && i >= REPEAT_WORDS ? words[i - REPEAT_WORDS] : random_next(&seed)))
                        return false;
        return true;
}

static void fail(const struct memory *m, size_t page) {
        (void) fprintf(stderr, "memory: rank %d: page %zu is damaged\n", m->rank, page);
        if (m->size > 0)
                MPI_Abort(MPI_COMM_WORLD, 9);
        _exit(9);
}

static void step(struct memory *m) {
        for (size_t i = 0; i < PAGES_A_STEP; i++) {
                size_t page = m->next;

                if (!page_good(m, page))
                        fail(m, page);
                if (page_is_dirtied(m, page)) {
                        m->generation[page]++;
                        page_fill(m, page);
                }
                m->next = (m->next + 1) % m->pages;
                m->rounds += m->next == 0;
        }
}

/* Waits without taking the core from anybody, but looks often. */
static void wait_for(MPI_Request *request) {
        int done = 0;

        while (MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
                pause_usec(200);
}

static int64_t ping_pong(const struct memory *m, int partner) {
        uint64_t out = m->rounds;
        uint64_t in;
        MPI_Request requests[2];

        MPI_Irecv(&in, 1, MPI_UINT64_T, partner, 5, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&out, 1, MPI_UINT64_T, partner, 5, MPI_COMM_WORLD, &requests[1]);
        wait_for(&requests[1]);
        wait_for(&requests[0]);
        return now_usec();
}

static void note_gap(struct memory *m, int64_t gap_usec) {
        if (gap_usec > m->longest_usec)
                m->longest_usec = gap_usec;
        if (gap_usec < m->gap_usec)
                return;
        printf("gap %d %lld\n", m->rank, (long long) gap_usec);
        (void) fflush(stdout);
}

/* All stop after the same exchange: rank 0 decides some exchanges ahead, so that nobody waits for a
 * word from it. */
static bool agree(const struct memory *m, bool stop) {
        int go = !stop;

        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        return go;
}

static void run_in_world(struct memory *m, int64_t end_usec, const char *stop_file) {
        /* With an odd number of ranks the one in the middle plays with itself. */
        int partner = m->size % 2 ? m->size - 1 - m->rank : (m->rank + m->size / 2) % m->size;
        int64_t last = now_usec();
        bool go = true;

        while (go) {
                for (int i = 0; i < 100; i++) {
                        int64_t now = ping_pong(m, partner);

                        note_gap(m, now - last);
                        last = now;
                        step(m);
                        pause_usec(m->pause_usec);
                }
                go = agree(m, stop_file ? access(stop_file, F_OK) == 0 : now_usec() > end_usec);
        }
}

static void run_alone(struct memory *m, int64_t end_usec, const char *stop_file) {
        int64_t last = now_usec();

        while (stop_file ? access(stop_file, F_OK) != 0 : last < end_usec) {
                int64_t now;

                step(m);
                pause_usec(m->pause_usec);
                now = now_usec();
                note_gap(m, now - last);
                last = now;
        }
}

static unsigned char *map_memory(const struct memory *m, bool shared) {
        char name[64];
        void *base;
        int fd = -1;

        if (shared) {
                (void) snprintf(name, sizeof(name), "/memory.%d", m->rank);
                fd = shm_open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
                if (fd < 0 || ftruncate(fd, (off_t) (m->pages * PAGE)) < 0)
                        return MAP_FAILED;
        }
        base = mmap(NULL, m->pages * PAGE, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
        if (fd >= 0)
                (void) close(fd);
        return base;
}

int main(int argc, char **argv) {
        struct memory m = { .pages = (size_t) option_number(argc, argv, "mb", 64) * (1048576 / PAGE),
                            .zero_percent = (unsigned) option_number(argc, argv, "zero-percent", 25),
                            .dirty_percent = option_set(argc, argv, "dirty")
                                                     ? 100
                                                     : (unsigned) option_number(argc, argv, "dirty-percent", 0),
                            .repeat = option_set(argc, argv, "repeat"),
                            .gap_usec = option_number(argc, argv, "gap-msec", 50) * 1000,
                            .pause_usec = option_number(argc, argv, "pause-usec", 2000) };
        const char *stop_file = option_text(argc, argv, "stop-file", NULL);
        int64_t length = option_number(argc, argv, "seconds", 5) * 1000000;
        bool alone = option_set(argc, argv, "alone");
        long only_rank = option_number(argc, argv, "only-rank", -1);

        if (!alone) {
                MPI_Init(&argc, &argv);
                MPI_Comm_rank(MPI_COMM_WORLD, &m.rank);
                MPI_Comm_size(MPI_COMM_WORLD, &m.size);
        }
        if (only_rank >= 0 && m.rank != only_rank)
                m.pages = 4 * (1048576 / PAGE);
        m.base = map_memory(&m, option_set(argc, argv, "shared"));
        if (m.base == MAP_FAILED || m.pages == 0) {
                perror("memory: mmap");
                return 1;
        }
        m.generation = calloc(m.pages, sizeof(*m.generation));
        if (!m.generation)
                return 1;
        for (size_t page = 0; page < m.pages; page++)
                page_fill(&m, page);
        if (!alone)
                MPI_Barrier(MPI_COMM_WORLD);
        if (m.rank == 0) {
                printf("memory: running\n");
                (void) fflush(stdout);
        }
        if (alone)
                run_alone(&m, now_usec() + length, stop_file);
        else
                run_in_world(&m, now_usec() + length, stop_file);
        for (size_t page = 0; page < m.pages; page++)
                if (!page_good(&m, page))
                        fail(&m, page);
        printf("memory: rank %d good, longest gap %lld us\n", m.rank, (long long) m.longest_usec);
        if (!alone)
                MPI_Finalize();
        return 0;
}
