#!/bin/bash
# A job with ranks in reserve, whose program can change its number, grows into cores that nobody waits for. It shrinks for a job that waits, and when a node is drained, but not below --min-ranks, nor for
# a job of a lower priority; and it grows again afterwards. A number that its owner has asked for stays.
# Where a group would have to share cores, since there are too few together on any node, they stay idle; a group that is parked on a full node grows onto another.
# complete: unit tests of growth show who is to have which cores
# limit: 300
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 4 --set sched.resize_interval=2s
bed_do copy "$repo_dir/examples/rtlib/stencil.c" n1:/home/alice/stencil.c
on n1 sh -c 'printf "n1:4\nn2:0\n" >/home/alice/first; printf "n1:0\nn2:4\n" >/home/alice/second'
bed_do exec n1 --user alice -- sh -c 'mpicc -O2 -o stencil stencil.c $(pkg-config --cflags --libs rmrt rmrt-checkpoint) -lm' >"$work/cc" 2>&1 || fail "a user cannot build it: $(head -n 5 "$work/cc")"
which=grows
active() {
    on "$asker" rmctl show-job --json "$(job $which)" | python3 -c 'import json, sys
print(json.load(sys.stdin)["jobs"][0]["active_ranks"])'
}
is() {
    [[ $(q job "$1" state) == "$2" ]]
}
has() {
    [[ $(active) == "$1" ]]
}
# comes_to N WHY
comes_to() {
    must "it has $(active) ranks, not $1: $2; $(rmctl show-job "$(job $which)" | grep '^Active'); $(rmctl events | grep resize | tail -n 3)" until_true 30 has "$1"
    see "$2: $1 ranks; $(rmctl events | grep -o 'is to have .*' | tail -n 1)"
}
start grows n1 "${paced[@]}" -n 2 --max-ranks 16 --min-ranks 2 --group-size 1 ./stencil 100000000
comes_to 8 "nobody else wants the cores"

start other n1 -n 4 "$programs/ordered" --stop-file="$(stop_file other)"
comes_to 4 "another job waits"
running other 30
sleep 4
rmctl events | grep 'fewer cores' && fail "the cores of the other were given away again"
same "ranks beside the other" "$(active)" 4
start third n2 -n 3 "$programs/ordered" --stop-file="$(stop_file third)"
sleep 6
same "ranks while one waits that cannot start, without fewer than the least" "$(active)" 4
rmctl cancel-job "$(job third)"
finish third
release other
finish other
comes_to 8 "the other has ended"

rmctl drain-node --reason test n2 >"$work/drain" 2>&1 || fail "n2 is not drained: $(<"$work/drain")"
comes_to 4 "n2 is drained"
rmctl resume-node n2
comes_to 8 "n2 is back"

as alice n1 rmctl resize-job "$(job grows)" 3 >"$work/resize" 2>&1 || fail "resize-job: $(<"$work/resize")"
sleep 6
same "ranks that its owner has asked for" "$(active)" 3
rmctl show-job "$(job grows)" | grep -q '^Active ranks: .*by hand' || fail "show-job: $(rmctl show-job "$(job grows)" | grep '^Active')"
as alice n1 rmctl resize-job "$(job grows)" auto >"$work/resize" 2>&1 || fail "resize-job auto: $(<"$work/resize")"
comes_to 8 "rmd decides again"

rmctl cancel-job "$(job grows)"
finish grows

# Three cores are left on each node, and groups have two ranks.
for node in first second; do
    start $node n1 -n 1 --availability /home/alice/$node "$programs/ordered" --stop-file="$(stop_file $node)"
    running $node
done
which=pairs
start pairs n1 "${paced[@]}" -n 2 --max-ranks 8 --min-ranks 2 --group-size 2 ./stencil 100000000
comes_to 4 "the other cores are on two nodes"
must "pairs does not come to cores of its own: $(q job pairs state)" until_true 30 is pairs RUNNING
sleep 6
same "ranks of pairs, for which two cores are left on two nodes" "$(active) $(q job pairs state)" "4 RUNNING"
rmctl events | grep "job $(job pairs) .*fewer cores" && fail "pairs has grown too far"
release first
finish first
comes_to 6 "a node has two cores left"
must "pairs does not come to cores of its own: $(q job pairs state); $(q place pairs | tr '\n' '|')" until_true 30 is pairs RUNNING
rmctl cancel-job "$(job pairs)"
finish pairs
release second
finish second
