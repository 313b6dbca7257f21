#!/bin/bash
# rmd at the destination is killed with -9 as soon as a group runs there without all of its memory, and comes back before all of it has come, or after:
# nothing happens to the job, each page is right, and the next move waits for what is missing, and says so.
# complete: memory/restore-without-memory has the main way, and unit tests of post-copy its faults
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2
for n in n2 n3; do
    bed_do stop-rmd "$n"
    start_rmd_with_faults "$n"
done
must "they do not join again" until_true 20 all_joined
start big n1 --group-size 1 -n 2 "$programs/memory" --mb=512 --only-rank=1 --zero-percent=10 --dirty-percent=1 --stop-file="$(stop_file big)"
running big 60
[[ $(q where big 1) == n1 ]] || move big 1 n1

# fillers NODE SIGNAL: to the processes that give groups there their memory; true if there are any.
fillers() {
    on "$1" pkill "-$2" -x rm-uffd
}

# killed NODE [SIGNAL]: waits until rmd there is dead, and sends the signal to the fillers, which it knows by then, before they are done.
killed() {
    on "$1" timeout 60 python3 -c '
import os, signal, sys, time
try:
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
except OSError:
    pass
pid = int(open("/run/testbed-rmd.pid").read())
def stat(pid):
    try:
        return open("/proc/%s/stat" % pid).read()
    except OSError:
        return "() Z"
def fillers():
    return [int(p) for p in os.listdir("/proc") if p.isdigit() and "(rm-uffd)" in stat(p)]
known, turns = [], 0
while stat(pid).rsplit(")", 1)[1].split()[0] != "Z":
    turns += 1
    if not known and turns % 20 == 0:
        known = fillers()
    time.sleep(0.001)
if len(sys.argv) > 1:
    for pid in known or fillers() or sys.exit(1):
        os.kill(pid, getattr(signal, sys.argv[1]))' "${@:2}"
}

# moved_and_killed NODE [SIGNAL]
moved_and_killed() {
    on "$1" sh -c 'echo move.destination.fill:kill >/run/rmd/fault'
    killed "$@" &
    local killer=$!
    migrate big 1 "$1" >"$work/migrate" 2>&1 || fail "to $1: $(<"$work/migrate")"
    wait "$killer" || fail "rmd on $1 was not killed, or all memory was there by then"
}

back() {
    start_rmd_with_faults "$1"
    must "$1 does not join again" until_true 20 all_joined
    must "the move does not end" q settled 60 >/dev/null
    same "the group's node" "$(q where big 1)" "$1"
    same "tracked" "$(q way big 1 | cut -d ' ' -f 1)" yes
}

waits() {
    on n1 rmctl list-moves | grep -q 'MB of its memory have not yet arrived from its last move'
}

# Back before: it takes the group over.
moved_and_killed n2 SIGSTOP
back n2
on n2 grep -q 'the group runs here, and gets the rest of its memory' /var/log/rmd.log || fail "rmd on n2 does not see that memory is missing"
migrate big 1 n3 >"$work/migrate" 2>&1 || fail "to n3: $(<"$work/migrate")"
must "list-moves does not say that the next move waits" until_true 15 waits
see "$(on n1 rmctl list-moves | tail -n 1)"
sleep 1
same "the group's node" "$(q where big 1)" n2
must "no fillers on n2" fillers n2 CONT
must "the next move does not end" q settled 60 >/dev/null
same "the group's node" "$(q where big 1)" n3
on n1 rmctl events | grep -q 'group 1 has all of its memory on n2' || fail "no event tells when all memory was there"

# Back after.
moved_and_killed n2
must "memory does not come without rmd" until_true 60 eval '! fillers n2 0'
back n2

# At once.
moved_and_killed n3
back n3
move big 1 n1
same "tracked" "$(q way big 1 | cut -d ' ' -f 1)" yes
for n in n2 n3; do on "$n" rm -f /run/rmd/fault; done
release big
finish big 120
ended_well big good
