#!/bin/bash
# A node that vanishes during a move: as destination it costs nothing; as source, or with ranks on it, the job ends with
# NODE_FAIL and a word, hanging never.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 4 --cores 2 --set cluster.node_timeout=2s
must "there are no three voters" until_true 30 voters_up
start live n1 --group-size 2 -n 4 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
spare=$(comm -23 <(nodes | grep -vx n1) <(q place live | cut -d ' ' -f 2 | sort -u) | tail -n 1)
[[ $spare ]] || fail "no free node: $(q place live)"
group=1
from=$(q where live "$group")
# The link of the destination breaks while the move is on its way.
migrate live "$group" "$spare" >"$work/migrate" 2>&1 &
mover=$!
sleep 0.05
bed_do cut "$spare"
wait "$mover"
must "the move to a node that was cut off does not end" q settled 90 >/dev/null
see "the link to $spare cut during the move: $(q moves live | tail -n 1 | cut -d ' ' -f 5), the group is on $(q where live "$group")"
bed_do heal "$spare"
must "$spare does not come back" until_true 30 all_joined
must "it does not settle" q settled 60 >/dev/null

from=$(q where live "$group")
to=$spare
[[ $from != "$spare" ]] || to=$(nodes | grep -vx n1 | grep -vx "$spare" | tail -n 1)
migrate live "$group" "$to" >"$work/migrate" 2>&1 &
mover=$!
sleep 0.05
bed_do power-off "$to"
wait "$mover"
must "the move to a node without power does not end" q settled 90 >/dev/null
state=$(q moves live | tail -n 1 | cut -d ' ' -f 5)
see "power of $to off during the move: $state, the job is $(q job live state)"
if [[ $state == ABORTED ]]; then
    same "the job" "$(q job live state)" RUNNING
    release live
    finish live
    ended_well live hash
    same_as_undisturbed live 4 --group-size 2
else
    # It had arrived, and died with its node.
    finish live 60
    same "the job" "$(q job live state)" NODE_FAIL
fi
bed_do power-on "$to"
must "$to does not join" until_true 30 all_joined

start doomed n1 --group-size 1 -n 4 "$programs/spin" --seconds=120
running doomed
victim=$(q place doomed | grep -v ' n1$' | head -n 1 | cut -d ' ' -f 2)
bed_do power-off "$victim"
begun=$EPOCHREALTIME
finish doomed 60
see "power of $victim off, with ranks on it: exit code $rc after $(msec_since "$begun") ms, $(q job doomed state), $(tail -n 1 "$work/doomed.err")"
((rc != 0)) || fail "exit code 0 of a job that has lost a node"
same "its state" "$(q job doomed state)" NODE_FAIL
bed_do power-on "$victim"
must "$victim does not join" until_true 30 all_joined
# What a node lost with its power is no leftover, and it has a new boot's processes.
inventory_all >"$work/now"
