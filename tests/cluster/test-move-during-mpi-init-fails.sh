#!/bin/bash
# Groups whose ranks are inside MPI_Init when they are moved.
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 3 --cores 2
start live n1 --group-size 2 -n 4 "$programs/slow" init --stop-file="$(stop_file live)"
until_true 20 grep -qs 'rank 3 enters MPI_Init' "$work/live.out" || fail "the ranks have not started"
sleep 0.5
for group in 1 0 -1; do
    move live "$group" "$(a_node_but "$(q where live "$group")")"
done
grep -q MPI_Finalize "$work/live.out" && fail "the ranks had left MPI_Init before the moves"
release live
finish live
same "ranks with the right sum" "$(grep -c 'sum right' "$work/live.out")" 4
ended_well live 'rank 3 is through'
