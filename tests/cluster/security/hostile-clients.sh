#!/bin/bash
# 200 users with 34 hostile connections each at one node's socket (silent ones, half requests, floods, deaf ones, huge jobs, noise):
# root's rmctl is answered within a second, rmd stays within its memory, another user's job goes on and a new one starts. A user who asks
# without end from two nodes gets no more of the leader than from one, others are served meanwhile, and nothing of it is in the log.
# load: 2
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

seconds=$(thorough 60 15)
# What rmd-cluster(7) promises of local users' clients, beside what it had before.
bound_kb=$((128 << 10))

cluster 2 --cores 4
start goes-on n2 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file goes-on)" --pause-usec=50000
running goes-on
on n1 sh -c 'read -r pid </run/testbed-rmd.pid && echo 5 >/proc/$pid/clear_refs'
before=$(memory_of n1 VmRSS)
on n1 "$programs/hostile" /run/rmd/rmd.sock "$seconds" 20000 200 &
hostile=$!
asks_root n1 "$seconds"
sleep 5
began=$EPOCHREALTIME
user=bob
start new n1 --group-size 1 -n 2 "$programs/surroundings" HOME
until_true "$seconds" gone "${front_pid[new]}" && took=$(msec_since "$began")
user=alice
wait "${asking[@]}"
wait "$hostile"
finish new 20
peak=$(memory_of n1 VmHWM)
see "rmd's memory: $before kB before, at most $peak kB"
see "another user's new job: exit code $rc, after ${took:-more than $seconds s} ms"
answered 1000
((peak - before <= bound_kb)) || fail "rmd's memory grew by $((peak - before)) kB, over $bound_kb kB"
same "the new job's exit code" "$rc" 0
[[ ${took:-} ]] || fail "another user's new job did not come and go within $seconds s"
rmd_runs n1 || fail "rmd is gone"
same "the job that ran" "$(q job goes-on state)" RUNNING

leader=$(q leader)
other=$(nodes | grep -vx "$leader")
# ask USER NODE CONNECTIONS: how often rmd answers the user. The client has the priority of rmd itself, so that what else this machine does takes no answers from one of two
# measurements.
ask() {
    on "$2" chrt --fifo 1 setpriv --reuid "$1" --regid "$1" --init-groups "$programs/askwithoutend" "$3" 1.5 use
}
alone=$(ask alice "$leader" 8)
ask alice "$leader" 8 >"$work/here" &
here=$!
ask alice "$other" 8 >"$work/there" &
there=$!
asks_root "$leader" 2
bobs=$(ask bob "$other" 1)
wait "${asking[@]}"
wait "$here" && wait "$there" || fail "a client of alice's was closed"
both=$(($(<"$work/here") + $(<"$work/there")))
again=$(ask alice "$leader" 8)
((alone >= again)) || alone=$again
see "alice was answered $alone times by the leader, and from two nodes at once $both times ($(<"$work/there") of these from the other); bob, with one connection there, $bobs times"
answered 1000
((both * 5 <= alone * 6)) || fail "from two nodes alice got $both answers of the leader, $alone from one"
((bobs * 16 >= both)) || fail "bob was answered $bobs times by one connection, alice $both times by 16"
index=$(q index)
nothing=$(as alice "$other" "$programs/askwithoutend" 8 1 nothing "$(job goes-on)" "$(q where goes-on 0)")
entries=$(($(q index) - index))
see "$nothing commands that change nothing are $entries entries of the log"
((nothing > 100 && entries * 20 <= nothing)) || fail "$nothing commands that change nothing made $entries entries of the log"
index=$(q index) lines=$(bed_do logs "$other" | wc -l) began=$EPOCHREALTIME
as alice "$other" "$programs/askwithoutend" 8 2 churn >"$work/there" &
there=$!
as alice "$leader" "$programs/askwithoutend" 8 2 churn >"$work/here"
wait "$there" || fail "a client of alice's was closed"
took=$(msec_since "$began")
entries=$(($(q index) - index)) lines=$(($(bed_do logs "$other" | wc -l) - lines))
see "$(($(<"$work/here") + $(<"$work/there"))) jobs came and went in $took ms: $entries entries, $lines lines in a log"
# Those that she asks for, and some that rmd makes of them.
((entries <= (1000 + took / 20 + 32) * 5 / 4)) || fail "alice made $entries entries of the log in $took ms"
((lines <= 1000 + took / 200 + 50)) || fail "alice made $lines lines of a log in $took ms"
release goes-on
finish goes-on
ended_well goes-on hash
same_as_undisturbed goes-on 2 --group-size 1
