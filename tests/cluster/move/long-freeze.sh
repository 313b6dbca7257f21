#!/bin/bash
# A move whose freeze lasts longer than TCP waits by default: the ranks that stay keep their connections, and the job comes to its right
# end. One that takes longer than the limit is given up in time, wherever it stands, and the job goes on at the source.
# complete: move/faults interrupts moves at each of their steps
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# gap: the longest time in seconds that a rank waited for another.
gap() {
    sed -n 's/.* longest gap \([0-9]*\)[0-9]\{6\} us$/\1/p' "$work/$1.out" | sort -n | tail -n 1
}

# What has to be sent in the freeze takes more than 20 s.
mb=$(thorough 260 65) link=$(thorough 100mbit 25mbit)
cluster 2 --cores 2 --link "$link" --set sched.move_timeout=100s
start large n1 --group-size 1 -n 2 "$programs/memory" --mb="$mb" --only-rank=1 --zero-percent=0 --gap-msec=5000 --stop-file="$(stop_file large)"
running large 60
from=$(q where large 1)
to=$(a_node_but "$from")
migrate large 1 "$to" --mode stop --wait >"$work/migrate" 2>&1 || fail "the move: $(<"$work/migrate")"
same "the group's node" "$(q where large 1)" "$to"
# Connections that were lost are noticed when something comes over them.
sleep 3
same "the job, after it" "$(q job large state)" RUNNING
release large
finish large
ended_well large 'rank 1 good'
see "the world stood still for $(gap large) s"
(($(gap large) >= 20)) || fail "the freeze was too short to show anything"

# The limit counts from the freeze, whatever the move does meanwhile: of 12 s some 6 go for the image, and the destination is held up
# when it has all of it.
for node in n1 n2; do
    must "rmd.conf" on "$node" sed -i 's/^move_timeout.*/move_timeout = 12s/' /etc/rmd/rmd.conf
    bed_do stop-rmd "$node"
    start_rmd_with_faults "$node"
done
until_true 30 all_joined || fail "the cluster does not come up again"
mb=$((mb * 6 / 20))
start late n1 --group-size 1 -n 2 "$programs/memory" --mb="$mb" --only-rank=1 --zero-percent=0 --gap-msec=5000 --stop-file="$(stop_file late)"
running late 60
from=$(q where late 1)
to=$(a_node_but "$from")
on "$to" sh -c 'echo move.destination.restore:hang >/run/rmd/fault'
migrate late 1 "$to" --mode stop --wait >"$work/migrate" 2>&1 && fail "a move that hangs is said to be done"
grep -q 'move_timeout' "$work/migrate" || fail "nothing says why: $(<"$work/migrate")"
see "$(tail -n 1 "$work/migrate")"
same "the group's node" "$(q where late 1)" "$from"
on "$to" rm -f /run/rmd/fault
must "it can move now" q move late 1 "$to"
release late
finish late
ended_well late 'rank 1 good'
see "the world stood still for $(gap late) s"
(($(gap late) >= 11 && $(gap late) <= 15)) || fail "the limit is 12 s"
