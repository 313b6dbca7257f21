#!/bin/bash
# A program that writes all of its memory all the time, with last = postcopy: how long it stands still does not grow with its memory, which is sent once; it waits
# for single pages for a moment only, and each is right. Where its job may not start again, nothing of its memory is left at the source.
# complete: post-copy is off by default, and has unit tests of its own
# limit: 300
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"

filled() {
    (($(figure fill_usec) > 0))
}

# begin NAME MIB LOSS: group 1 is on n1 then.
begin() {
    start "$1" n1 --on-node-loss "$3" --group-size 1 -n 2 "$programs/memory" --mb="$2" --only-rank=1 --zero-percent=0 --dirty --stop-file="$(stop_file "$1")"
    running "$1" 60
    [[ $(q where "$1" 1) == n1 ]] || move "$1" 1 n1
    q settled 60 >/dev/null || fail "not settled"
}

# moved NAME NODE: group 1; $freeze, $p99 in us, $later, $sent in bytes.
moved() {
    migrate "$1" 1 "$2" --wait --timeout 120 >"$work/migrate" 2>&1 || fail "to $2: $(<"$work/migrate")"
    must "$1 never has all of its memory on $2" until_true 60 filled
    q settled 60 >/dev/null || fail "not settled"
    freeze=$(figure freeze_usec) later=$(figure later_bytes) sent=$(figure image_bytes) p99=$(figure later_p99_usec)
    see "$1 to $2: frozen for $((freeze / 1000)) ms, $((sent >> 20)) MiB sent, $((later >> 20)) of them later, $(figure later_faults) pages were waited for, 99 of 100 for $p99 us"
}

cluster 3 --cores 2 --link 1gbit --set move.last=postcopy
for mib in 64 512; do
    once=0
    begin "big$mib" $mib restart
    for to in n2 n3 n1; do
        moved "big$mib" "$to"
        ((later > 0)) || fail "it was not post-copied"
        # A program that got no processor while it was looked at is sent ahead first, and only what it has written again since then comes later.
        if (($(figure ahead_rounds) == 0)); then
            ((later >= mib << 20)) || fail "$later bytes of it were post-copied"
            ((sent <= (mib << 20) / 10 * 11 + (8 << 20))) || fail "it was sent more than once: $sent bytes"
            once=$((once + 1))
        fi
        echo "$freeze" >>"$work/freeze-$mib"
        echo "$p99" >>"$work/p99"
    done
    ((once > 0)) || fail "big$mib was sent ahead each time"
    release "big$mib"
    finish "big$mib" 120
    ended_well "big$mib" good
done
# What others do on this machine is no matter.
small=$(sort -n "$work/freeze-64" | head -n 1) large=$(sort -n "$work/freeze-512" | head -n 1) p99=$(sort -n "$work/p99" | head -n 1)
see "frozen for $((small / 1000)) ms at best with 64 MiB, $((large / 1000)) ms with 512 MiB; a page waited for: $p99 us"
((large < 2 * small)) || fail "the freeze grows with the memory"
in_time "$p99" 20000 || fail "a page is waited for too long"
on n1 rmctl events | grep -q 'goes on on n2 while .* MB of its memory are still on n1' || fail "no event tells that it was post-copied"
on n1 rmctl events | grep -q ' has all of its memory on n2, after .* and waited .* times' || fail "no event tells how long it waited for pages"

begin lone 64 abort
moved lone n2
same "left at the source of a job that may not start again" "$later" 0
release lone
finish lone 120
ended_well lone good
