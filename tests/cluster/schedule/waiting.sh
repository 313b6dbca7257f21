#!/bin/bash
# A job that does not fit waits, says for what, and starts when it can; --wait SECONDS gives up; one that can never fit says so.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2
start first n1 -n 4 "$programs/spin" --stop-file="$(stop_file first)"
running first
start second n2 -n 2 "$programs/ordered" --iterations=50
must "it does not wait" q state second PENDING 10 >/dev/null
until_true 10 grep -q . "$work/second.err" || fail "it does not say that it waits"
see "its front end: $(head -n 1 "$work/second.err")"
reason=$(q job second reason)
see "list-jobs: $reason"
[[ $reason ]] || fail "no reason"
run third n1 --wait 2 -n 2 "$programs/ordered" --iterations=50
((rc != 0)) || fail "--wait 2 did not give up"
see "--wait 2: exit code $rc: $(tail -n 1 "$work/third.err")"
begun=$EPOCHREALTIME
release first
finish first
running second 15
see "started $(msec_since "$begun") ms after the first was told to end"
finish second
ended_well second hash
