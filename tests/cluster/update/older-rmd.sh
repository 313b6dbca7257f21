#!/bin/bash
# Nodes with two versions of rmd in one cluster, which is updated node by node: each takes part, jobs run through it and move between the versions,
# the feature level waits for the last node; after that an older rmd is refused, and ends, with a word on why.
# commit: edfb3dacd42ecd4b1ed594f5e3517c066102e377
# limit: 600
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"
both_versions

# The feature level of that commit.
older_level=1

level() {
    on "$1" rmctl status | sed -n 's/^Feature level: *//p'
}
level_is() {
    [[ $(level "$1") == "$2" ]]
}

# works WHAT: jobs from every node, over all of them; groups that were there before move to every node and back.
works() {
    local node
    must "$1: not all nodes are back" until_true 20 all_joined
    for node in $(nodes); do
        run "ring-$node" "$node" --group-size 2 -n 6 "$programs/ordered" --iterations=20
        ended_well "ring-$node" hash
    done
    for node in $(nodes); do
        [[ $(q where live 1) == "$node" ]] || move live 1 "$node"
        [[ $(q where flood 0) == "$node" ]] || move flood 0 "$node"
    done
    see "$1: jobs from every node, groups moved to every node"
}

# ends_by_itself NODE WORDS: its rmd is gone, its log says why, and the status keeps systemd from starting it again.
ends_by_itself() {
    until_true 10 rmd_is_gone "$1" || fail "the older rmd runs on $1"
    [[ $(bed_do logs "$1" | tail -n 3) == *"$2"* ]] || fail "the log of $1 does not say '$2': $(bed_do logs "$1" | tail -n 3)"
    see "$1: $(bed_do logs "$1" | grep -o 'error: .*' | tail -n 1)"
    on "$1" timeout 20 rmd >/dev/null 2>&1
    same "exit status of the older rmd on $1" $? 3
}
rmd_is_gone() {
    ! rmd_runs "$1"
}

voters() {
    local node
    for node in $(nodes); do
        if on "$node" test -e /var/lib/rmd/voter; then echo "$node"; fi
    done
}
three_voters() {
    (($(voters | wc -l) == 3))
}

# A node whose rmd is refused stays without one until the test has looked at it: its jobs are not to be lost meanwhile.
RMD_DESTDIR=$older cluster 4 --cores 8 --set cluster.node_timeout=60s
# The newer rmd serves metrics there, and the older one does not.
for node in $(nodes); do printf "$node: file /run/rmd/web.sock%s\n" '' .lock; done >>"$work/before"
sort -o "$work/before" "$work/before"
start live n2 --group-size 2 -n 4 "$programs/memory" --mb=1 --stop-file="$(stop_file live)" --gap-msec=2000 --pause-usec=20000
start flood n3 --group-size 1 -n 2 "$programs/flood" --stop-file="$(stop_file flood)" --pause-usec=20000
running live
must "flood does not run" until_true 30 test -s "$work/flood.out"

update n2 "$newer"
works "older leader, newer follower"
known=$(level n2 | sed -n "s/^$older_level of \([0-9]*\) .*/\1/p")
[[ $known ]] || fail "n2 knows nothing new: $(level n2)"
same "the level on n2" "$(level n2)" "$older_level of $known (older rmd on n[1,3-4])"

update n4 "$newer"
update n1 "$newer"
works "newer leader, older follower"
same "the level on n1" "$(level n1)" "$older_level of $known (older rmd on n3)"
start mixed n2 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file mixed)" --pause-usec=20000
running mixed
for node in $(nodes) n1 n2; do
    [[ $(q where mixed -1) == "$node" ]] || move mixed -1 "$node"
done
see "a head of the newer version is moved to the older one and back"

update n2 "$older"
works "one node goes back to the older version"
update n2 "$newer"
must "rmd cannot be installed on n3" bed_do install n3 "$newer"
works "rmd of n3 is the older one, its helpers and clients are the newer ones"

must "rmd on n3 does not restart" bed_do restart-rmd n3
must "the level is not raised: $(level n1)" until_true 10 level_is n1 "$known"
works "all are of the newer version"

# A node without the log is refused by the state that it is sent, one with the log by what is in that.
must "there are no three voters" until_true 30 three_voters
leader=$(q leader)
plain=$(nodes | grep -vxF -f <(voters))
voter=$(voters | grep -vx "$leader" | head -n 1)
asker=$leader
update "$plain" "$older"
ends_by_itself "$plain" "the cluster is at feature level $known, and this version of rmd knows $older_level; update rmd on this node"
names_plain() {
    [[ $(bed_do logs "$leader") == *"the rmd of node '$plain' knows feature level $older_level, the cluster is at $known: update it"* ]]
}
must "the leader does not say which node is to be updated" until_true 10 names_plain
update "$plain" "$newer"
update "$voter" "$older"
ends_by_itself "$voter" "this version"
update "$voter" "$newer"
works "and all are again"

# The job's mpirun was started by the older rmd, under which PRRTE warns when it names the group of a process that has just begun to run.
not_of_flood='/plm:ssh: Warning: setpgid/d'
flood_ends_whole
for job in live mixed; do
    release "$job"
    finish "$job"
    ended_well "$job" "good\|hash"
done
