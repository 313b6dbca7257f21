#!/bin/bash
# A user who holds connections to the local socket, silent or greeted, as many as there are: root and other users are served; the user
# is told why there are no more for him.
# limit: 150
. "${BASH_SOURCE[0]%/*}/lib.sh"

# served WHO CMD...: within 2 s and with exit code 0.
served() {
    local who=$1 began=$EPOCHREALTIME
    shift
    "$@" >"$work/answer" 2>&1 || fail "$who is not served: $(head -n 1 "$work/answer")"
    see "$who is served within $(msec_since "$began") ms"
}

cluster 2 --cores 2
as alice n1 "$programs/badclient" silent 200 6 >"$work/silent" 2>&1 &
holder=$!
until_true 20 test -s "$work/silent" || fail "alice's connections were never all made"
served "root beside 200 silent connections of alice's" rmctl status
served "bob beside them" as bob n1 rmctl list-jobs
served "alice herself" as alice n1 rmctl list-jobs
wait "$holder"
as bob n1 "$programs/badclient" greeted 1100 8 >"$work/greeted" 2>/dev/null &
holder=$!
until_true 60 test -s "$work/greeted" || fail "bob's connections were never all made"
served "root beside 1100 greeted connections of bob's" rmctl status
served "alice beside them" as alice n1 rmctl list-jobs
as bob n1 rmctl status >"$work/answer" 2>&1 && fail "bob has one connection more than he may"
see "bob himself: $(head -n 1 "$work/answer")"
grep -q '64 connections' "$work/answer" || fail "bob is not told why: $(head -n 1 "$work/answer")"
wait "$holder"
served "bob, when they have gone" as bob n1 rmctl status
lines=$(bed_do logs n1 | wc -l)
((lines < 300)) || fail "the log has $lines lines of it"
see "the log has $lines lines"
