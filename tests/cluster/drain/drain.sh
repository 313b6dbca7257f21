#!/bin/bash
# A drained node is empty, and stays so until it is resumed, whatever ran there: ranks, mpirun, the leader.
# limit: 270
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 4

# drain-node moves everything off, new work avoids the node, who, why and when are kept (over a restart of rmd as well),
# draining twice is an error that says so, and resume-node takes it back into use.
scenario "drain and resume"
resumed() {
    [[ $(q node "$victim" state) =~ IDLE|MIXED|ALLOCATED ]]
}
start live n1 --group-size 2 -n 6 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
victim=$(q where live 1)
rmctl drain-node "$victim" --reason "new fans" --wait --timeout 60 >"$work/drain" 2>&1 || fail "drain-node --wait: $(<"$work/drain")"
see "drain-node --wait: $(tail -n 1 "$work/drain")"
same "its state when --wait returns" "$(q node "$victim" state)" DRAINED
q place live | grep -q " $victim\$" && fail "the job still has something on it: $(q place live)"
same "processes of the job there" "$(on "$victim" "$programs/count" ordered)" 0
same "reason" "$(q node "$victim" drain_reason)" "new fans"
same "who" "$(q node "$victim" drain_by | grep -c root)" 1
since=$(q node "$victim" drain_since)
[[ $since == 20* ]] || fail "since when: $since"

if rmctl drain-node "$victim" --reason again >"$work/twice" 2>&1; then fail "draining it twice was accepted"; fi
grep -qi 'already' "$work/twice" && grep -q "$victim" "$work/twice" || fail "draining twice says: $(<"$work/twice")"
see "twice: $(<"$work/twice")"
same "the reason after it" "$(q node "$victim" drain_reason)" "new fans"
must "--update" rmctl drain-node "$victim" --reason "no fans" --update >/dev/null
same "the reason after --update" "$(q node "$victim" drain_reason)" "no fans"

run probe n2 --group-size 1 -n 2 "$programs/surroundings"
ended_well probe uid
for n in $(nodes); do bed_do restart-rmd "$n" --kill; done
must "they do not join again" until_true 20 all_joined
must "it is not DRAINED after a restart of rmd" q nodestate "$victim" DRAINED 10 >/dev/null
same "the reason after a restart" "$(q node "$victim" drain_reason)" "no fans"
start more n1 --group-size 1 -n 2 "$programs/spin" --stop-file="$(stop_file more)"
running more
q place more | grep -q " $victim\$" && fail "new work on a drained node: $(q place more)"
release more
finish more
must "resume-node" rmctl resume-node "$victim" >/dev/null
must "it is not in use again" until_true 20 resumed
see "resumed: $(q node "$victim" state)"
release live
finish live
ended_well live hash

# Draining the node that hosts mpirun itself, the leader, the node the command is typed on, and all but one.
scenario "special nodes"
# drain WHAT NODE TYPED_ON
drain() {
    local begun=$EPOCHREALTIME
    on "$3" rmctl drain-node "$2" --reason "$1" --wait --timeout 60 >"$work/drain" 2>&1 || fail "$1 ($2): $(<"$work/drain")"
    must "$1: the nodes do not know what $3 knows" until_true 20 eval "asker=$3 all_joined"
    same "$1: state of $2" "$(q node "$2" state)" DRAINED
    q place live | grep -q " $2\$" && fail "$1: still on $2: $(q place live)"
    see "$1 ($2): DRAINED after $(msec_since "$begun") ms; now $(q place live | tr '\n' ' ')"
}

resume() {
    must "resume-node $1" rmctl resume-node "$1" >/dev/null
    must "$1 does not settle" q settled 60 >/dev/null
}
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
