#!/bin/bash
# backfill = limits: a job with a time limit that ends before the big one that waits could start overtakes it; one without a limit
# and one with too long a limit do not; and the big one starts no later for it.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

limit_s=400

# waits NAME AFTER: still, after something else has happened.
waits() {
    same "$1, when $2" "$(q job "$1" state)" PENDING
}

# Of the job's start, in seconds.
began() {
    date -d "$(q job "$1" start)" +%s
}

cluster 2 --cores 2 --set "sched.backfill = limits"
start first n1 --time $limit_s --group-size 2 -n 2 "$programs/spin" --stop-file="$(stop_file first)"
running first
start big n1 --group-size 2 -n 4 "$programs/spin" --stop-file="$(stop_file big)"
must "the big one does not wait" q state big PENDING 10 >/dev/null
start endless n1 --group-size 2 -n 2 "$programs/ordered" --iterations=5
start long n1 --time 10m --group-size 2 -n 2 "$programs/ordered" --iterations=5
must "one without a time limit overtakes" q state endless PENDING 10 >/dev/null
must "one with a long limit overtakes" q state long PENDING 10 >/dev/null
run short n2 --time 15 --group-size 2 -n 2 "$programs/ordered" --iterations=5
ended_well short hash
see "a short one came, ran and went: $(q job short state)"
waits big "the short one has ended"
waits endless "the short one has ended"
waits long "the short one has ended"
see "the big one: $(q job big reason)"
# Nobody but its owner and administrators knows when it starts, and of no other job is that known.
id=$(q job big id)
end=$(($(began first) + limit_s))
expected=$(date -d "$(rmctl show-job "$id" --json | grep -o '"expected_start": "[^"]*"' | cut -d '"' -f 4)" +%s) || fail "no start is expected"
((expected >= end - 1 && expected <= end + 1)) || fail "it is expected to start $((expected - end)) s after the limit of the first"
rmctl show-job "$id" | grep '^ *Starts:\? *in .* at the latest (' >"$work/starts" || fail "show-job: no start: $(rmctl show-job "$id")"
see "$(<"$work/starts")"
same "jobs whose start is listed" "$(rmctl list-jobs | grep -c ' in [0-9]*m [0-9]*s *$')" 1
rmctl list-jobs | grep -q '^ *JOB.* STARTS *$' || fail "list-jobs: no column: $(rmctl list-jobs)"

release first
finish first
running big
! rmctl list-jobs | grep -q 'STARTS\| in [0-9]' || fail "a start is expected, with no limit in the way: $(rmctl list-jobs)"
seconds=$(($(began big) - $(began first)))
see "the big one started $seconds s after the first, whose limit was $limit_s s"
((seconds < limit_s)) || fail "it should have started within $limit_s s"
waits endless "the big one runs"
release big
finish big
for name in endless long; do
    finish $name
    ended_well $name hash
done
