#!/bin/bash
# A job that grows and shrinks goes on with just the ranks that it is asked to, as often as it is asked, with rmd killed in between, with moves and a restart from a checkpoint, and
# leaves no process and no descriptor behind. It ends as others do: by itself, by a failure, by cancel-job, at its time limit, also while most of it is parked.
# limit: 420
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 3 --cores 4 --set cluster.node_timeout=3s --set sched.resize_interval=0

# begin NAME ARG...: 4 of 8 ranks.
begin() {
    local name=$1
    shift
    start "$name" n1 --group-size 2 -n 4 --max-ranks 8 --min-ranks 1 "${@:2}" "$programs/resizes" --stop-file="$(stop_file "$name")" $1
    running "$name"
    must "the program of $name does not ask" until_true 20 listens "$name"
}
resize_field() {
    on "$asker" rmctl show-job --json "$(job "$1")" | python3 -c 'import json, sys
print(json.load(sys.stdin)["jobs"][0].get("resize", {}).get(sys.argv[1], ""))' "$2"
}
listens() {
    [[ $(resize_field "$1" listens) == True ]]
}
resize() {
    must "$1 does not change to $2 ranks: $(tail -n 3 "$work/resize")" as alice n1 rmctl resize-job "$(job "$1")" "$2" --timeout 60 >"$work/resize" 2>&1
}
frozen() {
    local node
    for node in $(nodes); do
        on "$node" sh -c 'for d in /sys/fs/cgroup/rmd-capsules/"j$1."*/payload; do cat "$d/cgroup.freeze"; done 2>/dev/null' sh "$(job "$1")"
    done | grep -c 1
}
stands_still() {
    (($(frozen "$1") == $2))
}
# Descriptors of rmd and of PID 1s, and processes, on all nodes.
count_all() {
    local node
    for node in $(nodes); do
        on "$node" sh -c 'n=0; for p in /proc/[0-9]*; do
                case $(cat "$p/comm" 2>/dev/null) in rmd | rm-capsule) n=$((n + $(ls "$p/fd" 2>/dev/null | wc -l))) ;; esac
            done; echo $n $(ls -d /proc/[0-9]* | wc -l)'
    done | awk '{ fds += $1; all += $2 } END { print fds, all }'
}

begin often ''
resize often 8
must "all groups do not run" stands_still often 0
resize often 2
must "3 groups do not stand still" until_true 20 stands_still often 3
read -r fds processes < <(count_all)
many=$(thorough 100 25)
for ((i = 0; i < many; i++)); do
    resize often $((i % 2 ? 2 : 8))
done
resize often 2
until_true 20 stands_still often 3
read -r fds_after processes_after < <(count_all)
see "$many changes: $fds descriptors before, $fds_after after; $processes processes before, $processes_after after"
((fds_after <= fds + 12 && processes_after <= processes + 6)) || fail "something was left behind"
same "what the program counted" "$(grep -c 'resizes: [28] ranks' "$work/often.out")" "$((many + 2 + (many % 2 ? 1 : 0)))"

# rmd dies while a change waits for the program, and after.
resize often 4
for node in $(nodes); do
    as alice n1 rmctl resize-job "$(job often)" $((RANDOM % 2 ? 8 : 2)) --no-wait >/dev/null 2>&1
    bed_do stop-rmd "$node" --kill
    bed_do start-rmd "$node"
    must "all are not back" until_true 30 all_joined
    must "the change is not made" until_true 30 eval '[[ $(resize_field often wanted) =~ ^0?$ ]]'
    resize often 4
done
# Moves of what computes and what is parked, and of mpirun.
for group in -1 0 3; do
    move often $group "$(a_node_but "$(q where often $group)")"
    resize often 8
    resize often 3
done
release often
finish often
ended_well often 'ends well'

# Goes on from a checkpoint with the ranks that it had then.
begin saved '' --on-node-loss restart
resize saved 8
must "moves do not end" q settled 60 >/dev/null
must "a checkpoint" as alice n1 rmctl checkpoint-job "$(job saved)" >/dev/null
resize saved 2
must "moves do not end" q settled 60 >/dev/null
must "checkpoint-job --stop" as alice n1 rmctl checkpoint-job --stop "$(job saved)" >/dev/null
must "it is not held" q state saved PENDING 30 >/dev/null
must "restart-job" as alice n1 rmctl restart-job "$(job saved).1" >/dev/null
must "it does not run again" q state saved RUNNING 60 >/dev/null
same "its active ranks" "$(resize_field saved active)" 8
must "the program does not ask again" until_true 20 listens saved
resize saved 4
release saved
finish saved
ended_well saved 'ends well'

# Ends of all kinds with parked groups.
begin failing "--fail-file=/home/alice/fail"
must "2 groups do not stand still" until_true 20 stands_still failing 2
on n1 touch /home/alice/fail
finish failing 40
same "the state of a job with a rank that fails" "$(q job failing state)" FAILED
((rc > 0)) || fail "its exit code is 0"
begin cancelled ''
must "2 groups do not stand still" until_true 20 stands_still cancelled 2
must "cancel-job" rmctl cancel-job "$(job cancelled)" >/dev/null
finish cancelled 40
same "the state of a job that is cancelled" "$(q job cancelled state)" CANCELLED
begin late '' --time 20
finish late 60
same "the state at the limit" "$(q job late state)" TIMEOUT
