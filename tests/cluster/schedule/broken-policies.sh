#!/bin/bash
# A configured policy that crashes, hangs or answers nonsense: jobs start, wait and move by `greedy`, and status and events say why.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

policies=/home/rmd/policies
built=${RMD_DESTDIR:-$("$repo_dir/tools/build" --path)}
built=${built%-destdir}-plain/tests/unit/policy

# Only the leader asks policies. One that hangs takes all the time that it is given; the others have as much as a busy machine may take to run them.
configure() {
    local budget=20s
    [[ $1 != hang ]] || budget=500ms
    on n1 sed -i "s/^policy = .*/policy = $1/; s/^budget *=.*/budget = $budget/" /etc/rmd/rmd.conf
    bed_do restart-rmd n1
    must "$1: they do not join again" until_true 20 all_joined
}

cluster 2 --cores 2 --set "sched.policy_dir=$policies" --set "sched.policy = greedy" --set sched.budget=20s
on n1 mkdir "$policies"
bed_do copy "$built"/{greedy,crash,hang,nonsense}.so "n1:$policies"
while IFS='|' read -r policy says; do
    configure "$policy"
    begun=$EPOCHREALTIME
    run "$policy" n1 --group-size 1 -n 2 "$programs/ordered" --iterations=5
    ended_well "$policy" hash
    see "$policy: a job took $(msec_since "$begun") ms, placed by $(q job "$policy" policy)"
    same "$policy: placed by" "$(q job "$policy" policy)" greedy
    rmctl events >"$work/events"
    grep "policy-error.*policy '$policy'" "$work/events" | grep -E -m 1 "$says" || fail "$policy: no event says '$says': $(tail -n 5 "$work/events")"
    # From any node.
    on n2 rmctl status >"$work/status"
    grep -q "policy '$policy'" "$work/status" || fail "$policy: status does not tell: $(<"$work/status")"
done <<'END'
crash|crashed
hang|no answer
nonsense|group
END

# A drain and a job that waits need rounds too.
start live n1 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
start waiting n1 -n 4 "$programs/ordered" --iterations=5
must "it does not wait" q state waiting PENDING 10 >/dev/null
must "the drain" rmctl drain-node n2 --reason policies --wait --timeout 30 >/dev/null
see "n2 is $(q node n2 state), the job is on $(q place live | tr '\n' ' ')"
must "resume-node" rmctl resume-node n2 >/dev/null
release live
finish live
ended_well live hash
finish waiting
ended_well waiting hash
configure greedy
run good n1 -n 2 "$programs/ordered" --iterations=5
grep -q "policy '" <(rmctl status) && fail "status still warns: $(rmctl status)"
see "a policy that works: status is quiet again"
