#!/bin/bash
# The process that gives a moved group the memory which is still missing is killed: another one goes on, and each page is right; if the group was not
# restored yet, the move fails and the group stays. If it is killed again and again, the group is killed rather than run with wrong memory, and the job's
# reason says so.
# complete: memory/rmd-killed-while-filling ends more at the same moment
# limit: 300
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# kill_fillers NODE TIMES MSEC: from so long after the first one was seen, for 5 s at most, so many; prints how many there were.
kill_fillers() {
    on "$1" python3 -c '
import os, sys, time
times, pause, killed, end = int(sys.argv[1]), int(sys.argv[2]) / 1000, 0, time.monotonic() + 20
while killed < times and time.monotonic() < end:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if open("/proc/%s/comm" % pid).read() != "rm-uffd\n":
                continue
            time.sleep(pause)
            if pause:
                end = time.monotonic() + 5
            pause = 0
            os.kill(int(pid), 9)
            killed += 1
            break
        except OSError:
            pass
    time.sleep(0.002)
print(killed)' "$2" "$3"
}

# disturbed NODE TIMES MSEC: job big, group 1, moves there meanwhile. True if it has arrived and $killed fillers were killed on its way.
disturbed() {
    kill_fillers "$1" "$2" "$3" >"$work/killed" &
    local killer=$!
    migrate big 1 "$1" --wait --timeout 60 >"$work/migrate" 2>&1
    local arrived=$?
    wait "$killer"
    killed=$(<"$work/killed")
    see "to $1: $killed killed from $3 ms on: $([[ $arrived == 0 ]] && echo arrived || tail -n 1 "$work/migrate")"
    return $arrived
}

cluster 3 --cores 2
start big n1 --group-size 1 -n 2 "$programs/memory" --mb=512 --only-rank=1 --zero-percent=10 --dirty-percent=1 --stop-file="$(stop_file big)"
running big 60
[[ $(q where big 1) == n1 ]] || move big 1 n1

survived=0
for msec in 0 100 200 300 400 500; do
    to=$(a_node_but "$(q where big 1)")
    if disturbed "$to" 1 "$msec"; then ((survived += killed)); fi
    q settled 60 >/dev/null || fail "not settled"
    same "big" "$(q job big state)" RUNNING
done
((survived > 0)) || fail "no filler was killed after the group was restored"
see "$survived groups went on without their first filler"
# All of its memory is looked at.
release big
finish big 120
ended_well big good

start big n1 --group-size 1 -n 2 "$programs/memory" --mb=512 --only-rank=1 --zero-percent=10 --stop-file=/none
running big 60
for ((i = 0; i < 6; i++)); do
    to=$(a_node_but "$(q where big 1)")
    disturbed "$to" 1000 $((200 + i * 50))
    [[ $(q job big state) =~ RUNNING|MIGRATING ]] || break
    q settled 60 >/dev/null || fail "not settled"
done
finish big 60
((rc != 0)) || fail "the job ended well without its memory"
q job big reason >"$work/reason" || fail "no reason"
see "the job's reason: $(<"$work/reason")"
grep -q 'group 1 on n[123] was killed: ' "$work/reason" || fail "the reason does not say that the group was killed"
grep -q 'is damaged' "$work/big.err" && fail "it ran with wrong memory: $(grep damaged "$work/big.err")"
true
