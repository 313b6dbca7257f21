#!/bin/bash
# A job that goes on without lost ranks loses more than ranks: a daemon of mpirun (prted), or a whole node. It starts again if it may, with the result of all its ranks, and else fails: it never
# ends well without what it was to compute.
# complete: jobs/lost-prted and restart/node-loss lose the same, and ranks/lost goes on
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 4 --cores 2
until_true 20 as alice n1 rm-mpirun --on-rank-loss continue -n 1 true 2>"$work/level" || fail "no job may go on without ranks: $(<"$work/level")"

# kill_prted NODE: there is one, of the only job
kill_prted() {
    must "no prted on $1" until_true 10 on "$1" pkill -KILL -x prted
}
power_off() {
    bed_do power-off "$1"
}

# loses NAME HOW ARG...: pi of 6 ranks on three nodes, and what happens to the node of its last group while it computes
loses() {
    local name=$1 how=$2 node
    start "$name" n1 --group-size 2 -n 6 --on-rank-loss continue "${@:3}" "$programs/pi" 4000 50000
    must "$name does not run" q state "$name" RUNNING 30 >/dev/null
    node=$(q where "$name" 2)
    [[ $node != "$(q where "$name" -1)" ]] || fail "$name: its last group is beside its head"
    sleep 2
    "$how" "$node"
    finish "$name" 150
    see "$name: exit code $rc, $(q job "$name" state), attempt $(q job "$name" attempt), says '$(<"$work/$name.out")', $(grep -c . "$work/$name.err") lines of errors"
    if ! rmd_runs "$node"; then
        bed_do power-on "$node"
        must "$node is not back" until_true 60 all_joined
    fi
}

declare -A state=([kill_prted]=FAILED [power_off]=NODE_FAIL)
for how in kill_prted power_off; do
    loses "$how" "$how"
    [[ $rc != 0 && ! -s $work/$how.out ]] || fail "$how: it ended with $rc, and says '$(<"$work/$how.out")'"
    same "$how: its state" "$(q job "$how" state)" "${state[$how]}"
    loses "$how-again" "$how" --on-node-loss restart
    same "$how-again: its exit code" "$rc" 0
    grep -q '^pi 4000 63 3\.1[34]' "$work/$how-again.out" || fail "$how-again says: $(tail -n 3 "$work/$how-again.out" "$work/$how-again.err")"
done

# What ends by itself does not start again.
start ends n1 --group-size 2 -n 6 --on-rank-loss continue --on-node-loss restart "$programs/asks" MPI_Neighbor_alltoall
finish ends 60
[[ $rc != 0 ]] || fail "ends: it ended with 0"
same "ends: its attempts" "$(q job ends attempt)" 1
