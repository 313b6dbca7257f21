#!/bin/bash
# Memory that is written all the time, shared or not, comes to its new node as it was written last, and its group hardly stands still.
# limit: 660
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# With room for all anywhere: no group is moved but those that are asked for.
cluster 3 --cores 4

# A program that writes all its memory anew all the time is moved while it does: every page has what was written last, whether it
# went ahead or in the freeze; and the same with nothing ahead.
scenario "memory that is written all the time"
start live n1 --group-size 2 -n 4 "$programs/memory" --mb=16 --dirty --stop-file="$(stop_file live)"
running live
for ((i = 0; i < 4; i++)); do
    group=$((i % 2))
    mode=live
    ((i < 3)) || mode=stop
    to=$(a_node_but "$(q where live "$group")")
    migrate live "$group" "$to" --mode "$mode" --wait --timeout 60 >"$work/migrate" 2>&1 || fail "$mode to $to: $(<"$work/migrate")"
    q settled 60 >/dev/null || fail "not settled"
    read -r freeze _ _ _ _ image ahead < <(q phases live "$group")
    see "$mode: frozen for $freeze s, $image bytes sent, $ahead of them ahead"
    [[ $mode == live ]] || same "bytes ahead" "$ahead" 0
    [[ $mode == stop ]] || ((ahead > 0)) || fail "nothing went ahead"
done
release live
finish live
ended_well live good

# A group moves that has 384 MiB of shared memory, a file in /dev/shm, of which it writes some pages all the time, and a large file in /tmp: nearly all of it is
# sent while the group runs, and little while it stands still (bench/freeze has the times); every page is right.
scenario "shared memory"
mib=$(thorough 384 96)

# moved NODE [OPTION...]: group 1; $freeze (s) and $sent (bytes in the freeze) are of this move.
moved() {
    local whole ahead
    migrate shared 1 "$1" --wait --timeout 120 "${@:2}" >"$work/migrate" 2>&1 || fail "to $1: $(<"$work/migrate")"
    q settled 60 >/dev/null || fail "not settled"
    read -r freeze _ _ _ _ whole ahead < <(q phases shared 1)
    sent=$((whole - ahead))
    see "to $1 ${*:2}: $((whole >> 20)) MiB, $((sent >> 10)) KiB of them in the freeze, frozen for $freeze s"
}
# shellcheck disable=SC2016 # the job's shell
start shared n1 --group-size 1 -n 2 bash -c 'head -c 64M /dev/urandom >/tmp/file; md5sum /tmp/file >/tmp/sum
    "$@"; status=$?; md5sum --quiet -c /tmp/sum && exit $status' bash \
    "$programs/memory" --shared --mb=$mib --only-rank=1 --zero-percent=10 --dirty-percent=1 --stop-file="$(stop_file shared)"
running shared 60
[[ $(q where shared 1) == n1 ]] || move shared 1 n1

for to in n2 n3; do
    moved "$to"
    ((sent < 32 << 20)) || fail "$sent bytes were sent in the freeze"
    echo "$freeze" >>"$work/live"
done
moved n1 --mode stop
((sent > mib << 19)) || fail "only $sent bytes were sent by a move that stops the group"
live=$(sort -g "$work/live" | head -n 1)
see "frozen for $live s at best live, $freeze s when it is stopped"
moved n2
((sent < 32 << 20)) || fail "$sent bytes were sent in the freeze"

release shared
finish shared 120
ended_well shared good

# A group with 512 MiB of memory, of which it writes some pages all the time, moves: little of it is sent while the group stands still (bench/freeze-sizes has the times), it runs before all of its memory is there, moves on only when it is, and every page is right. rmctl shows which way it went.
scenario "a large group"
mib=$(thorough 512 128)

# moved NODE: group 1; $tracked, $rounds, $last (bytes), $freeze (us) and $why are of this move.
moved() {
    migrate big 1 "$1" --wait --timeout 120 >"$work/migrate" 2>&1 || fail "to $1: $(<"$work/migrate")"
    q settled 60 >/dev/null || fail "not settled"
    read -r tracked rounds last freeze why < <(q way big 1)
    see "to $1: tracked: $tracked${why:+ ($why)}, $rounds rounds, $last bytes in the freeze, frozen for $((freeze / 1000)) ms"
}
start big n1 --group-size 1 -n 2 "$programs/memory" --mb=$mib --only-rank=1 --zero-percent=10 --dirty-percent=1 --stop-file="$(stop_file big)"
running big 60
[[ $(q where big 1) == n1 ]] || move big 1 n1

# Not waiting for the memory in between: rmd does.
for to in n2 n3 n1 n2; do
    moved "$to"
    same "tracked" "$tracked" yes
    ((rounds > 0)) || fail "nothing went ahead"
    ((last < mib << 18)) || fail "a quarter of the memory and more was sent in the freeze: $last bytes"
    echo "$freeze" >>"$work/tracked"
done
see "all memory was there after $(q filled big 1 60) us" || fail "its memory does not arrive"
rmctl show-job "$(job big)" >"$work/shown"
grep -qE '^ +1 .* yes' "$work/shown" || fail "show-job does not show that memory was tracked: $(<"$work/shown")"
grep -q 'Not tracked' "$work/shown" && fail "show-job says that memory was not tracked: $(<"$work/shown")"
on n2 rmctl status | grep -q '^Page tracking: *yes' || fail "status of n2: $(on n2 rmctl status)"
on n1 rmctl events | grep -q 'group 1 has all of its memory on n2' || fail "no event tells when all memory was there"

on n2 sh -c "printf '\n[move]\ntracking = no\n' >>/etc/rmd/rmd.conf"
bed_do restart-rmd n2 || fail "rmd on n2 does not start again"
must "not all are back" until_true 20 all_joined
moved n3
same "tracked" "$tracked" no
rmctl show-job "$(job big)" | grep -q '^Not tracked: *group 1: \[move\] tracking = no on n2' || fail "show-job does not say why: $(rmctl show-job "$(job big)")"
on n2 rmctl status | grep -q '^Page tracking: *no: \[move\]' || fail "status of n2: $(on n2 rmctl status)"
untracked=$freeze
tracked=$(sort -g "$work/tracked" | head -n 1)
see "frozen for $((tracked / 1000)) ms at best when tracked, $((untracked / 1000)) ms when not"
moved n1
same "tracked" "$tracked" yes

release big
finish big 120
ended_well big good
