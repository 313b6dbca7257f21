#!/bin/bash
# What programs use beside MPI goes on after moves: shared memory, files in /tmp and /home, threads, pipes, a child process,
# timers, sleep, signals, epoll, locks.
# limit: 120
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 3 --cores 4
start live n1 --group-size 2 -n 4 "$programs/touchall" all --stop-file="$(stop_file live)"
running live
for ((i = 0; i < $(thorough 4 2); i++)); do
    for group in 0 1; do
        move live "$group" "$(a_node_but "$(q where live "$group")")"
    done
done
see "$(q moves live | grep -c DONE) moves"
release live
finish live
see "$(tail -n 1 "$work/live.out")"
ended_well live good
