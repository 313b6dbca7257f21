#!/bin/bash
# Groups move while their ranks are inside of MPI_Init or MPI_Finalize, and so does mpirun itself, with output and input on their way.
# limit: 300
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# Both groups and the head, to another node each.
move_all() {
    local group
    for group in 1 0 -1; do
        move live "$group" "$(a_node_but "$(q where live "$group")")"
    done
}

cluster 3 --cores 2

# Groups whose ranks are inside MPI_Init when they are moved.
scenario "inside of MPI_Init"
start live n1 --group-size 2 -n 4 "$programs/slow" init --stop-file="$(stop_file live)"
until_true 20 grep -qs 'rank 3 enters MPI_Init' "$work/live.out" || fail "the ranks have not started"
sleep 0.5
move_all
grep -q MPI_Finalize "$work/live.out" && fail "the ranks had left MPI_Init before the moves"
release live
finish live
same "ranks with the right sum" "$(grep -c 'sum right' "$work/live.out")" 4
ended_well live 'rank 3 is through'

# Groups whose ranks are inside MPI_Finalize when they are moved.
scenario "inside of MPI_Finalize"
start live n1 --group-size 2 -n 4 "$programs/slow" finalize --stop-file="$(stop_file live)"
until_true 20 grep -qs 'rank 3 of 4 enters MPI_Finalize' "$work/live.out" || fail "the ranks have not started"
sleep 0.5
move_all
release live
finish live
same "ranks that are through" "$(grep -c 'is through' "$work/live.out")" 4
ended_well live 'rank 3 is through'

# The capsule of mpirun itself is moved while output and input pass through it.
scenario "the head"
start live n1 --group-size 2 -n 4 "$programs/flood" --stop-file="$(stop_file live)" --pause-usec=20000
must "no output" until_true 20 test -s "$work/live.out"
for ((i = 0; i < 4; i++)); do
    head=$(q where live -1)
    move live -1 "$(a_node_but "$head")"
done
see "the head was on: $(q moves live | awk '{ printf "%s ", $3 } END { print $4 }')"
# The front end still gets what is written after the last move.
before=$(wc -l <"$work/live.out")
more() {
    (($(wc -l <"$work/live.out") > before))
}
must "no output after the head's move" until_true 20 more
release live
finish live
same "exit code" "$rc" 0
must "standard output" whole "$work/live.out" out 4
must "standard error" whole "$work/live.err" err 4
