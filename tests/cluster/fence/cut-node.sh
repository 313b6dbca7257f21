#!/bin/bash
# A node that has lost the leader, or whose rmd stands still or is dead, lets ranks run on that could be started again elsewhere. They stop when the
# lease ends, and go on when the node is back; a job that is not started again runs on all the time.
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

lease_msec=3000
rest_msec=2000
# The timeout is so long that nothing is started again here. A lease that is renewed so often lasts for 2 s more at any time.
cluster 2 --cores 4 --set cluster.node_timeout=5m --set cluster.lease=3s --set cluster.heartbeat=250ms
# Not before all nodes know of restarts.
until_true 20 as alice n1 rm-mpirun --on-node-loss restart -n 1 true 2>"$work/level.err" || fail "no job may restart: $(cat "$work/level.err")"
# Nobody may take two nodes for safer than one.
text='two nodes: without n1 nothing can be changed, and its disk has the only log; a third node would keep it too'
one_keeps_the_log() {
    on "$1" rmctl status >"$work/status"
    grep -q "^Warning: *$text\$" "$work/status"
}
for node in n1 n2; do
    must "the status on $node does not say that only n1 keeps the log" until_true 20 one_keeps_the_log $node
    grep -q '^Voters: *n1; quorum 1, 0 may be lost$' "$work/status" || fail "the voters on $node: $(grep ^Voters "$work/status")"
done
# One group of each job on each of two nodes, whatever a policy likes better.
on n1 sh -c 'printf "n1:2\nn2:2\n" >/home/alice/two'
declare -A group_on
for job in fenced free; do
    loss=restart
    [[ $job == fenced ]] || loss=abort
    start $job n1 --on-node-loss $loss --availability /home/alice/two --group-size 2 -n 4 "$programs/ticks" --file="/home/alice/$job" \
        --stop-file="$(stop_file $job)"
    running $job
    see "$job: $(q place $job | tr '\n' ',')"
    for node in n1 n2; do
        group_on[$job:$node]=$(q place $job | grep -v '^-1' | grep " $node\$" | cut -d ' ' -f 1)
        [[ ${group_on[$job:$node]} ]] || fail "$job has no group on $node"
    done
done

# stamp JOB NODE: when a rank of its group there has run last, the latest.
stamp() {
    on n1 sh -c 'cat "$1"*' sh "/home/alice/$1.rmj$(job "$1")g${group_on[$1:$2]}." | sort -n | tail -n 1 | sed 's/^0*//'
}

now_usec() {
    echo "${EPOCHREALTIME/[.,]/}"
}

# fresh JOB NODE: it has run within the last half second.
fresh() {
    local now
    now=$(now_usec)
    ((now - $(stamp "$1" "$2") < 500000))
}

# stops_and_goes_on WHAT BREAK... -- MEND...
stops_and_goes_on() {
    local what=$1 begun broken ran break=()
    shift
    while [[ $1 != -- ]]; do
        break+=("$1")
        shift
    done
    shift
    must "$what: it did not run before" until_true 10 fresh fenced n2
    begun=$(now_usec)
    "${break[@]}"
    broken=$(now_usec)
    until_true 120 eval '(($(now_usec) - broken > (lease_msec + rest_msec) * 1000))'
    ran=$((($(stamp fenced n2) - begun) / 1000))
    see "$what: the group with a lease of $lease_msec ms ran on for $ran ms"
    # The break came between the two times.
    ((ran - (broken - begun) / 1000 <= lease_msec + 1000)) || fail "$what: it ran on for $ran ms, with a lease of $lease_msec ms"
    # A lease is renewed before it ends.
    ((ran >= 500)) || fail "$what: it stopped after $ran ms, long before its lease ended"
    must "$what: the job without a lease has stopped" until_true 10 fresh free n2
    must "$what: the group of the leader's node has stopped" until_true 10 fresh fenced n1
    begun=$(now_usec)
    "$@"
    must "$what: it does not go on" until_true 90 fresh fenced n2
    see "$what: it goes on $((($(now_usec) - begun) / 1000)) ms after the node is back"
}

signal_rmd() {
    on n2 sh -c 'kill "-$1" "$(cat /run/testbed-rmd.pid)"' sh "$1"
}

# PID 1 is held up too, as if it waited for a disk; its first thread, that is.
hold_both() {
    local pid
    pid=$(on n2 "$programs/members" "$(job fenced)" "${group_on[fenced:n2]}" | head -n 1 | cut -d ' ' -f 1)
    signal_rmd STOP
    bed_do exec n2 -- "$programs/hold" "$pid" 1000 </dev/null >"$work/hold" 2>&1 &
    front_pid[hold]=$!
    must "PID 1 is not held" until_true 20 grep -qs '^[0-9]' "$work/hold"
}

let_both_go() {
    on n2 kill "$(<"$work/hold")"
    wait "${front_pid[hold]}"
    unset "front_pid[hold]"
    signal_rmd CONT
}

stops_and_goes_on "rmd stopped" signal_rmd STOP -- signal_rmd CONT
stops_and_goes_on "rmd killed" bed_do stop-rmd n2 --kill -- bed_do start-rmd n2
must "it is not back" until_true 20 all_joined
# Longer than TCP waits by default.
rest_msec=$(thorough 60000 2000)
stops_and_goes_on "the node cut off" bed_do cut n2 -- bed_do heal n2
rest_msec=2000
stops_and_goes_on "rmd stopped, PID 1 held up" hold_both -- let_both_go

for job in fenced free; do
    release $job
    finish $job
    ended_well $job 'all 4 ranks are there: yes'
    same "what $job printed" "$(wc -l <"$work/$job.out")" 2
done
