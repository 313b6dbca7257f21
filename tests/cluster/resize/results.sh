#!/bin/bash
# A program that grows and shrinks (librmrt) goes from 4 to 16, 2 and 8 ranks while nodes are drained and come back: with a result that is the same to the last bit as with a fixed number of ranks.
# It is built as a user builds it, and runs the same under a plain mpirun. Arrays come to their ranks whole, however they are distributed.
# limit: 500
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 4 --cores 4 --set sched.resize_interval=0
must "there are no three voters" until_true 30 voters_up

# build NAME: of the file of that name, in alice's home.
build() {
    bed_do exec n1 --user alice -- sh -c "mpicc -O2 -Wall -Wextra -Werror -o $1 $1.c \$(pkg-config --cflags --libs rmrt rmrt-checkpoint) -lm" >"$work/cc" 2>&1 ||
        fail "a user cannot build it: $(head -n 5 "$work/cc")"
}
plain() {
    bed_do exec n1 --user alice -- sh -c "export OMPI_MCA_btl=self,sm; exec timeout 200 mpirun --oversubscribe --mca mpi_yield_when_idle 1 $*" </dev/null 2>"$work/err" || fail "$*: $(tail -n 3 "$work/err")"
}

# From each of many distributions to another, also to and from ranks that have nothing; and what does not fit is refused by all.
cat >"$work/scatter.c" <<'END'
#include <stdio.h>
#include <stdlib.h>

#include <rm/rmrt_resize.h>

/* All ranks draw the same numbers. Where rank `rank` of `size` begins, of `all`: each part as large as it happens to be. */
static void draw(unsigned *seed, int size, long all, long *begins) {
        begins[0] = 0;
        for (int i = 1; i <= size; i++) {
                long left = all - begins[i - 1], part = rand_r(seed) % 3 == 0 ? 0 : left * (rand_r(seed) % 100) / 100;

                begins[i] = i == size ? all : begins[i - 1] + part;
        }
}

int main(int argc, char **argv) {
        struct rmrt_resize event = { RMRT_RESIZED, 1, 1, MPI_COMM_NULL };
        long from[65], to[65], bad = 0;
        unsigned seed = 1;
        int rank, size;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        event.both = MPI_COMM_WORLD;
        for (int n = 0; n < 100; n++) {
                long all = rand_r(&seed) % 5000, had, gets, *old, *fresh;

                draw(&seed, size, all, from);
                draw(&seed, size, all, to);
                had = from[rank + 1] - from[rank];
                gets = to[rank + 1] - to[rank];
                old = malloc((size_t) had * 2 * sizeof(long) + 1);
                fresh = malloc((size_t) gets * 2 * sizeof(long) + 1);
                for (long i = 0; i < had; i++) {
                        old[2 * i] = from[rank] + i;
                        old[2 * i + 1] = ~(from[rank] + i);
                }
                MPI_Datatype pair;
                MPI_Type_contiguous(2, MPI_LONG, &pair);
                MPI_Type_commit(&pair);
                bad += rmrt_redistribute(&event, old, (size_t) had, fresh, (size_t) gets, pair) != 0;
                bad += rmrt_redistribute(&event, old, (size_t) had, fresh, (size_t) gets + (rank == 0), pair) != -EINVAL;
                MPI_Type_free(&pair);
                for (long i = 0; i < gets; i++)
                        bad += fresh[2 * i] != to[rank] + i || fresh[2 * i + 1] != ~(to[rank] + i);
                free(old);
                free(fresh);
        }
        MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0)
                printf("%ld of 100 wrong on %d ranks\n", bad, size);
        MPI_Finalize();
        return 0;
}
END
bed_do copy "$work/scatter.c" n1:/home/alice/scatter.c
build scatter
for n in 1 2 5; do
    same "arrays of $n ranks" "$(plain -n "$n" ./scatter)" "0 of 100 wrong on $n ranks"
done

# So that a change always falls together with a look for the file that ends the program.
sed 's/^#define STOP_EVERY 50\b/#define STOP_EVERY 1/' "$repo_dir/examples/rtlib/stencil.c" >"$work/stencil.c"
cmp -s "$repo_dir/examples/rtlib/stencil.c" "$work/stencil.c" && fail "stencil.c has another STOP_EVERY"
bed_do copy "$work/stencil.c" n1:/home/alice/stencil.c
build stencil
run fixed n1 -n 3 ./stencil 2000
ended_well fixed heat

active() {
    on "$asker" rmctl show-job --json "$(job "$1")" | python3 -c 'import json, sys
print(json.load(sys.stdin)["jobs"][0]["active_ranks"])'
}
# resize N: it has so many then.
resize() {
    local begun=$EPOCHREALTIME
    as alice n2 rmctl resize-job --timeout 180s "$(job grows)" "$1" >"$work/resize" 2>&1 || fail "it does not come to $1 ranks: $(<"$work/resize")"
    same "active ranks" "$(active grows)" "$1"
    see "$1 ranks after $(msec_since "$begun") ms: $(rmctl show-job "$(job grows)" | grep '^Progress')"
}
start grows n1 -n 4 --max-ranks 16 --min-ranks 2 --group-size 1 ./stencil 100000000 0 0 "$(stop_file grows)"
asks() {
    grep -Eq ': *[0-9]+ of' < <(rmctl show-job "$(job grows)" | grep '^Progress')
}
must "nothing is known of grows" until_true 40 asks
same "active ranks at the beginning" "$(active grows)" 4
resize 16
rmctl drain-node --reason test n4 >"$work/drain" 2>&1 || fail "n4 is not drained: $(<"$work/drain")"
resize 2
rmctl drain-node --reason test n3 >"$work/drain" 2>&1 || fail "n3 is not drained: $(<"$work/drain")"
rmctl resume-node n4
resize 8
rmctl resume-node n3
resize 4
release grows
finish grows
same "the exit code" "$rc" 0
want=$(plain -n 1 ./stencil "$(sed -n 's/^heat: .* after \([0-9]*\) steps$/\1/p' "$work/grows.out")" | grep heat)
see "on one rank: $want"
same "the result of 4, 16, 2, 8 and 4 ranks" "$(grep heat "$work/grows.out")" "$want"
see "rm-mpirun: $(grep heat "$work/grows.out")"
