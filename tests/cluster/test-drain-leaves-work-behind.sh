#!/bin/bash
# drain-node moves everything off, new work avoids the node, who, why and when are kept (over a restart of rmd as well),
# draining twice is an error that says so, and resume-node takes it back into use.
# limit: 120
. "${BASH_SOURCE[0]%/*}/lib.sh"

resumed() {
    [[ $(q node "$victim" state) =~ IDLE|MIXED|ALLOCATED ]]
}

cluster 3 --cores 4
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
