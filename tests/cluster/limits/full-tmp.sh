#!/bin/bash
# A job that fills its /tmp, /dev/shm or /run is told that there is no room, goes on, takes what it has along when it moves, and takes
# memory away from nobody else, nor by empty files.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2 --set capsule.memory_max=200M

# stopped NAME UNIT: how far it came before there was no room.
stopped() {
    sed -n "s/^hog: .* stopped at \([0-9]*\) $2: No space left on device\$/\1/p" "$work/$1.out"
}

for place in /dev/shm/x /run/user/1000/x; do
    run full n1 -n 1 "$programs/hog" --fill=$place --mb=400
    see "$place: $(grep 'hog: /' "$work/full.out")"
    ended_well full done
    [[ $(stopped full MB) ]] && (($(stopped full MB) <= 100)) || fail "$place takes more than half of what the group may have"
done
run many n1 -n 1 "$programs/hog" --inodes=/tmp --files=100000
see "$(grep 'hog: inodes' "$work/many.out")"
ended_well many done
[[ $(stopped many files) ]] && (($(stopped many files) > 4000)) || fail "/tmp takes any number of files, or too few"

start live n1 --group-size 1 -n 1 "$programs/hog" --fill=/tmp/x --mb=400 --stop-file="$(stop_file live)"
until_true 30 grep -q 'hog: /tmp/x' "$work/live.out" || fail "it does not come to an end: $(tail -n 2 "$work/live.err")"
see "$(grep 'hog: /tmp/x' "$work/live.out")"
[[ $(stopped live MB) ]] && (($(stopped live MB) >= 50 && $(stopped live MB) <= 100)) || fail "/tmp takes more than half of what the group may have, or much less"
from=$(q where live 0)
move live 0 "$(a_node_but "$from")"
move live 0 "$from"
see "moved there and back with a full /tmp"
release live
finish live
ended_well live done
