#!/bin/bash
# A program of eight ranks, each of which has one of every kind of state that a move carries (files, sockets, memory, signals, timers, limits, children, terminals,
# IPC), finds all of it as it was: after moves live and by stopping, and after restarts from a checkpoint, of a job that was stopped by it and of one that lost a node.
# complete: move/programs and memory/kinds have one kind each
# limit: 300
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 8 --set cluster.node_timeout=2s
must "there are no three voters" until_true 30 voters_up
start live n1 --group-size 2 -n 8 --checkpoint 1h --on-node-loss restart --restarts 1000 "$programs/everything" --stop-file="$(stop_file live)"
running live
number=$(job live)

for ((i = 0; i < $(thorough 50 1); i++)); do
    for group in 0 1 2 3; do
        to=$(a_node_but "$(q where live "$group")")
        mode=live
        (((i + group) % 2 == 0)) || mode=stop
        migrate live "$group" "$to" --mode "$mode" --wait --timeout 60 >"$work/said" 2>&1 || fail "group $group to $to, $mode: $(<"$work/said")"
    done
done
see "$(q moves live | grep -c DONE) moves"
# The attempt is asked for first: before a loss is noticed the one before it runs.
runs_again() {
    [[ $(q job live attempt) == "$attempt" && $(q job live state) == RUNNING ]]
}
attempt=1
for ((i = 0; i < $(thorough 50 2); i++)); do
    attempt=$((attempt + 1))
    if ((i % 2)); then
        victim=$(q place live | awk '$2 != "n1" { print $2; exit }')
        if [[ ! $victim ]]; then
            victim=n2
            migrate live 0 n2 --wait --timeout 60 >"$work/said" 2>&1 || fail "not on n2: $(<"$work/said")"
            must "a move does not end" until_true 30 eval '! q moves live | grep -Eq " (RUNNING|COMMITTED) "'
        fi
        rmctl checkpoint-job "$number" --timeout 60 >"$work/said" 2>&1 || fail "not saved: $(<"$work/said")"
        bed_do power-off "$victim"
    else
        victim=
        rmctl checkpoint-job "$number" --stop --timeout 60 >"$work/said" 2>&1 || fail "not saved: $(<"$work/said")"
        rmctl restart-job "$number" >"$work/said" 2>&1 || fail "not restarted: $(<"$work/said")"
    fi
    must "attempt $attempt does not run: $(q job live state), $(rmctl show-job "$number" | grep Reason)" until_true 60 runs_again
    if [[ $victim ]]; then
        bed_do power-on "$victim"
        must "$victim does not come back" until_true 30 all_joined
    fi
done
see "$((attempt - 1)) restarts"
release live
finish live 60
see "$(tail -n 1 "$work/live.out")"
ended_well live 'lines of each rank, as at first'
