#!/bin/bash
# A program that writes all its memory anew all the time is moved while it does: every page has what was written last, whether it
# went ahead or in the freeze; and the same with nothing ahead.
# limit: 120
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 3 --cores 2
start live n1 --group-size 2 -n 4 "$programs/memory" --mb=16 --dirty --stop-file="$(stop_file live)"
running live
for ((i = 0; i < 6; i++)); do
    group=$((i % 2))
    mode=live
    ((i < 4)) || mode=stop
    to=$(a_node_but "$(q where live "$group")")
    migrate live "$group" "$to" --mode "$mode" --wait --timeout 60 >"$work/migrate" 2>&1 || fail "$mode to $to: $(<"$work/migrate")"
    q settled 60 >/dev/null || fail "not settled"
    read -r freeze _ _ _ _ image ahead < <(q phases live "$group")
    see "$mode: frozen for $freeze s, $image bytes sent, $ahead of them ahead"
    [[ $mode == live ]] || same "bytes ahead" "$ahead" 0
    [[ $mode == stop ]] || ((ahead > 0)) || fail "nothing went ahead"
done
release live
finish live
ended_well live good
