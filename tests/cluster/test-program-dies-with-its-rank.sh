#!/bin/bash
# An unmodified program of MPI in a job with --on-rank-loss continue goes on when a rank of it is killed: each in turn, two at once, one after the other, and one while others make up for the first.
# What it computes together is then of those that live, its exit code is 0, and rm-mpirun says whom it has lost. So do programs that use many collective calls, when three ranks die in them at
# moments drawn at random. RM_TEST_ROUNDS: how often all of that, in place of once.
# limit: 420
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 3 --cores 4
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
    for ((rank = 0; rank < 8; rank++)); do
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
