#!/bin/bash
# A rank that ends just before a move is seen to have ended after it: the end of file on its terminal, which PRRTE waits for, has moved too.
# limit: 90
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 2 --cores 2
start hangup n1 --group-size 1 -n 2 "$programs/hangup" --stop-file="$(stop_file hangup)"
running hangup
for node in n2 n1; do move hangup 0 "$node"; done
release hangup
finish hangup 40
see "$(grep -a '^hangup: ' "$work/hangup.out" | tr '\n' '|')"
ended_well hangup '^hangup: good'
