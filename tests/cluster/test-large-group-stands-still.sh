#!/bin/bash
# A group with 512 MiB of memory, of which it writes some pages all the time, moves: it stands still for a fraction of the time that it does where its memory
# is not tracked, runs before all of its memory is there, moves on only when it is, and every page is right. rmctl shows which way it went.
# limit: 300
. "${BASH_SOURCE[0]%/*}/lib.sh"
mib=512

# moved NODE: group 1; $tracked, $rounds, $last (bytes), $freeze (us) and $why are of this move.
moved() {
    migrate big 1 "$1" --wait --timeout 120 >"$work/migrate" 2>&1 || fail "to $1: $(<"$work/migrate")"
    q settled 60 >/dev/null || fail "not settled"
    read -r tracked rounds last freeze why < <(q way big 1)
    see "to $1: tracked: $tracked${why:+ ($why)}, $rounds rounds, $last bytes in the freeze, frozen for $((freeze / 1000)) ms"
}

cluster 3 --cores 2
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
((2 * tracked < untracked)) || fail "no shorter freeze: $tracked us when tracked, $untracked us when not"
moved n1
same "tracked" "$tracked" yes

release big
finish big 120
ended_well big good
