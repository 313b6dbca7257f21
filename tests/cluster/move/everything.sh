#!/bin/bash
# A program of eight ranks, each of which has one of every kind of state that a move carries (files, sockets, memory, signals, timers, limits, children, terminals,
# IPC), finds all of it as it was: after moves live and by stopping, and after restarts from a checkpoint, of a job that was stopped by it and of one that lost a node.
# With --thorough one job has 200 moves and 50 checkpoints and restarts in turn, and each rank compares all of it after each.
# complete: move/programs and memory/kinds have one kind each
# limit: 300
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 8 --set cluster.node_timeout=2s
must "there are no three voters" until_true 30 voters_up
look=/home/alice/live.look
start live n1 --group-size 2 -n 8 --checkpoint 1h --on-node-loss restart --restarts 1000 "$programs/everything" --stop-file="$(stop_file live)" --look-file="$look"
running live
number=$(job live)

# verified AFTER-WHAT: in a thorough run, all ranks have compared everything since.
answered_look() {
    [[ ! -e $beds/$bed$look ]]
}
verified() {
    thorough || return 0
    on n1 touch "$look"
    until_true 60 answered_look || fail "$1: the ranks do not compare: $(q job live state), $(tail -n 3 "$work/live.err" | tr '\n' '|')"
}

# move_all CYCLE: each group once.
move_all() {
    local group to mode
    for group in 0 1 2 3; do
        to=$(a_node_but "$(q where live "$group")")
        mode=live
        ((($1 + group) % 2 == 0)) || mode=stop
        migrate live "$group" "$to" --mode "$mode" --wait --timeout 60 >"$work/said" 2>&1 || fail "group $group to $to, $mode: $(<"$work/said")"
        moves=$((moves + 1))
        verified "move $moves, of group $group to $to, $mode"
    done
}

# The attempt is asked for first: before a loss is noticed the one before it runs.
runs_again() {
    [[ $(q job live attempt) == "$attempt" && $(q job live state) == RUNNING ]]
}
wait_for_attempt() {
    attempt=$((attempt + 1))
    until_true 60 runs_again || fail "attempt $attempt does not run: $(q job live state), $(rmctl show-job "$number" | grep Reason)"
    verified "restart $((attempt - 1)), $1"
}
save() {
    rmctl checkpoint-job "$number" --timeout 60 "$@" >"$work/said" 2>&1 || fail "not saved: $(<"$work/said")"
}
restart_stopped() {
    save --stop
    rmctl restart-job "$number" >"$work/said" 2>&1 || fail "not restarted: $(<"$work/said")"
    wait_for_attempt "of the stopped job"
}
lose_node() {
    local victim
    victim=$(q place live | awk '$2 != "n1" { print $2; exit }')
    if [[ ! $victim ]]; then
        victim=n2
        migrate live 0 n2 --wait --timeout 60 >"$work/said" 2>&1 || fail "not on n2: $(<"$work/said")"
        must "a move does not end" until_true 30 eval '! q moves live | grep -Eq " (RUNNING|COMMITTED) "'
    fi
    save
    bed_do power-off "$victim"
    wait_for_attempt "after the loss of $victim"
    bed_do power-on "$victim"
    must "$victim does not come back" until_true 30 all_joined
}

attempt=1 moves=0
for ((cycle = 0; cycle < $(thorough 50 2); cycle++)); do
    if ((cycle == 0)) || thorough; then move_all "$cycle"; fi
    if ((cycle % 2 == 0)); then restart_stopped; else lose_node; fi
done
see "$moves moves, $((attempt - 1)) restarts"
release live
finish live 60
see "$(tail -n 1 "$work/live.out")"
ended_well live 'lines of each rank, as at first'
