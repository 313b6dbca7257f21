#!/bin/bash
# SIGTERM ends rm-mpirun whatever becomes of the cluster: no leader, an rmd that hangs, a job whose node does not answer.
# limit: 150
. "${BASH_SOURCE[0]%/*}/lib.sh"

# ends NAME MSEC: rm-mpirun NAME on n2 gets SIGTERM, and ends by it within so long.
ends() {
    local begun=$EPOCHREALTIME
    on n2 "$programs/front" "$1" TERM >/dev/null
    finish "$1" $(($2 / 1000 + 10))
    see "$1: exit code $rc after $(msec_since "$begun") ms: $(tail -n 1 "$work/$1.err")"
    (($(msec_since "$begun") <= $2)) || fail "$1 needed $(msec_since "$begun") ms"
    same "exit code of $1" "$rc" 143
}

cluster 3 --cores 2 --set cluster.voters=1
start far n2 -n 2 --group-size 2 "$programs/spin" --seconds=120
running far
[[ $(q where far -1) == n3 ]] || move far -1 n3
start waiting n2 -n 64 "$programs/spin" --seconds=60
must "it does not wait" q state waiting PENDING 10 >/dev/null
bed_do stop-rmd n1 --kill

start submitted n2 -n 1 "$programs/spin" --seconds=60
until_true 10 on n2 "$programs/front" submitted >/dev/null
sleep 1
ends submitted 3000
ends waiting 22000

bed_do cut n3
ends far 22000
bed_do heal n3

on n2 pkill -STOP -x rmd
start stopped n2 -n 1 "$programs/spin" --seconds=60
until_true 10 on n2 "$programs/front" stopped >/dev/null
sleep 1
ends stopped 3000
on n2 pkill -CONT -x rmd

# With a leader again, what rm-mpirun left is there to be ended.
bed_do start-rmd n1
must "the nodes are not all back" until_true 20 all_joined
same "the job that was left" "$(q job far state)" RUNNING
on n2 rmctl cancel-job "$(q job far id)" >/dev/null
must "it does not end" q state far CANCELLED 20 >/dev/null
as alice n2 rmctl attach-job --no-input "$(q job far id)" >/dev/null 2>&1 # takes its output, so that nothing is kept
on n2 rmctl cancel-job "$(q job waiting id)" >/dev/null
