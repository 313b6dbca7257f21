/* Heat in a plate: each rank has some of its rows, and exchanges their edges with its neighbours in each step.
 *
 *      mpicc -O2 -o stencil stencil.c $(pkg-config --cflags --libs rmrt) -lm
 *      rm-mpirun -n 4 ./stencil 100000
 *
 * What it tells rmd are the four calls whose names begin with rmrt_: `rmctl list-jobs` shows how far it is, and `rmctl show-job` when it will end.
 * Under a plain mpirun these do nothing. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rm/rmrt.h>

#define WIDTH 256
#define ROWS 256 /* of all ranks */

struct plate {
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
static void make_plate(struct plate *p) {
        MPI_Comm_rank(MPI_COMM_WORLD, &p->rank);
        MPI_Comm_size(MPI_COMM_WORLD, &p->size);
        p->rows = ROWS * (p->rank + 1) / p->size - ROWS * p->rank / p->size;
        p->now = make_rows(p->rows + 2);
        p->next = make_rows(p->rows + 2);
        for (int x = 0; p->rank == 0 && x < WIDTH; x++)
                row(p->now, 0)[x] = row(p->next, 0)[x] = 100;
}

static void exchange_edges(struct plate *p) {
        int up = p->rank > 0 ? p->rank - 1 : MPI_PROC_NULL;
        int down = p->rank + 1 < p->size ? p->rank + 1 : MPI_PROC_NULL;

        MPI_Sendrecv(row(p->now, 1), WIDTH, MPI_DOUBLE, up, 0, row(p->now, p->rows + 1), WIDTH, MPI_DOUBLE, down, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(row(p->now, p->rows), WIDTH, MPI_DOUBLE, down, 1, row(p->now, 0), WIDTH, MPI_DOUBLE, up, 1, MPI_COMM_WORLD,
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

/* Of the rows in their order, so that it is the same for each number of ranks. */
static double heat(struct plate *p) {
        double sum = 0;

        if (p->rank > 0)
                MPI_Recv(&sum, 1, MPI_DOUBLE, p->rank - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int y = 1; y <= p->rows; y++)
                for (int x = 0; x < WIDTH; x++)
                        sum += row(p->now, y)[x];
        if (p->rank + 1 < p->size)
                MPI_Send(&sum, 1, MPI_DOUBLE, p->rank + 1, 2, MPI_COMM_WORLD);
        MPI_Bcast(&sum, 1, MPI_DOUBLE, p->size - 1, MPI_COMM_WORLD);
        return sum;
}

int main(int argc, char **argv) {
        long steps = argc > 1 ? strtol(argv[1], NULL, 10) : 10000;
        struct plate plate;
        double sum;

        MPI_Init(&argc, &argv);
        rmrt_init();
        rmrt_goal(argc > 2 ? strtod(argv[2], NULL) : 0, 0);
        make_plate(&plate);
        for (long i = 0; i < steps; i++) {
                step(&plate);
                rmrt_step((uint64_t) i + 1, (uint64_t) steps);
        }
        sum = heat(&plate);
        if (plate.rank == 0)
                printf("heat: %.17E after %ld steps\n", sum, steps);
        rmrt_finalize();
        free(plate.now);
        free(plate.next);
        MPI_Finalize();
        return 0;
}
