#!/bin/bash
# On a slow link, a group whose memory can be compressed moves in a fraction of its bytes, and one with random memory as it is; what rmd.conf says
# of a codec is obeyed; and all memory is right afterwards.
# limit: 180
. "${BASH_SOURCE[0]%/*}/../lib.sh"
mib=24

# moved NAME NODE: its group 1; codec, bytes sent and bytes saved are in $codec, $sent, $saved.
moved() {
    migrate "$1" 1 "$2" --wait --timeout 60 >"$work/migrate" 2>&1 || fail "$1 to $2: $(<"$work/migrate")"
    q settled 60 >/dev/null || fail "not settled"
    read -r codec sent saved < <(q codec "$1" 1)
    see "$1 to $2: $codec, $sent bytes sent, $saved saved"
    ((sent + saved > mib << 20)) || fail "$1 to $2: less than its memory was sent"
}

# configure NODE CODEC
configure() {
    on "$1" sh -c "printf '\n[move]\ncodec = $2\n' >>/etc/rmd/rmd.conf"
    bed_do restart-rmd "$1" || fail "rmd on $1 does not start again"
    must "not all are back" until_true 20 all_joined
}

cluster 3 --cores 4 --link 100mbit
start soft n1 --group-size 1 -n 2 "$programs/memory" --mb=$mib --only-rank=1 --zero-percent=0 --repeat --stop-file="$(stop_file soft)"
running soft
start hard n1 --group-size 1 -n 2 "$programs/memory" --mb=$mib --only-rank=1 --zero-percent=0 --stop-file="$(stop_file hard)"
running hard
for name in soft hard; do
    [[ $(q where $name 1) == n1 ]] || move $name 1 n1
done

moved soft n2
[[ $codec =~ LZ4|ZSTD ]] || fail "compressible memory went by codec $codec"
((sent < (mib << 20) / 2)) || fail "compressible memory was sent in $sent bytes"
rmctl list-moves | tail -n 1 | grep -qE ' (lz4|zstd) [0-9.]+x ' || fail "list-moves does not show the codec: $(rmctl list-moves | tail -n 1)"
# looked NODE: what the group has open is looked at there for its own processor time: by a process in the control group of its PID 1.
looked() {
    on "$1" sh -c 'cat $(sed "s,.*,/proc/&/comm," /sys/fs/cgroup/rmd-capsules/*/init/cgroup.procs) 2>/dev/null' | grep -qx rm-mover-look
}
until_true 30 looked n1 &
watch=$!
moved hard n2
must "nobody looks at its descriptors in a group of its own" wait "$watch"
looked n1 && fail "who looks at them is left"
((sent > mib << 20)) || fail "random memory was sent in $sent bytes"

configure n2 none
moved soft n3
same "the codec of n2" "$codec, $saved saved" "NONE, 0 saved"
configure n3 lz4
moved soft n1
same "the codec of n3" "$codec" LZ4
((sent < (mib << 20) / 2)) || fail "compressible memory was sent in $sent bytes"

for name in soft hard; do
    release $name
    finish $name
    ended_well $name good
done
