#!/bin/bash
# An rmd that stands still for longer than its lease while a group moves that may be started again elsewhere, at the source, at the destination
# or at the leader: whoever has the group when it goes on, it goes on, once, and its result is right.
# limit: 200
. "${BASH_SOURCE[0]%/*}/../lib.sh"
RANDOM=${RM_TEST_SEED:-5}

# A freeze takes a second or more on such a link.
cluster 3 --cores 4 --link 100mbit --set cluster.node_timeout=60s --set cluster.lease=3s
# Not before all nodes know of restarts.
until_true 20 as alice n1 rm-mpirun --on-node-loss restart -n 1 true 2>"$work/level.err" || fail "no job may restart: $(cat "$work/level.err")"
start live n1 --on-node-loss restart --group-size 2 -n 4 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
[[ $(q where live 1) == n2 ]] || move live 1 n2

signal_rmd() {
    on "$1" sh -c 'kill "-$1" "$(cat /run/testbed-rmd.pid)"' sh "$2"
}

for ((i = 0; i < $(thorough 9 3); i++)); do
    from=$(q where live 1)
    to=n2
    [[ $from != n2 ]] || to=n3
    sides=("$from" "$to" n1)
    side=${sides[i % 3]}
    migrate live 1 "$to" --mode stop >"$work/migrate" 2>&1
    sleep "0.$((RANDOM % 10))"
    signal_rmd "$side" STOP
    sleep 5
    signal_rmd "$side" CONT
    must "it does not settle" q settled 60 >/dev/null
    see "rmd stopped on $side during a move $from -> $to: $(q moves live | tail -n 1 | cut -d ' ' -f 5,6)"
    must "the job does not run" q state live RUNNING 20 >/dev/null
done
release live
finish live
ended_well live hash
same_as_undisturbed live 4 --group-size 2
