#!/bin/bash
# A program saves its arrays on 6 ranks (librmrt-checkpoint), and goes on from there on 4 and on 9: with a result that is the same to the last bit as without. Under a plain mpirun, under rm-mpirun, and
# built with MPICH. It is killed while it saves: what was saved before is there. A flipped bit is named, and never restored.
# packages: thirdparty
# limit: 300
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 1 --cores 4

# build MPICC OUTPUT: as a user does, of the file of the same name.
build() {
    bed_do exec n1 --user alice -- sh -c "$1"' -O2 -Wall -Wextra -Werror -o '"$2 ${2%-mpich}.c"' $(pkg-config --cflags --libs rmrt rmrt-checkpoint) -lm' >"$work/cc" 2>&1 ||
        fail "a user cannot build it with $1: $(head -n 5 "$work/cc")"
}
# plain COMMAND N ARG...: by a plain mpirun; the output is in $out.
plain() {
    out=$(bed_do exec n1 --user alice -- sh -c "export OMPI_MCA_btl=self,sm; exec timeout 100 env $*" </dev/null 2>"$work/err") ||
        fail "$*: $(tail -n 3 "$work/err")"
}
openmpi() {
    plain "mpirun.openmpi --oversubscribe -n $1 ./stencil" "${@:2}"
}
mpich() {
    plain "mpirun.mpich -n $1 ./stencil-mpich" "${@:2}"
}
heat() {
    grep heat <<<"$out"
}
went_on_after() {
    grep -qx "goes on after $1 steps" <<<"$out" || fail "it does not go on after $1 steps: $out"
}

bed_do copy "$repo_dir/examples/rtlib/stencil.c" n1:/home/alice/stencil.c
build mpicc.openmpi stencil
build mpicc.mpich stencil-mpich

openmpi 2 3000
want=$(heat)
openmpi 6 1000 0 300
openmpi 4 1500 0 200
went_on_after 1000
openmpi 9 2000 0 300
went_on_after 1500
mpich 3 2500 0 100
went_on_after 2000
openmpi 6 3000 0 1000
went_on_after 2500
same "the result on 6, 4, 9, 3 (MPICH) and 6 ranks" "$(heat)" "$want"
see "$want on 6, 4, 9, 3 (MPICH) and 6 ranks"
mpich 5 3000 0 1000
went_on_after 3000
same "the result as MPICH restores it" "$(heat)" "$want"

# Types as both MPIs name them, and what is none: saved under one, restored under the other.
cat >"$work/types.c" <<'END'
#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rm/rmrt_mpi.h>

static void must(const char *what, int r, int want) {
        if (r == want)
                return;
        printf("%s: %d, %s\n", what, r, rmrt_checkpoint_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
        float points[2][3];
        double complex z[2];
        int fortran[2], rank;
        long double l[2];
        char text[2];
        MPI_Datatype point, copy, every_other;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Type_contiguous(3, MPI_FLOAT, &point);
        MPI_Type_dup(point, &copy);
        MPI_Type_vector(2, 1, 2, MPI_INT, &every_other);
        must("points", rmrt_register("points", points, 2, copy, RMRT_BLOCK), 0);
        must("z", rmrt_register("z", z, 2, MPI_C_DOUBLE_COMPLEX, RMRT_BLOCK), 0);
        must("fortran", rmrt_register("fortran", fortran, 2, MPI_INTEGER, RMRT_PRIVATE), 0);
        must("l", rmrt_register("l", l, 2, MPI_LONG_DOUBLE, RMRT_BLOCK), 0);
        must("text", rmrt_register("text", text, 2, MPI_CHAR, RMRT_BLOCK), 0);
        must("pairs", rmrt_register("pairs", z, 1, MPI_DOUBLE_INT, RMRT_BLOCK), -ENOTSUP);
        must("vector", rmrt_register("vector", z, 1, every_other, RMRT_BLOCK), -ENOTSUP);
        for (int i = 0; argc < 2 && i < 2; i++) {
                int at = 2 * rank + i;

                points[i][0] = points[i][1] = points[i][2] = (float) at / 3;
                z[i] = at + at * I / 7;
                fortran[i] = -at;
                l[i] = (long double) at / 11;
                text[i] = (char) ('a' + at);
        }
        must("save or restore", argc < 2 ? rmrt_save(MPI_COMM_WORLD) : rmrt_restore(MPI_COMM_WORLD), argc < 2 ? 0 : RMRT_RESTORED_ALL);
        for (int i = 0; i < 2; i++)
                printf("%d: %a %a %a%+ai %d %La %c\n", 2 * rank + i, points[i][0], points[i][2], creal(z[i]), cimag(z[i]), fortran[i], l[i], text[i]);
        MPI_Finalize();
        return 0;
}
END
bed_do copy "$work/types.c" n1:/home/alice/types.c
build mpicc.openmpi types
build mpicc.mpich types-mpich
plain RMRT_DIR=types.saved mpirun.openmpi --oversubscribe -n 3 ./types
types=$(sort <<<"$out")
plain RMRT_DIR=types.saved mpirun.mpich -n 3 ./types-mpich restore
same "all types, saved by Open MPI and restored by MPICH" "$(sort <<<"$out")" "$types"
grep -q '^5: .* f$' <<<"$types" || fail "$types"
as alice n1 rmctl show-portable types.saved 1 >"$work/show" || fail "show: $(<"$work/show")"
grep -Eq '^points +3 x float32 +block +6 ' "$work/show" || fail "show: $(<"$work/show")"

# Under rmd, without a change, with blocks of sizes of their own after some of one size. What follows looks at these.
as alice n1 rm -rf rmrt-checkpoints
openmpi 6 1000 0 1000
run managed n1 -n 4 env RMRT_BLOCK=adaptive ./stencil 3000 0 100
ended_well managed heat
grep -q 'goes on after 1000 steps' "$work/managed.out" || fail "under rmd it begins anew"
same "the result under rmd" "$(grep heat "$work/managed.out")" "$want"

# What is there is listed and good; each number stands for one file and rank.
as alice n1 rm-checkpoint show rmrt-checkpoints >"$work/show" || fail "show: $(<"$work/show")"
see "$(sed -n 2p "$work/show")"
grep -Eq '^ +[0-9]+  (full|changes since [0-9]+) ' "$work/show" || fail "show: $(<"$work/show")"
as alice n1 rmctl verify-portable rmrt-checkpoints >"$work/verify" || fail "verify: $(<"$work/verify")"

# Merged into one, and as a processor of the other byte order would have written it.
as alice n1 rm-checkpoint merge --byte-order big --remove rmrt-checkpoints >"$work/merge" || fail "merge: $(<"$work/merge")"
as alice n1 rm-checkpoint show --json rmrt-checkpoints >"$work/show" || fail "show: $(<"$work/show")"
same "byte orders" "$(grep -o '"byte_order": .*' "$work/show")" '"byte_order": "big"'
openmpi 4 3000 0 3000
went_on_after 3000
same "the result from the other byte order" "$(heat)" "$want"

# It is killed again and again while it saves: each time it goes on from a whole checkpoint, and not from its beginning.
as alice n1 rm -rf rmrt-checkpoints
openmpi 6 100 0 100
for ((i = 0; i < 5; i++)); do
    bed_do exec n1 --user alice -- sh -c "OMPI_MCA_btl=self,sm mpirun.openmpi --oversubscribe -n 6 ./stencil 1000000 0 1" </dev/null >"$work/killed" 2>&1 &
    front=$!
    until_true 60 grep -qs 'goes on after' "$work/killed" || fail "after a kill it begins anew: $(<"$work/killed")"
    sleep "0.$i"
    on n1 pkill -KILL -x stencil || fail "it does not run any more: $(<"$work/killed")"
    wait "$front"
    on n1 sh -c 'cd /home/alice/rmrt-checkpoints && ls' >"$work/files"
    (($(grep -c manifest "$work/files") <= 24)) || fail "checkpoints are not removed: $(tr '\n' ' ' <"$work/files")"
done
see "$(grep 'goes on' "$work/killed"), killed"
# What Open MPI leaves of ranks that were killed.
on n1 sh -c 'rm -rf /dev/shm/sm_segment.n1.* /tmp/prterun.n1.*'

# One bit.
as alice n1 sh -c 'rm -rf rmrt-checkpoints; OMPI_MCA_btl=self,sm mpirun.openmpi --oversubscribe -n 6 ./stencil 1000 0 500' >"$work/out" 2>&1 || fail "$(<"$work/out")"
as alice n1 sh -c 'printf "\001" | dd of=rmrt-checkpoints/rmrt-2.rank-3 bs=1 seek=5000 conv=notrunc status=none'
as alice n1 rmctl verify-portable rmrt-checkpoints >"$work/verify" && fail "a flipped bit is not seen: $(<"$work/verify")"
grep -q "^checkpoint 2: rank 3: block 0 of array 'plate' is damaged" "$work/verify" || fail "verify: $(<"$work/verify")"
see "$(grep damaged "$work/verify")"
openmpi 4 3000 0 3000
went_on_after 500
grep -q "checkpoint 2: rank 3: block 0 of array 'plate' is damaged" "$work/err" || fail "the program does not learn of it: $(<"$work/err")"
same "the result from before the damage" "$(heat)" "$want"
