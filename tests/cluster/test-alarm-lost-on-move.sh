#!/bin/bash
# alarm(), setitimer(), timer_create() and timerfd without an interval go off after moves: once, and in time.
# limit: 120
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 3 --cores 4
begun=$EPOCHREALTIME
start live n1 --group-size 1 -n 2 "$programs/alarms" --seconds=25 --stop-file="$(stop_file live)"
running live
for ((i = 0; i < 2; i++)); do
    for group in 0 1; do
        move live "$group" "$(a_node_but "$(q where live "$group")")"
    done
done
(($(msec_since "$begun") < 24000)) || fail "the moves took so long that the timers went off before"
see "$(q moves live | grep -c DONE) moves after $(msec_since "$begun") ms"
until_true 40 eval '(($(grep -c fired "$work/live.out") == 2))' || see "not all have gone off"
# Once more after that, and nothing may come of it.
move live 0 "$(a_node_but "$(q where live 0)")"
sleep 1
release live
finish live
see "$(grep rank "$work/live.out" | grep -v fired)"
ended_well live ': good$'
