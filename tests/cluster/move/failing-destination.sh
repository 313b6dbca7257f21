#!/bin/bash
# Moves to one node fail again and again: after two failures the group goes to another one, though that costs more.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2 --set "sched.node_penalty = n2:1 n3:5" --set "sched.traffic_interval = 0"
bed_do stop-rmd n2
start_rmd_with_faults n2
until_true 20 all_joined || fail "n2 has not joined again"
start job n1 --group-size 2 -n 2 "$programs/ordered" --stop-file="$(stop_file job)" --pause-usec=30000
running job
same "it runs on the node that was asked first" "$(q where job 0)" n1
# Alone, so that its moves fail one after the other.
move job -1 n3
on n2 sh -c 'for i in 1 2 3 4 5 6 7 8 9; do echo move.destination.restore:fail; done >/run/rmd/fault'
must "n1 cannot be drained" rmctl drain-node n1 >/dev/null
until_true 20 eval '[[ $(q where job 0) == n3 ]]' || fail "it is still on $(q where job 0): $(rmctl list-moves)"
must "it does not come to rest" q settled 20 >/dev/null
see "$(rmctl list-moves)"
same "failures before it went elsewhere" "$(q moves job | awk '$2 == 0' | sed '/ DONE /,$d' | grep -c ABORTED)" 2
on n2 rm -f /run/rmd/fault
release job
finish job
ended_well job hash
