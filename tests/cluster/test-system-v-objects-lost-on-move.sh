#!/bin/bash
# System V semaphores and message queues are there after a move, with their numbers, keys, values and messages; shared memory is refused.
# limit: 120
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 2 --cores 8
for kind in sem msgq; do
    start "$kind" n1 --group-size 1 -n 2 "$programs/holds" "$kind" --stop-file="$(stop_file "$kind")"
    running "$kind"
    for ((i = 0; i < 2; i++)); do
        move "$kind" 0 "$(a_node_but "$(q where "$kind" 0)")"
    done
    sleep 1
    release "$kind"
    finish "$kind"
    ended_well "$kind" 'holds: good'
    see "$kind: good after 2 moves"
done
