#!/bin/bash
# A group that holds a lock of a shared file, or a lease of any, is refused a move, at once and in words; it goes on with it, and moves when that is gone.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 4
for kind in posixlock flock ofdlock lease lease/tmp; do
    name=${kind/\//-} file=/home/alice/$kind
    [[ $kind != */tmp ]] || file=/tmp/lease
    start "$name" n1 --group-size 1 -n 2 "$programs/holds" "${kind%/tmp}" --file="$file" --drop-file="/home/alice/$name.drop" \
        --stop-file="$(stop_file "$name")"
    running "$name"
    from=$(q where "$name" 0)
    begun=$EPOCHREALTIME
    if migrate "$name" 0 "$(a_node_but "$from")" --mode stop --wait --timeout 40 >"$work/said" 2>&1; then
        fail "$name: the group moved, with a lock that two nodes cannot hold"
    fi
    see "$name: $(msec_since "$begun") ms: $(<"$work/said")"
    grep -qE 'process [0-9]+ \(holds\) holds a (lock|lease)' "$work/said" || fail "$name: that does not say what is in the way"
    in_time "$(msec_since "$begun")" 15000 || fail "$name: the refusal took $(msec_since "$begun") ms"
    same "$name: where it is" "$(q where "$name" 0)" "$from"
    on n1 touch "/home/alice/$name.drop"
    must "$name: does not let go" until_true 20 grep -q dropped "$work/$name.out"
    move "$name" 0 "$(a_node_but "$from")"
    release "$name"
    finish "$name"
    ended_well "$name" 'holds: good'
done

# Locks of the capsule's own files are carried, and one that is held for moments only is waited for.
start own n1 --group-size 1 -n 2 "$programs/holds" posixlock --file=/tmp/own --stop-file="$(stop_file own)"
start short n1 --group-size 1 -n 2 "$programs/holds" shortlock --file=/home/alice/short --stop-file="$(stop_file short)"
for name in own short; do
    running "$name"
    move "$name" 0 "$(a_node_but "$(q where "$name" 0)")"
    release "$name"
    finish "$name"
    ended_well "$name" 'holds: good'
done
