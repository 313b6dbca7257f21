#!/bin/bash
# A group that is moved away and back ten times (in a quick run three times), and what it costs its node in the end: nothing.
# limit: 150
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 3 --cores 4
start live n1 --group-size 2 -n 4 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
home=$(q where live 1)
away=$(a_node_but "$home")
for ((i = 0; i < $(thorough 10 3); i++)); do
    move live 1 "$away"
    move live 1 "$home"
done
see "$(q moves live | grep -c DONE) moves between $home and $away, freeze times: $(q moves live | awk '{ printf "%.0f ", $6 / 1e3 }')ms"
release live
finish live
ended_well live hash
same_as_undisturbed live 4 --group-size 2
