#!/bin/bash
# Files that are open without a name, or no longer under the one they were opened by, go with a move; one that is given up, at
# whatever point, leaves none of the helper links in the user's directories that CRIU makes for them.
# limit: 120
. "${BASH_SOURCE[0]%/*}/lib.sh"

no_links() {
    local left
    left=$(on n1 find /home -name 'link_remap*')
    [[ ! $left ]] || fail "$1: left in the user's directory: $left"
}

cluster 3 --cores 4
for n in $(nodes); do bed_do stop-rmd "$n" && start_rmd_with_faults "$n"; done
until_true 20 all_joined || fail "not all joined"
as alice n1 mkdir -p /home/alice/files || fail "no folder"
start live n1 --group-size 1 -n 2 "$programs/unlinked" /home/alice/files /tmp --stop-file="$(stop_file live)"
running live
for point in source.transfer source.restore destination.restore destination.commit; do
    from=$(q where live 1)
    to=$(a_node_but "$from")
    side=$from
    [[ $point == source.* ]] || side=$to
    on "$side" sh -c "echo move.$point:fail >/run/rmd/fault"
    migrate live 1 "$to" --wait --timeout 30 >"$work/migrate" 2>&1 && see "$point: moved all the same"
    q settled 60 >/dev/null || fail "$point: not settled"
    no_links "$point"
done
for n in $(nodes); do on "$n" rm -f /run/rmd/fault; done
for ((i = 0; i < 2; i++)); do
    for group in 0 1; do move live "$group" "$(a_node_but "$(q where live "$group")")"; done
    no_links "after a move"
done
see "$(q moves live | grep -c DONE) moves, $(q moves live | grep -c ABORTED) given up"
release live
finish live
see "$(tail -n 3 "$work/live.out" | tr '\n' '|')"
ended_well live ': good$'
