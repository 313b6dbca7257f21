#!/bin/bash
# While a group moves, its destination has its memory twice: as it came, and in its processes. Tracked and untracked.
# limit: 200
. "${BASH_SOURCE[0]%/*}/lib.sh"
mib=256

# What files of moves and the memory of processes take on a node, in MiB, until it is told to stop.
sample='while [ ! -e /run/sampled ]; do
    files=$(stat -f -c "%b %f %S" /run/rmd/moves)
    awk -v files="$files" "/^RssAnon/ { kib += \$2 } END { split(files, f); print (f[1] - f[2]) * f[3] / 2 ^ 20 + kib / 2 ^ 10, kib / 2 ^ 10 }" /proc/[0-9]*/status 2>/dev/null
done'

# bounded NODE TRACKED: a move of the group to there takes at most 1.1 times its memory, and 64 MiB.
bounded() {
    local to=$1 tracked=$2 sampler before after peak
    on "$to" sh -c "$sample" >"$work/$to" &
    sampler=$!
    until_true 10 test -s "$work/$to"
    migrate big 1 "$to" --wait --timeout 120 >"$work/migrate" 2>&1 || fail "to $to: $(<"$work/migrate")"
    same "tracked" "$(q way big 1 | cut -d ' ' -f 1)" "$tracked"
    [[ $tracked == no ]] || q filled big 1 60 >/dev/null || fail "its memory does not arrive"
    sleep 0.5
    on "$to" touch /run/sampled
    wait "$sampler"
    before=$(awk 'NR == 1 { print int($2) }' "$work/$to")
    after=$(awk 'END { print int($2) }' "$work/$to")
    peak=$(awk '$1 > peak { peak = $1 } END { print int(peak) }' "$work/$to")
    see "to $to: tracked: $tracked, $((after - before)) MiB of memory, at most $((peak - before)) MiB, $(wc -l <"$work/$to") samples"
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
