#!/bin/bash
# What few programs use, but some rely on: after a move it is as it was, or the move is refused and the program goes on; it is never
# lost or weakened without a word. A program that stops the CRIU it sees is moved all the same.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 16 --set sched.move_timeout=10s
modes=(memfd-exe seals keyring robust undumpable seccomp gone stop-criu nameless of-ended of-name since-ended daemon fifo deleted-name)
for mode in "${modes[@]}"; do
    start "$mode" n1 --group-size 1 -n 1 "$programs/odd" "$mode" --stop-file="$(stop_file "$mode")" --dir=/home/alice
    running "$mode"
done
sleep 1
for mode in "${modes[@]}"; do
    if migrate "$mode" 0 n2 --mode stop --wait --timeout 30 >"$work/migrate" 2>&1; then
        see "$mode: moved"
    else
        see "$mode: $(cut -c 1-200 "$work/migrate")"
        [[ $mode != nameless ]] || grep -q 'watches a file (inotify) that has no name any more' "$work/migrate" || fail "nameless: $(<"$work/migrate")"
    fi
done
for refused in memfd-exe keyring nameless; do same "where $refused is" "$(q where "$refused" 0)" n1; done
for moved in stop-criu of-ended of-name since-ended daemon fifo deleted-name; do same "where $moved is" "$(q where "$moved" 0)" n2; done
# As often as one likes.
for node in n1 n2; do
    for mode in daemon fifo deleted-name; do
        migrate "$mode" 0 "$node" --wait --timeout 30 >"$work/migrate" 2>&1 || fail "$mode does not move again: $(<"$work/migrate")"
    done
done
for mode in "${modes[@]}"; do
    release "$mode"
    finish "$mode"
    ended_well "$mode" "odd: $mode good"
done
