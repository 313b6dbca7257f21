#!/bin/bash
# Nodes with two versions of rmd in one cluster, which is updated node by node: each takes part, jobs run through it and move between the versions,
# what is new waits for the last node and says so; after that an older rmd is refused, and ends, with a word on why.
# commit: 399ed48451cd0f06ae5d993cd53d0dcbddab85cc
# limit: 600
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"
both_versions

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

# refused NODE WORDS: a job that may start again, submitted there.
refused() {
    local text
    text=$(as alice "$1" timeout 20 rm-mpirun --on-node-loss restart -n 1 hostname 2>&1) && fail "restart is accepted on $1 at level $(level "$1")"
    see "refused: $text"
    [[ $text == *"$2"* ]] || fail "the refusal does not say '$2': $text"
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
start live n2 --group-size 2 -n 4 "$programs/memory" --mb=1 --stop-file="$(stop_file live)" --gap-msec=2000
start flood n3 --group-size 1 -n 2 "$programs/flood" --stop-file="$(stop_file flood)" --pause-usec=20000
running live
must "flood does not run" until_true 30 test -s "$work/flood.out"

update n2 "$newer"
works "older leader, newer follower"
known=$(level n2 | sed -n 's/^1 of \([0-9]*\) .*/\1/p')
same "the level on n2" "$(level n2)" "1 of $known (older rmd on n[1,3-4])"
refused n2 "'restart' is not available"

update n4 "$newer"
update n1 "$newer"
works "newer leader, older follower"
same "the level on n1" "$(level n1)" "1 of $known (older rmd on n3)"
refused n1 "since rmd is older on n3"
text=$(on n1 rmctl remove-node n4 2>&1) && fail "a node is removed at level 1"
[[ $text == *"since rmd is older on n3"* ]] || fail "remove-node does not say which nodes are behind: $text"
see "refused: $text"
for words in "drill $(job live)" "import-checkpoint /etc/hostname"; do
    text=$(as alice n1 sh -c "rmctl $words" 2>&1) && fail "$words at level 1"
    [[ $text == "rmctl: ${words%% *}: needs feature level "*", and the cluster is at 1, since rmd is older on n3" ]] || fail "$words: the level is not named: $text"
    see "refused: $text"
done
# The older rmd gives a head no rm-agent of its own.
must "n3 is not drained" rmctl drain-node n3
start mixed n2 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file mixed)" --pause-usec=20000
running mixed
must "n3 does not return" rmctl resume-node n3
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
run again n3 --on-node-loss restart -n 2 "$programs/ordered" --iterations=20
ended_well again hash

# A node without the log is refused by the state that it is sent, one with the log by what is in that.
must "there are no three voters" until_true 30 three_voters
leader=$(q leader)
plain=$(nodes | grep -vxF -f <(voters))
voter=$(voters | grep -vx "$leader" | head -n 1)
asker=$leader
update "$plain" "$older"
ends_by_itself "$plain" "the cluster is at feature level $known, and this version of rmd knows 1; update rmd on this node"
names_plain() {
    [[ $(bed_do logs "$leader") == *"the rmd of node '$plain' knows feature level 1, the cluster is at $known: update it"* ]]
}
must "the leader does not say which node is to be updated" until_true 10 names_plain
update "$plain" "$newer"
update "$voter" "$older"
ends_by_itself "$voter" "this version"
update "$voter" "$newer"
works "and all are again"

flood_ends_whole
for job in live mixed; do
    release "$job"
    finish "$job"
    ended_well "$job" "good\|hash"
done
