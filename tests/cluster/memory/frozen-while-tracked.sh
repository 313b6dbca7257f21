#!/bin/bash
# Somebody freezes a group for seconds while its memory begins to be tracked, by a descriptor that is made in each of its processes: the group goes on, and moves once it runs again, instead of being
# refused for that descriptor for ever.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2
all_rmds_with_faults
start live n1 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
running live
from=$(q where live 1) to=$(a_node_but "$(q where live 1)")
payload=/sys/fs/cgroup/rmd-capsules/$(on "$from" sh -c "cd /sys/fs/cgroup/rmd-capsules && ls -d j$(job live).g1.*")/payload
on "$from" sh -c 'echo mover.track.made:hold >/run/rmd/fault'
migrate live 1 "$to" --mode live --wait --timeout 60 >"$work/said" 2>&1 &
moving=$!
must "it does not begin to track" until_true 20 on "$from" grep -qs 'made:held' /run/rmd/fault
on "$from" sh -c "echo 1 >$payload/cgroup.freeze; rm /run/rmd/fault"
must "rm-mover does not say that it is frozen" until_true 30 on "$from" grep -q 'somebody has frozen the process' /var/log/rmd.log
on "$from" sh -c "echo 0 >$payload/cgroup.freeze" 2>/dev/null || true
wait "$moving" || true
see "$(paste -sd ' ' "$work/said")"
to=$(a_node_but "$(q where live 1)")
# The descriptor is closed once the rank has a core within 20 ms of being let go for that, which is tried twice a second; a move before that waits ten
# seconds for rm-mover's tracer.
moves() {
    migrate live 1 "$to" --mode live --wait --timeout 60 >"$work/said" 2>&1
}
until_true 60 moves || fail "it does not move: $(<"$work/said")"
release live
finish live
ended_well live hash
