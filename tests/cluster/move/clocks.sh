#!/bin/bash
# CLOCK_MONOTONIC, CLOCK_BOOTTIME and MPI_Wtime never go backwards in a rank, though the nodes' clocks differ by thousands
# of seconds, and they do not jump ahead by such a difference.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 4 --cores 2
see "CLOCK_MONOTONIC of the nodes: $(for n in $(nodes); do on "$n" cut -d ' ' -f 1 /proc/uptime; done | tr '\n' ' ')s"
start live n1 --group-size 1 -n 2 "$programs/clocks" --stop-file="$(stop_file live)" --max-jump-msec=10000
running live
# Downhill and uphill.
for to in n4 n1 n3 n2 n1; do
    [[ $(q where live 1) == "$to" ]] || move live 1 "$to"
done
move live 0 "$(a_node_but "$(q where live 0)")"
release live
finish live
sed -n 's/^clocks: rank/  rank/p' "$work/live.out"
ended_well live good
