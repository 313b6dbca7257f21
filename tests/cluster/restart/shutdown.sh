#!/bin/bash
# A node that is shut down or rebooted ends its processes before it is silent: mpirun loses a daemon, and ends, long before rmd takes the
# node for lost. A job with --on-node-loss restart starts again all the same. If the node was not lost but only without its rmd, the job
# has ended as mpirun says.
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# Time enough for a node to come back before it is DOWN.
cluster 3 --cores 2 --set cluster.node_timeout=8s
must "there are no three voters" until_true 30 voters_up

restarts_told() {
    same "restarts that rm-mpirun tells of" "$(grep -ac 'rm-mpirun: .*starts again from its beginning' "$work/live.err")" "$1"
}

# The head stays on n1, and n1 up.
victim=''
choose() {
    [[ $(q where "$1" -1) == n1 ]] || move "$1" -1 n1
    victim=$(q place "$1" | grep -v '^-1 ' | grep -v ' n1$' | head -n 1 | cut -d ' ' -f 2)
    [[ $victim ]] || fail "all on n1: $(q place "$1")"
}
# As an operating system does: first services, then all other processes.
shut_down() {
    bed_do stop-rmd "$victim"
    on "$victim" pkill -TERM prted
    begun=$EPOCHREALTIME
    ended_before_down
}
ended_before_down() {
    until_true 6 state_is live COMPLETING || fail "mpirun has not ended by itself: $(q job live state), $(q job live reason)"
    see "mpirun has ended, with $(q job live exit_code); $victim is $(rmctl show-node "$victim" | sed -n 's/^State *: *//p')"
}
state_is() {
    [[ $(q job "$1" state) == "$2" ]]
}

until_true 20 as alice n1 rm-mpirun --on-node-loss restart -n 1 true 2>"$work/level.err" || fail "no job may restart: $(cat "$work/level.err")"

start live n1 --on-node-loss restart --group-size 1 -n 4 \
    sh -c "echo attempt \$RM_ATTEMPT; exec $programs/ordered --stop-file=$(stop_file live) --pause-usec=20000"
attempt_runs live 1
choose live
shut_down
bed_do power-off "$victim"
attempt_runs live 2
see "$victim shut down: attempt 2 runs after $(msec_since "$begun") ms: $(grep -ao 'rm-mpirun: .*' "$work/live.err")"
grep -aq "node $victim is down; it starts again" "$work/live.err" || fail "it does not say why: $(cat "$work/live.err")"
bed_do power-on "$victim"
must "$victim does not join" until_true 30 all_joined

# Back before it was missed.
[[ $(q place live | grep -v '^-1 ' | grep -v ' n1$') ]] || move live 0 n2
choose live
shut_down
bed_do power-off "$victim"
bed_do power-on "$victim"
attempt_runs live 3
see "$victim rebooted: attempt 3 runs after $(msec_since "$begun") ms: $(grep -ao 'rm-mpirun: .*' "$work/live.err" | tail -n 1)"
restarts_told 2

release live
finish live
ended_well live hash
same_as_undisturbed live 4 --group-size 1

# The node is only without its rmd while mpirun ends: back, it says what was.
start live n1 --on-node-loss restart --group-size 1 -n 4 sh -c "echo attempt \$RM_ATTEMPT; exec $programs/spin --seconds=120"
attempt_runs live 1
choose live
shut_down
bed_do start-rmd "$victim"
finish live
see "only rmd was away: exit code $rc, $(q job live state): $(q job live reason)"
((rc != 0)) || fail "exit code 0 of a job whose MPI daemons were killed"
same "its state" "$(q job live state)" FAILED
same "its attempt" "$(q job live attempt)" 1
restarts_told 0
# What a node lost with its power is no leftover, and it has a new boot's processes.
inventory_all >"$work/before"
