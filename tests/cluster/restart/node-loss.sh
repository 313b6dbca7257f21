#!/bin/bash
# A job with --on-node-loss restart lives on when a node of it is lost: without the head or with it, also the one that leads, by power or by its link. It
# begins anew on what is left, says so in one line, and its result is as undisturbed. --restarts limits how often.
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2 --set cluster.node_timeout=2s
asker=n1
must "there are no three voters" until_true 30 voters_up

# told NAME N: so many lines of its front end, all of restarts but for those of an rmd that was away for seconds, and of an attempt that waited to be placed.
told() {
    same "lines of rm-mpirun" "$(grep -vE 'connect.* to rmd|^rm-mpirun: job [0-9]+ (waits|starts)' "$work/$1.err" | grep -c '^rm-mpirun: ')" "$2"
    same "of restarts" "$(grep -c '^rm-mpirun: .*starts again from its beginning' "$work/$1.err")" "$2"
}

# lose NODE: without power. The time until the next attempt runs.
lose() {
    bed_do power-off "$1"
    begun=$EPOCHREALTIME
}
on_again() {
    bed_do power-on "$1"
    must "$1 does not join" back "$1" "$begun"
    must "not all are back" until_true 30 all_joined
    must "not all voters are back" until_true 30 voters_up
}

# A group of the job is there, the head is not.
victim_of() {
    q place "$1" | grep -v ' n1$' | grep -v '^-1 ' | head -n 1 | cut -d ' ' -f 2
}

# Not before all nodes know of restarts.
until_true 20 as alice n1 rm-mpirun --on-node-loss restart -n 1 true 2>"$work/level.err" || fail "no job may restart: $(cat "$work/level.err")"

start live n1 --on-node-loss restart --restarts 4 --group-size 1 -n 4 \
    sh -c "echo attempt \$RM_ATTEMPT; exec $programs/ordered --stop-file=$(stop_file live) --pause-usec=20000"
attempt_runs live 1
[[ $(q where live -1) == n1 ]] || move live -1 n1
victim=$(victim_of live)
lose "$victim"
attempt_runs live 2
see "power of $victim off: attempt 2 runs after $(msec_since "$begun") ms, on $(q place live | cut -d ' ' -f 2 | sort -u | tr '\n' ' ')"
see "$(grep '^rm-mpirun: ' "$work/live.err")"
told live 1
rmctl events | grep -q "job-restarted .*node $victim is down" || fail "no event tells it: $(rmctl events | tail -n 5)"
rmctl show-job "$(job live)" | grep -q 'Attempt.*2 of 5, 1 restart.*is down' || fail "show-job: $(rmctl show-job "$(job live)" | grep Attempt)"
on_again "$victim"

# The head's node.
[[ $(q where live -1) == "$victim" ]] || move live -1 "$victim"
lose "$victim"
attempt_runs live 3
see "power of $victim, with the head, off: attempt 3 runs after $(msec_since "$begun") ms"
told live 2
on_again "$victim"

# The node that leads, with ranks and the head. Not that of the front end: who leads there is killed first.
leads_not() {
    victim=$(q leader) && [[ $victim == n* && $victim != "$1" ]]
}
if [[ $(q leader) == n1 ]]; then
    begun=$EPOCHREALTIME
    asker=n2
    bed_do stop-rmd n1 --kill
    must "nobody leads after n1" until_true 20 leads_not n1
    bed_do start-rmd n1
    must "n1 is not back" back n1 "$begun"
    asker=n1
fi
must "who leads is not to be seen" until_true 20 leads_not n1
q place live | grep -v '^-1 ' | grep -q " $victim\$" || move live 0 "$victim"
[[ $(q where live -1) == "$victim" ]] || move live -1 "$victim"
same "who leads" "$(q leader)" "$victim"
lose "$victim"
attempt_runs live 4
see "power of $victim, who leads, with ranks and the head, off: attempt 4 runs after $(msec_since "$begun") ms; $(q leader) leads"
told live 3
on_again "$victim"

# Its link only: what runs there goes when it is back, while the next attempt runs.
[[ $(victim_of live) ]] || move live 0 n2
victim=$(victim_of live)
bed_do cut "$victim"
begun=$EPOCHREALTIME
attempt_runs live 5
see "link of $victim cut: attempt 5 runs after $(msec_since "$begun") ms; on $victim still $(on "$victim" pgrep -cf "$programs/ordered") processes"
told live 4
bed_do heal "$victim"
must "$victim does not come back" until_true 30 all_joined
copies_gone() {
    [[ $(q place live | grep -c " $victim\$") != 0 ]] || ! on "$victim" pgrep -f "$programs/ordered" >/dev/null
}
must "old copies stay on $victim: $(q place live)" until_true 20 copies_gone
see "link healed: $(on "$victim" pgrep -cf "$programs/ordered") processes there"
release live
finish live
ended_well live hash
same "attempts that have ended" "$(grep -c 'hash' "$work/live.out")" 1
same_as_undisturbed live 4 --group-size 1

# Back before anybody has missed it, but with nothing of the job; and meanwhile the rmd of the front end's node is killed.
start quick n2 --on-node-loss restart --restarts 1 --group-size 2 -n 4 \
    sh -c "echo attempt \$RM_ATTEMPT; exec $programs/spin --stop-file=$(stop_file quick)"
attempt_runs quick 1
[[ $(q where quick -1) == n1 ]] || move quick -1 n1
q place quick | grep -q ' n3$' || move quick 0 n3
lose n3
bed_do stop-rmd n2 --kill
bed_do power-on n3
sleep 1.5
bed_do start-rmd n2
must "not all are back" until_true 30 all_joined
attempt_runs quick 2
see "n3 off and on again, rmd on n2 killed: attempt 2 runs after $(msec_since "$begun") ms: $(grep "^rm-mpirun: " "$work/quick.err")"
told quick 1
release quick
finish quick
ended_well quick done

# Once too often.
start once n1 --on-node-loss restart --restarts 0 --group-size 2 -n 4 "$programs/spin" --seconds=120
running once
victim=$(victim_of once)
lose "$victim"
finish once 60
see "--restarts 0: exit code $rc, $(q job once state): $(tail -n 1 "$work/once.err")"
((rc != 0)) || fail "exit code 0 of a job that has lost a node"
same "its state" "$(q job once state)" NODE_FAIL
grep -q "node $victim is down, and the job has been restarted 0 times (--restarts 0)" "$work/once.err" || fail "it does not say why"
on_again "$victim"
# What a node lost with its power is no leftover, and it has a new boot's processes.
inventory_all >"$work/before"
