#!/bin/bash
# A job that grows and shrinks goes on with just the ranks that it is asked to, as often as it is asked, with rmd killed in between, with moves and a restart from a checkpoint, and
# leaves no process, no descriptor and no memory behind (RM_TEST_ROUNDS: how often, in place of the usual number). It ends as others do: by itself, by a failure, by cancel-job, at its time limit, also while most of it is parked.
# complete: resize/results and resize/node-loss have the main way and the worst fault
# limit: 480
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 4 --set cluster.node_timeout=3s --set sched.resize_interval=0

# begin NAME ARG...: 4 of 8 ranks.
begin() {
    local name=$1
    shift
    start "$name" n1 --group-size 2 -n 4 --max-ranks 8 --min-ranks 1 "${@:2}" "$programs/resizes" --stop-file="$(stop_file "$name")" $1
    running "$name"
    must "the program of $name does not ask" until_true 20 listens "$name"
}
# count_all: descriptors of rmd and of PID 1s, processes, descriptors of ranks, and the memory in KiB of rmd, of PID 1s, of mpirun and prted, and of ranks, on all nodes.
count_all() {
    local node
    for node in $(nodes); do
        on "$node" sh -c 'for p in /proc/[0-9]*; do
                read -r name <"$p/comm" || continue
                case $name in mpirun | prte*) name=prte ;; esac
                echo "$name" $(ls "$p/fd" | wc -l) $(sed -n "s/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p" "$p/status")
            done 2>/dev/null'
    done | awk '{ n++; fds[$1] += $2; kib[$1] += $3 }
        END { print fds["rmd"] + fds["rm-capsule"], n, fds["resizes"], kib["rmd"], kib["rm-capsule"], kib["prte"], kib["resizes"] }'
}

begin often ''
resize often 8
must "all groups do not run" until_true 20 stands_still often 0
resize often 2
must "3 groups do not stand still" until_true 20 stands_still often 3
cycle() { # MANY: from 2 to 8 ranks and back, so often
    bed_do exec n1 --user alice -- sh -c 'for i in $(seq "$2"); do
            rmctl resize-job "$1" 8 --timeout 60 && rmctl resize-job "$1" 2 --timeout 60 || exit 1
        done' sh "$(job often)" "$1" </dev/null >"$work/cycle" 2>&1 || fail "a change is not made: $(tail -n 2 "$work/cycle")"
    must "3 groups do not stand still" until_true 20 stands_still often 3
}
many=${RM_TEST_ROUNDS:-$(thorough 100 15)}
warm=$((many / 10 + 1))
cycle $warm
read -r fds processes rank_fds rmd_kib capsule_kib prte_kib rank_kib < <(count_all)
cycle "$many"
read -r fds_after processes_after rank_fds_after rmd_kib_after capsule_kib_after prte_kib_after rank_kib_after < <(count_all)
see "$many times from 2 to 8 ranks and back: $fds descriptors of rmd and PID 1s before, $fds_after after; of ranks $rank_fds, $rank_fds_after; $processes processes before, $processes_after after"
see "KiB before and after: rmd $rmd_kib, $rmd_kib_after; PID 1s $capsule_kib, $capsule_kib_after; mpirun and prted $prte_kib, $prte_kib_after; ranks $rank_kib, $rank_kib_after"
((fds_after <= fds + 12 && processes_after <= processes + 6 && rank_fds_after <= rank_fds)) || fail "something was left behind"
((capsule_kib_after <= capsule_kib + 1024)) || fail "PID 1s have grown"
((rmd_kib_after <= rmd_kib + 3 * 1024)) || fail "rmd has grown"
counted() {
    grep -c 'resizes: [28] ranks' "$work/often.out"
}
until_true 20 eval '(($(counted) == 2 * (many + warm) + 2))' || fail "the program counted $(counted) changes, not $((2 * (many + warm) + 2))"
# Each cycle makes a communicator of 8 ranks and one of 2, and of those over several nodes Open MPI keeps something: also in a job that never changes.
start plain n1 --group-size 2 -n 8 "$programs/resizes" --communicators=300
finish plain 300
ended_well plain 'each communicator of all'
see "ranks have grown by $(((rank_kib_after - rank_kib) * 1024 / (8 * many))) bytes for each communicator of 8; in a job that does not change: $(tail -n 1 "$work/plain.out")"

# rmd dies while a change waits for the program, and after.
resize often 4
for node in $(nodes); do
    as alice n1 rmctl resize-job "$(job often)" $((RANDOM % 2 ? 8 : 2)) --no-wait >/dev/null 2>&1
    bed_do stop-rmd "$node" --kill
    bed_do start-rmd "$node"
    must "all are not back" until_true 30 all_joined
    must "the change is not made" until_true 30 eval '[[ $(resize_field often requested) =~ ^0?$ ]]'
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
