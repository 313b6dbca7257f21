#!/bin/bash
# A job that goes on without lost ranks loses more than ranks: a daemon of mpirun (prted), or a whole node. It falls back to its last checkpoint, and has lost what it had lost then, or to its beginning, with the
# result of all its ranks; if its user does not want that it fails: it never ends well without what it was to compute.
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
    loses "$how" "$how" --on-node-loss abort
    [[ $rc != 0 && ! -s $work/$how.out ]] || fail "$how: it ended with $rc, and says '$(<"$work/$how.out")'"
    same "$how: its state" "$(q job "$how" state)" "${state[$how]}"
    loses "$how-again" "$how"
    same "$how-again: its exit code" "$rc" 0
    grep -q '^pi 4000 63 3\.1[34]' "$work/$how-again.out" || fail "$how-again says: $(tail -n 3 "$work/$how-again.out" "$work/$how-again.err")"
done

# What ends by itself does not start again.
start ends n1 --group-size 2 -n 6 --on-rank-loss continue "$programs/asks" MPI_Neighbor_alltoall
finish ends 60
[[ $rc != 0 ]] || fail "ends: it ended with 0"
same "ends: its attempts" "$(q job ends attempt)" 1

# A rank is lost, the job is saved, and then a node is lost: it goes on from there, without the rank, and with its list. So does one in which a critical rank was replaced.
lost_is() {
    [[ $(rmctl show-job "$(job "$1")" | sed -n 's/^Lost ranks: *//p') =~ ^[0-9]+\ of\ [0-9]+:\ $2$ ]]
}
goes_on_without() {
    [[ $(q job "$1" attempt) == 2 && $(q job "$1" state) =~ RUNNING|FOLDED ]]
}
# saved_and_lost NAME RANK: which is lost; the job is saved, and then a node is lost that has neither its head nor its front end
saved_and_lost() {
    local name=$1 node
    must "nobody hears of rank $2 of $name: $(rmctl show-job "$(job "$name")" | grep Lost)" until_true 30 lost_is "$name" "$2"
    must "$name is not saved" rmctl checkpoint-job "$(job "$name")" >/dev/null
    node=$(q place "$name" | awk -v head="$(q where "$name" -1)" '$2 != head && $2 != "n1" { print $2; exit }')
    bed_do power-off "$node"
    must "$name does not go on: $(q job "$name" state), $(q job "$name" reason)" until_true 60 goes_on_without "$name"
    rmctl events | grep -q "job $(job "$name") .*from checkpoint" || fail "$name begins anew: $(rmctl events | tail -n 5)"
    lost_is "$name" "$2" || fail "$name has another list now: $(rmctl show-job "$(job "$name")" | grep Lost)"
    bed_do power-on "$node"
    must "$node is not back" until_true 60 all_joined
}
start listed n1 --group-size 2 -n 6 --on-rank-loss continue "$programs/pi" 4000 20000
must "listed does not run" q state listed RUNNING 30 >/dev/null
sleep 2
kill_processes pi "$(job listed)" 3
saved_and_lost listed 3
finish listed 150
same "listed: its exit code" "$rc" 0
grep -q '^pi 4000 ' "$work/listed.out" || fail "listed says: $(tail -n 3 "$work/listed.out" "$work/listed.err")"

start renewed n1 --group-size 2 -n 4 --on-rank-loss continue:critical=0-3 --spare-ranks 2 "$programs/replaced" 400 50000 --last-file=/home/alice/renewed.last
must "renewed does not run" until_true 60 grep -q '^running' "$work/renewed.out"
kill_processes replaced "$(job renewed)" 1
saved_and_lost renewed 1
on n1 touch /home/alice/renewed.last
finish renewed 150
same "renewed: its exit code" "$rc" 0
grep -q '^replaced 400 4 ' "$work/renewed.out" || fail "renewed says: $(tail -n 3 "$work/renewed.out" "$work/renewed.err")"
