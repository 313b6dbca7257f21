#!/bin/bash
# While a group moves, its destination has its memory twice: as it came, and in its processes. Tracked and untracked.
# limit: 200
. "${BASH_SOURCE[0]%/*}/../lib.sh"
mib=256

# bounded NODE TRACKED: a move of the group to there takes at most 1.1 times its memory, and 64 MiB.
bounded() {
    local to=$1 tracked=$2 before after peak samples parts
    watch_memory "$to"
    migrate big 1 "$to" --wait --timeout 120 >"$work/migrate" 2>&1 || fail "to $to: $(<"$work/migrate")"
    same "tracked" "$(q way big 1 | cut -d ' ' -f 1)" "$tracked"
    [[ $tracked == no ]] || q filled big 1 60 >/dev/null || fail "its memory does not arrive"
    sleep 0.5
    memory_watched "$to"
    see "to $to: tracked: $tracked, $((after - before)) MiB of memory, at most $((peak - before)) MiB, $samples samples; then, in MiB: $parts"
    ((after - before > mib * 8 / 10)) || fail "only $((after - before)) MiB of $mib came to $to"
    ((peak - before <= (after - before) * 11 / 10 + 64)) || fail "$((peak - before)) MiB on $to for $((after - before)) MiB of memory"
}

cluster 3 --cores 2
start big n1 --group-size 1 -n 2 "$programs/memory" --mb=$mib --only-rank=1 --zero-percent=10 --dirty-percent=1 --stop-file="$(stop_file big)"
running big 60
[[ $(q where big 1) == n1 ]] || move big 1 n1
bounded n2 yes
on n2 sh -c "printf '\n[move]\ntracking = no\n' >>/etc/rmd/rmd.conf"
bed_do restart-rmd n2 || fail "rmd on n2 does not start again"
must "not all are back" until_true 20 all_joined
bounded n3 no

release big
finish big 120
ended_well big good
