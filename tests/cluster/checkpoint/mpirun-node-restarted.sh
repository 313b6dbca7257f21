#!/bin/bash
# The rmd of mpirun's node, which leads, is killed in a checkpoint that other nodes have captured already: the checkpoint is given up at once, nobody stands still, and the next is made.
# Its node's part was begun again then, and waited ten minutes for the others.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 4 --set cluster.node_timeout=60s
all_rmds_with_faults
must "there are no three voters" until_true 30 voters_up
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level.err" || fail "no job may be saved: $(<"$work/level.err")"
start live n1 --on-node-loss restart --checkpoint 1h --group-size 2 -n 6 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
# The front end's rmd is left alone, as is that of who asks.
head=$(q leader)
[[ $(q where live -1) == "$head" ]] || move live -1 "$head"
[[ $(q where live 0) == "$head" ]] || move live 0 "$head"
other=$(nodes | grep -vx -e n1 -e "$head" | head -n 1)
[[ $(q where live 1) == "$other" ]] || move live 1 "$other"
q settled 30 >/dev/null || fail "not settled"
asker=$other

on "$head" sh -c 'echo move.checkpoint.dump:hang >/run/rmd/fault'
rmctl checkpoint-job "$(job live)" >"$work/first" 2>&1 &
first=$!
met() { [[ ! $(on "$head" cat /run/rmd/fault | tr -d ' \n') ]]; }
must "the checkpoint does not come to its dump on $head" until_true 30 met
stored() { on "$other" sh -c 'ls /var/lib/rmd/checkpoints/*/*/ 2>/dev/null | grep -q pack'; }
must "$other does not capture it" until_true 20 stored
bed_do stop-rmd "$head" --kill
start_rmd_with_faults "$head"
must "$head is not back" until_true 20 all_joined
ended() { ! kill -0 "$first" 2>/dev/null; }
must "the checkpoint is not over" until_true 30 ended
wait "$first" && fail "the checkpoint is made: $(<"$work/first")"
see "$(tail -n 1 "$work/first")"
next() { rmctl checkpoint-job "$(job live)" --timeout 30 >"$work/next" 2>&1; }
must "no other is made" until_true 40 next
same "attempts" "$(q job live attempt)" 1
on "$head" rm -f /run/rmd/fault
release live
finish live
ended_well live hash
