#!/bin/bash
# The memory of a program that rewrites it is sent ahead again and again over a slow link, while the node that it is to leave must be empty soon. With a deadline
# the group leaves before it, after fewer rounds; a deadline that comes when the move is under way cuts it short too, and one that is missed is told, once.
# limit: 90
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"
mib=32 # 0.7 s at 400mbit, 4.4 s at 64mbit; four rounds without a deadline

# figure NAME: of the last move of group 1.
figure() {
    q last big 1 "$1"
}
# send_at NODE RATE: what its link carries from there.
send_at() {
    must "the link of $1 stays as it is" on "$1" tc qdisc change dev eth0 root tbf rate "$2" burst 100kb latency 50ms
}
left_behind() {
    rmctl status | grep -q "^Warning: *the deadline for $1 to be empty has passed: [12] ranks in [123] capsules are left"
}

cluster 3 --cores 2 --link 400mbit
start big n1 --group-size 1 -n 2 "$programs/memory" --mb=$mib --only-rank=1 --zero-percent=0 --dirty --stop-file="$(stop_file big)"
running big 60
[[ $(q where big 1) != n3 ]] || fail "it begins on n3"
began=$EPOCHREALTIME
migrate big 1 n3 --wait --timeout 60 >"$work/migrate" 2>&1 || fail "to n3: $(<"$work/migrate")"
took=$(msec_since "$began") rounds=$(figure ahead_rounds)
see "without a deadline: $rounds rounds, $took ms"
# rm-mover begins another round if twice as much as the last took is left after a second: three rounds and a second in all, 14.2 s. The one round, the
# freeze with as much, and up to 4 s for the rest of the move are over before.
deadline=13000
send_at n3 64mbit

began=$EPOCHREALTIME
rmctl drain-node n3 --reason "new fans" --deadline ${deadline}ms --wait --timeout 60 >"$work/drain" 2>&1 || fail "drain-node: $(<"$work/drain")"
took=$(msec_since "$began")
see "with a deadline of $deadline ms: $(figure ahead_rounds) rounds, $took ms, $(rmctl events | sed -n 's/.*\(sending the memory .*\)/\1/p')"
(($(figure ahead_rounds) < rounds)) || fail "as many rounds as without a deadline"
same "moves that were cut short" "$(events move-hurried)" 1
same "deadlines that were missed" "$(events node-overdue)" 0
[[ $(q node n3 drain_deadline) == 20* ]] || fail "n3 has no deadline: $(rmctl show-node n3)"
must "resume-node" rmctl resume-node n3 >/dev/null
same "the deadline after resume-node" "$(q node n3 drain_deadline)" None

from=$(q where big 1)
hold_sending "$from"
must "drain-node $from" rmctl drain-node "$from" >/dev/null
# The group must not have left before rmd has told of the deadline.
must "no round is made on $from" until_true 30 sending_is_held "$from"
must "--update" rmctl drain-node "$from" --deadline 200ms --update >/dev/null
must "rmctl status does not tell what is left on $from" until_true 10 left_behind "$from"
see "$(rmctl status | grep '^Warning.*deadline')"
sending_goes_on "$from"
must "$from is not drained" q nodestate "$from" DRAINED 60 >/dev/null
see "with a deadline that came meanwhile: $(figure ahead_rounds) rounds, $(rmctl events | sed -n 's/.*\(node .* is not empty .*\)/\1/p')"
(($(figure ahead_rounds) < rounds)) || fail "as many rounds as without a deadline"
same "deadlines that were missed" "$(events node-overdue)" 1
if left_behind "$from"; then fail "rmctl status tells of what is left on $from when it is empty"; fi
release big
finish big 60
ended_well big good
