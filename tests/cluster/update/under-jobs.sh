#!/bin/bash
# rmd of another version is installed and started on one node after the other, again and again, while jobs run: nothing moves, no group stands still, no
# attempt is lost; and what was started before can be moved afterwards, heads with their rm-agents as well. In a thorough run 20 times, and
# under Debian's hpcc.
# limit: 1200
. "${BASH_SOURCE[0]%/*}/../lib.sh"
wanted=$(thorough 20 3)
build=${RMD_DESTDIR:-$("$repo_dir/tools/build" --path)} || fail "no rmd"
# The same with another name for its version, of the same length.
version=$(sed -n "s/^  version: '\([0-9.]*\)',$/\1/p" "$repo_dir/meson.build")
[[ $version ]] || fail "meson.build names no version"
versions=("${version%?}x" "$version") builds=("$work/other" "$build")
cp -a "$build" "$work/other"
LC_ALL=C sed -i "s/${version//./\\.}/${versions[0]}/g" "$work"/other/usr/bin/*

# How long the processes of any capsule stood still, as the kernel has counted it; nothing where it does not count.
frozen_usec() {
    local node
    for node in $(nodes); do
        on "$node" sh -c 'cat /sys/fs/cgroup/rmd-capsules/*/payload/cgroup.stat.local 2>/dev/null'
    done | awk '$1 == "frozen_usec" { sum += $2; seen = 1 } END { if (seen) print sum }'
}

undisturbed() {
    local frozen
    frozen=$(frozen_usec)
    if thorough && [[ ! $frozen ]]; then fail "this kernel does not count for how long groups stand still: nothing is shown $1"; fi
    same "moves $1" "$(q moves)" ""
    same "microseconds for which groups stood still $1" "${frozen:-0}" 0
    same "the attempt of job flood $1" "$(q job flood attempt)" 1
}

install_on() {
    local node=$1 k=$2 started=$EPOCHREALTIME
    update "$node" "${builds[k]}"
    must "$node does not join again" back "$node" "$started"
    must "rmd on $node is not of version ${versions[k]}" eval 'on "$node" rmctl status | grep -q "^rmd: *${versions[k]//./\\.}, up"'
    must "not all are there" until_true 20 all_joined
    slowest=$((slowest > $(msec_since "$started") ? slowest : $(msec_since "$started")))
}

# hpcc number $1, whose folder has its result.
begin_hpcc() {
    as alice n1 mkdir -p "hpcc$1"
    bed_do copy "$tests_dir/data/hpcc/hpccinf.txt" "n1:/home/alice/hpcc$1/hpccinf.txt"
    start "hpcc$1" n3 --group-size 2 -n 6 --wdir "/home/alice/hpcc$1" hpcc
    must "hpcc does not run" q state "hpcc$1" RUNNING 30 >/dev/null
}

hpcc_passed() {
    until_true 700 gone "${front_pid[hpcc$1]}" || fail "hpcc has not ended: $(as alice n1 grep -E '^(Begin|End) of' "hpcc$1/hpccoutf.txt" | tail -n 1)"
    finish "hpcc$1"
    same "hpcc's exit code" "$rc" 0
    same "hpcc's verdict" "$(as alice n1 grep '^Success=' "hpcc$1/hpccoutf.txt")" Success=1
    as alice n1 grep -q FAILED "hpcc$1/hpccoutf.txt" && fail "hpcc says FAILED"
    see "hpcc: Success=1, $(as alice n1 grep -c PASSED "hpcc$1/hpccoutf.txt") PASSED, 0 FAILED"
}

# A restart takes less than the lease, as rmd-cluster(7) asks for: on a machine that is busy with other tests, some seconds.
cluster 3 --cores 4 --set cluster.lease=20s
must "the feature level is not reached" until_true 10 on n1 sh -c 'rmctl status | grep -q "^Feature level: *[0-9]*$"'
start live n2 --group-size 2 -n 4 "$programs/memory" --mb=1 --stop-file="$(stop_file live)" --gap-msec=1000 --pause-usec=20000
start flood n3 --on-node-loss restart --group-size 1 -n 2 "$programs/flood" --stop-file="$(stop_file flood)" --pause-usec=20000
running live
must "flood does not run" until_true 30 test -s "$work/flood.out"
hpcc=0 done=0 slowest=0 round=0
if thorough; then begin_hpcc 0; fi
while ((done < wanted)); do
    for n in n2 n3 n1; do install_on "$n" $((round % 2)); done
    round=$((round + 1))
    undisturbed "in round $done"
    # Only what happened while hpcc ran counts. It may be over before.
    if thorough && [[ $(q job "hpcc$hpcc" state) != RUNNING ]]; then
        hpcc_passed "$hpcc"
        hpcc=$((hpcc + 1))
        begin_hpcc "$hpcc"
    else
        done=$((done + 1))
    fi
done
see "rmd installed and restarted $done times on each of 3 nodes; back after $slowest ms at most; 0 moves, frozen for $(frozen_usec || true) us, by the kernel's count"
if thorough; then hpcc_passed "$hpcc"; fi
undisturbed "at the end"

# The ranks of live stay where they are: they tell the longest time for which one of them heard nothing from its partner.
for what in "flood 0" "flood -1" "live -1"; do
    read -r job group <<<"$what"
    move "$job" "$group" "$(a_node_but "$(q where "$job" "$group")")"
done
see "heads and groups that were there before are moved"
flood_ends_whole
release live
finish live
ended_well live good
see "$(grep -o 'rank 0.*' "$work/live.out") (under the load of this machine)"
