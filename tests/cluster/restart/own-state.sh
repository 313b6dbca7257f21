#!/bin/bash
# A program that keeps its own state (rmrt_own_state) is not saved by rmd, and after the loss of a node it begins anew, with what it has saved, not at an older checkpoint of rmd's. A drain with a deadline takes it
# off its node without saving it. rmd knows it still when all of it was restarted.
# complete: restart/node-loss starts jobs again, and unit tests show who keeps a state of his own
# limit: 300
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 4 --cores 2 --set cluster.node_timeout=2s
must "there are no three voters" until_true 30 voters_up

bed_do copy "$repo_dir/tests/programs/keeper.c" n1:/home/alice/keeper.c
bed_do copy "$repo_dir/tests/programs/common.h" n1:/home/alice/common.h
bed_do exec n1 --user alice -- sh -c 'mpicc -std=gnu17 -O2 -Wall -Wextra -o keeper keeper.c $(pkg-config --cflags --libs rmrt)' >"$work/cc" 2>&1 ||
    fail "a user cannot build it: $(head -n 5 "$work/cc")"

# field NAME EXPRESSION: of show-job, in Python; j is the job.
field() {
    on "$asker" rmctl show-job --json "$(job "$1")" | python3 -c "import json, sys
j = json.load(sys.stdin)['jobs'][0]
print($2)"
}
owns() {
    [[ $(field "$1" 'j.get("own_state", False)') == True ]]
}
# last NAME: the number of its last checkpoint.
last() {
    field "$1" 'j.get("last_checkpoint", 0)'
}
# begun NAME: what each of its processes began with.
begun() {
    on "$asker" cat "/home/alice/$1.state.begun"
}
attempt_runs() {
    [[ $(q job "$1" attempt) == "$2" && $(q job "$1" state) =~ RUNNING|FOLDED ]]
}
# A node that has ranks of it but is neither the head's nor n1; else "".
victim_of() {
    q place "$1" | awk '$2 != "n1" && $1 >= 0 { print $2; exit }'
}

start own n1 --group-size 1 --checkpoint 3s --on-node-loss restart -n 4 ./keeper --stop-file="$(stop_file own)" --state=/home/alice/own.state
running own
begin=$EPOCHREALTIME
must "rmd does not hear of it" until_true 20 owns own
see "rmd knows that it keeps its own state $(msec_since "$begin") ms after its first line"
first=$(last own) # it may have been saved in MPI_Init
sleep 7
same "its last checkpoint" "$(last own)" "$first"
as alice n1 rmctl show-job "$(job own)" >"$work/shown"
grep -q 'Own state:.*begins anew' "$work/shown" || fail "show-job does not say so: $(<"$work/shown")"
as alice n1 rmctl checkpoint-job "$(job own)" >"$work/refused" 2>&1 && fail "checkpoint-job saves it"
grep -q 'keeps its own state.*--force' "$work/refused" || fail "checkpoint-job says: $(<"$work/refused")"
see "$(<"$work/refused")"
must "checkpoint-job --force" as alice n1 rmctl checkpoint-job --force "$(job own)" >/dev/null

# --- all daemons are restarted, and a node is lost ---

for node in $(nodes); do
    bed_do restart-rmd "$node"
done
must "no cluster" until_true 60 all_joined
owns own || fail "it is forgotten with rmd"
sleep 3
victim=$(victim_of own)
[[ $victim ]] || fail "no rank is on n2, n3 or n4: $(q place own | tr '\n' '|')"
saved=$(on n1 cat /home/alice/own.state)
begin=$EPOCHREALTIME
asker=n1
bed_do power-off "$victim"
must "it does not begin anew: $(q job own state)" until_true 60 attempt_runs own 2
see "$victim is lost with $saved steps saved; it runs again after $(msec_since "$begin") ms"
must "its second attempt does not say with what it began" until_true 20 eval '(($(begun own | wc -l) >= 2))'
again=$(begun own | tail -n 1)
see "it began with: $(begun own | tr '\n' ' ')"
((again >= saved)) || fail "it goes on from step $again, and had saved $saved"
owns own || fail "its next attempt does not own its state"
bed_do power-on "$victim"
must "$victim is not back" until_true 60 all_joined

release own
finish own
ended_well own 'keeper: [0-9]* steps'
steps=$(sed -n 's/^keeper: \([0-9]*\) steps$/\1/p' "$work/own.out" | tail -n 1)
((steps > again)) || fail "it ended after $steps steps, and had $again when it began anew"

# --- a drain whose deadline cannot be met by moves ---

start stuck n1 --group-size 1 --checkpoint 1h --on-node-loss restart -n 2 ./keeper --stop-file="$(stop_file stuck)" --state=/home/alice/stuck.state --stuck
running stuck
must "rmd does not hear of it" until_true 20 owns stuck
sleep 2
node=$(q where stuck 0)
saved=$(on n1 cat /home/alice/stuck.state)
begin=$EPOCHREALTIME
must "drain-node" on n1 rmctl drain-node "$node" --deadline 15s >"$work/drain"
must "it does not begin anew elsewhere: $(q job stuck state)" until_true 40 attempt_runs stuck 2
see "$node is drained: it runs elsewhere after $(msec_since "$begin") ms"
[[ $(q where stuck 0) != "$node" ]] || fail "it is on $node again"
must "its second attempt does not say with what it began" until_true 20 eval '(($(begun stuck | wc -l) >= 2))'
see "it began with: $(begun stuck | tr '\n' ' ')"
(($(begun stuck | tail -n 1) >= saved)) || fail "it had saved $saved"
same "its last checkpoint" "$(last stuck)" 0
rmctl events >"$work/events"
grep -q 'leaves its nodes: a node must be empty soon' "$work/events" || fail "no event tells why: $(tail -n 5 "$work/events")"
release stuck
finish stuck
ended_well stuck 'keeper: [0-9]* steps'
