#!/bin/bash
# A node set to 0 in the availability file is left within moments, less capacity than ranks folds them, and all spreads out
# again when the file says so.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

edit() {
    on n1 sh -c 'printf "%s\n" "$@" >/home/rmd/availability.new && mv /home/rmd/availability.new /home/rmd/availability' sh "$@"
}
ranks_on() {
    q node "$1" ranks
}

cluster 4 --cores 2
start live n1 --group-size 2 -n 8 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
see "at the start: $(q place live | tr '\n' ' ')"
victim=$(q where live 1)
begun=$EPOCHREALTIME
edit "$victim:0"
moves_began() {
    [[ $(q moves live) ]]
}
until_true 5 moves_began || fail "no move within 5 s of the edit"
see "the first move began within $(msec_since "$begun") ms of the edit"
must "$victim is not left" q capacity "$victim" 30 0 >/dev/null
must "it does not settle" q settled 30 >/dev/null
see "$victim:0 after $(msec_since "$begun") ms: $(q place live | tr '\n' ' ') state $(q job live state)"
same "the state with 8 ranks on 6 cores" "$(q job live state)" FOLDED

see "down to two cores"
edit n1:1 n2:1 n3:0 n4:0
must "n3 is not left" q capacity n3 40 0 >/dev/null
must "n4 is not left" q capacity n4 40 0 >/dev/null
must "it does not settle" q settled 30 >/dev/null
see "n1:1 n2:1 n3:0 n4:0: $(q place live | tr '\n' ' ')"
# maxProcs = ceil(1 * 8 / 2) on both.
same "ranks on n1" "$(ranks_on n1)" 4
same "ranks on n2" "$(ranks_on n2)" 4

edit '#'
must "it does not unfold" q state live RUNNING 40 >/dev/null
must "it does not settle" q settled 30 >/dev/null
see "an empty file: $(q place live | tr '\n' ' ')"
for n in $(nodes); do same "ranks on $n" "$(ranks_on "$n")" 2; done
release live
finish live
ended_well live hash
same_as_undisturbed live 8 --group-size 2
