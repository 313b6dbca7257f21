#!/bin/bash
# Ctrl-C and TERM end the whole job, with the exit code of mpirun; ranks may catch the signal; two Ctrl-C end one that ignores it. What comes while mpirun
# is frozen for a move reaches it.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

front() {
    on n1 "$programs/front" "$@"
}
no_ranks() {
    local node
    for node in $(nodes); do [[ $(on "$node" "$programs/count" spin) == 0 ]] || return 1; done
}

# plain SIGNAL ARG...: the exit code of mpirun itself.
plain() {
    as alice n1 bash -c 'mpirun --oversubscribe -n 3 --mca btl self,sm "${@:2}" >/tmp/plain.out 2>&1 &
        until grep -q running /tmp/plain.out; do sleep 0.1; done
        kill -"$1" $!
        wait $!
        echo $?; rm /tmp/plain.out' bash "$@"
}

cluster 2 --cores 2 --set sched.move_timeout=60s --set job.kill_wait=90s
for signal in INT TERM; do
    want=$(plain "$signal" "$programs/spin" --seconds=20)
    start "$signal" n1 --group-size 2 -n 3 "$programs/spin" --seconds=60
    running "$signal"
    begun=$EPOCHREALTIME
    front "$signal" "$signal" >/dev/null
    finish "$signal" 20
    see "SIG$signal: rm-mpirun $rc, mpirun $want, after $(msec_since "$begun") ms, job $(q job "$signal" state)"
    same "exit code after SIG$signal" "$rc" "$want"
    must "ranks after SIG$signal" until_true 10 no_ranks
done

start stubborn n1 --group-size 2 -n 3 "$programs/spin" --seconds=60 --ignore
running stubborn
front stubborn INT >/dev/null
sleep 1
front stubborn INT >/dev/null 2>&1
finish stubborn 30
see "ranks that ignore it: exit code $rc"
((rc != 0)) || fail "exit code 0 after Ctrl-C"
must "ranks that ignore SIGINT are left" until_true 15 no_ranks

start waiting n1 -n 64 "$programs/spin" --seconds=60
must "it does not wait" q state waiting PENDING 10 >/dev/null
front waiting INT >/dev/null
finish waiting 20
see "a job that still waits: exit code $rc, $(q job waiting state)"
same "its state" "$(q job waiting state)" CANCELLED

# held NAME: its head is frozen, as the destination of its move waits before it restores it.
held() {
    local to
    to=$(a_node_but "$(q where "$1" -1)")
    on "$to" sh -c 'echo move.destination.restore:hold >/run/rmd/fault'
    migrate "$1" -1 "$to" --mode stop >"$work/migrate" 2>&1 || fail "$1: $(<"$work/migrate")"
    must "$1: the head is not frozen" until_true 20 head_frozen "$1"
}
head_frozen() {
    on "$(q where "$1" -1)" sh -c 'cd /sys/fs/cgroup/rmd-capsules/"j$1.h."* && grep -qx 1 payload/cgroup.freeze' sh "$(job "$1")"
}
all_rmds_with_faults
for what in USR1 INT cancel; do
    [[ $what == cancel ]] || want=$(plain "$what" "$programs/spin" --seconds=20)
    start "held-$what" n1 --group-size 2 -n 3 "$programs/spin" --seconds=60
    running "held-$what"
    held "held-$what"
    if [[ $what == cancel ]]; then
        rmctl cancel-job "$(job held-cancel)"
    else
        front "held-$what" "$what" >/dev/null
    fi
    # It is refused meanwhile, or comes later.
    sleep 0.5
    for node in $(nodes); do on "$node" rm -f /run/rmd/fault; done
    begun=$EPOCHREALTIME
    finish "held-$what" 40
    see "$what while mpirun is frozen: rm-mpirun $rc, mpirun $want, after $(msec_since "$begun") ms, job $(q job "held-$what" state)"
    if [[ $what == cancel ]]; then
        same "its state" "$(q job held-cancel state)" CANCELLED
    else
        same "exit code after SIG$what" "$rc" "$want"
    fi
done

# Ctrl-Z while mpirun is frozen stops the job afterwards, and then rm-mpirun; `fg` before that undoes it.
states() {
    local node
    for node in $(nodes); do on "$node" sh -c 'cat /proc/[0-9]*/stat 2>/dev/null'; done | sed -n 's/.*(\(spin\|rm-mpirun\)) \(.\) .*/\1 \2/p'
}
stopped() {
    (($(states | grep -c "^$1 T") == $2))
}
start stops n1 --group-size 2 -n 3 "$programs/spin" --stop-file="$(stop_file stops)"
running stops
held stops
front stops TSTP >/dev/null
for node in $(nodes); do on "$node" rm -f /run/rmd/fault; done
must "Ctrl-Z while mpirun was frozen did not stop the ranks: $(states | paste -sd ' ')" until_true 20 stopped spin 3
must "it did not stop rm-mpirun" until_true 10 stopped rm-mpirun 1
front stops CONT >/dev/null
must "the ranks did not go on" until_true 10 stopped spin 0
must "the move is not over" q state stops RUNNING 20 >/dev/null
held stops
front stops TSTP >/dev/null
front stops CONT >/dev/null
for node in $(nodes); do on "$node" rm -f /run/rmd/fault; done
release stops
finish stops 30
see "Ctrl-Z and fg while mpirun is frozen: rm-mpirun $rc, job $(q job stops state)"
same "the exit code after fg" "$rc" 0
