#!/bin/bash
# Twenty edits in two seconds, faster than anything can move, end in the state of the last one.
# complete: availability/edit has the main way
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 4 --cores 4
start live n1 --group-size 2 -n 8 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
on n1 bash -c 'for ((i = 0; i < 20; i++)); do
        off=n$((i % 4 + 1))
        echo "$off:0" >/home/rmd/availability
        sleep 0.1
    done
    printf "n1:0\nn2:0\n" >/home/rmd/availability'
must "n1 is not left" q capacity n1 60 0 >/dev/null
must "n2 is not left" q capacity n2 60 0 >/dev/null
must "it does not settle" q settled 60 >/dev/null
see "after 21 edits and $(q moves live | grep -c .) moves: $(q place live | tr '\n' ' ')"
for n in n1 n2; do same "ranks on $n" "$(q node "$n" ranks)" 0; done
for n in n3 n4; do same "ranks on $n" "$(q node "$n" ranks)" 4; done
release live
finish live
ended_well live hash
same_as_undisturbed live 8 --group-size 2
