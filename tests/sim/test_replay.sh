#!/bin/bash
# A seed gives the same history each time, whatever the addresses and the time of day; another seed gives another one.
set -euo pipefail

program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Without the last line, which tells how long it took.
trace() {
    "$program" --seed "$1" --seconds 10 --faults 10 --trace | sed '$d'
}

for seed in 1 2 3; do
    trace $seed >"$folder/first"
    trace $seed >"$folder/second"
    cmp "$folder/first" "$folder/second"
    # It has told of faults, of leaders and of answers.
    for what in 'fault: ' 'LEADS term' 'is answered'; do
        grep -q "$what" "$folder/first"
    done
done
trace 4 >"$folder/other"
! cmp -s "$folder/first" "$folder/other"
