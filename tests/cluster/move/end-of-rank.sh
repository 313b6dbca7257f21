#!/bin/bash
# A rank that ends just before a move is seen to have ended after it: the end of file on its terminal, which PRRTE waits for, has moved too.
# While its last output has not been read from there, the group is not moved: that would be lost.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 4
start hangup n1 --group-size 1 -n 2 "$programs/hangup" --stop-file="$(stop_file hangup)"
running hangup
for node in n2 n1; do move hangup 0 "$node"; done
release hangup
finish hangup 40
see "$(grep -a '^hangup: ' "$work/hangup.out" | tr '\n' '|')"
ended_well hangup '^hangup: good'

start unread n1 --group-size 1 -n 2 "$programs/hangup" --unread --stop-file="$(stop_file unread)"
running unread
migrate unread 0 n2 --wait --timeout 30 >"$work/migrate" 2>&1 && fail "it was moved"
see "$(<"$work/migrate")"
grep -q 'has unread terminal output' "$work/migrate" || fail "why it is not moved is not told"
release unread
finish unread 40
see "$(grep -a '^hangup: ' "$work/unread.out" | tr '\n' '|')"
ended_well unread '^hangup: good'
