#!/bin/bash
# A group moves that has 384 MiB of shared memory, a file in /dev/shm, of which it writes some pages all the time, and a large file in /tmp: nearly all of it is
# sent while the group runs, so that it stands still for a fraction of the time that it does when it is stopped and copied; every page is right.
# limit: 240
. "${BASH_SOURCE[0]%/*}/lib.sh"
mib=384

# moved NODE [OPTION...]: group 1; $freeze (s) and $sent (bytes in the freeze) are of this move.
moved() {
    local whole ahead
    migrate shared 1 "$1" --wait --timeout 120 "${@:2}" >"$work/migrate" 2>&1 || fail "to $1: $(<"$work/migrate")"
    q settled 60 >/dev/null || fail "not settled"
    read -r freeze _ _ _ _ whole ahead < <(q phases shared 1)
    sent=$((whole - ahead))
    see "to $1 ${*:2}: $((whole >> 20)) MiB, $((sent >> 10)) KiB of them in the freeze, frozen for $freeze s"
}

cluster 3 --cores 2
# shellcheck disable=SC2016 # the job's shell
start shared n1 --group-size 1 -n 2 bash -c 'head -c 64M /dev/urandom >/tmp/file; md5sum /tmp/file >/tmp/sum
    "$@"; status=$?; md5sum --quiet -c /tmp/sum && exit $status' bash \
    "$programs/memory" --shared --mb=$mib --only-rank=1 --zero-percent=10 --dirty-percent=1 --stop-file="$(stop_file shared)"
running shared 60
[[ $(q where shared 1) == n1 ]] || move shared 1 n1

for to in n2 n3 n1; do
    moved "$to"
    ((sent < 32 << 20)) || fail "$sent bytes were sent in the freeze"
    echo "$freeze" >>"$work/live"
done
moved n3 --mode stop
((sent > mib << 19)) || fail "only $sent bytes were sent by a move that stops the group"
live=$(sort -g "$work/live" | head -n 1)
see "frozen for $live s at best live, $freeze s when it is stopped"
awk "BEGIN { exit !(2 * $live < $freeze) }" || fail "no shorter freeze: $live s live, $freeze s when it is stopped"
moved n2
((sent < 32 << 20)) || fail "$sent bytes were sent in the freeze"

release shared
finish shared 120
ended_well shared good
