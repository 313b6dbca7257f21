#!/bin/bash
# An administrator updates, reinstalls and removes the packages of rmd while jobs run: no job may
# end, move or stand still for it, and results stay the same. An update that fails leaves the old
# rmd at work. What jobs have on a node is not taken away by mistake. (No systemd runs here:
# inside/systemctl does for the scripts of the packages what the unit says.)
# packages: packaging
# complete: update/under-jobs shows the same of the program alone
# polls
# limit: 900
. "${BASH_SOURCE[0]%/*}/../lib.sh"
old=$("$repo_dir/tools/package" --path) || fail "no packages"
version=$(sed -n '1s/^rmd (\(.*\)) .*/\1/p' "$repo_dir/packaging/debian/changelog")
next=${version%.*}.$((${version##*.} + 1))
new=$("$repo_dir/tools/package" --version "$next" --path) || fail "no packages of version $next"

cluster 3 --cores 6 --no-rmd --set cluster.lease=20s
mkdir "$beds/$bed/home/rmd/old" "$beds/$bed/home/rmd/new" "$beds/$bed/home/rmd/broken"
for package in rmd rmd-client librmrt0 librmrt-dev; do
    cp "$old/${package}_${version}"_*.deb "$beds/$bed/home/rmd/old/"
    cp "$new/${package}_${next}"_*.deb "$beds/$bed/home/rmd/new/"
done

# package NODE DPKG-ARGUMENT...: in $said what dpkg printed.
said=''
package() {
    said=$(on "$1" sh -c 'DEBIAN_FRONTEND=noninteractive dpkg --force-unsafe-io "$@" 2>&1' sh "${@:2}")
}
put() {
    # shellcheck disable=SC2046 # a word for each file
    package "$1" --install $(cd "$beds/$bed/home/rmd/$2" && printf "/home/rmd/$2/%s " *.deb) || fail "$1: the $2 packages: $(tail -n 5 <<<"$said")"
}
pid_of() {
    on "$1" cat /run/testbed-rmd.pid
}
version_on() {
    on "$1" rmctl status | sed -n 's/^rmd: *\([0-9.]*\),.*/\1/p'
}
# capsules_on NODE: the first process of each; what it starts for a checkpoint, say, comes and goes.
capsules_on() {
    on "$1" sh -c 'for p in $(pgrep -x rm-capsule); do sed -n "s/^NSpid:\t\([0-9]*\)\t1$/\1/p" "/proc/$p/status"; done 2>/dev/null' | sort | paste -sd ' '
}

for node in $(nodes); do
    # The index of manual pages is not made anew after each installation: nobody looks at it.
    on "$node" sh -c 'mkdir -p /run/systemd/system && ln -s /home/rmd/t/systemctl /usr/bin/systemctl && rm -f /var/lib/man-db/auto-update'
    put "$node" old
done
must "not all nodes join" until_true 30 all_joined
same "the version" "$(version_on n1)" "$version"
must "no three voters" until_true 30 voters_up
inventory_all >"$work/before"

# For how long the groups and the head of a job stood still, as the kernel has counted it; nothing
# where it does not count.
frozen_usec() {
    local node
    for node in $(nodes); do
        on "$node" sh -c 'cat /sys/fs/cgroup/rmd-capsules/"j$1."*/payload/cgroup.stat.local 2>/dev/null' sh "$1"
    done | awk '$1 == "frozen_usec" { sum += $2; seen = 1 } END { if (seen) print sum }'
}
undisturbed() {
    local name frozen
    same "moves $1" "$(q moves)" ""
    for name in live flood; do
        frozen=$(frozen_usec "$(job "$name")")
        same "microseconds for which $name stood still $1" "${frozen:-0}" 0
    done
    for name in live flood saved; do
        same "the attempt of $name $1" "$(q job "$name" attempt)" 1
        # While saved is being saved it is CHECKPOINTING.
        [[ $(q job "$name" state) =~ ^(RUNNING|CHECKPOINTING)$ ]] || fail "job $name is $(q job "$name" state) $1"
    done
}

hpl still 2
finish still 200
hpl_residues still >"$work/still"

# The others find no room on the nodes of hpcc, so that each node has something.
hpl hpl 2
must "hpcc does not run" q state hpl RUNNING 20 >/dev/null
start live n2 --group-size 2 -n 4 "$programs/memory" --mb=1 --stop-file="$(stop_file live)" --gap-msec=2000 --pause-usec=20000
start flood n3 --on-node-loss restart --group-size 1 -n 2 "$programs/flood" --stop-file="$(stop_file flood)" --pause-usec=20000
start saved n1 --checkpoint 5s --group-size 1 -n 3 "$programs/ordered" --stop-file="$(stop_file saved)" --pause-usec=20000
running live
running saved
must "flood does not run" until_true 30 test -s "$work/flood.out"
must "saved is not saved" until_true 60 eval '(($(events checkpoint-done) > 0))'
declare -A capsules
for node in $(nodes); do [[ $(capsules_on "$node") ]] || fail "$node has no capsule"; done
for node in $(nodes); do capsules[$node]=$(capsules_on "$node"); done

# --- updates and a reinstallation: the leader last ---
for step in "n2 new $next" "n3 new $next" "n1 new $next" "n3 new $next" "n2 old $version" "n2 new $next"; do
    read -r node which wanted <<<"$step"
    began=$EPOCHREALTIME
    put "$node" "$which"
    must "$node is not back with $wanted" back "$node" "$began"
    same "the version on $node" "$(version_on "$node")" "$wanted"
    must "not all are there" until_true 20 all_joined
    same "hpcc, which is to run through all updates" "$(q job hpl state)" RUNNING
    same "capsules on $node after $wanted" "$(capsules_on "$node")" "${capsules[$node]}"
    undisturbed "after $wanted on $node"
    see "$node: $wanted installed and back after $(msec_since "$began") ms; capsules taken over: $(wc -w <<<"${capsules[$node]}");" \
        "moves: $(q moves | wc -l); live stood still for $(frozen_usec "$(job live)") us"
done
finish hpl 250
same "hpcc's exit code" "$rc" 0
hpl_residues hpl >"$work/hpl"
must "hpcc's residues differ: $(diff "$work/still" "$work/hpl" | tr '\n' '|')" cmp -s "$work/still" "$work/hpl"
see "hpcc ran through all updates: $(grep -c . "$work/still") verdict lines are identical"
# A checkpoint that was under way when rmd ended may be given up; the next one is not.
# shellcheck disable=SC2034 # until_true evaluates it
done_before=$(events checkpoint-done)
must "saved is not saved any more" until_true 60 eval '(($(events checkpoint-done) > done_before + 1))'
see "systemctl was asked for: $(on n2 cat /run/systemctl.log | sort | uniq -c | sed 's/^ *//' | paste -sd ';')"
see "events: $(rmctl events --json | grep -o '"kind": "[a-z-]*"' | sort | uniq -c | sed 's/^ *//' | paste -sd ' ')"

# --- updates that fail ---
# still_at_work WHAT: on n2.
still_at_work() {
    same "rmd on n2 after $1" "$(pid_of n2)" "$pid"
    [[ $(version_on n2) == "$next" ]] || fail "rmd on n2 does not answer after $1"
    undisturbed "after $1"
    see "$1: $(command grep -aiE -m 1 'no space|unexpected|goes on' <<<"$said")"
}
head -c $(($(stat -c %s "$beds/$bed/home/rmd/old/rmd_${version}_amd64.deb") / 2)) "$beds/$bed/home/rmd/old/rmd_${version}_amd64.deb" >"$beds/$bed/home/rmd/broken/rmd.deb"
began=$EPOCHREALTIME
if package n2 --install /home/rmd/broken/rmd.deb; then fail "half a package is installed"; fi
same "the version that dpkg has after half a package" "$(on n2 dpkg-query -W -f '${Version} ${db:Status-Status}' rmd)" "$next installed"
must "n2 is not back after half a package" until_true 20 all_joined
pid=$(pid_of n2)
still_at_work "half a package"

# A full disk: the file system of rmd's helpers has room for those that are there, and for half of
# the new ones.
on n2 sh -c 'cp -a /usr/libexec/rmd /run/helpers && mount -t tmpfs -o size=$(($(du -sk /run/helpers | cut -f 1) * 3 / 2))k full /usr/libexec/rmd &&
    cp -a /run/helpers/. /usr/libexec/rmd/ && rm -r /run/helpers' || fail "n2 gets no full disk"
if package n2 --install "/home/rmd/old/rmd_${version}_amd64.deb"; then fail "the package is installed on a full disk"; fi
[[ $said == *"No space left on device"* ]] || fail "the disk was not full: $said"
same "the version that dpkg has after a full disk" "$(on n2 dpkg-query -W -f '${Version} ${db:Status-Status}' rmd)" "$next installed"
must "n2 is not back after a full disk" until_true 20 all_joined
same "helpers that are left half written" "$(on n2 sh -c 'ls /usr/libexec/rmd | grep dpkg')" ""
pid=$(pid_of n2)
still_at_work "a full disk"
on n2 umount /usr/libexec/rmd

# A configuration that the new version does not take.
on n2 sh -c 'cp /etc/rmd/rmd.conf /run/good.conf && echo "no_such_key = 1" >>/etc/rmd/rmd.conf'
if package n2 --install "/home/rmd/new/rmd_${next}_amd64.deb"; then fail "rmd is configured with a configuration that it does not take"; fi
[[ $said == *no_such_key* && $said == *"the one that runs goes on"* ]] || fail "dpkg does not say what is wrong: $said"
still_at_work "a configuration that it does not take"
on n2 sh -c 'cat /run/good.conf >/etc/rmd/rmd.conf && rm /run/good.conf'
must "n2 is not configured: $said" package n2 --configure rmd
must "n2 is not back" until_true 20 all_joined
undisturbed "after it was configured"

# --- removal ---
pid=$(pid_of n3)
if package n3 --remove rmd; then fail "rmd is removed beside jobs: $said"; fi
[[ $said == *"jobs run on this node (numbers: "*"rmctl drain-node n3 --wait"* ]] || fail "it is not said why rmd stays: $said"
same "rmd on n3" "$(pid_of n3)" "$pid"
same "the package on n3" "$(on n3 dpkg-query -W -f '${db:Status-Status}' rmd)" installed
undisturbed "after a removal that was refused"
see "refused: $(grep -m 1 'not removed' <<<"$said")"

flood_ends_whole
for name in live saved; do
    release "$name"
    finish "$name"
    ended_well "$name" "good\|hash"
done
same_as_undisturbed saved 3 --group-size 1

must "n3 is not drained" rmctl drain-node n3 --wait --timeout 60
must "rmd is not removed: $said" package n3 --remove rmd
same "what is left of rmd in /run on n3" "$(on n3 sh -c 'ls -d /run/rmd; pgrep -x rmd' 2>/dev/null)" ""
must "the state is gone, though nothing was purged" on n3 test -d /var/lib/rmd
must "rmd is not purged: $said" package n3 --purge rmd rmd-client
same "files of rmd on n3" "$(on n3 sh -c 'find /etc /run /usr /var -xdev \( -name rmd -o -name "rmd.*" -o -path "*/rmd/*" \) \
    ! -path "/var/log/*" ! -path "/usr/share/doc/librmrt*" -print' | sort | paste -sd ' ')" "/etc/rmd /etc/rmd/cluster.key /etc/rmd/rmd.conf"

# More than one of the nodes that are left has room for.
start victim n1 --on-node-loss abort --group-size 2 -n 8 "$programs/spin" --stop-file="$(stop_file victim)"
running victim
for node in n2 n1; do
    [[ $(capsules_on "$node") ]] || fail "victim has nothing on $node"
    on "$node" sh -c 'RMD_REMOVE_WITH_JOBS=yes dpkg --remove rmd' >"$work/forced" 2>&1 || fail "rmd is not removed from $node by force: $(tail -n 3 "$work/forced")"
    grep -q 'what jobs have on this node ends (numbers: ' "$work/forced" || fail "it is not said that jobs end: $(<"$work/forced")"
    same "processes of capsules on $node" "$(on "$node" pgrep -x rm-capsule)" ""
    same "control groups of capsules on $node" "$(on "$node" find /sys/fs/cgroup -path '*/rmd-capsules/j*')" ""
    see "$node: $(grep 'what jobs have' "$work/forced")"
done
# Its front end waits for an rmd that is gone, and what it has written waits to be fetched.
on n1 pkill -KILL -x rm-mpirun
wait "${front_pid[victim]}" 2>/dev/null
unset "front_pid[victim]"
for node in n2 n1; do must "rmd is not purged from $node: $said" package "$node" --purge rmd rmd-client; done
