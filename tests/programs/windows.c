/* One-sided communication between fences, on windows that were made before ranks are lost and
 * after, with results that each rank can check.
 *
 * usage: windows ROUNDS SEED [LOST STEP]...: loses.h. Says "windows: N ranks". Exit 3: a result is
 *         wrong. */
#include "loses.h"

#define SLOTS 8 /* of each rank, in each window */

struct area {
        MPI_Win win;
        long *data; /* `size` parts of SLOTS, then sums */
        bool allocated;
};

static void area_create(struct area *a, bool allocate) {
        MPI_Aint bytes = (MPI_Aint) sizeof(long) * (size + 1) * SLOTS;

        a->allocated = allocate;
        if (allocate)
                MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &a->data, &a->win);
        else {
                a->data = malloc((size_t) bytes);
                MPI_Win_create(a->data, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &a->win);
        }
        fill(a->data, (size + 1) * SLOTS, hole());
}

static void area_free(struct area *a) {
        MPI_Win_free(&a->win);
        if (a->win != MPI_WIN_NULL)
                wrong("a window after its end", rank, 1);
        if (!a->allocated)
                free(a->data);
}

static void put(struct area *a) {
        long mine[2];

        fill(a->data, (size + 1) * SLOTS, hole());
        MPI_Win_fence(0, a->win);
        next_step();
        /* The target has every second of four, this rank has two together. */
        for (int to = 0; to < size; to++) {
                MPI_Datatype every_second;

                mine[0] = mine[1] = part(rank, to);
                MPI_Type_vector(2, 1, 2, MPI_LONG, &every_second);
                MPI_Type_commit(&every_second);
                MPI_Put(mine, 2, MPI_LONG, to, (MPI_Aint) rank * SLOTS, 1, every_second, a->win);
                MPI_Type_free(&every_second);
                MPI_Win_fence(0, a->win);
        }
        MPI_Put(mine, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, a->win);
        next_step();
        MPI_Win_fence(0, a->win);
        for (int from = 0; from < size; from++) {
                const long *is = a->data + from * SLOTS;

                check_part("put", from, is[0], part(from, rank));
                check_part("put", from, is[2], part(from, rank));
                if (is[1] != hole() || is[3] != hole())
                        wrong("put between", from, is[1]);
        }
}

static void get(struct area *a) {
        long got[64];
        MPI_Datatype own = MPI_LONG;

        fill(got, size, hole());
        for (int to = 0; to < size; to++)
                a->data[to * SLOTS] = part(rank, to);
        MPI_Win_fence(MPI_MODE_NOPRECEDE, a->win);
        next_step();
        MPI_Type_dup(MPI_LONG, &own);
        for (int from = 0; from < size; from++)
                MPI_Get(&got[from], 1, own, from, (MPI_Aint) rank * SLOTS, 1, MPI_LONG, a->win);
        MPI_Type_free(&own);
        next_step();
        MPI_Win_fence(MPI_MODE_NOSUCCEED, a->win);
        for (int from = 0; from < size; from++)
                check_part("get", from, got[from], part(from, rank));
}

static void accumulate(struct area *a) {
        long mine = bit(rank), ones = 1, was[2] = { -1, -1 }, *sums = a->data + size * SLOTS, swapped = -1, compare = 0, last = 55;

        fill(sums, SLOTS, 0);
        MPI_Win_fence(0, a->win);
        next_step();
        for (int to = 0; to < size; to++)
                MPI_Accumulate(&mine, 1, MPI_LONG, to, (MPI_Aint) size * SLOTS, 1, MPI_LONG, MPI_SUM, a->win);
        MPI_Fetch_and_op(&ones, &was[0], MPI_LONG, 0, (MPI_Aint) size * SLOTS + 1, MPI_SUM, a->win);
        MPI_Get_accumulate(&mine, 1, MPI_LONG, &was[1], 1, MPI_LONG, 0, (MPI_Aint) size * SLOTS + 2, 1, MPI_LONG, MPI_REPLACE,
                           a->win);
        MPI_Compare_and_swap(&last, &compare, &swapped, MPI_LONG, rank, (MPI_Aint) size * SLOTS + 3, a->win);
        next_step();
        MPI_Win_fence(0, a->win);
        check_sum("accumulate", sums[0], 1);
        if (was[0] < 0 || was[0] >= size)
                wrong("fetch_and_op", 0, was[0]);
        if (was[1] != 0 && (was[1] & (was[1] - 1)) != 0)
                wrong("get_accumulate", 0, was[1]);
        if (rank == 0 && (sums[1] < 1 || sums[1] > size))
                wrong("fetch_and_op, sum", 0, sums[1]);
        if (swapped != 0 || sums[3] != 55)
                wrong("compare_and_swap", rank, sums[3]);
}

static void scan_one(const struct area *a) {
        MPI_Group group, world;
        int same, *unit, set;

        MPI_Win_get_group(a->win, &group);
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_compare(group, world, &same);
        MPI_Win_get_attr(a->win, MPI_WIN_DISP_UNIT, (void *) &unit, &set);
        if (!set || *unit != sizeof(long))
                wrong("unit of a window", rank, set);
        if (same != MPI_IDENT)
                wrong("group of a window", rank, same);
        MPI_Group_free(&group);
        MPI_Group_free(&world);
}

int main(int argc, char **argv) {
        int rounds = argc > 1 ? atoi(argv[1]) : 10;
        struct area first, later;

        begin(argc, argv);
        area_create(&first, true);
        for (int round = 0; round < rounds; round++) {
                scan_living(true);
                scan_one(&first);
                put(&first);
                get(&first);
                accumulate(&first);
                next_step();
                barrier_without_dying();
                area_create(&later, round % 2);
                scan_one(&later);
                put(&later);
                accumulate(&later);
                next_step();
                MPI_Barrier(MPI_COMM_WORLD);
                area_free(&later);
        }
        area_free(&first);
        end("windows");
        return 0;
}
