#!/bin/bash
# --spares 1: a node stays free for the job, whoever else waits; what a drain moves goes there, and there is no
# spare then; when the job ends its nodes are everybody's. With [sched] spare_nodes a node is kept free for whoever needs room.
# limit: 170
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

# --- a pool for all ---
for node in $(nodes); do on "$node" sh -c 'printf "[sched]\nspare_nodes = 1\n" >>/etc/rmd/rmd.conf'; done
for node in $(nodes); do
    before=$EPOCHREALTIME
    bed_do restart-rmd "$node"
    must "$node is not back" back "$node" "$before"
done
start first n1 --group-size 2 -n 2 "$programs/ordered" --stop-file="$(stop_file first)" --pause-usec=50000
running first
start second n1 --group-size 2 -n 2 "$programs/ordered" --stop-file="$(stop_file second)" --pause-usec=50000
running second
start third n1 --group-size 2 -n 2 "$programs/ordered" --iterations=5
must "third got the last node" q state third PENDING 10 >/dev/null
kept=$(comm -23 <(nodes | sort) <({ q place first; q place second; } | cut -d ' ' -f 2 | sort -u))
until_true 10 grep -q "$kept is kept free (spare_nodes)" "$work/third.err" || fail "it does not say why it waits: $(<"$work/third.err")"
see "third: $(head -n 1 "$work/third.err")"
left=$(q where second 0)
must "the drain" rmctl drain-node "$left" --reason pool --wait --timeout 60 >/dev/null
same "where second went" "$(q where second 0)" "$kept"
same "third" "$(q job third state)" PENDING
# Back, it is the one that is kept free.
must "resume-node" rmctl resume-node "$left" >/dev/null
until_true 10 eval '[[ $(q job third reason) == *"$left is kept free"* ]]' || fail "$left is not kept free: $(q job third reason)"
same "third" "$(q job third state)" PENDING
release first
finish first
ended_well first hash
finish third
ended_well third hash
release second
finish second
