#!/bin/bash
# 200 users with 34 hostile connections each at one node's socket (silent ones, half requests, floods, deaf ones, huge jobs, noise):
# root's rmctl is answered within a second, rmd stays within its memory, another user's job goes on and a new one starts.
# load: 2
# limit: 240
. "${BASH_SOURCE[0]%/*}/lib.sh"

seconds=$(thorough 60 15)
# What rmd(8) promises of local users' clients, beside what it had before.
bound_kb=$((128 << 10))

rmd_memory() {
    on n1 sh -c "read -r pid </run/testbed-rmd.pid && sed -n 's/^$1:[[:space:]]*\([0-9]*\) kB/\1/p' /proc/\$pid/status"
}

cluster 2 --cores 4
start goes-on n2 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file goes-on)" --pause-usec=50000
running goes-on
on n1 sh -c 'read -r pid </run/testbed-rmd.pid && echo 5 >/proc/$pid/clear_refs'
before=$(rmd_memory VmRSS)
on n1 "$programs/hostile" /run/rmd/rmd.sock "$seconds" 20000 200 &
hostile=$!
# At real-time priority, as rmd itself: whether users leave root's shell a processor is not the question here.
on n1 chrt -f 2 "$programs/probe" "$seconds" rmctl status >"$work/asked" &
probe=$!
sleep 5
began=$EPOCHREALTIME
user=bob
start new n1 --group-size 1 -n 2 "$programs/surroundings" HOME
until_true "$seconds" gone "${front_pid[new]}" && took=$(msec_since "$began")
user=alice
wait "$probe"
wait "$hostile"
finish new 20
peak=$(rmd_memory VmHWM)
worst=$(sort -n "$work/asked" | tail -n 1)
see "the ten slowest, in ms: $(sort -rn "$work/asked" | head -n 10 | cut -d " " -f 1 | tr "\n" " ")"
see "root asked $(wc -l <"$work/asked") times, was refused $(grep -vc ' 0$' "$work/asked") times; the slowest: ${worst% *} ms"
see "rmd's memory: $before kB before, at most $peak kB"
see "another user's new job: exit code $rc, after ${took:-more than $seconds s} ms"
[[ -s $work/asked ]] || fail "root's rmctl was never answered"
! grep -qv ' 0$' "$work/asked" || fail "root's rmctl status was refused"
((${worst% *} <= 1000)) || fail "root's rmctl status took ${worst% *} ms"
((peak - before <= bound_kb)) || fail "rmd's memory grew by $((peak - before)) kB, over $bound_kb kB"
same "the new job's exit code" "$rc" 0
[[ ${took:-} ]] || fail "another user's new job did not come and go within $seconds s"
rmd_runs n1 || fail "rmd is gone"
same "the job that ran" "$(q job goes-on state)" RUNNING
release goes-on
finish goes-on
ended_well goes-on hash
same_as_undisturbed goes-on 2 --group-size 1
