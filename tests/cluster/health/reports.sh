#!/bin/bash
# A node is known to be sick, and gets jobs, or keeps those that it has until it is lost. What is said of it counts: with a warning nothing begins there and what
# runs stays; from a failing one everything leaves live; a critical one is left at once, also by what is already on its way. Well again, it is in use again.
# limit: 150
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"
mib=32 # as in drain/deadline.sh: at least four rounds, and the freeze

report() {
    must "report-health $*" rmctl report-health "$@" >/dev/null
}
# figure NAME: of the last move of group 1.
figure() {
    q last big 1 "$1"
}
is_empty() {
    [[ $(q node "$1" capsules) == 0 && $(q node "$1" state) == FAILING ]]
}
# refused CODE PATTERN ARG...: report-health says in one line what is wrong.
refused() {
    local code=$1 pattern=$2 status
    shift 2
    "${caller[@]}" rmctl report-health "$@" >"$work/out" 2>"$work/err"
    status=$?
    see "report-health $*: $(<"$work/err")"
    same "exit status of report-health $*" "$status" "$code"
    same "lines of report-health $*" "$(wc -l <"$work/err")" 1
    grep -qE -- "$pattern" "$work/err" || fail "report-health $* does not say '$pattern'"
}

cluster 3 --cores 2 --link 200mbit
caller=(on n1)
refused 2 'ok, warn, failing or critical, not .sick' n1 sick --reason x
refused 2 'say with --reason why it is warn' n1 warn
refused 1 'no node .n9. .known: n1 n2 n3' n9 warn --reason x
refused 1 'source: a name of' n1 warn --reason x --source 'a b'
refused 1 'reason: one line' n1 warn --reason $'a\nb'
refused 1 'at most 256 bytes' n1 warn --reason "$(printf '%300s' x)"
caller=(as alice n1)
refused 1 'report-health: only root and members of group' n1 failing --reason 'I want it'
same "what is said after refusals" "$(q node n1 conditions)" '[]'

# --- a warning ---
start first n1 -n 1 "$programs/spin" --stop-file="$(stop_file first)"
running first
at=$(q where first 0)
mapfile -t others < <(nodes | grep -vx "$at")
report n1,n2,n3 warn --reason '40 correctable errors' --source edac
same "condition of $at" "$(q node "$at" condition)" WARN
see "$(rmctl list-nodes | tr -s ' ')"
start second n1 -n 1 "$programs/spin" --stop-file="$(stop_file second)"
must "second does not wait" q state second PENDING 20 >/dev/null
must "it has no reason" until_true 10 eval '[[ "$(q job second reason)" == *needs* ]]'
see "second: $(q job second reason)"
leader=$(q leader)
before=$EPOCHREALTIME
bed_do restart-rmd "$leader"
must "$leader is not back" back "$leader" "$before"
same "condition of $at after the end of the leader" "$(q node "$at" condition)" WARN
same "second" "$(q job second state)" PENDING
report "${others[0]}" ok --source edac
running second
same "where second is" "$(q where second 0)" "${others[0]}"
same "moves off nodes with a warning" "$(q moves | wc -l)" 0

# --- failing ---
report "$at" failing --reason 'fan 2 stands still'
must "$at is not empty" until_true 30 is_empty "$at"
same "where first is" "$(q where first 0)" "${others[0]}"
rmctl status | grep -q "^Warning: *failing: $at; warn: ${others[1]}\$" || fail "rmctl status does not tell: $(rmctl status | grep Warning)"
see "$(rmctl events | sed -n 's/.*\(node .* nothing is left on it\)/\1/p')"
same "moves that stopped and copied" "$(rmctl list-moves --json | grep -c '"stop": true')" 0
if migrate first 0 "$at" >"$work/out" 2>&1; then fail "first may go back to $at"; fi
grep -q "is failing, says report (reason: fan 2 stands still)" "$work/out" || fail "migrate-job: $(<"$work/out")"
report "$at" ok
same "$at is still kept from work by edac" "$(q node "$at" condition)" WARN
report "$at" ok --source edac
same "state of $at" "$(q node "$at" state)" IDLE
start third n1 --group-size 2 -n 2 "$programs/spin" --stop-file="$(stop_file third)"
running third
same "where third is" "$(q where third 0)" "$at"
for job in first second third; do release $job; done
for job in first second third; do finish $job; done

# --- critical ---
report n1,n2,n3 ok --source edac
start big n1 --group-size 1 -n 2 "$programs/memory" --mb=$mib --only-rank=1 --zero-percent=0 --dirty --stop-file="$(stop_file big)"
running big 60
to=$(a_node_but "$(q where big 1)")
migrate big 1 "$to" --wait --timeout 60 >"$work/migrate" 2>&1 || fail "to $to: $(<"$work/migrate")"
rounds=$(figure ahead_rounds)
must "moves do not end" q settled 60 >/dev/null
from=$(q where big 1)
hold_sending "$from"
report "$from" failing --reason 'fan 2 stands still'
# The group must not have left before its node knows that it is critical.
must "no round is made on $from" until_true 30 sending_is_held "$from"
report "$from" critical --reason 'smoke'
must "$from does not know that it is critical" until_true 10 eval '[[ $(asker=$from q node "$from" condition) == CRITICAL ]]'
sending_goes_on "$from"
must "$from is not empty" until_true 60 is_empty "$from"
see "$rounds rounds; critical in the middle: $(figure ahead_rounds), $(rmctl events | sed -n 's/.*\(sending the memory .*\)/\1/p')"
(($(figure ahead_rounds) < rounds)) || fail "as many rounds as without a condition"
same "moves that were cut short" "$(events move-hurried)" 1
rmctl events | grep -q "ended since $from is critical" || fail "no event says why"
report "$from" ok

from=$(q where big 1)
report "$from" critical --reason 'smoke'
must "$from is not empty" until_true 60 is_empty "$from"
same "it was stopped and copied" "$(figure stop)" 1
same "rounds" "$(figure ahead_rounds)" 0
release big
finish big 60
ended_well big good

# --- losses that were foreseen are those that took nothing with them: intervals of checkpoints grow by their share ---
counted() {
    on "$asker" rmctl status --json | tr -d ' \n' | grep -o '"losses":[0-9]*,"losses_foreseen":[0-9]*' | tr -dc '0-9,'
}
counted_is() {
    [[ $(counted) == "$1" ]]
}
same "losses of nodes, and how many were foreseen" "$(counted)" 0,0
asker=$(a_node_but "$from")
before=$EPOCHREALTIME
bed_do power-off "$from"
bed_do power-on "$from"
must "$from is not back" back "$from" "$before"
must "a node that all had left is lost: $(counted)" until_true 20 counted_is 1,1
report "$from" ok
must "not all are back" until_true 30 all_joined
start late n1 --on-node-loss abort -n 1 "$programs/spin" --stop-file="$(stop_file late)"
running late
at=$(q where late 0)
asker=$(a_node_but "$at")
report "$at" warn --reason '40 correctable errors'
bed_do power-off "$at"
must "a node with a warning is lost with its job: $(counted)" until_true 30 counted_is 2,1
see "$(on "$asker" rmctl status | grep 'Node losses')"
