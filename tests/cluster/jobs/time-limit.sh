#!/bin/bash
# --time ends a job that takes longer, with TIMEOUT, also if the leader is lost meanwhile; options from the environment hold, and a flag beats them.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# msec_of NAME FIELD: a time of the job.
msec_of() {
    date -d "$(q job "$1" "$2")" +%s%3N
}

cluster 3 --cores 2
begun=$EPOCHREALTIME
run long n1 --time 3 -n 2 "$programs/spin" --seconds=50
see "--time 3: exit code $rc after $(msec_since "$begun") ms, $(q job long state): $(tail -n 1 "$work/long.err")"
same "its state" "$(q job long state)" TIMEOUT
((rc != 0)) || fail "exit code 0"
as alice n1 env RM_GROUP_SIZE=1 RM_JOB_NAME=from-environment rm-mpirun -n 2 "$programs/surroundings" >"$work/env.out" 2>"$work/env.err" ||
    fail "RM_GROUP_SIZE=1: $(<"$work/env.err")"
same "groups by RM_GROUP_SIZE=1" "$(grep hostname "$work/env.out" | cut -d = -f 2 | sort -u | wc -l)" 2
same "the name by RM_JOB_NAME" "$(q job from-environment state)" COMPLETED
as alice n1 env RM_GROUP_SIZE=1 rm-mpirun --group-size 2 -n 2 "$programs/surroundings" >"$work/flag.out" 2>"$work/env.err"
same "groups when a flag says 2" "$(grep hostname "$work/flag.out" | cut -d = -f 2 | sort -u | wc -l)" 1

# The time runs from the start, not from when another node leads.
must "there are no three voters" until_true 20 voters_up
leader=$(q leader)
asker=$(a_node_but "$leader")
on "$asker" sh -c 'printf "n1:0\nn2:0\nn3:0\n" | sed "s/^$1:0/$1:2/" >/home/alice/nodes' sh "$asker"
start late "$asker" --time 8 --availability /home/alice/nodes -n 1 "$programs/spin" --seconds=50
running late
[[ $(q where late -1) == "$asker" ]] || move late -1 "$asker"
began=$(msec_of late start)
until_true 10 eval '(($(date +%s%3N) >= began + 6000))'
killed=$(($(date +%s%3N) - began))
bed_do stop-rmd "$leader" --kill
see "the leader, $leader, is killed $killed ms after the start"
finish late 20
took=$(($(msec_of late end) - began))
see "--time 8: exit code $rc after $took ms, $(q job late state); $(q leader) leads"
same "its state" "$(q job late state)" TIMEOUT
[[ $(q leader) != "$leader" ]] || fail "no other node leads"
((took >= 8000 && took < killed + 8000)) || fail "it has ended $took ms after its start"
bed_do start-rmd "$leader"
must "$leader is not back" until_true 20 all_joined
