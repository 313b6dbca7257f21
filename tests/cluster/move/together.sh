#!/bin/bash
# Two groups, and then all of them with the head, are on their way at the same time.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# Room for all of them on one node: the scheduler has no reason to move any.
cluster 4 --cores 8
start live n1 --group-size 2 -n 8 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live

# together GROUP...: each to the next node.
together() {
    local group here to movers=()
    declare -A target
    for group in "$@"; do
        here=$(q where live "$group")
        to=n$((${here#n} % 4 + 1))
        target[$group]=$to
    done
    for group in "$@"; do
        migrate live "$group" "${target[$group]}" >/dev/null 2>"$work/migrate.err" &
        movers+=($!)
    done
    wait "${movers[@]}"
    for group in "$@"; do
        must "group $group is not on ${target[$group]}: $(cat "$work/migrate.err")" q arrived live "$group" "${target[$group]}" 60 >/dev/null
    done
}

together 0 1
together 2 3
together 0 1 2 3 -1
together 0 1 2 3 -1
see "$(q moves live | grep -c DONE) moves; freeze: $(q moves live | awk '{ printf "%.0f ", $6 / 1e3 }')ms"
release live
finish live
ended_well live hash
same_as_undisturbed live 8 --group-size 2
