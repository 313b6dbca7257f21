#!/bin/bash
# A program that uses memory of every kind (huge pages, shared, locked, of files, moved and resized, protected, given back, written by the kernel,
# copied by fork, of threads, in reserved address space, read and written by its neighbour) verifies each page while its groups are moved again and again, tracked.
# limit: 900
. "${BASH_SOURCE[0]%/*}/../lib.sh"

wanted=$(thorough 200 8)
cluster 3 --cores 2
# The destination also compares all that came with what is read once more in the freeze, and refuses it otherwise.
for n in n1 n2 n3; do
    bed_do stop-rmd "$n"
    start_rmd_with "$n" RM_COMPARE_PAGES=1
done
must "they do not join again" until_true 20 all_joined
start live n1 --group-size 2 -n 4 "$programs/kinds" --stop-file="$(stop_file live)"
running live
tracked=0
for ((i = 0; i < wanted; i++)); do
    group=$((i % 2))
    move live "$group" "$(a_node_but "$(q where live "$group")")"
    q settled 60 >/dev/null || fail "move $i has not ended"
    read -r way why < <(q way live "$group")
    [[ $way == yes ]] || see "move $i was not tracked: $why"
    tracked=$((tracked + (${#way} == 3)))
done
for n in n1 n2 n3; do
    ! on "$n" grep 'are not what it has' /var/log/rmd.log || fail "pages were stale"
done
((tracked > wanted * 9 / 10)) || fail "only $tracked of $wanted moves were tracked"
release live
finish live
ended_well live 'rank 3 good'
same "ranks that found all good" "$(grep -c ' good, ' "$work/live.out")" 4
see "$wanted moves, $tracked of them tracked: $(grep -o 'rank 0.*' "$work/live.out")"
