#!/bin/bash
# Strangers who connect to the peers' port without end: a node that joins gets in, and the log does not grow with each of them.
# limit: 90
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 2 --cores 2
before=$(bed_do logs n1 | wc -l)
on n2 "$programs/badclient" strangers 10.77.0.1 10 >"$work/strangers" &
strangers=$!
sleep 2
bed_do restart-rmd n2 --kill >/dev/null 2>&1 || fail "rmd of n2 does not start again"
until_true 8 all_joined || fail "n2 does not get in beside strangers"
wait "$strangers"
lines=$(($(bed_do logs n1 | wc -l) - before))
see "$(<"$work/strangers") strangers, $lines lines in the log"
(($(<"$work/strangers") > 500)) || fail "too few strangers to tell"
((lines < 100)) || fail "the log has $lines lines of them"
