#!/bin/bash
# A job that is cancelled, or reaches its time limit, loses what its ranks save on SIGTERM: mpirun kills all of them as soon as one has ended.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# saved NAME RANK...: all of them have come to the end of what they write.
saved() {
    local rank
    for rank in "${@:2}"; do
        same "the end of what rank $rank of $1 saved" "$(on n1 tail -n 1 "/home/alice/$1.$rank" 2>/dev/null)" saved
    done
}
front() {
    on n1 "$programs/front" "$@"
}

# saving NAME ARG...: a job of four ranks in groups of $size on two nodes that saves.
saving() {
    start "$1" n1 --group-size "${size:-2}" "${@:2}" -n 4 "$programs/spin" --seconds=90 --save="/home/alice/$1" "${how[@]}"
    running "$1"
}

group_frozen() {
    on "$(q where "$1" "$2")" sh -c 'cd /sys/fs/cgroup/rmd-capsules/"j$1.g$2."* && grep -qx 1 payload/cgroup.freeze' sh "$(job "$1")" "$2"
}

cluster 2 --cores 2 --set job.kill_wait=6s
all_rmds_with_faults
how=(--then=exit)
saving cancel
begun=$EPOCHREALTIME
rmctl cancel-job "$(job cancel)"
finish cancel 20
see "cancel-job, ranks that leave with 7: exit code $rc, $(q job cancel state) after $(msec_since "$begun") ms: $(q job cancel reason)"
saved cancel 0 1 2 3
same "the state after cancel-job" "$(q job cancel state)" CANCELLED
same "the exit code after cancel-job" "$rc" 143
same "lines that were printed last" "$(grep -c 'has saved' "$work/cancel.out")" 4
in_time "$(msec_since "$begun")" 5000 || fail "it ended after kill_wait, and not when its ranks had ended"

size=1 how=(--then=signal)
saving limit --time 2
finish limit 30
see "--time, ranks that end by SIGTERM: exit code $rc, $(q job limit state)"
saved limit 0 1 2 3
same "the state at the time limit" "$(q job limit state)" TIMEOUT
same "the exit code at the time limit" "$rc" 143

size=2 how=(--then=finalize)
for signal in INT TERM; do
    saving "$signal"
    begun=$EPOCHREALTIME
    front "$signal" "$signal" >/dev/null
    # An rmd that is started meanwhile goes on with it.
    [[ $signal != INT ]] || { must "no rank saves" until_true 10 on n1 test -e "/home/alice/INT.0" && bed_do restart-rmd n1 --kill; }
    finish "$signal" 20
    see "SIG$signal to rm-mpirun, ranks that finalize: exit code $rc, $(q job "$signal" state) after $(msec_since "$begun") ms"
    saved "$signal" 0 1 2 3
    in_time "$(msec_since "$begun")" 5000 || fail "it ended after kill_wait, and not when its ranks had ended"
done

# Those that do not catch it have ended at once, and mpirun does not hear of it before the only one that saves has.
how=(--then=exit --only=3)
saving only
move only -1 "$(a_node_but "$(q where only -1)")"
rmctl cancel-job "$(job only)"
finish only 20
see "one rank that saves, three that end at once, after a move of the head: exit code $rc, $(q job only state)"
saved only 3

# A group that stands still for a move when its job is cancelled saves afterwards, for as long.
how=(--then=exit)
saving moving
to=$(a_node_but "$(q where moving 0)")
on "$to" sh -c 'echo move.destination.restore:hold >/run/rmd/fault'
migrate moving 0 "$to" --mode stop >"$work/migrate" 2>&1 || fail "$(<"$work/migrate")"
must "group 0 is not frozen" until_true 20 group_frozen moving 0
begun=$EPOCHREALTIME
rmctl cancel-job "$(job moving)"
wait_seconds 3
on "$to" rm -f /run/rmd/fault
finish moving 40
see "cancel-job while group 0 is frozen: exit code $rc, $(q job moving state) after $(msec_since "$begun") ms"
saved moving 0 1 2 3

# So do all groups when a checkpoint holds them, though kill_wait is over by then.
saving checkpointed
for node in $(nodes); do on "$node" sh -c 'yes move.checkpoint.held:hold | head -n 3 >/run/rmd/fault'; done
as alice n1 rmctl checkpoint-job "$(job checkpointed)" >"$work/checkpoint" 2>&1 &
for group in 0 1; do must "group $group is not frozen" until_true 20 group_frozen checkpointed "$group"; done
begun=$EPOCHREALTIME
rmctl cancel-job "$(job checkpointed)"
wait_seconds 5
for node in $(nodes); do on "$node" rm -f /run/rmd/fault; done
finish checkpointed 40
see "cancel-job while all groups are frozen: exit code $rc, $(q job checkpointed state) after $(msec_since "$begun") ms"
saved checkpointed 0 1 2 3

# Ranks that Ctrl-Z has stopped go on to save.
stopped_ranks() {
    local node
    for node in $(nodes); do on "$node" sh -c 'cat /proc/[0-9]*/stat 2>/dev/null'; done | grep -c '(spin) T'
}
saving stopped
front stopped TSTP >/dev/null
must "Ctrl-Z does not stop the ranks" until_true 20 eval '(($(stopped_ranks) == 4))'
rmctl cancel-job "$(job stopped)"
must "the ranks do not save" until_true 20 eval '[[ $(on n1 sh -c "cat /home/alice/stopped.[0-3]" 2>/dev/null | grep -cx saved) == 4 ]]'
front stopped CONT >/dev/null
finish stopped 20
see "cancel-job of a job that is stopped: exit code $rc, $(q job stopped state)"

# Who needs longer is killed.
how=(--save-msec=60000)
saving long
begun=$EPOCHREALTIME
rmctl cancel-job "$(job long)"
finish long 20
took=$(msec_since "$begun")
see "ranks that never end: exit code $rc, $(q job long state) after $took ms"
((took >= 6000)) || fail "they were killed before kill_wait was over"
