#!/bin/bash
# From a capsule one reaches the capsules of one's own job, and those of nobody else: no connection to another user's mpirun, no
# packet that says it comes from one of theirs, not even for a program with the right to send raw frames. The own job talks as before,
# also after moves.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# neighbours NODE PROGRAM: the MAC addresses that the capsule has learnt. udp_in: how many UDP packets came to it.
neighbours() {
    on "$1" sh -c "cat /proc/\$(pgrep -o -x $2)/net/arp"
}

udp_in() {
    on "$1" sh -c "awk '\$1 == \"Udp:\" && \$2 != \"InDatagrams\" { print \$2 + \$3 }' /proc/\$(pgrep -o -x $2)/net/snmp"
}

# hostile ARG...: what `reach` says in a job of bob's.
hostile() {
    user=bob
    run his n1 --group-size 1 -n 1 "$@"
    user=alice
    ((rc == 0)) || fail "bob's job: exit code $rc: $(tail -n 2 "$work/his.err")"
    grep -h '^reach' "$work/his.out" | sed 's/^/  bob: /'
}

cluster 2 --cores 4
start hers n1 --group-size 1 -n 2 "$programs/ordered" --iterations=200 --pause-usec=20000 --stop-file="$(stop_file hers)"
q state hers RUNNING 20 >/dev/null || fail "alice's job does not run"
head_node=$(q where hers -1)
group_node=$(q where hers 0)
until_true 20 on "$group_node" "$programs/listens" ordered >/dev/null || fail "alice's ranks listen nowhere"
on "$head_node" "$programs/listens" prterun >"$work/listens" || fail "alice's mpirun listens nowhere"
see "alice's mpirun listens at $(tr '\n' ',' <"$work/listens")"
read -r head_address port <"$work/listens"
read -r group_address group_port < <(on "$group_node" "$programs/listens" ordered)
must "the program is there" on n1 test -x "$programs/reach"

hostile "$programs/reach" "$head_address:$port" "$group_address:$group_port"
grep -q "connected" "$work/his.out" && fail "bob's capsule connects to alice's mpirun or ranks"
same "addresses that bob's program has tried" "$(grep -c '^reach' "$work/his.out")" 2

# A set-user-id tool of the node that may send raw frames.
on n1 install -m 4755 -o root "$programs/reach" /home/rmd/raw
hostile /home/rmd/raw --poison "$head_address" "$group_address"
grep -q '^reach: told' "$work/his.out" || fail "bob's program did not run"
neighbours "$head_node" prterun >"$work/arp"
mac=$(awk -v a="$group_address" '$1 == a { print $4 }' "$work/arp")
see "alice's head has $group_address at $mac"
same "the MAC of alice's group" "$mac" "$(on "$group_node" "$programs/mac" ordered)"
before=$(udp_in "$head_node" prterun)
hostile /home/rmd/raw --forge "$head_address" "$group_address" "$mac"
grep -q '^reach: sent' "$work/his.out" || fail "bob's program did not run"
same "packets that came to alice's head and are not from her job" "$(udp_in "$head_node" prterun)" "$before"

# The own job: all is as before, and stays so.
for round in 1 2; do
    for group in -1 0 1; do
        move hers "$group" "$(a_node_but "$(q where hers "$group")")"
    done
    see "round $round: head and both groups moved"
done
release hers
finish hers
same_as_undisturbed hers 2 --group-size 1
