#!/bin/bash
# Order-sensitive arithmetic, moved around 20 times (in a quick run 8) at random (the head too), gives the same bits as when left alone.
# limit: 180
. "${BASH_SOURCE[0]%/*}/../lib.sh"
RANDOM=${RM_TEST_SEED:-20}
wanted=$(thorough 20 8)

cluster 4 --cores 2
start live n1 --group-size 2 -n 8 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
for ((i = 0; i < wanted; i++)); do
    group=$((RANDOM % 5 - 1))
    here=$(q where live "$group")
    to=$(a_node_but "$here")
    move live "$group" "$to"
done
q moves live | awk '{ printf "  move %s: group %s %s -> %s, freeze %.3f s\n", $1, $2, $3, $4, $6 / 1e6 }'
# Beside those asked for, some where a node had more ranks than cores after one.
arrived=$(q moves live | grep -c DONE)
((arrived >= wanted)) || fail "$arrived moves arrived, not $wanted or more"
release live
finish live
ended_well live hash
same_as_undisturbed live 8 --group-size 2
