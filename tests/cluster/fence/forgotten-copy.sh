#!/bin/bash
# A job has lost a node and runs again elsewhere, but a copy of its former attempt was kept alive by hand on that node: PID 1, which would have frozen
# it, is stopped, and rmd is dead. Nothing that this copy sends reaches the next attempt, not even under an address of that one's.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 4 --set cluster.node_timeout=2s --set cluster.lease=3s --set cluster.voters=1
# Not before all nodes know of restarts.
until_true 20 as alice n1 rm-mpirun --on-node-loss restart -n 1 true 2>"$work/level.err" || fail "no job may restart: $(cat "$work/level.err")"
# Two nodes at least, and the third as well when one is lost.
on n1 sh -c 'printf "n1:2\nn2:2\nn3:2\n" >/home/alice/two'
start live n1 --on-node-loss restart --availability /home/alice/two --group-size 2 -n 4 \
    sh -c "exec $programs/ticks --file=/home/alice/live.\$RM_ATTEMPT --stop-file=$(stop_file live)"

runs() {
    [[ $(grep -sc 'ticks: running' "$work/live.out") == "$1" ]]
}
must "it does not run" until_true 30 runs 1
read -r group victim < <(q place live | grep -v '^-1 ' | grep -v ' n1$')
[[ $victim ]] || fail "all on n1: $(q place live)"
same "the node where group $group is" "$(q where live "$group")" "$victim"
read -r init _ < <(on "$victim" "$programs/members" "$(job live)" "$group")
old=$(on "$victim" pgrep -o -x ticks)
old_mac=$(on "$victim" "$programs/mac" ticks)
must "PID 1 of group $group cannot be stopped" on "$victim" kill -STOP "$init"
bed_do stop-rmd "$victim" --kill
must "attempt 2 does not run" until_true 40 runs 2

# now_usec, and when a rank of attempt 1 on the lost node has run last.
now_usec() {
    echo "${EPOCHREALTIME/[.,]/}"
}
alive() {
    local last now
    now=$(now_usec)
    last=$(on n1 sh -c 'cat "$1"*' sh "/home/alice/live.1.rmj$(job live)g$group." | sort -n | tail -n 1 | sed 's/^0*//')
    ((now - last < 500000))
}
must "the copy of attempt 1 has stopped: this shows nothing" until_true 10 alive

# Who is asked, and whose address the old copy takes.
head_node=$(q where live -1)
read -r other other_node < <(q place live | grep -v '^-1 ' | grep -v " $head_node\$")
[[ $other_node ]] || fail "all on $head_node: $(q place live)"
read -r head_address port < <(on "$head_node" "$programs/listens" prterun)
read -r claimed _ < <(on "$other_node" "$programs/listens" ticks)
mac=$(on "$other_node" "$programs/mac" ticks)
[[ $port && $claimed && $mac ]] || fail "attempt 2 listens nowhere: $(q place live)"
see "attempt 1 lives on on $victim, MAC $old_mac; attempt 2 has its mpirun at $head_address on $head_node, group $other at $claimed on $other_node, MAC $mac"

# CMD... in the old copy's network.
in_old() {
    on "$victim" nsenter --target "$old" --net "$@"
}
udp_in() {
    on "$head_node" sh -c "awk '\$1 == \"Udp:\" && \$2 != \"InDatagrams\" { print \$2 + \$3 }' /proc/\$(pgrep -o -x prterun)/net/snmp"
}
neighbour() {
    on "$head_node" sh -c "awk '\$1 == \"$claimed\" { print \$4 }' /proc/\$(pgrep -o -x prterun)/net/arp"
}
reach() {
    in_old "$programs/reach" "$@" | tee -a "$work/reach"
}

# As it is, it is held to its own addresses.
before=$(udp_in)
reach "$head_address:$port" | grep -q connected && fail "the old copy connects to the mpirun of attempt 2"
reach --forge "$head_address" "$claimed" "$old_mac" >/dev/null
same "packets of the old copy that came to attempt 2" "$(udp_in)" "$before"
# As if addresses had come round, so that the next attempt got those of the former; and its own filter lets everything out.
must "the old copy's filter stays" in_old nft flush ruleset
must "the old copy gets no other address" in_old sh -c "ip address flush dev eth0 && ip address add $claimed/16 dev eth0"
reach "$head_address:$port" | grep -q connected && fail "under an address of attempt 2, the old copy connects to the mpirun of that"
reach --forge "$head_address" "$claimed" "$old_mac" | grep -q '(taken)' || fail "nothing was sent"
same "packets that came from the old copy to attempt 2" "$(udp_in)" "$before"
reach --poison "$head_address" "$claimed" | grep -q '(taken)' || fail "nothing was sent"
same "the MAC that $claimed has for attempt 2" "$(neighbour)" "$mac"
# This way they would have come.
reach --forge "$head_address" "$claimed" "$mac" >/dev/null
see "packets with the MAC of attempt 2: $(($(udp_in) - before)) came; of attempt 1: none"
(($(udp_in) > before)) || fail "nor does what has the right MAC come: this shows nothing"
must "the copy of attempt 1 has stopped: this shows nothing" until_true 10 alive

on "$victim" kill -CONT "$init"
bed_do start-rmd "$victim"
must "$victim is not back" until_true 30 all_joined
old_gone() {
    ! on "$victim" pgrep -f "$programs/ticks --file=/home/alice/live\.1 " >/dev/null
}
must "attempt 1 stays on $victim" until_true 20 old_gone
release live
finish live
ended_well live 'all 4 ranks are there: yes'
