#!/bin/bash
# Calls that do not block, windows and files of MPI go on over several nodes when a rank is killed before them or in them; what does not go on ends the job and names the call, and so does a program that waits
# for a rank that is dead. None hangs, and none ends with 0 without what it was to do.
# limit: 420
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 3 --cores 4
until_true 20 as alice n1 rm-mpirun --on-rank-loss continue -n 1 true 2>"$work/level" || fail "no job may go on without ranks: $(<"$work/level")"
settings+=(FILES_NAME=/home/alice/files.data)

# goes_on PROGRAM STEP: of 6 ranks
goes_on() {
    local name=$1.$2
    start "$name" n1 --group-size 2 -n 6 --on-rank-loss continue "$programs/$1" 3 77 2 "$2"
    finish "$name" 90
    same "$name: its exit code" "$rc" 0
    same "$name: what it says" "$(tr -d '\0' <"$work/$name.out")" "$1: 5 ranks"
}

# ends NAME TEXT PROGRAM [ARG...]: with an error that has this text
ends() {
    local name=$1 text=$2
    start "$name" n1 --group-size 2 -n 6 --on-rank-loss continue "${@:3}"
    finish "$name" 120
    [[ $rc != 0 && $rc != 124 ]] || fail "$name: exit code $rc"
    grep -aq "$text" "$work/$name.err" || fail "$name says: $(tail -n 5 "$work/$name.err")"
}
for step in 4 -7 9; do goes_on overlaps "$step"; done
for step in 4 -5 7; do goes_on windows "$step"; done
for step in 4 -5 6; do goes_on files "$step"; done
ends neighbours "MPI_Neighbor_alltoall does not go on without rank 1" "$programs/asks" MPI_Neighbor_alltoall
ends lock "MPI_Win_lock does not go on without rank 1" "$programs/asks" MPI_Win_lock
ends waits "MPI_Recv: all ranks that are left wait for others" "$programs/counts"
# A rank that dies before MPI_Init, or in it: the others cannot go on, and do not wait for it there.
for seconds in 0 0.1 0.3 0.6; do
    name=begins$seconds
    start "$name" n1 --group-size 2 -n 6 --on-rank-loss continue sh -c '[ $OMPI_COMM_WORLD_RANK != 3 ] || (sleep '$seconds'; kill -KILL $$) & exec "$@"' sh "$programs/pi" 4000 50000
    finish "$name" 90
    ((rc == 0)) || see "$name: exit code $rc, $(q job "$name" reason), $(grep -a -m 1 -o 'rank . was lost in MPI_Init' "$work/$name.err")"
    [[ $rc != 0 && $rc != 124 ]] || grep -q '^pi 4000 55 3.1[34]' "$work/$name.out" || fail "$name: exit code $rc, says '$(<"$work/$name.out")'"
done
settings+=(RMRT_WAIT_LIMIT=8)
ends limited "MPI_Recv: it has waited for longer than it may" "$programs/counts" 90
