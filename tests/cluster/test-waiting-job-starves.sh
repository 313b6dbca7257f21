#!/bin/bash
# A job that waits gains priority with each round in which others are served, until those that come later with more of it wait for it; as soon as it
# is placed it has none of that left.
# limit: 120
. "${BASH_SOURCE[0]%/*}/lib.sh"

# What show-job says of its priority.
priority() {
    rmctl show-job "$(job "$1")" | sed -n 's/^Policy: *//p'
}

# small N: a job of two ranks, more urgent than the big one, comes and goes.
small() {
    run "small$1" n1 --priority 5 --group-size 1 -n 2 "$programs/ordered" --iterations=5
    ended_well "small$1" hash
}

cluster 2 --cores 2 --set "sched.age_weight = 2"
start first n1 --group-size 1 -n 2 "$programs/spin" --stop-file="$(stop_file first)"
running first
start big n1 --priority 1 --group-size 1 -n 4 "$programs/spin" --stop-file="$(stop_file big)"
must "the big one does not wait" q state big PENDING 10 >/dev/null
same "before any round is lost" "$(priority big)" "default, priority 1"
small 1
small 2
see "after two urgent ones: $(priority big)"
same "rounds lost" "$(priority big)" "default, priority 1, 2 rounds lost"
# 1 + 2 * 2 is as much as 5, and it was first.
start late n1 --priority 5 --group-size 1 -n 2 "$programs/ordered" --iterations=5
must "the late one does not wait" q state late PENDING 10 >/dev/null
must "the late one waits for something else: $(q job late reason)" grep -q "behind job '$(job big)'" <(q job late reason)
see "the third: $(q job late reason)"
release first
finish first
running big
same "once it runs" "$(priority big)" "distrib, priority 1"
release big
finish big
finish late
ended_well late hash
