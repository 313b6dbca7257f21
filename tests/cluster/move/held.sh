#!/bin/bash
# What a group holds in the kernel beside its processes is carried, or its move is refused without a trace.
# limit: 210
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 8

# System V semaphores and message queues are there after a move, with their numbers, keys, values and messages; shared memory is refused.
scenario "System V objects"
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

# A move that is refused while the destination still makes its copy, over and over: no copy is left.
scenario "refused over and over"
start holds n1 --group-size 1 -n 2 "$programs/holds" io_uring --drop-file=/home/alice/drop --stop-file="$(stop_file holds)"
running holds
to=$(a_node_but "$(q where holds 0)")
for ((i = 0; i < $(thorough 200 60); i++)); do
    migrate holds 0 "$to" --mode stop >/dev/null 2>&1 || true
done
same "where the group is" "$(q where holds 0)" "$(a_node_but "$to")"
copies() {
    on "$to" sh -c 'ls /run/rmd/capsules | grep -c "$1"' sh "j$(job holds).g0"
}
no_copies() {
    [[ $(copies) == 0 ]]
}
must "copies are left: $(copies)" until_true 10 no_copies
see "$(q moves holds | wc -l) moves were refused"
on n1 touch /home/alice/drop
release holds
finish holds
ended_well holds good
