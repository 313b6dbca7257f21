#!/bin/bash
# A job that asks for treematch runs, also when its nodes are taken from it, and computes what it computes with any other policy.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2 --set sched.budget=20s
start live n1 --policy treematch --group-size 1 -n 4 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
same "placed by" "$(q job live policy)" treematch
see "it is on $(q place live | tr '\n' ' ')"
left=$(q where live 3)
must "the drain" rmctl drain-node "$left" --reason treematch --wait --timeout 60 >"$work/drain"
see "$left is $(q node "$left" state), the job is on $(q place live | tr '\n' ' ')"
q place live | grep -q " $left\$" && fail "the job still has something on it: $(q place live)"
rmctl events | grep "policy-error" && fail "it was not treematch that placed it"
must "resume-node" rmctl resume-node "$left" >/dev/null
release live
finish live
ended_well live hash
same_as_undisturbed live 4 --policy distrib --group-size 1
