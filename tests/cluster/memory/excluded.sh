#!/bin/bash
# Memory that a program has excluded (rmrt_exclude) is sent by no move and stored by no checkpoint, and is zero after; of a rank that does not come by it is carried whole. Nothing else is lost.
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

mib=256
# Who is to answer has time for it; rmd goes on as soon as he has.
cluster 2 --cores 2 --set move.callback_wait=10s

bed_do copy "$repo_dir/tests/programs/scratch.c" n1:/home/alice/scratch.c
bed_do copy "$repo_dir/tests/programs/common.h" n1:/home/alice/common.h
bed_do exec n1 --user alice -- sh -c 'mpicc -std=gnu17 -O2 -Wall -Wextra -o scratch scratch.c $(pkg-config --cflags --libs rmrt)' >"$work/cc" 2>&1 ||
    fail "a user cannot build it: $(head -n 5 "$work/cc")"

# moved NAME ARG...: one rank is moved to the other node; $bytes that were sent, $msec from begin to end, and $freeze.
moved() {
    local name=$1 begin
    shift
    start "$name" n1 -n 1 ./scratch --stop-file="$(stop_file "$name")" --mib=$mib "$@"
    running "$name"
    sleep 2 # rmd hears who listens within a second
    begin=$EPOCHREALTIME
    move "$name" 0 "$(a_node_but "$(q where "$name" 0)")"
    msec=$(msec_since "$begin")
    read -r _ freeze bytes _ < <(q figures "$name")
    release "$name"
    finish "$name"
    same "the exit code of $name" "$rc" 0
    see "$name: $((bytes >> 20)) MiB sent, $msec ms, stood still for $((freeze / 1000)) ms; $(grep pages "$work/$name.out")"
    grep -q 'kept whole' "$work/$name.out" || fail "$name has lost what it did not exclude"
}
pages=$((mib * 256))

moved carried --carry
carried_bytes=$bytes
grep -q ": $pages pages as they were, 0 zero, 0 others" "$work/carried.out" || fail "memory that is not excluded is lost"
moved excluded
grep -Eq ': [01] pages as they were, [0-9]+ zero, 0 others' "$work/excluded.out" || fail "what is excluded is still there"
((bytes + (mib << 20) / 2 < carried_bytes || bytes < 64 << 20)) || fail "it was sent: $bytes bytes"
moved deaf --deaf
grep -q ": $pages pages as they were, 0 zero, 0 others" "$work/deaf.out" || fail "of a rank that does not come by it is lost"

# Of checkpoints: what their contents are, in bytes.
contents() {
    rmctl show-job --json "$(job "$1")" | python3 -c 'import json, sys
print(sum(int(p.get("raw_bytes", 0)) for c in json.load(sys.stdin)["jobs"][0].get("checkpoints", []) for p in c.get("parts", [])))'
}
declare -A raw
for name in saved-carry saved; do
    args=()
    [[ $name == saved ]] || args=(--carry)
    start $name n1 --checkpoint 1h --on-node-loss restart -n 1 ./scratch --stop-file="$(stop_file $name)" --mib=$mib "${args[@]}"
    running $name
    sleep 2
    rmctl checkpoint-job "$(job $name)" >"$work/$name.saved" 2>&1 || fail "$name is not saved: $(<"$work/$name.saved")"
    raw[$name]=$(contents $name)
    see "$name: a checkpoint of $((raw[$name] >> 20)) MiB; $(tail -n 1 "$work/$name.saved")"
    release $name
    finish $name
    same "the exit code of $name" "$rc" 0
done
grep -Eq ': [01] pages as they were, [0-9]+ zero, 0 others; kept whole' "$work/saved.out" || fail "saved: $(<"$work/saved.out")"
grep -q ": $pages pages as they were" "$work/saved-carry.out" || fail "saved-carry: $(<"$work/saved-carry.out")"
((raw[saved] > 0 && raw[saved] + (mib << 20) / 2 < raw[saved-carry])) || fail "what is excluded is in the checkpoint: ${raw[saved]} bytes"
