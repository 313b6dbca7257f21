#!/bin/bash
# Draining the node that hosts mpirun itself, the leader, the node the command is typed on, and all but one.
# limit: 150
. "${BASH_SOURCE[0]%/*}/lib.sh"

# drain WHAT NODE TYPED_ON
drain() {
    local begun=$EPOCHREALTIME
    on "$3" rmctl drain-node "$2" --reason "$1" --wait --timeout 60 >"$work/drain" 2>&1 || fail "$1 ($2): $(<"$work/drain")"
    same "$1: state of $2" "$(q node "$2" state)" DRAINED
    q place live | grep -q " $2\$" && fail "$1: still on $2: $(q place live)"
    see "$1 ($2): DRAINED after $(msec_since "$begun") ms; now $(q place live | tr '\n' ' ')"
}

resume() {
    must "resume-node $1" rmctl resume-node "$1" >/dev/null
    must "$1 does not settle" q settled 60 >/dev/null
}

cluster 3 --cores 4
start live n2 --group-size 2 -n 6 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
head=$(q where live -1)
drain "the node of mpirun" "$head" n2
resume "$head"
leader=$(q leader)
drain "the leader" "$leader" n2
resume "$leader"
drain "the node it is typed on" n3 n3
drain "one more" n2 n3
see "state with 6 ranks on 4 cores: $(q job live state)"
resume n2
resume n3
release live
finish live
ended_well live hash
same_as_undisturbed live 6 --group-size 2
