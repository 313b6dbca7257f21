#!/bin/bash
# A job that forks without end comes to its own limit, not to the node's: the job beside it goes on, rmctl answers, new jobs start.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 1 --cores 4 --set capsule.pids_max=200
until_true 5 unlimited n1 pids || fail "status does not say that processes are not limited: $(on n1 rmctl status)"
give_controllers n1

user=bob start beside n1 -n 2 "$programs/ordered" --stop-file="$(user=bob stop_file beside)" --pause-usec=20000
running beside
start bomb n1 -n 1 "$programs/hog" --forks=1000 --stop-file="$(stop_file bomb)"
until_true 30 grep -q 'hog: forks' "$work/bomb.out" || fail "it has no end: $(tail -n 2 "$work/bomb.err")"
see "$(grep 'hog: forks' "$work/bomb.out")"
if limited n1 pids; then
    children=$(sed -n 's/.*forks stopped at \([0-9]*\) children.*/\1/p' "$work/bomb.out")
    [[ $children ]] || fail "nothing stops it: $(grep 'hog: forks' "$work/bomb.out")"
    ((children > 100 && children < 200)) || fail "it has $children children, of 200 processes and threads"
fi
begun=$EPOCHREALTIME
rmctl list-jobs >"$work/jobs" || fail "rmctl does not answer"
see "rmctl answers within $(msec_since "$begun") ms"
user=bob run after n1 -n 1 "$programs/spin" --seconds=1
ended_well after done
release bomb
finish bomb
ended_well bomb done
user=bob release beside
finish beside
ended_well beside hash
