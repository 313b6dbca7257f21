#!/bin/bash
# A job that takes ever more memory ends by it, at its own limit; jobs beside it and the daemon notice nothing. What is not enforced is said.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2 --set capsule.memory_max=300M
until_true 5 unlimited n2 memory || fail "status does not say that memory is not limited: $(on n2 rmctl status)"
see "without controllers: $(on n2 rmctl status | grep 'not enforced')"
same "lines of the log that say so" "$(on n2 grep -c 'not enforced here' /var/log/rmd.log)" 1
give_controllers n1
give_controllers n2

# most NAME: the most memory that it said to have.
most() {
    sed -n 's/^hog: \([0-9]*\) MB$/\1/p' "$work/$1.out" | tail -n 1
}

# limit_at NODE: that of the group that has moved there, as the kernel has it.
limit_at() {
    # shellcheck disable=SC2016 # the node's shell expands it
    on "$1" sh -c 'cat $(find /run/controllers/memory /sys/fs/cgroup -path "*.g0.i*/payload/memory.limit_in_bytes" -path "*/$1/*" -o -path "*.g0.i*/payload/memory.max" 2>/dev/null)' sh "$bed-$1"
}

user=bob start beside n1 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(user=bob stop_file beside)" --pause-usec=20000
running beside
if limited n1 memory && limited n2 memory; then
    run greedy n2 -n 1 "$programs/hog" --memory=900
    see "a job with 300 MB and a rank that wants 900: it had $(most greedy) MB, and ended with $rc"
    (($(most greedy) > 150)) || fail "it had only $(most greedy) MB"
    (($(most greedy) <= 300)) || fail "it had $(most greedy) MB"
    ((rc != 0)) || fail "and the job ended well"
    # A group that is near its limit moves, and is held to it where it arrives.
    start near n1 --group-size 1 -n 1 "$programs/hog" --memory=240 --stop-file="$(stop_file near)"
    until_true 20 grep -q 'memory all 240' "$work/near.out" || fail "240 MB are refused: $(tail -n 2 "$work/near.out" "$work/near.err")"
    at=$(a_node_but "$(q where near 0)")
    move near 0 "$at"
    until_true 5 eval '[[ $(limit_at "$at") == $((300 << 20)) ]]'
    limit=$(limit_at "$at")
    same "the limit where it has arrived" "$limit" $((300 << 20))
    see "a group with 240 MB of its 300 has moved to $at, limit there: $limit"
    release near
    finish near
    ended_well near done
fi
same "the job beside it" "$(q job beside state)" RUNNING
user=bob release beside
user=bob finish beside
ended_well beside hash
