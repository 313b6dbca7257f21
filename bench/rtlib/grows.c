/* The program of bench/growth. It makes steps of a millisecond; prints after each change how many
 * ranks there are and when all of them had computed together, in microseconds since 1970.
 *
 *      grows STOP_FILE            as a job with ranks in reserve
 *      grows --alone TIMES        half of the ranks sleep for two seconds while the others compute;
 *                                 then all make a communicator, each time: what MPI alone takes for
 *                                 it
 *      grows --spawn N TIMES      N more ranks by MPI_Comm_spawn() and MPI_Intercomm_merge()
 *                                 instead, and how many microseconds that took, each time */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <rm/rmrt_resize.h>

static long now_usec(void) {
        struct timeval t;

        gettimeofday(&t, NULL);
        return t.tv_sec * 1000000L + t.tv_usec;
}

static int sum_ranks(MPI_Comm comm) {
        int one = 1, sum = 0;

        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        return sum;
}

static void spawn(char *program, int n, int times) {
        char child[] = "--child", *args[] = { child, NULL };
        int rank;

        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        for (int i = 0; i < times; i++) {
                MPI_Comm children, both;
                long begun;
                int ranks;

                MPI_Barrier(MPI_COMM_WORLD);
                begun = now_usec();
                MPI_Comm_spawn(program, args, n, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
                MPI_Intercomm_merge(children, 0, &both);
                ranks = sum_ranks(both);
                if (rank == 0)
                        printf("spawned %d %ld\n", ranks, now_usec() - begun);
                MPI_Comm_free(&both);
                MPI_Comm_disconnect(&children);
        }
}

static void make_alone(int times) {
        MPI_Comm half, all;
        MPI_Group group;
        int rank, size, over;

        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Comm_group(MPI_COMM_WORLD, &group);
        MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
        for (int i = 0; i < times; i++) {
                long end = now_usec() + 2000000;

                MPI_Bcast(&end, 1, MPI_LONG, 0, MPI_COMM_WORLD);
                over = rank >= size / 2;
                if (over)
                        usleep((useconds_t) (end - now_usec()));
                while (!over) {
                        usleep(1000);
                        over = now_usec() >= end;
                        MPI_Bcast(&over, 1, MPI_INT, 0, half);
                }
                MPI_Comm_create_group(MPI_COMM_WORLD, group, i, &all);
                (void) sum_ranks(all);
                if (rank == 0)
                        printf("alone %d %ld\n", size, now_usec() - end);
                MPI_Comm_free(&all);
        }
        MPI_Comm_free(&half);
        MPI_Group_free(&group);
}

static void be_child(void) {
        MPI_Comm parent, both;

        MPI_Comm_get_parent(&parent);
        MPI_Intercomm_merge(parent, 1, &both);
        (void) sum_ranks(both);
        MPI_Comm_free(&both);
        MPI_Comm_disconnect(&parent);
}

static void grow(const char *stop_file) {
        MPI_Comm comm = MPI_COMM_NULL, newcomm;
        struct rmrt_resize event;
        int stop = 0, rank;

        for (;;) {
                if (rmrt_resize_point(comm, &newcomm, &event) < 0)
                        MPI_Abort(MPI_COMM_WORLD, 1);
                if (event.kind == RMRT_ENDED || stop)
                        break;
                if (event.kind == RMRT_RESIZED && comm != MPI_COMM_NULL)
                        MPI_Comm_free(&comm);
                comm = newcomm;
                if (comm == MPI_COMM_NULL)
                        continue;
                MPI_Comm_rank(comm, &rank);
                if (event.kind == RMRT_RESIZED && sum_ranks(comm) > 0 && rank == 0) {
                        printf("ranks %d %ld\n", event.now, now_usec());
                        fflush(stdout);
                }
                usleep(1000);
                stop = rank == 0 && access(stop_file, F_OK) == 0;
                MPI_Bcast(&stop, 1, MPI_INT, 0, comm);
                if (stop)
                        break;
        }
        if (comm != MPI_COMM_NULL)
                MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
        MPI_Init(&argc, &argv);
        rmrt_init();
        if (argc > 1 && strcmp(argv[1], "--child") == 0)
                be_child();
        else if (argc > 2 && strcmp(argv[1], "--alone") == 0)
                make_alone(atoi(argv[2]));
        else if (argc > 3 && strcmp(argv[1], "--spawn") == 0)
                spawn(argv[0], atoi(argv[2]), atoi(argv[3]));
        else if (argc > 1)
                grow(argv[1]);
        rmrt_finalize();
        MPI_Finalize();
        return 0;
}
