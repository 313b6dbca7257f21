#!/bin/bash
# Programs that end at once, on nodes with more to do than they can: mpirun notices the end of each rank. (With PRRTE's own
# defaults four in ten of such runs never end.) And it warns of nothing.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"
runs=15

cluster 4 --cores 4
load=()
for ((i = 0; i < $(nproc); i++)); do
    timeout 100 sh -c 'while :; do :; done' &
    load+=($!)
done
for ((i = 0; i < runs; i++)); do
    as alice n1 timeout 30 rm-mpirun -n 8 --group-size 2 hostname >"$work/out" 2>"$work/err" ||
        fail "run $i: exit $?: $(tail -n 2 "$work/err")"
    same "run $i: standard error" "$(grep -v '^rm-mpirun: ' "$work/err")" ''
    same "run $i: lines" "$(grep -c '^rmj' "$work/out")" 8
done
kill "${load[@]}"
see "$runs runs of hostname, 8 ranks in 4 groups: all ended, all output there"
