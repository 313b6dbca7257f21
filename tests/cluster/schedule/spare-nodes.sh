#!/bin/bash
# --spares 1: a node stays free for the job, whoever else waits; what a drain moves goes there, and there is no
# spare then; when the job ends its nodes are everybody's.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# keeps [NODE]: none but that one.
keeps() {
    [[ $(q job live spare_nodes) == "[${1:+'$1'}]" ]]
}

cluster 3 --cores 2
start live n1 --spares 1 --group-size 2 -n 4 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
spare=$(comm -23 <(nodes | sort) <(q place live | cut -d ' ' -f 2 | sort -u))
see "the job is on $(q place live | tr '\n' ' '), $spare is free"
must "it does not keep $spare: $(q job live spare_nodes)" until_true 10 keeps "$spare"
rmctl show-job "$(job live)" >"$work/show"
grep -i 'spare' "$work/show" | grep "1 wanted: $spare" || fail "show-job does not list it: $(<"$work/show")"

start other n2 --group-size 1 -n 2 "$programs/ordered" --iterations=5
must "another job got the spare node" q state other PENDING 10 >/dev/null
until_true 10 grep -q . "$work/other.err" || fail "it does not say that it waits"
see "the other: $(head -n 1 "$work/other.err"); $(q job other reason)"

# Not that of the head, which would take the time of another move.
left=$(q where live 1)
must "the drain" rmctl drain-node "$left" --reason spares --wait --timeout 60 >"$work/drain"
see "$left is $(q node "$left" state), the job is on $(q place live | tr '\n' ' ')"
same "where the group went" "$(q where live 1)" "$spare"
same "ranks on the spare" "$(on "$spare" "$programs/count" ordered)" 2
same "the other job" "$(q job other state)" PENDING
must "a used spare is still listed: $(q job live spare_nodes)" until_true 10 keeps

release live
finish live
ended_well live hash
finish other
ended_well other hash
must "resume-node" rmctl resume-node "$left" >/dev/null
