#!/bin/bash
# Who talks to whom is read from the kernel: the snapshot shows it, and treematch brings groups that talk onto one node, again when they begin
# to talk to others. Programs need not help.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# Moves are to pay soon, and groups to rest for no longer than that.
cluster 2 --cores 3 --set "sched.traffic_interval = 1s" --set "sched.horizon = 5s" --set "sched.policy = treematch" \
    --set "sched.link_speed = 10"

# together A B: both groups are on one node.
together() {
    [[ $(q where live "$1") == "$(q where live "$2")" ]]
}

# traffic A B: bytes between two groups, as the snapshot has them.
traffic() {
    rmctl snapshot >"$work/snapshot"
    on n1 python3 -c 'import json, sys
jobs = json.loads(sys.argv[1])["jobs"]
print(sum(b for j in jobs for x, y, b in j.get("traffic", []) if sorted((x, y)) == sorted(map(int, sys.argv[2:]))))' \
        "$(<"$work/snapshot")" "$1" "$2"
}

more_than() {
    (($(traffic "$2" "$3") > $1))
}

shift_file=/home/alice/shift
start live n1 --group-size 1 -n 4 "$programs/pairs" --stop-file="$(stop_file live)" --shift-file=$shift_file
running live
see "it begins on $(q place live | tr '\n' ' ')"
must "the snapshot does not show that groups 0 and 1 talk" until_true 20 more_than 1000000 0 1
must "the snapshot does not show that groups 2 and 3 talk" until_true 20 more_than 1000000 2 3
see "in 5 s: $(traffic 0 1) bytes between 0 and 1, $(traffic 2 3) between 2 and 3, $(traffic 0 3) between 0 and 3"
(($(traffic 0 3) < 100000)) || fail "groups 0 and 3 are said to talk: $(traffic 0 3)"
must "groups that talk are not brought together: $(q place live | tr '\n' ' ')" until_true 40 together 0 1
must "groups that talk are not brought together: $(q place live | tr '\n' ' ')" until_true 40 together 2 3
must "it does not come to rest" q settled 20 >/dev/null
see "then it is on $(q place live | tr '\n' ' '): $(q moves live | wc -l) moves"
same "their reason" "$(rmctl list-moves --no-header | grep -vc "a better place")" 0

on n1 touch $shift_file
must "that they talk to others now changes nothing: $(q place live | tr '\n' ' ')" until_true 60 together 0 3
must "that they talk to others now changes nothing: $(q place live | tr '\n' ' ')" until_true 60 together 1 2
see "after the shift it is on $(q place live | tr '\n' ' '): $(q moves live | wc -l) moves"
release live
finish live
ended_well live "all whole"
