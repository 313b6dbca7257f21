#!/bin/bash
# The leader dies after it was sent a command and before it has answered: the answer comes late, and is right. Without a leader for long, the
# user is told so.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# asks NAME ARG...: a command on n2 in the background.
declare -A asked
asks() {
    local name=$1
    shift
    on n2 "$@" >"$work/$name.out" 2>"$work/$name.err" &
    asked[$name]=$!
}

# answered NAME: it has succeeded, and said nothing of the leader.
answered() {
    local rc=0
    wait "${asked[$1]}" || rc=$?
    see "$1: exit code $rc, $(wc -c <"$work/$1.err") bytes on standard error"
    [[ $rc == 0 && ! -s $work/$1.err ]] || fail "$1: exit code $rc: $(tail -n 2 "$work/$1.err")"
}

cluster 3 --cores 2 --set cluster.voters=1
start spin n2 -n 2 --group-size 2 "$programs/spin" --seconds=120
running spin
spin=$(q job spin id)

on n1 pkill -STOP -x rmd
begun=$EPOCHREALTIME
asks drain rmctl drain-node n3 --reason fan
asks cancel rmctl cancel-job "$spin"
start submitted n2 -n 1 true
sleep 1
bed_do stop-rmd n1 --kill
bed_do start-rmd n1
answered drain
answered cancel
finish submitted 30
same "exit code of what was submitted" "$rc" 0
see "all answered $(msec_since "$begun") ms after the leader was stopped"
[[ ! -s $work/submitted.err ]] || fail "rm-mpirun: $(tail -n 2 "$work/submitted.err")"
finish spin 30
must "n1 is not back" until_true 20 all_joined
same "drains of n3" "$(on n2 rmctl events --json | grep -c '"node-drain"')" 1
same "jobs" "$(on n2 rmctl list-jobs --all --json | grep -o '"id"' | wc -l)" 2

bed_do stop-rmd n1 --kill
begun=$EPOCHREALTIME
on n2 rmctl resume-node n3 >/dev/null 2>"$work/resume.err" && fail "resume-node without a leader succeeds"
see "without a leader: after $(msec_since "$begun") ms: $(cat "$work/resume.err")"
(($(msec_since "$begun") >= 9000 )) && in_time "$(msec_since "$begun")" 20000 || fail "that was not 10 s"
grep -q 'no leader can be reached' "$work/resume.err" || fail "it does not say that there is no leader"
bed_do start-rmd n1
must "n1 is not back" until_true 20 all_joined
on n2 rmctl resume-node n3 >/dev/null
