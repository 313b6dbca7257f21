#!/bin/bash
# A move is asked for while the group's node is out of reach, for less time than makes it DOWN: it begins when the node is back and has heard of it. It was aborted then.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 4 --set cluster.node_timeout=1m --set cluster.heartbeat=250ms
must "there are no three voters" until_true 30 voters_up
start away n1 -n 2 "$programs/ordered" --stop-file="$(stop_file away)" --pause-usec=50000
running away
leader=$(q leader)
from=$(for n in $(nodes); do [[ $n == "$leader" ]] || echo "$n"; done | head -n 1)
to=$(for n in $(nodes); do [[ $n == "$leader" || $n == "$from" ]] || echo "$n"; done)
[[ $(q where away 0) == "$from" ]] || move away 0 "$from"
out_of_reach() { on "$from" rmctl status 2>/dev/null | grep -q '^Leader: *-'; }
bed_do cut "$from"
must "$from still has a leader" until_true 40 out_of_reach
on "$leader" rmctl migrate-job "$(job away)" --group 0 --to "$to" >"$work/migrate" 2>&1 || fail "it is refused: $(<"$work/migrate")"
bed_do heal "$from"
must "it has not moved: $(q moves away | tail -n 1)" q arrived away 0 "$to" 40 >/dev/null
release away
finish away
ended_well away hash
