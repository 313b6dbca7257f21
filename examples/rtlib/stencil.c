/* Heat in a plate: each rank has some of its rows, and exchanges their edges with its neighbours in
 * each step.
 *
 *      mpicc -O2 -o stencil stencil.c $(pkg-config --cflags --libs rmrt rmrt-checkpoint) -lm
 *      rm-mpirun -n 4 ./stencil 100000
 *      rm-mpirun -n 4 ./stencil 100000 10 1000
 *      rm-mpirun -n 4 --max-ranks 16 ./stencil 100000
 *
 * What it tells rmd are four calls: `rmctl list-jobs` shows how far it is, and `rmctl show-job`
 * when it will end. Under a plain mpirun these do nothing. With a third number it saves the plate
 * after so many steps and at the end, and goes on from there when it is started again, on as many
 * ranks as it then has: under rmd, under a plain mpirun, and built with another MPI. With
 * --max-ranks it grows and shrinks while it runs, as rmd wants. It ends early once the file exists
 * that a fourth argument names. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rm/rmrt.h>
#include <rm/rmrt_mpi.h>
#include <rm/rmrt_resize.h>

#define WIDTH 256
#define ROWS 256 /* of all ranks */
#define STOP_EVERY 50 /* steps: rank 0 looks for the file that ends the program */

struct plate {
        MPI_Comm comm; /* MPI_COMM_NULL: this rank has none of it */
        int rank, size;
        int rows; /* of this rank; around them one of each neighbour */
        double *now, *next;
};

static double *row(double *plate, int number) {
        return plate + (size_t) number * WIDTH;
}

static double *make_rows(int n) {
        double *rows = calloc((size_t) n * WIDTH, sizeof(*rows));

        if (!rows)
                MPI_Abort(MPI_COMM_WORLD, 1);
        return rows;
}

/* The upper edge of the plate is hot, the others are cold. */
static void make_plate(struct plate *p, MPI_Comm comm) {
        *p = (struct plate) { .comm = comm };
        if (comm != MPI_COMM_NULL) {
                MPI_Comm_rank(comm, &p->rank);
                MPI_Comm_size(comm, &p->size);
                p->rows = ROWS * (p->rank + 1) / p->size - ROWS * p->rank / p->size;
        }
        p->now = make_rows(p->rows + 2);
        p->next = make_rows(p->rows + 2);
        for (int x = 0; p->rank == 0 && x < WIDTH; x++)
                row(p->now, 0)[x] = row(p->next, 0)[x] = 100;
}

static void free_plate(struct plate *p) {
        if (p->comm != MPI_COMM_NULL)
                MPI_Comm_free(&p->comm);
        free(p->now);
        free(p->next);
}

static void exchange_edges(struct plate *p) {
        int up = p->rank > 0 ? p->rank - 1 : MPI_PROC_NULL;
        int down = p->rank + 1 < p->size ? p->rank + 1 : MPI_PROC_NULL;

        MPI_Sendrecv(row(p->now, 1), WIDTH, MPI_DOUBLE, up, 0, row(p->now, p->rows + 1), WIDTH, MPI_DOUBLE, down, 0, p->comm,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(row(p->now, p->rows), WIDTH, MPI_DOUBLE, down, 1, row(p->now, 0), WIDTH, MPI_DOUBLE, up, 1, p->comm,
                     MPI_STATUS_IGNORE);
}

static void step(struct plate *p) {
        double *swap = p->now;

        exchange_edges(p);
        for (int y = 1; y <= p->rows; y++)
                for (int x = 1; x < WIDTH - 1; x++)
                        row(p->next, y)[x] = (row(p->now, y - 1)[x] + row(p->now, y + 1)[x] + row(p->now, y)[x - 1] + row(p->now, y)[x + 1]) / 4;
        p->now = p->next;
        p->next = swap;
}

/* The sum is built row by row in their order, so that it is the same for each number of ranks. */
static double heat(struct plate *p) {
        double sum = 0;

        if (p->rank > 0)
                MPI_Recv(&sum, 1, MPI_DOUBLE, p->rank - 1, 2, p->comm, MPI_STATUS_IGNORE);
        for (int y = 1; y <= p->rows; y++)
                for (int x = 0; x < WIDTH; x++)
                        sum += row(p->now, y)[x];
        if (p->rank + 1 < p->size)
                MPI_Send(&sum, 1, MPI_DOUBLE, p->rank + 1, 2, p->comm);
        MPI_Bcast(&sum, 1, MPI_DOUBLE, p->size - 1, p->comm);
        return sum;
}

/* Rows change their places at each step. */
static void save(struct plate *p, int64_t *done, bool restore) {
        int r = rmrt_register("plate", row(p->now, 1), (size_t) p->rows * WIDTH, MPI_DOUBLE, RMRT_BLOCK);

        if (r == 0)
                r = rmrt_register("done", done, 1, MPI_INT64_T, RMRT_REPLICATED);
        if (r == 0)
                r = restore ? rmrt_restore(p->comm) : rmrt_save(p->comm);
        if (p->rank == 0 && *rmrt_checkpoint_error())
                fprintf(stderr, "stencil: %s\n", rmrt_checkpoint_error());
        if (r < 0)
                MPI_Abort(MPI_COMM_WORLD, 1);
        if (p->rank == 0 && restore && r != RMRT_RESTORED_NOTHING)
                printf("goes on after %ld steps\n", (long) *done);
}

/* Changes to as many ranks as are wanted; at the beginning these are the first. False: the program
 * has ended without this rank. */
static bool resize(struct plate *p, int64_t *done, bool restore) {
        struct rmrt_resize event;
        struct plate old;
        MPI_Comm comm;

        do {
                if (rmrt_resize_point(p->comm, &comm, &event) < 0)
                        MPI_Abort(MPI_COMM_WORLD, 1);
                if (event.kind != RMRT_RESIZED)
                        return event.kind == RMRT_UNCHANGED;
                old = *p;
                make_plate(p, comm);
                if (event.before > 0) {
                        rmrt_redistribute(&event, row(old.now, 1), (size_t) old.rows * WIDTH, row(p->now, 1), (size_t) p->rows * WIDTH, MPI_DOUBLE);
                        MPI_Bcast(done, 1, MPI_INT64_T, 0, event.both);
                } else if (restore)
                        save(p, done, true);
                free_plate(&old);
        } while (p->comm == MPI_COMM_NULL);
        return true;
}

/* All ranks end with the same step. */
static bool must_stop(const struct plate *p, int64_t done, const char *file) {
        int stop = file && p->rank == 0 && done % STOP_EVERY == 0 && access(file, F_OK) == 0;

        if (file && done % STOP_EVERY == 0)
                MPI_Bcast(&stop, 1, MPI_INT, 0, p->comm);
        return stop;
}

int main(int argc, char **argv) {
        const char *stop_file = argc > 4 ? argv[4] : NULL;
        long steps = argc > 1 ? strtol(argv[1], NULL, 10) : 10000;
        long save_every = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
        int64_t done = 0;
        struct plate plate;
        bool active;
        double sum;

        MPI_Init(&argc, &argv);
        rmrt_init();
        rmrt_goal(argc > 2 ? strtod(argv[2], NULL) : 0, 0);
        make_plate(&plate, MPI_COMM_NULL);
        active = resize(&plate, &done, save_every > 0);
        while (active && done < steps) {
                step(&plate);
                rmrt_step((uint64_t) ++done, (uint64_t) steps);
                if (save_every > 0 && (done % save_every == 0 || done == steps))
                        save(&plate, &done, false);
                if (must_stop(&plate, done, stop_file))
                        break;
                /* Last, since ranks that come go on with the next step. */
                active = resize(&plate, &done, false);
        }
        if (active) {
                sum = heat(&plate);
                if (plate.rank == 0)
                        printf("heat: %.17E after %ld steps\n", sum, (long) done);
        }
        rmrt_finalize();
        free_plate(&plate);
        MPI_Finalize();
        return 0;
}
