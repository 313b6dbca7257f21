#!/bin/bash
# A node that dies with the older rmd while the cluster is updated: the update comes to its end without it, the node can be removed, and if it
# comes back instead it is refused with a word on why. A job on the other nodes runs through all of it, undisturbed.
# commit: edfb3dacd42ecd4b1ed594f5e3517c066102e377
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"
both_versions

# The feature level of that commit.
older_level=1

level() {
    on n1 rmctl status | sed -n 's/^Feature level: *//p'
}
level_is() {
    [[ $(level) == "$1"* ]]
}
rmd_is_gone() {
    ! rmd_runs "$1"
}

# For how long groups stood still, as the kernel has counted it; nothing where it does not count.
frozen_usec() {
    local node
    for node in n1 n2 n3; do
        on "$node" sh -c 'cat /sys/fs/cgroup/rmd-capsules/*/payload/cgroup.stat.local 2>/dev/null'
    done | awk '$1 == "frozen_usec" { sum += $2; seen = 1 } END { if (seen) print sum }'
}
undisturbed() {
    local frozen
    frozen=$(frozen_usec)
    same "moves $1" "$(q moves)" ""
    same "microseconds for which groups stood still $1" "$frozen" 0
    same "the attempt of job live $1" "$(q job live attempt)" 1
}

RMD_DESTDIR=$older cluster 4 --cores 2 --set cluster.voter_timeout=6s
rmctl drain-node n4 >/dev/null || fail "n4 cannot be drained"
start live n2 --group-size 2 -n 4 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
running live
rmctl resume-node n4 >/dev/null || fail "n4 cannot be resumed"
for node in n2 n3 n1; do update "$node" "$newer"; done
must "not all are back" until_true 30 all_joined
see "level $(level)"
level_is "$older_level of" || fail "the level is not that of n4"
undisturbed "when three of four nodes are updated"

bed_do power-off n4
begun=$EPOCHREALTIME
known=$(level | sed -n "s/^$older_level of \([0-9]*\) .*/\1/p")
must "n4 is not DOWN" q nodestate n4 DOWN 30 >/dev/null
level_is "$older_level of" || fail "the level does not wait for n4, which may be back in a moment: $(level)"
until_true 30 level_is "$known" || fail "the level is not raised: $(level)"
see "level $(level), $(msec_since "$begun") ms after n4 was lost"
undisturbed "when the level is raised"

# Back with the older rmd.
bed_do power-on n4
until_true 20 rmd_is_gone n4 || fail "the older rmd runs on n4"
see "n4: $(bed_do logs n4 | grep -o 'error: .*' | tail -n 1)"
[[ $(bed_do logs n4 | tail -n 3) == *"update rmd on this node"* ]] || fail "the log of n4 does not say why it ends"
[[ $(q node n4 state) == DOWN* ]] || fail "n4 is $(q node n4 state)"

must "n4 is not removed" rmctl remove-node n4
node_count=3
undisturbed "at the end"
release live
finish live
ended_well live hash
see "live: 0 moves, 0 us frozen, attempt 1"
must "n4 is still there" all_joined
inventory_all >"$work/before"
