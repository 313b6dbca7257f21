#!/bin/bash
# A file in the job's own /tmp or /dev/shm that one named user may read besides its owner, and not the group, is the same after moves,
# with all other attributes that users can give. What is too much to be carried keeps the group where it is, in plain words.
# limit: 120
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 3 --cores 4
start live n1 --group-size 1 -n 2 "$programs/attributes" /tmp /dev/shm --stop-file="$(stop_file live)"
running live
for ((i = 0; i < $(thorough 4 2); i++)); do
    for group in 0 1; do move live "$group" "$(a_node_but "$(q where live "$group")")"; done
done
see "$(q moves live | grep -c DONE) moves"
release live
finish live
see "$(tail -n 3 "$work/live.out" | tr '\n' '|')"
ended_well live ': 6 files, good$'

start full n1 --group-size 1 -n 2 "$programs/attributes" /tmp --tags=12 --stop-file="$(stop_file full)"
running full
from=$(q where full 0)
if migrate full 0 "$(a_node_but "$from")" --wait --timeout 30 >"$work/migrate" 2>&1; then fail "moved with 12 KiB of attributes of one file"; fi
see "$(tail -n 1 "$work/migrate")"
grep -q 'extended attributes' "$work/migrate" || fail "not in plain words: $(tail -n 3 "$work/migrate" | tr '\n' '|')"
same "where it is" "$(q where full 0)" "$from"
release full
finish full
ended_well full ': 3 files, good$'
