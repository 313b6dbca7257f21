#!/bin/bash
# A program of MPI goes on when ranks of it are killed, or ends with the name of the call that does not.
# complete: the unit tests of librmrt-ft make the same calls under mpirun
# limit: 840
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 4

# An unmodified program of MPI in a job with --on-rank-loss continue goes on when a rank of it is killed: each in turn (in a quick run the first, the last, and two drawn anew), two at once, one after the other, and one while others make up for the first.
# What it computes together is then of those that live, its exit code is 0, and rm-mpirun says whom it has lost. So do programs that use many collective calls, when three ranks die in them at
# moments drawn at random. RM_TEST_ROUNDS: how often all of that, in place of once.
scenario "collective calls"
until_true 20 as alice n1 rm-mpirun --on-rank-loss continue -n 1 true 2>"$work/level" || fail "no job may go on without ranks: $(<"$work/level")"

# survives NAME RANKS-LEFT RANK ROUND...: pi, whose ranks kill themselves in these rounds. The sum is of 2^r of those that are left.
survives() {
    local name=$1 left=$2
    start "$name" n1 --group-size 2 -n 8 --on-rank-loss continue "$programs/pi" 200 20000 "${@:3}"
    finish "$name" 90
    same "$name: its exit code" "$rc" 0
    grep -q "^pi 200 $left 3\.1[34]" "$work/$name.out" || fail "$name says: $(tail -n 3 "$work/$name.out" "$work/$name.err")"
    same "$name: how often it says so" "$(grep -c '^pi' "$work/$name.out")" 1
}
survives none 255

# loses_three PROGRAM NAME: of 8 ranks; within operations of its three rounds, or just before them
loses_three() {
    local rank losses=()
    for rank in $(seq 6 | shuf -n 3); do losses+=("$rank" "$(((RANDOM % 2 ? 1 : -1) * (RANDOM % 36 + 1)))"); done
    start "$2" n1 --group-size 2 -n 8 --on-rank-loss continue "$programs/$1" 3 "$RANDOM" "${losses[@]}"
    finish "$2" 90
    [[ $rc == 0 && $(tr -d '\0' <"$work/$2.out") == "$1: 5 ranks" ]] ||
        fail "$1 3 ... ${losses[*]}: exit code $rc: $(tail -n 3 "$work/$2.out" "$work/$2.err" | tr -d '\0')"
}
for ((round = 0; round < ${RM_TEST_ROUNDS:-1}; round++)); do
    for rank in $(thorough '0 1 2 3 4 5 6 7' "0 $(shuf -i 1-6 -n 2 | xargs) 7"); do
        survives "one$rank.$round" $((255 - (1 << rank))) "$rank" 50
        grep -q "rank $rank was lost" "$work/one$rank.$round.err" || fail "rm-mpirun does not tell of rank $rank: $(<"$work/one$rank.$round.err")"
    done
    survives "both.$round" $((255 - 4 - 32)) 2 50 5 50
    survives "group.$round" $((255 - 4 - 8)) 2 50 3 50
    survives "later.$round" $((255 - 1 - 2 - 128)) 0 20 1 60 7 120
    survives "soon.$round" $((255 - 8 - 64)) 3 50 6 51
    for program in survives overlaps; do loses_three "$program" "$program.$round"; done
done
see "$(cat "$work"/one*.out "$work"/both*.out "$work"/later*.out | sort | uniq -c | tr -s ' ' | tr '\n' ';')"

# Calls that do not block, windows and files of MPI go on over several nodes when a rank is killed before them or in them; what does not go on ends the job and names the call, and so does a program that waits
# for a rank that is dead. None hangs, and none ends with 0 without what it was to do.
scenario "other calls"
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
