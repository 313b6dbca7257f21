#!/bin/bash
# The capsule of mpirun itself is moved while output and input pass through it.
# limit: 120
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 3 --cores 2
start live n1 --group-size 2 -n 4 "$programs/flood" --stop-file="$(stop_file live)" --pause-usec=10000
must "no output" until_true 20 test -s "$work/live.out"
for ((i = 0; i < 4; i++)); do
    head=$(q where live -1)
    move live -1 "$(a_node_but "$head")"
done
see "the head was on: $(q moves live | awk '{ printf "%s ", $3 } END { print $4 }')"
# The front end still gets what is written after the last move.
before=$(wc -l <"$work/live.out")
sleep 1
(($(wc -l <"$work/live.out") > before)) || fail "no output after the head's move"
release live
finish live
same "exit code" "$rc" 0
must "standard output" whole "$work/live.out" out 4
must "standard error" whole "$work/live.err" err 4
