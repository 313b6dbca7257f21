#!/bin/bash
# A user's checkpoints take no more of a disk than they may: the oldest goes, of a job that has a newer one; where there is none to spare, the job runs on without
# another checkpoint, and says why. Another user's are made meanwhile.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2 --set checkpoint.space_max_per_user=60M --set checkpoint.keep=8
must "there are no three voters" until_true 30 voters_up
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level" || fail "no job may be saved: $(<"$work/level")"

save() {
    rmctl checkpoint-job "$(job "$1")" --timeout 60 >"$work/said" 2>&1
}
numbers() {
    rmctl list-checkpoints --no-header "$(job "$1")" | awk '/ DONE / { print $1 }'
}
# The most that any node has of jobs of that name, MB.
used() {
    local node
    for node in $(nodes); do on "$node" du -sm "/var/lib/rmd/checkpoints/$(job "$1")" 2>/dev/null; done | sort -n | tail -n 1 | cut -f 1
}

# All of its 8 MiB are other ones each time.
start big n1 --on-node-loss restart --checkpoint 24h --group-size 1 -n 1 "$programs/memory" --mb=8 --zero-percent=0 --dirty --stop-file="$(stop_file big)"
running big 40
failures=0 saved=0 told=""
for ((i = 0; i < 10; i++)); do
    if save big; then
        saved=$((saved + 1))
    else
        failures=$((failures + 1))
        grep -q 'room' "$work/said" || fail "checkpoint $i: $(<"$work/said")"
        told=$(tail -n 1 "$work/said")
    fi
    (($(used big) <= 90)) || fail "$(used big) MB on a disk, 60 may be"
done
see "$saved saved, $failures not: $told"
see "left: $(numbers big | paste -sd ' '), $(used big) MB; $(rmctl events | grep -m 1 'no room on')"
((failures > 0)) || fail "there was always room"
((saved >= 4)) || fail "there is never room again"
rmctl events | grep -q 'checkpoint-removed.*no room on' || fail "nothing was removed"
same "the job is" "$(q job big state)" RUNNING
must "a user's own checkpoint cannot be removed" as alice n1 rmctl remove-checkpoint "$(numbers big | head -n 1)"

# None to spare: nothing is removed, the job goes on.
release big
finish big
ended_well big good
until_true 20 eval '[[ ! $(used big) ]]' || fail "checkpoints of a job that has ended are left"
start huge n1 --on-node-loss restart --checkpoint 24h --group-size 1 -n 1 "$programs/memory" --mb=150 --zero-percent=0 --stop-file="$(stop_file huge)"
running huge 40
save huge && fail "150 MiB fit into 60 MB"
see "huge: $(tail -n 1 "$work/said")"
grep -q 'room' "$work/said" || fail "it does not say why: $(<"$work/said")"
same "the job is" "$(q job huge state)" RUNNING
user=bob start other n1 --on-node-loss restart --checkpoint 24h --group-size 1 -n 1 "$programs/memory" --mb=24 --stop-file=/home/bob/other.stop
running other 40
save other || fail "another user's is not made: $(<"$work/said")"
release huge
on n1 touch /home/bob/other.stop
finish huge
ended_well huge good
finish other
ended_well other good
