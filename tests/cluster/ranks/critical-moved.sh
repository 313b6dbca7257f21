#!/bin/bash
# Critical ranks are replaced as well when their groups, and those of spare ranks, have moved, while they move, and after a restart from a checkpoint that has replaced ranks in it: the result is that of a run
# without losses.
# complete: ranks/critical has the main way
# limit: 300
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 6
until_true 20 as alice n1 rm-mpirun --on-rank-loss continue -n 1 true 2>"$work/level" || fail "no job may go on without ranks: $(<"$work/level")"

# begin NAME STEPS ARG...: groups 0-3 of ranks, 4 and 5 of the spare processes 8-11. The job does not end before goes_on.
begin() {
    local name=$1
    steps=$2
    for ((total = step = 0; step < steps; step++)); do total=$((total + 36000 + 8 * (step % 7))); done
    start "$name" n1 --group-size 2 -n 8 --on-rank-loss continue:critical=0-7 --spare-ranks 4 "${@:3}" "$programs/replaced" "$steps" 30000 --last-file="/home/alice/$name.last"
    must "$name does not run" until_true 60 grep -q '^running' "$work/$name.out"
}
# lose NAME PROCESS: a spare one takes its place.
lose() {
    local lost="rank $2 \((was rank [0-9]+, )?[0-9]+ replaces it\) was lost"
    # It may have moved away from where it was looked for.
    for _ in 1 2 3; do
        kill_processes replaced "$(job "$1")" "$2"
        until_true 10 grep -Eq "$lost" "$work/$1.err" && return
    done
    fail "process $2 is not replaced: $(<"$work/$1.err")"
}
# goes_on NAME: all 8 come to the right end.
goes_on() {
    on n1 touch "/home/alice/$1.last"
    finish "$1" 150
    same "$1: its exit code" "$rc" 0
    grep -q "^replaced $steps 8 $total\$" "$work/$1.out" || fail "$1 says: $(tail -n 3 "$work/$1.out" "$work/$1.err")"
    see "$1: $(grep '^replaced' "$work/$1.out"); $(grep -c 'replaces it' "$work/$1.err") replaced"
}
away() {
    move "$1" "$2" "$(a_node_but "$(q where "$1" "$2")")"
}

# Spare processes, ranks and mpirun have moved before they are needed, and lost.
begin moved 1500
for group in 4 2 -1; do away moved $group; done
lose moved 5
for group in 4 2 0; do away moved $group; done
lose moved 8
lose moved 0
# In a move of its own group, which may be given up for that.
q move moved 3 "$(a_node_but "$(q where moved 3)")" >"$work/move" 2>&1 &
pid=$!
sleep 0.3
lose moved 7
wait "$pid" || grep -Eq 'was aborted|has ended' "$work/move" || fail "a move of group 3: $(<"$work/move")"
goes_on moved

# A checkpoint with a replaced rank in it; the next loss after the restart takes the next spare process.
begin saved 600 --on-node-loss restart
lose saved 6
must "checkpoint-job --stop" as alice n1 rmctl checkpoint-job --stop "$(job saved)" >/dev/null
must "it is not held" q state saved PENDING 30 >/dev/null
must "restart-job" as alice n1 rmctl restart-job "$(job saved)" >/dev/null
must "it does not run again" q state saved RUNNING 60 >/dev/null
lose saved 1
lose saved 8
goes_on saved

# A node is lost after that (not that of the front end): all come back from the checkpoint.
begin node 600 --on-node-loss restart
lose node 2
must "checkpoint-job" as alice n1 rmctl checkpoint-job "$(job node)" >/dev/null
lost=$(for group in 0 1 2 3 4 5; do q where node $group; done | grep -vx n1 | head -n 1)
[[ $lost ]] || fail "all of it is on n1"
bed_do power-off "$lost"
must "it does not come back" until_true 120 eval '[[ $(q job node attempt) == 2 && $(q job node state) == RUNNING ]]'
bed_do power-on "$lost"
lose node 4
goes_on node
