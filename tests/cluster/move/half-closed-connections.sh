#!/bin/bash
# A program with a connection that is closed in one direction moves, and what is left to be said comes.
# limit: 60
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2
start half n1 --group-size 1 -n 1 "$programs/halfclosed" --stop-file="$(stop_file half)"
running half
for ((k = 0; k < $(thorough 8 2); k++)); do
    move half 0 "$(a_node_but "$(q where half 0)")"
done
see "moved $k times"
release half
finish half
ended_well half good
