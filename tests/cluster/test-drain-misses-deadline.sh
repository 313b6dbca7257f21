#!/bin/bash
# The memory of a program that rewrites it is sent ahead again and again over a slow link, while the node that it is to leave must be empty soon. With a deadline
# the group leaves before it, after fewer rounds; a deadline that comes when the move is under way cuts it short too, and one that is missed is told, once.
# limit: 90
# load: 2
. "${BASH_SOURCE[0]%/*}/lib.sh"
mib=32 # 1.4 s, of which 5 must be waited for without a deadline: four rounds, and the freeze
deadline=5

# figure NAME: of the last move of group 1.
figure() {
    on n1 python3 -c 'import json, sys; print([m for m in json.loads(sys.argv[1])["moves"] if m["capsule"] == 1][-1][sys.argv[2]])' "$(rmctl list-moves --json)" "$1"
}
# events KIND: how many of the node or group.
events() {
    rmctl events --json | grep -c "\"kind\": \"$1\""
}
sends_ahead() {
    on "$1" pidof rm-mover >/dev/null
}
left_behind() {
    rmctl status | grep -q "^Warning: *the deadline for $1 to be empty has passed: [12] ranks in [123] capsules are left"
}

cluster 3 --cores 2 --link 200mbit
start big n1 --group-size 1 -n 2 "$programs/memory" --mb=$mib --only-rank=1 --zero-percent=0 --dirty --stop-file="$(stop_file big)"
running big 60
[[ $(q where big 1) != n3 ]] || fail "it begins on n3"
began=$EPOCHREALTIME
migrate big 1 n3 --wait --timeout 60 >"$work/migrate" 2>&1 || fail "to n3: $(<"$work/migrate")"
took=$(msec_since "$began") rounds=$(figure ahead_rounds)
see "without a deadline: $rounds rounds, $took ms"
((took > deadline * 1000)) || fail "the rounds of the test are too short: $took ms"

began=$EPOCHREALTIME
rmctl drain-node n3 --reason "new fans" --deadline ${deadline}s --wait --timeout 60 >"$work/drain" 2>&1 || fail "drain-node: $(<"$work/drain")"
took=$(msec_since "$began")
see "with a deadline of $deadline s: $(figure ahead_rounds) rounds, $took ms, $(rmctl events | sed -n 's/.*\(sending the memory .*\)/\1/p')"
(($(figure ahead_rounds) < rounds)) || fail "as many rounds as without a deadline"
((took < deadline * 1000)) || fail "it was not empty in time, after $took ms"
same "moves that were cut short" "$(events move-hurried)" 1
same "deadlines that were missed" "$(events node-overdue)" 0
[[ $(q node n3 drain_deadline) == 20* ]] || fail "n3 has no deadline: $(rmctl show-node n3)"
must "resume-node" rmctl resume-node n3 >/dev/null
same "the deadline after resume-node" "$(q node n3 drain_deadline)" None

from=$(q where big 1)
must "drain-node $from" rmctl drain-node "$from" >/dev/null
must "nothing is sent ahead" until_true 10 sends_ahead "$from"
must "--update" rmctl drain-node "$from" --deadline 200ms --update >/dev/null
must "rmctl status does not tell what is left on $from" until_true 10 left_behind "$from"
see "$(rmctl status | grep '^Warning.*deadline')"
must "$from is not drained" q nodestate "$from" DRAINED 60 >/dev/null
see "with a deadline that came meanwhile: $(figure ahead_rounds) rounds, $(rmctl events | sed -n 's/.*\(node .* is not empty .*\)/\1/p')"
(($(figure ahead_rounds) < rounds)) || fail "as many rounds as without a deadline"
same "deadlines that were missed" "$(events node-overdue)" 1
if left_behind "$from"; then fail "rmctl status tells of what is left on $from when it is empty"; fi
release big
finish big 60
ended_well big good
