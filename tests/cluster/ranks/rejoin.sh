#!/bin/bash
# A process that replaces a critical rank is also in the communicators that the program made by split, dup, create and create_group, of MPI_COMM_WORLD and of each other: sums have its part, messages find
# it. The same rank is replaced twice, several at once, one after the other. A program that makes others at its beginning than the lost rank did ends, and says so.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 6
until_true 20 as alice n1 rm-mpirun --on-rank-loss continue -n 1 true 2>"$work/level" || fail "no job may go on without ranks: $(<"$work/level")"

steps=200
# begin NAME SPARES ARG...: 8 ranks.
begin() {
    start "$1" n1 --group-size 2 -n 8 --on-rank-loss continue:critical=0-7 --spare-ranks "$2" "$programs/rejoins" "$steps" 200 "${@:3}"
}
# goes_on NAME REPLACED: the sum over the copy of MPI_COMM_WORLD has all ranks in each step.
goes_on() {
    finish "$1" 60
    same "$1: its exit code" "$rc" 0
    same "$1: its result" "$(grep '^rejoins' "$work/$1.out")" "rejoins $steps 8 $((steps * 36))"
    same "$1: ranks that began anew" "$(grep -c 'begins anew' "$work/$1.out")" "$2"
}

begin none 2
goes_on none 0
for rank in $(thorough "$(seq -s ' ' 0 7)" "0 $((1 + RANDOM % 7))"); do
    begin "one$rank" 1 "$rank" 100
    goes_on "one$rank" 1
done
begin collectives 2 3 101 6 201
goes_on collectives 2
begin turn 4 5 80 8 160 0 240 2 320
goes_on turn 4
begin both 4 5 150 6 150
goes_on both 2

# Each attempt would end so.
start other n1 --group-size 2 -n 8 --on-rank-loss continue:critical=0-7 --on-node-loss abort --spare-ranks 2 "$programs/rejoins" "$steps" 200 5 100 --other-call
finish other 60
((rc > 0)) || fail "a rank begins anew with another communicator than the lost one, and the job ends with 0"
grep -q 'MPI_Comm_dup: rank 5, which this process replaces, had called MPI_Comm_split here' "$work/other.err" || fail "it does not say so: $(<"$work/other.err")"
