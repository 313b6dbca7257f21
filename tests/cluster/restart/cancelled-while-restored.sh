#!/bin/bash
# A job is cancelled when its mpirun is back from a checkpoint, and a group of it is not yet: it ends. It stood still then, and took no signal, so it stayed STARTING for ever.
# complete: the simulation shows the same
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2
all_rmds_with_faults
must "not all joined" until_true 30 all_joined
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level.err" || fail "no job may be saved: $(<"$work/level.err")"
start live n1 --on-node-loss restart --checkpoint 1h --group-size 1 -n 4 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
running live 40
head=$(q where live -1)
other=$(nodes | grep -vx "$head")
rmctl checkpoint-job "$(job live)" --stop --timeout 60 >"$work/said" 2>&1 || fail "it does not stop: $(<"$work/said")"
must "it does not leave its nodes" q state live PENDING 30 >/dev/null

on "$other" sh -c 'yes move.restart.restore:hold | head -n 8 >/run/rmd/fault'
must "it is not to go on" rmctl restart-job "$(job live)"
held() { on "$other" grep -q held /run/rmd/fault; }
must "no restore is held on $other" until_true 30 held
back() { on "$head" grep -q "job $(job live): capsule -1 is back" /var/log/rmd.log; }
must "mpirun is not back on $head" until_true 30 back
same "state" "$(q job live state)" STARTING
rmctl cancel-job "$(job live)" || fail "it cannot be cancelled"
must "it does not end: $(q job live state), $(q job live reason)" q state live CANCELLED 20 >/dev/null
on "$other" rm -f /run/rmd/fault
